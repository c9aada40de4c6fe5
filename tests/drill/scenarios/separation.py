"""How far thrashing lies from plain contention: ``python -m tests.drill.scenarios.separation [SEEDS]`` prints it.

Each fleet is watched as a sidecar would; of each second in which its pool has been full and five preemptions were
counted, the tokens generated for each of them, absolute and over what a sequence held. From this the bounds of
``thrashing`` are set.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drill.clients import ClientConfig, Patience
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.chat import chat_fleet
from drill.scenarios.long_answers import LongAnswers, with_long_answers
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.serving.config import Generation
from drill.watching.watch import Watch
from exporter.derive.blocks import CONTENDED_USAGE
from exporter.derive.preemption import ENTER_GAIN_RATIO, gain_ratio, tokens_per_preemption
from exporter.sample import RankSample
from exporter.signal import PEAK_SECONDS
from exporter.window import Window

_ANSWERS, _DOCUMENTS = LongAnswers(1_800, 0.17, 0.9), LongAnswers(7_000, 0.7, 0.9)


def _contention(kind: LongAnswers, **engine: object) -> Callable[[int], Scene]:
    def make(seed: int) -> Scene:
        setting = Setting(seed=seed, engines=1)
        patient = ClientConfig(timeout_seconds=120, patience=Patience.FIRST_TOKEN, retries=0)
        scene = chat_fleet(setting, seconds=360, clients=patient, **engine)
        return with_long_answers(scene, setting, kind, (60.0, 300.0))

    return make


def _scenario(name: str, **moved: str) -> Callable[[int], Scene]:
    return lambda seed: SCENARIOS[name].scene(Setting(seed=seed, engines=1, **moved))  # type: ignore[arg-type]


FLEETS: dict[str, Callable[[int], Scene]] = {
    "recompute-thrash": _scenario("recompute-thrash"),
    "recompute-thrash, 8B on an H100": _scenario("recompute-thrash", model="llama-8b", gpu="h100"),
    "offload-thrash": _scenario("offload-thrash"),
    "overload": _scenario("overload"),
    "retry-storm": _scenario("retry-storm"),
    "long answers, V1": _contention(_ANSWERS),
    "long answers, V1 without a prefix cache": _contention(_ANSWERS, prefix_caching=False),
    "long answers, V1 before 0.19": _contention(_ANSWERS, reserve_whole_prompt=False),
    "long documents, V1 without a prefix cache": _contention(_DOCUMENTS, prefix_caching=False),
    "long documents, V1 before 0.19": _contention(_DOCUMENTS, reserve_whole_prompt=False),
    "long answers, V0": _contention(_ANSWERS, generation=Generation.V0, prefix_caching=False),
}


@dataclass(frozen=True, slots=True)
class Told:
    """Of one second: generated tokens for each preemption, absolute and over the tokens of a sequence."""

    tokens: float
    gain: float


def told(scene: Scene, seed: int) -> Iterator[Told]:
    """Of each second of the first engine in which the signal would be looked at."""
    (engine,) = (each for each in Watch(scene, seed).engines if each.name == scene.names[0])
    window: Window[RankSample] = Window()
    seen = None
    for second in scene.fleet(seed).run(scene.seconds):
        mine = second.engines[0]
        engine.see(mine)
        busy = mine.gauges is not None and mine.gauges.waiting > 0
        sample = engine.observe(second.seconds, busy=busy).engine
        if sample is None or sample is seen:
            continue
        seen = sample
        window = window.appended(sample.ranks[0])
        peak = window.peak(lambda rank: rank.kv_usage_ratio, PEAK_SECONDS)
        tokens, gain = tokens_per_preemption(window), gain_ratio(window)
        if peak is not None and peak > CONTENDED_USAGE and tokens is not None and gain is not None:
            yield Told(tokens, gain)


def _at(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main(seeds: int) -> None:
    """Print a row a fleet."""
    head = (
        "fleet",
        "seconds",
        "tokens a preemption: 1 %, 50 %, 99 %",
        "over a sequence's: 1 %, 50 %, 99 %",
        "below",
    )
    _row(*head)
    _row(*("---" for _ in head))
    for name, make in FLEETS.items():
        rows = [row for seed in range(1, seeds + 1) for row in told(make(seed), seed)]
        if not rows:
            _row(name, "0", "-", "-", "-")
            continue
        tokens = ", ".join(f"{_at([row.tokens for row in rows], share):.0f}" for share in (0.01, 0.5, 0.99))
        gains = ", ".join(f"{_at([row.gain for row in rows], share):.2f}" for share in (0.01, 0.5, 0.99))
        below = sum(row.gain < ENTER_GAIN_RATIO for row in rows) / len(rows)
        _row(name, str(len(rows)), tokens, gains, f"{below:.1%}")


def _row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
