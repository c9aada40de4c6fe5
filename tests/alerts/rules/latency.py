"""Trials of ``alerts/pack/latency.py``."""

from __future__ import annotations

from exporter.derive.latency import SLO_EVENTS, TOKEN_INTERVAL
from exporter.derive.prefill import HEAD_OF_LINE, LONG_PROMPTS, PREFIX_HITS
from exporter.derive.stalls import TOKEN_AGE
from exporter.derive.traffic import SEQUENCES
from tests.alerts.rules.trials import Fires, Quiet, Told

_RUNNING = (("state", "running"),)
_QUOTA = (("over_tokens", "65536"),)
_MINUTE = 60


def _events(slo: str, *, good: float, bad: float, calm: float = 1.0) -> tuple[Told, Told]:
    """Of each engine, a second: ``calm`` good ones of the healthy, of the ill one as told."""
    kinds = ((calm, good, "true"), (0.0, bad, "false"))
    return (
        Told(SLO_EVENTS, *kinds[0][:2], (("slo", slo), ("good", kinds[0][2]))),
        Told(SLO_EVENTS, *kinds[1][:2], (("slo", slo), ("good", kinds[1][2]))),
    )


def _burn(slo: str, what: str, name: str, often: str, within: int, ends: int | None) -> Fires:  # noqa: PLR0913, PLR0917 -- a row of the table below
    """One of a fleet's two engines misses most: 0.8 of 2 events a second, a share of 0.4."""
    title = {"ttft": "FirstToken", "tpot": "TokenPace"}[slo]
    return Fires(
        f"Slo{title}Burn{name}",
        "one of two engines misses",
        _events(slo, good=0.2, bad=0.8),
        f"The fleet's {what} miss their objective {often} the budget allows",
        within_seconds=within,
        ends_within_seconds=ends,
        calm_seconds=10 * _MINUTE,
        step=_MINUTE,
        labels={"slo": slo},
        worst="Most misses: a (0.8 a second).",
        steady=False,  # who misses most, and how much, changes as it ends
        twice=name == "Fast",
    )


_BURNS = tuple(
    _burn(slo, what, *row)
    for slo, what in (("ttft", "first tokens"), ("tpot", "tokens"))
    for row in (
        ("Fast", "14.4 times as often as", 15 * _MINUTE, 6 * _MINUTE),
        ("Quick", "6 times as often as", 35 * _MINUTE, 36 * _MINUTE),
        # the short windows of these are hours: their end is looked at by Quick
        ("Slow", "3 times as often as", 65 * _MINUTE, None),
        ("Creeping", "more often than", 65 * _MINUTE, None),
    )
)
_FIRST, *_OTHERS = (
    f"Slo{title}Burn{name}"
    for title in ("FirstToken", "TokenPace")
    for name in ("Fast", "Quick", "Slow", "Creeping")
)


def _no_burn(why: str, *, good: float, bad: float, calm: float) -> Quiet:
    """Both objectives, all windows; for as long as the slowest would need."""
    told = (*_events("ttft", good=good, bad=bad, calm=calm), *_events("tpot", good=good, bad=bad, calm=calm))
    return Quiet(_FIRST, why, told, step=_MINUTE, others=tuple(_OTHERS))


_QUIET_BURNS = (
    _no_burn("no traffic", good=0, bad=0, calm=0),
    _no_burn("a miss now and then, within the budget", good=0.99, bad=0.01, calm=1),
    _no_burn("all of next to nothing misses", good=0, bad=0.004, calm=0),
)

TRIALS = (
    Fires(
        "DecodeStalled",
        "no token while sequences run",
        (Told(TOKEN_AGE, 0.1, 12), Told(SEQUENCES, 4, 4, _RUNNING)),
        "a: no token for 12s while sequences run",
    ),
    Quiet("DecodeStalled", "nobody asks", (Told(TOKEN_AGE, 0.1, 500), Told(SEQUENCES, 4, 0, _RUNNING))),
    Fires(
        "TokensCrawl",
        "seconds between tokens",
        (Told(TOKEN_INTERVAL, 0.05, 3.5),),
        "a: 3.5s between two tokens",
    ),
    Quiet("TokensCrawl", "slow, and bearable", (Told(TOKEN_INTERVAL, 0.05, 1.5),)),
    Fires(
        "HeadOfLineBlocking",
        "a prefill before all others",
        (Told(HEAD_OF_LINE, 0, 0.6),),
        "a: sequences wait behind a prefill 60% of the time",
    ),
    Quiet("HeadOfLineBlocking", "now and then", (Told(HEAD_OF_LINE, 0, 0.1),)),
    Fires(
        "LongPromptsOverQuota",
        "long prompts",
        (Told(LONG_PROMPTS, 0.01, 0.3, _QUOTA),),
        "a: 30% of prompts are longer than the quota",
    ),
    Quiet("LongPromptsOverQuota", "few of them", (Told(LONG_PROMPTS, 0.01, 0.04, _QUOTA),)),
    Fires(
        "PrefixHitsCollapsed",
        "the cache paid and does no more",
        (Told(PREFIX_HITS, 0.7, 0.05),),
        "a: the prefix cache hits 5%, and did far more before",
        calm_seconds=15 * _MINUTE,
    ),
    Quiet(
        "PrefixHitsCollapsed", "it never paid", (Told(PREFIX_HITS, 0.05, 0.05),), calm_seconds=15 * _MINUTE
    ),
    Quiet("PrefixHitsCollapsed", "it pays less", (Told(PREFIX_HITS, 0.7, 0.3),), calm_seconds=15 * _MINUTE),
    *_BURNS,
    *_QUIET_BURNS,
)
