"""What the probe in an engine tells of one data-parallel rank, at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from exporter.sample import RankSample, Sample
from exporter.window import Window


class GroupHeld(NamedTuple):
    """What running sequences hold of one KV group.

    ``block_tokens`` is the size of a block, ``blocks`` those in their tables, one that several share counted for
    each, ``tail_tokens`` the slots in them that no token fills. None where this kind of group can't tell.
    """

    block_tokens: int
    blocks: int | None
    tail_tokens: int | None


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """One message, which came at ``at`` (seconds since the epoch).

    ``steps_total``, ``running`` and ``groups`` are of one moment, ``age_seconds`` before that; ``groups`` is empty
    where the engine's KV groups can't be read. The other counts are the probe's own totals since ``sender``
    began, None where the engine lacks what the probe needs for them. ``repeats_total`` are preemptions within 30 s
    of the last one of the same sequence, ``repeat_tokens_total`` the tokens it made in between.
    ``aborts_total`` are requests ended from outside; those that have stop strings, and sessions, are in
    ``unclear_aborts_total`` instead, since vLLM ends those from outside too when all goes well.
    ``busy_seconds_total`` is the time from one step to the next while sequences run, ``longest_step_seconds`` the
    longest of them since the message before, ``own_seconds_total`` what the probe took for itself.
    """

    at: float
    engine: str
    rank: str
    sender: str
    age_seconds: float
    steps_total: int
    running: int
    groups: tuple[GroupHeld, ...]
    longest_step_seconds: float
    preemptions_total: int | None
    repeats_total: int | None
    repeat_tokens_total: int | None
    aborts_total: int | None
    unclear_aborts_total: int | None
    busy_seconds_total: float
    own_seconds_total: float

    @property
    def read_seconds(self) -> float:
        """0: the counts are of ``at`` itself."""
        return 0.0

    def restarted_since(self, earlier: Sample) -> bool | None:
        """Another sender: its counts began at 0."""
        return self.sender != earlier.sender if isinstance(earlier, ProbeSample) else None

    @property
    def told(self) -> tuple[str, ...]:
        """What can be told exactly of this engine, in words."""
        parts = {
            "tails": self.tail_tokens is not None,
            "preemptions": self.preemptions_total is not None,
            "aborts": self.aborts_total is not None and not self.unclear_aborts_total,
        }
        return tuple(part for part, is_told in parts.items() if is_told)

    @property
    def tail_tokens(self) -> float | None:
        """The empty slots of all groups; None unless each can tell."""
        known = [group.tail_tokens for group in self.groups if group.tail_tokens is not None]
        return float(sum(known)) if known and len(known) == len(self.groups) else None

    @property
    def blocks(self) -> float | None:
        """The blocks in all groups' tables; None unless each can tell."""
        known = [group.blocks for group in self.groups if group.blocks is not None]
        return float(sum(known)) if known and len(known) == len(self.groups) else None


@dataclass(frozen=True, slots=True)
class Probed:
    """One rank as its probe tells it, beside what the engine's own page said last; None where that is stale."""

    probe: Window[ProbeSample]
    rank: RankSample | None = None
