"""Rules over what a Prometheus-compatible server remembers: it evaluates expressions, and here is what becomes of them.

A query for a range evaluates an expression at each instant just as a rule group would have, staleness and lookback
included; so what holds, and when, is the server's word, and pending, firing and restoring is ``analysis.firing``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.backtest.asking import AnswerError, Server
from analysis.backtest.frames import NEVER_RESTARTED, Ups
from analysis.backtest.outcome import Alarm, Backtest, Labels, Outcome
from analysis.backtest.rule_file import Asked, RulesError
from analysis.firing import episodes
from analysis.frame import Values, grid
from analysis.history.samples import Samples

MOST_POINTS = 11_000
"""A series in one answer: more are refused, by Prometheus and by those that go by it."""
_ALERT = "alertname"


def backtest(  # noqa: PLR0913 -- of what, when, how often, and what befell it
    server: Server,
    asked: Sequence[Asked],
    start: float,
    end: float,
    *,
    every_seconds: float = 15.0,
    cluster_labels: Sequence[str] = (),
    ups: Ups = NEVER_RESTARTED,
    progress: Callable[[str], None] = lambda _: None,
) -> Backtest:
    """Evaluate rules from ``start`` to before ``end``. ``progress`` is called with each one's name before it is asked.

    Raises HistoryError: the server doesn't answer; RulesError: expressions that it refuses.
    """
    outcomes = []
    refused = []
    for each in asked:
        progress(each.rule.name)
        try:
            outcomes.append(
                _outcome(server, each, grid(start, end, each.every_seconds or every_seconds), ups)
            )
        except AnswerError as error:
            if error.refused:
                refused.append(f"{each.place}: {each.rule.name}: {error}")
            outcomes.append(Outcome(each.rule, not_said=f"{server.shown} can't evaluate it: {error}"))
    if refused:
        raise RulesError(refused)
    return Backtest(server.shown, start, end, every_seconds, tuple(outcomes), tuple(cluster_labels))


def _outcome(server: Server, asked: Asked, times: Values, ups: Ups) -> Outcome:
    if not len(times):
        return Outcome(asked.rule, not_said="that time is too short: the rule is never evaluated in it")
    alarms = []
    every = asked.every_seconds or (times[1] - times[0] if len(times) > 1 else 1.0)
    held: dict[Labels, NDArray[np.bool_]] = {}
    for chunk in chunks(times):
        for found in server.query_range(asked.expression, chunk[0], chunk[-1], every):
            labels = _labels(found, asked)
            truth = held.setdefault(labels, np.zeros(len(times), dtype=bool))
            truth[np.rint((found.times - times[0]) / every).astype(np.int64)] = True
    for labels, truth in held.items():
        alarms += [
            Alarm(labels, each)
            for each in episodes(
                times,
                truth,
                for_seconds=asked.rule.for_seconds,
                keep_firing_seconds=asked.rule.keep_firing_seconds,
                restarts=ups.restarts,
                restoring=ups.restoring,
            )
        ]
    return Outcome(asked.rule, tuple(alarms), len(held))


def with_left_out(tested: Backtest, left_out: Sequence[Outcome]) -> Backtest:
    """The same with rules that couldn't be asked."""
    return replace(tested, outcomes=(*tested.outcomes, *left_out))


def chunks(times: Values) -> Iterator[Values]:
    """Instants, as many together as a server answers at once."""
    for first in range(0, len(times), MOST_POINTS):
        yield times[first : first + MOST_POINTS]


def _labels(found: Samples, asked: Asked) -> Labels:
    """As an alert bears them; what a rule's templates would make of its labels isn't known here."""
    told = dict(found.key.labels)
    told |= {name: text for name, text in asked.labels if "{{" not in text and name != _ALERT}
    return tuple(sorted(told.items()))
