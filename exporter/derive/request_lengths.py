"""How long an engine's requests are, by those that finished of late."""

from __future__ import annotations

from collections.abc import Callable

from exporter.sample import Histogram, RankSample
from exporter.window import Window

MIX_SECONDS = 300.0
ENOUGH_REQUESTS = 20
"""Fewer say little of how long requests are."""


def mean_remaining(lengths: Histogram) -> float | None:
    """Tokens a running answer has still to go, on average, from the lengths of finished ones.

    A sequence met at a random moment is met in proportion to its length, so the mean rest is
    E[L^2] / (2 E[L]) (renewal theory). The second moment is taken from bucket middles, the mean from
    the histogram's sum. None without observations.
    """
    mean = lengths.mean
    if mean is None or mean <= 0:
        return None
    first = second = floor = before = 0.0
    for bound, count in zip(lengths.bounds, lengths.counts, strict=True):
        middle = (floor + bound) / 2 if bound != float("inf") else floor
        first += (count - before) * middle
        second += (count - before) * middle * middle
        floor, before = (bound if bound != float("inf") else floor), count
    if first <= 0:
        return mean / 2
    # how far apart lengths lie, free of the buckets' own bias in the mean
    squared_spread = max(1.0, second * lengths.count / (first * first))
    return mean / 2 * squared_spread


def recent_requests(
    window: Window[RankSample], histogram: Callable[[RankSample], Histogram | None]
) -> Histogram | None:
    """Requests that finished in the last 5 min; while those are too few, all since the engine started."""
    delta = window.observed_up_to(histogram, MIX_SECONDS)
    if delta is not None and delta.observed.count >= ENOUGH_REQUESTS:
        return delta.observed
    return histogram(window.newest)


def mean_held_tokens(window: Window[RankSample]) -> float | None:
    """Tokens a running sequence holds, on average: a prompt, and as much of its answer as is still to come.

    None where the engine doesn't tell, or too few requests finished. Of those that finish, short ones come first.
    """
    prompts = recent_requests(window, lambda sample: sample.request_prompt_tokens)
    answers = recent_requests(window, lambda sample: sample.request_generation_tokens)
    if prompts is None or answers is None or prompts.count < ENOUGH_REQUESTS:
        return None
    behind = mean_remaining(answers)
    return None if prompts.mean is None or behind is None else prompts.mean + behind
