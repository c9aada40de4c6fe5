"""What phases come to, and which of their figures are lower bounds."""

from __future__ import annotations

import pytest

from drill.playing.counted import Counted
from drill.playing.deviations import beside
from drill.playing.key_metrics import PHASES, Instant, KeyMetrics, Phases, at_instant, floors_of, of_phases
from drill.playing.run import Ran
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.derive.latency import SATURATED, TPOT_P50, TPOT_P99
from exporter.snapshot import Snapshot, Value

SPANS = Phases((0.0, 3.0), (3.0, 6.0), (6.0, 9.0))
TOP = 2.5
"""The top bound of a vLLM's token buckets before 0.8.4."""
FLOOR, NOTHING = frozenset({"tpot_p99_seconds"}), frozenset[str]()


def history(*p99: float) -> list[Instant]:
    """Second by second; at the top bound or above it lies in the bucket without a bound."""
    return [
        Instant(
            float(second),
            KeyMetrics(tpot_p50_seconds=0.02, tpot_p99_seconds=min(value, TOP)),
            FLOOR if value >= TOP else NOTHING,
        )
        for second, value in enumerate(p99, 1)
    ]


def test_an_instant_is_of_the_worst_engine_and_a_floor_where_its_bucket_has_no_end() -> None:
    def value(signal: object, engine: str, number: float, *more: str) -> Value:
        return Value(signal, (engine, "0", "llama", *more), number, is_peak=False)  # type: ignore[arg-type]

    snapshot = Snapshot(
        0.0,
        (
            value(TPOT_P50, "a", 0.02),
            value(TPOT_P99, "a", 0.3),
            value(SATURATED, "a", 0.0, "tpot_p99"),
            value(TPOT_P99, "b", TOP),
            value(SATURATED, "b", 1.0, "tpot_p99"),
            value(SATURATED, "b", 1.0, "ttft_p99"),
        ),
        ready=True,
    )
    assert at_instant(snapshot, 7.0, 3.0) == Instant(
        7.0, KeyMetrics(tpot_p50_seconds=0.02, tpot_p99_seconds=TOP, sessions=3.0), FLOOR
    )


@pytest.mark.parametrize(
    ("p99", "figures", "floors"),
    [
        ((0.1, 0.2, 0.3, 1.0, 2.0, 1.0, 0.1, 0.1, 0.1), (0.2, 2.0, 0.1), (NOTHING, NOTHING, NOTHING)),
        ((0.1, 0.2, 9.9, 1.0, 9.9, 1.0, 9.9, 9.9, 0.1), (0.2, TOP, TOP), (NOTHING, FLOOR, FLOOR)),
    ],
)
def test_a_figure_is_a_floor_where_what_lies_above_the_top_bucket_makes_it(
    p99: tuple[float, ...], figures: tuple[float, ...], floors: tuple[frozenset[str], ...]
) -> None:
    said = of_phases(history(*p99), SPANS)
    assert tuple(said[phase].tpot_p99_seconds for phase in PHASES) == figures
    assert floors_of(history(*p99), SPANS) == dict(zip(PHASES, floors, strict=True))


def test_a_floor_is_marked_in_the_table_and_said_to_be_one() -> None:
    scene = SCENARIOS["incident"].scene(Setting())
    rows = history(0.1, 0.1, 0.1, 9.9, 9.9, 9.9, 0.1, 0.1, 0.1)
    counted = dict.fromkeys(PHASES, Counted(0.0, None, 0.0))
    ran = Ran(scene, SPANS, of_phases(rows, SPANS), floors_of(rows, SPANS), counted, {})
    words = beside(ran, SCENARIOS["incident"].published)
    assert "> 2,500 ms" in words
    assert "TPOT p99 peak > 2,500 ms, there 18,420 ms" in words
    assert words.count(">: within the engine's top bucket") == 1
    plain = beside(ran, None).splitlines()
    assert plain[2].split() == ["TPOT", "p99", "100", "ms", ">", "2,500", "ms", "100", "ms"]
    rows = history(*[0.1] * 9)
    well = Ran(scene, SPANS, of_phases(rows, SPANS), floors_of(rows, SPANS), counted, {})
    assert ">" not in beside(well, None)
