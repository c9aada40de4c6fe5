"""3. Whose prompts are long? How long they are, the share above the quota, and the keys where a gateway tells them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from alerts.thresholds import Thresholds
from alerts.triage.known import Known
from alerts.triage.look import Look
from alerts.triage.numbers import count, percent, short
from alerts.triage.steps.step import Step
from exporter.derive.phenomenon import LONG_PROMPT_TOKENS
from exporter.derive.prefill import LONG_PROMPTS
from exporter.sample import Histogram
from exporter.sources.failure import one_line

NAME = "prompts"
MOST_KEYS = 3
_MOST_NAME = 40
_QUANTILES = ((0.5, "median"), (0.9, "p90"), (0.99, "p99"))


def prompts(look: Look, thresholds: Thresholds) -> Step:
    """Of all ranks together: the load balancer mixes what they get."""
    ranks = look.subjects().ranks
    told = [histogram for known in ranks if (histogram := _lengths(look, known)) is not None]
    lengths = _together(told)
    lately = max((value for known in ranks if (value := known.value(LONG_PROMPTS)) is not None), default=None)
    lines = tuple(_keys(look))
    values: dict[str, float | str] = {}
    if lately is not None:
        values["long_prompt_ratio"] = lately
    if lengths is None or not lengths.count:
        return Step(NAME, "unknown: no request has finished since the start", lines=lines, values=values)
    within = lengths.at_most(LONG_PROMPT_TOKENS)
    parts = [
        f"{name} {'over ' if found[1] else ''}{short(found[0])}"
        for q, name in _QUANTILES
        if (found := lengths.quantile(q)) is not None
    ]
    values["finished"] = lengths.count
    distribution = f"{', '.join(parts)} tokens; {count(lengths.count)} finished since the start"
    if within is None:
        return Step(
            NAME, "unknown: its buckets end below 64k tokens", lines=(distribution, *lines), values=values
        )
    ever = 1.0 - within[1] / lengths.count
    values |= {"over_tokens": within[0], "long_prompt_ratio_since_start": ever}
    share = ever if lately is None else lately
    when = "since the start" if lately is None else "in 5 min"
    alarming = share > thresholds.long_prompt_ratio
    answer = f"{'LONG' if alarming else 'as agreed'}: {percent(share)} over {count(within[0])} tokens {when}"
    if lately is not None:
        answer += f" ({percent(ever)} since the start)"
    return Step(NAME, answer, alarming, (distribution, *lines), values)


def _lengths(look: Look, known: Known) -> Histogram | None:
    sample = look.sample_of(known)
    return None if sample is None else sample.request_prompt_tokens


def _together(histograms: list[Histogram]) -> Histogram | None:
    total: Histogram | None = None
    for each in histograms:
        total = each if total is None else total.plus(each) or total
    return total


def _keys(look: Look) -> Iterator[str]:
    """By key, where the gateway labels prompts of 64k tokens and more."""
    for gateway in look.gateways:
        long = [(use.long_prompts, use.key) for use in gateway.keys if use.long_prompts]
        if long:
            top = sorted(long, reverse=True)[:MOST_KEYS]
            shown = ", ".join(f"{one_line(key, _MOST_NAME)} {count(number)}" for number, key in top)
            yield f"keys of prompts of 64k tokens and more at {gateway.gateway}: {shown}"
        elif gateway.keys:
            top_tokens = sorted(((use.prompt_tokens, use.key) for use in gateway.keys), reverse=True)[
                :MOST_KEYS
            ]
            shown = ", ".join(
                f"{one_line(key, _MOST_NAME)} {short(number)}"
                for number, key in top_tokens
                if math.isfinite(number)
            )
            yield f"keys of most prompt tokens at {gateway.gateway}: {shown}; none labels 64k"
        else:
            yield f"{gateway.gateway} ({gateway.kind}) tells no keys: its access log does"
