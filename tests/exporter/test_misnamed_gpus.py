"""GPUs named in settings that aren't there are told of, in the log and on the page."""

from __future__ import annotations

import re
from html import unescape

import pytest

from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.landing import landing_page
from exporter.landing_strip import strip
from exporter.live import LiveCycle
from exporter.observation import Observation
from exporter.publication import Board, Publication
from exporter.snapshot import Snapshot
from tests.exporter.test_gpu_cycle import engine_at, node
from tests.support.gpus import identity


def lived(gpus: int, seconds: int = 20, **engines: tuple[str, ...] | None) -> Snapshot:
    state = initial(CycleSettings({name: EngineFacts(gpus=names) for name, names in engines.items()}))
    for at in range(seconds):
        seen = [engine_at(float(at), 0.0, name) for name in engines]
        state, snapshot = step(state, at + 0.6, [*seen, *([node(at + 0.5, gpus=gpus)] if gpus else [])])
    return snapshot


@pytest.mark.parametrize(
    ("gpus", "names", "said"),
    [
        (8, ("0", "9"), "'9': there are GPUs 0 to 7"),
        (8, ("9", "12"), "'9', '12': there are GPUs 0 to 7"),
        (1, ("1",), "'1': there is GPU 0 alone"),
        (8, ("GPU-nonsense",), "'GPU-nonsense' is none of the GPUs that are read"),
        (
            8,
            ("9", "GPU-nonsense"),
            "'9': there are GPUs 0 to 7; 'GPU-nonsense' is none of the GPUs that are read",
        ),
        (8, ("GPU-a", "GPU-b"), "'GPU-a', 'GPU-b' are none of the GPUs that are read"),
    ],
)
def test_gpus_that_are_not_there_are_named(gpus: int, names: tuple[str, ...], said: str) -> None:
    snapshot = lived(gpus, other=names, e=None)
    assert snapshot.warnings == (f"engine other: gpus: {said}",)
    page = unescape(landing_page(Publication(snapshot, ())).decode())
    assert page.count(f"engine other: gpus: {said}") == 1


def test_gpus_that_are_there_are_no_matter_for_words() -> None:
    assert lived(8, a=("0", identity(7).uuid, "0000:03:00.0"), b=(), c=None).warnings == ()


def test_none_is_missed_where_none_is_read_or_before_all_sources_can_have_answered() -> None:
    assert lived(0, e=("9",)).warnings == ()
    assert lived(8, seconds=5, e=("9",)).warnings == ()


def test_an_engine_that_does_not_answer_is_told_of_all_the_same() -> None:
    state = initial(CycleSettings({"e": EngineFacts(gpus=("9",))}))
    for at in range(20):
        state, snapshot = step(state, at + 0.6, [node(at + 0.5)])
    assert snapshot.warnings


def test_the_log_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    class Node:
        name = "nvml"
        at = 0.0

        async def run(self) -> None: ...
        async def read_once(self) -> None: ...
        def observe(self) -> Observation:
            return node(self.at)

    source = Node()
    state: State = initial(CycleSettings({"e": EngineFacts(gpus=("9",))}))
    cycle = LiveCycle([source], step, state, lambda: source.at, Board())
    for at in range(30):
        source.at = float(at)
        cycle.run_once()
    told = [record for record in caplog.records if "gpus: '9'" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"]


def test_the_page_says_which_engine_runs_on_which_gpus() -> None:
    snapshot = lived(8, a=("1", "5"), b=None, c=("3",), d=())
    blocks = [
        re.sub(r"<[^>]*>", " ", block) for block in strip(Publication(snapshot, ()), {}).split("<h2>")[1:]
    ]
    assert ["on GPUs 1, 5 " in blocks[0], "on all 8 GPUs " in blocks[1], "on GPU 3 " in blocks[2]] == [
        True
    ] * 3
    assert " on " not in blocks[3]
