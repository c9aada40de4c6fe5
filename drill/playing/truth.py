"""What is true of a run, second by second and on the whole: ``truth.json``.

    {"scenario": ..., "cause": ..., "onset": ..., "end": ..., "affected": [...], "episodes": [...],
     "actions": [{"at": ..., "what": ...}], "seconds": [...], "fleet": {...}, "engines": {NAME: {...}}}

Times are seconds since the epoch, the drill's own in a run and the clock's of what was served. ``fleet`` and each
engine hold one number for each of ``seconds``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from drill.scenarios.scene import Episode, Scene
from drill.second import EngineSecond, Second


class TruthLog:
    """Of one run; to be told of every second."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._seconds: list[float] = []
        self._late: list[float] = []
        self._fleet: dict[str, list[float]] = {}
        self._engines: dict[str, dict[str, list[Any]]] = {name: {} for name in scene.names}
        self._actions: list[dict[str, Any]] = []

    def see(self, second: Second, at: float | None = None) -> None:
        """One more. ``at``: when it was shown; None: at its own time."""
        due = self._scene.epoch + second.seconds
        at = due if at is None else at
        self._seconds.append(at)
        self._late.append(at - due)
        self._actions += [{"at": at, "what": words} for words in second.actions]
        _append(self._fleet, _fleet(second))
        for engine in second.engines:
            _append(self._engines[engine.name], _engine(engine))

    def told(self, scenario: str, others: Sequence[str]) -> dict[str, Any]:
        """All of it, as JSON has it."""
        episodes = self._scene.episodes
        worst = episodes[0] if episodes else None
        return {
            "scenario": scenario,
            "with": list(others),
            "cause": None if worst is None else worst.cause.value,
            "onset": None if worst is None else self._at(worst.onset_seconds),
            "end": None if worst is None else self._at(worst.end_seconds),
            "affected": [] if worst is None else list(worst.affected),
            "episodes": [self._episode(each) for each in episodes],
            "actions": self._actions,
            "seconds": self._seconds,
            "fleet": self._fleet,
            "engines": self._engines,
        }

    def _at(self, seconds: float) -> float:
        """When a time of the drill was, as late as the second in which it lies; to come where none has shown it."""
        place = min(math.ceil(seconds), len(self._late)) - 1
        return self._scene.epoch + seconds + (self._late[max(0, place)] if self._late else 0.0)

    def _episode(self, episode: Episode) -> dict[str, Any]:
        return {
            "scenario": episode.scenario,
            "cause": episode.cause.value,
            "onset": self._at(episode.onset_seconds),
            "end": self._at(episode.end_seconds),
            "affected": list(episode.affected),
        }


def _append(columns: dict[str, list[Any]], row: dict[str, Any]) -> None:
    for name, value in row.items():
        columns.setdefault(name, []).append(value)


def _fleet(second: Second) -> dict[str, Any]:
    clients = second.clients
    return {
        "sessions": clients.in_flight,
        "requests": clients.requests,
        "attempts": clients.attempts,
        "answered": clients.answered,
        "timed_out": clients.timed_out,
        "rejected": clients.rejected,
        "failed": clients.failed,
        "given_up": clients.given_up,
    }


def _engine(engine: EngineSecond) -> dict[str, Any]:
    truth, gauges = engine.truth, engine.gauges
    return {
        "state": engine.state.value,
        "running": None if gauges is None else gauges.running,
        "waiting": None if gauges is None else gauges.waiting,
        "swapped": None if gauges is None else gauges.swapped,
        "kv_usage_ratio": None if gauges is None else gauges.usage_ratio,
        "tail_waste_tokens": truth.tail_waste_tokens,
        "orphans": truth.orphans,
        "orphan_blocks": truth.orphan_blocks,
        "leaked_blocks": truth.leaked_blocks,
        "preemptions": truth.preemptions,
        "repeat_preemptions_30s": truth.repeat_preemptions_30s,
        "recomputed_tokens": truth.recomputed_tokens,
        "swap_in_bytes": truth.swap_in_bytes,
        "swap_out_bytes": truth.swap_out_bytes,
        "copy_seconds": truth.copy_seconds,
        "tier_load_bytes": truth.tier_load_bytes,
        "tier_store_bytes": truth.tier_store_bytes,
    }
