"""How many iterations in a row are alike: the same sequences compute the same number of tokens, and nothing happens.

Then they are taken at one stroke, with the same outcome as one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from drill.serving.sequences import Plan


@dataclass(frozen=True, slots=True)
class Pace:
    """The first iteration takes ``first`` seconds, each further one ``rise`` more.

    ``event``: seconds until something comes from outside, which the iteration under way then may outlast;
    ``until``: seconds by which the last one has to be done.
    """

    first: float
    rise: float
    event: float
    until: float


def stretch_seconds(first: float, rise: float, iterations: int) -> float:
    """Seconds that so many iterations take."""
    return iterations * first + rise * (iterations * (iterations - 1) // 2)


def longest_stretch(plan: Plan, block_tokens: int, free_blocks: int, pace: Pace) -> int:
    """At least 1: the iteration that was planned, whose blocks are taken already."""
    most = _by_tokens(plan)
    if most > 1:
        most = min(most, _by_time(pace, most))
    if most > 1 and not _fits(plan, block_tokens, free_blocks, most):
        low, high = 1, most  # low fits, high doesn't
        while high - low > 1:
            middle = (low + high) // 2
            if _fits(plan, block_tokens, free_blocks, middle):
                low = middle
            else:
                high = middle
        return low
    return most


def _by_tokens(plan: Plan) -> int:
    """Until a sequence yields its last token, or the last chunk of a prompt comes."""
    most = 1 << 30
    for one in plan.prefills:
        behind = one.length - one.computed
        most = min(most, max(1, (behind - 1) // one.chunk))
    left = min((one.final - one.length for one in plan.decodes), default=most)
    return min(most, left)


def _by_time(pace: Pace, most: int) -> int:
    """Iterations that all end by ``until`` and of which the last begins before ``event``."""
    if stretch_seconds(pace.first, pace.rise, most) > pace.until:
        most = max(1, most_within(pace.first, pace.rise, pace.until, most))
    if stretch_seconds(pace.first, pace.rise, most - 1) >= pace.event:
        most = most_within(pace.first, pace.rise, pace.event, most)
        # the next one begins before the event too, unless this one ends right at it
        most += stretch_seconds(pace.first, pace.rise, most) < pace.event
    return max(1, most)


def most_within(first: float, rise: float, seconds: float, most: int) -> int:
    """The largest number of iterations up to ``most`` that take no more than ``seconds``."""
    if seconds <= 0:
        return 0
    if rise > 0:
        linear = first - rise / 2
        guess = int((math.sqrt(linear * linear + 2 * rise * seconds) - linear) / rise)
    else:
        guess = int(seconds / first) if first > 0 else most
    guess = min(guess, most)
    while guess < most and stretch_seconds(first, rise, guess + 1) <= seconds:
        guess += 1
    while guess > 0 and stretch_seconds(first, rise, guess) > seconds:
        guess -= 1
    return guess


def _fits(plan: Plan, block_tokens: int, free_blocks: int, iterations: int) -> bool:
    need = 0
    for one in plan.decodes:
        slots = one.computed + iterations
        if one.members > 1:
            need += one.blocks_for(slots, block_tokens) - one.held
        elif slots > one.held * block_tokens:
            need += -(-slots // block_tokens) - one.held
    for one in plan.prefills:  # V0 gives a prompt all its blocks at once
        need += max(0, one.blocks_for(one.computed + one.chunk * iterations, block_tokens) - one.held)
    return need <= free_blocks
