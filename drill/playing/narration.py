"""What happens in a run, told as it happens: what is done to the fleet, and lines that its signals cross."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from drill.playing.play import Moment
from drill.scenarios.scene import Scene
from drill.story import DEMAND_FITS, SWAPPED_ALLOWED, TOKEN_INTERVAL_SECONDS, USAGE_IS_MEMORY
from drill.words import number, percent, seconds
from exporter.snapshot import Snapshot

_QUIET_TPOT_SECONDS = 0.2
_QUIET_FOR_SECONDS = 60.0
Said = Mapping[str, float]
"""The fleet's signals by name: the worst engine's, and sums of what can be added up."""
_SUMMED = frozenset({"swapped_sequences", "orphan_sequences"})


@dataclass(frozen=True, slots=True)
class Crossing:
    """Told the first time that ``signal`` is above ``bound``; ``words`` has a place for its value."""

    signal: str
    bound: float
    words: str
    form: Callable[[float], str]


# the lines that the runbook of the incident draws, in the order in which they are usually crossed
CROSSINGS = (
    Crossing(
        "tpot_p99_seconds",
        0.4,
        "the slowest of 100 gaps between tokens is {}: prompts hold up decodes",
        seconds,
    ),
    Crossing("kv_usage_ratio", USAGE_IS_MEMORY, "KV usage {}: memory, not compute", percent),
    Crossing("kv_demand_ratio", DEMAND_FITS, "{} of the KV pool is asked for", percent),
    Crossing(
        "ttft_p99_seconds",
        30.0,
        "the slowest of 100 first tokens takes some {} (by buckets): clients time out and come again",
        seconds,
    ),
    Crossing("orphan_sequences", 10.0, "{} sequences whose clients are gone are still worked on", number),
    Crossing("swapped_sequences", SWAPPED_ALLOWED, "zero-swap invariant broken: {} swapped out", number),
    Crossing("retry_amplification_ratio", 2.0, "{} attempts for each answer", number),
    Crossing("swapped_sequences", 20.0, "{} swapped out, and nobody new is let in", number),
    Crossing(
        "token_interval_seconds",
        TOKEN_INTERVAL_SECONDS,
        "at this pace a sequence gets a token every {}",
        seconds,
    ),
    Crossing("thrashing", 0.5, "thrashing", number),
    Crossing("tpot_p99_seconds", 10.0, "the slowest of 100 gaps between tokens is {}", seconds),
)


class Narration:
    """Of one run; to be told of every moment, in order."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._crossed: set[Crossing] = set()
        self._trouble = False
        self._calm_since: float | None = None
        self._done = 0

    def lines(self, moment: Moment) -> list[str]:
        """What there is to tell of this second."""
        now = moment.second.seconds
        told = [
            f"{each.scenario} begins" for each in self._scene.episodes if now - 1 < each.onset_seconds <= now
        ]
        told += moment.second.actions
        self._done += len(moment.second.actions)
        said = fleet_signals(moment.snapshot)
        if any(each.onset_seconds < now for each in self._scene.episodes):
            for crossing in CROSSINGS:
                value = said.get(crossing.signal)
                if crossing not in self._crossed and value is not None and value > crossing.bound:
                    self._crossed.add(crossing)
                    told.append(crossing.words.format(crossing.form(value)))
            told += self._recovery(said, now)
        return [f"{self._clock(now)}  {line}" for line in told]

    def state(self, moment: Moment) -> str:
        """How things stand, in a line."""
        said, sessions = fleet_signals(moment.snapshot), moment.second.clients.in_flight
        parts = [f"{self._clock(moment.second.seconds)}  {sessions} sessions"]
        for name, form, words in (
            ("tpot_p99_seconds", seconds, "TPOT p99 {}"),
            ("kv_usage_ratio", percent, "KV {}"),
            ("swapped_sequences", number, "{} swapped"),
            ("orphan_sequences", number, "{} orphans"),
        ):
            value = said.get(name)
            parts.append(words.format("-" if value is None else form(value)))
        return ", ".join(parts)

    def _recovery(self, said: Said, now: float) -> list[str]:
        """Told once, when after the first action gaps have been short for a minute."""
        slowest, swapped = said.get("tpot_p99_seconds"), said.get("swapped_sequences", 0.0)
        calm = slowest is not None and slowest < _QUIET_TPOT_SECONDS and not swapped
        if not calm or not self._done:
            self._calm_since, self._trouble = None, self._trouble or not calm
            return []
        self._calm_since = now if self._calm_since is None else self._calm_since
        if not self._trouble or now - self._calm_since < _QUIET_FOR_SECONDS:
            return []
        self._trouble = False
        return [f"gaps between tokens have been below {seconds(_QUIET_TPOT_SECONDS)} for a minute"]

    def _clock(self, now: float) -> str:
        return datetime.fromtimestamp(self._scene.epoch + now, UTC).strftime("%H:%M:%S")


def fleet_signals(snapshot: Snapshot) -> dict[str, float]:
    """Of one cycle, by name, without peaks."""
    found: dict[str, float] = {}
    for value in snapshot.values:
        if value.is_peak:
            continue
        name = value.signal.name
        if name not in found:
            found[name] = value.value
        elif name in _SUMMED:
            found[name] += value.value
        else:
            found[name] = max(found[name], value.value)
    return found
