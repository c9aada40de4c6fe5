"""Probes of a rank that the engine's page doesn't have are told of, with both names."""

from __future__ import annotations

from exporter.cycle import step
from exporter.misnamed_gpus import SURE_AFTER_SECONDS
from exporter.snapshot import Snapshot
from tests.exporter.test_probe_cycle import begun, page, shown
from tests.support.probes import probe


def lived(*told: str, ranks: int = 1, seconds: int = 15) -> list[Snapshot]:
    """The snapshots of so many seconds in which probes speak of these ranks."""
    state, said = begun(), []
    for at in range(seconds):
        probes = [probe(at + 0.2, rank=rank) for rank in told]
        state, snapshot = step(state, at + 0.5, shown(page(float(at), ranks=ranks), *probes))
        said.append(snapshot)
    return said


def test_a_rank_that_the_page_does_not_have_is_named_beside_those_that_it_has() -> None:
    (line,) = lived("7")[-1].warnings
    assert line.startswith(
        "engine e: its probe tells of rank 7, its page of rank 0: what the probe tells of it is"
    )
    assert "docs/probe.md" in line
    (line,) = lived("1", "10", "2", ranks=2)[-1].warnings
    assert line.startswith("engine e: its probe tells of ranks 2, 10, its page of ranks 0, 1: ")


def test_ranks_that_are_there_are_no_matter_for_words() -> None:
    assert lived("0")[-1].warnings == ()
    assert lived("0", "1", ranks=3)[-1].warnings == ()
    assert lived()[-1].warnings == ()


def test_it_is_not_said_before_all_ranks_can_have_come_nor_before_the_page_was_read() -> None:
    early = int(SURE_AFTER_SECONDS) - 1
    assert all(snapshot.warnings == () for snapshot in lived("7")[:early])
    state = begun()
    for at in range(30):
        state, snapshot = step(state, at + 0.5, shown(None, probe(at + 0.2, rank="7")))
    assert snapshot.warnings == ()
