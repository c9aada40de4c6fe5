"""A run beside published figures: the table, and what differs."""

from __future__ import annotations

from dataclasses import replace

from drill.playing.counted import Counted
from drill.playing.deviations import deviations, told
from drill.playing.key_metrics import PHASES, KeyMetrics
from drill.playing.table import ROWS, table
from drill.scenarios.incident_postmortem import POSTMORTEM
from drill.scenarios.published import Figure, Published

PUBLISHED = Published(
    "a report",
    {
        "sessions": {"baseline": Figure(100.0, "100"), "peak": Figure(200.0, "200")},
        "swapped_sequences": {"peak": Figure(0.0, "none")},
    },
    {"sessions": "fewer engines", ("sessions", "peak"): "a smaller burst"},
)
NOTHING = dict.fromkeys(PHASES, Counted(0.0, None, 0.0))


def of(**peak: float) -> dict[str, KeyMetrics]:
    return dict.fromkeys(PHASES, KeyMetrics(sessions=95.0)) | {"peak": KeyMetrics(**peak)}


def test_what_is_a_tenth_off_or_absent_differs_and_what_is_nearer_does_not() -> None:
    found = deviations(of(sessions=150.0, swapped_sequences=0.0), NOTHING, PUBLISHED)
    assert [tuple(each) for each in found] == [("sessions", "peak", "150", "200", "a smaller burst")]
    found = deviations(of(swapped_sequences=3.0), NOTHING, PUBLISHED)
    assert [(each.phase, each.ours, each.reason) for each in found] == [
        ("peak", "-", "a smaller burst"),
        ("peak", "3", None),
    ]


def test_a_reason_is_said_once_after_all_that_it_explains() -> None:
    same = replace(PUBLISHED, reasons={"sessions": "fewer engines"})
    found = deviations(of(sessions=150.0) | {"baseline": KeyMetrics(sessions=20.0)}, NOTHING, same)
    assert told(found[:2], 200) == (
        "- sessions baseline 20, there 100; sessions peak 150, there 200: fewer engines."
    )


def test_the_table_has_the_published_figures_beside_the_runs() -> None:
    lines = table(of(sessions=150.0), NOTHING, PUBLISHED).splitlines()
    assert lines[0].split() == [*PHASES, *(word for phase in PHASES for word in (phase, "there"))]
    assert next(line for line in lines if line.startswith("sessions")).split() == [
        "sessions", "95", "150", "95", "100", "200", "-",
    ]  # fmt: skip


def test_each_of_the_postmortems_figures_has_a_row_and_a_reason_should_it_differ() -> None:
    assert set(POSTMORTEM.figures) == {row.field for row in ROWS}
    unexplained = [
        (field, phase)
        for field, figures in POSTMORTEM.figures.items()
        for phase in figures
        if POSTMORTEM.reason(field, phase) is None
    ]
    assert not unexplained
