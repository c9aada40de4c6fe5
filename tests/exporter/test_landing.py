"""The landing page: everything there, everything escaped, nothing from elsewhere."""

from __future__ import annotations

import math
from html.parser import HTMLParser

import pytest

from exporter.catalogue import SIGNALS
from exporter.derive.pingpong import PINGPONG
from exporter.derive.starvation import STARVED
from exporter.derive.swap import SWAP_ESTIMATE, SWAPPED
from exporter.landing import landing_page
from exporter.landing_assets import SCRIPT, STYLE
from exporter.landing_values import STATES
from exporter.observation import SourceStatus
from exporter.publication import Publication
from exporter.signal import PEAK_SECONDS, Confidence, Kind, Scope, Signal
from exporter.snapshot import Snapshot, Value
from exporter.source_signals import SIGNAL_INFO
from tests.exporter.running import PAGE, engine, running

BAD_WHEN_ALL_IS_WELL = 1
"""The hidden line for when the sidecar does not answer."""
RANK = ("host:1", "0", "model")
EVIL = "<script>alert('1')</script>\"&"


class Page(HTMLParser):
    """The words, tags and addresses of a page."""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.titles: list[str] = []
        self.classes: list[str] = []
        self.feed(html.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in {"href", "src", "action"}]
        self.titles += [value or "" for name, value in attrs if name == "title"]
        self.classes += [value or "" for name, value in attrs if name == "class"]

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(self.words)


def signal(name: str, kind: Kind = Kind.GAUGE, **rest: object) -> Signal:
    fields = {"scope": Scope.ENGINE, "help": "What it says.", "confidence": Confidence.ESTIMATE, **rest}
    return Signal(name, kind, method="", inputs=(), **fields)  # type: ignore[arg-type]


def page(*values: Value, statuses: tuple[SourceStatus, ...] = (), ready: bool = True) -> Page:
    return Page(landing_page(Publication(Snapshot(1_800_000_000.5, values, ready), statuses)))


def status(name: str, age: float, *, up: bool = True) -> SourceStatus:
    return SourceStatus(name, "engine", answering=up, last_at=1_800_000_000.5 - age, read_seconds=0.001)


def test_a_signal_shows_help_confidence_value_and_peak() -> None:
    usage = signal("kv_usage_ratio", peak=True)
    shown = page(Value(usage, ("host:1",), 0.5, is_peak=False), Value(usage, ("host:1",), 0.75, is_peak=True))
    for word in (
        "thrashold_",
        "What it says.",
        "estimate",
        "50.0 %",
        "75.0 %",
        f"peak {PEAK_SECONDS:g} s",
        "engine host:1",
    ):
        assert word in shown.text
    assert "0.5" in shown.titles


def test_every_signal_there_is_has_its_place_on_the_page() -> None:
    values = [Value(each, tuple("x" for _ in each.label_names), 0.0, is_peak=False) for each in SIGNALS]
    html = landing_page(Publication(Snapshot(1.0, tuple(values), ready=True), ())).decode()
    names = {each.full_name for each in SIGNALS if each is not SIGNAL_INFO}
    assert names == {name for name in names if f"<h3>{name.replace('_', '_<wbr>')} <" in html}


@pytest.mark.parametrize("confidence", Confidence)
def test_how_sure_a_value_is_stands_in_a_word_with_its_meaning(confidence: Confidence) -> None:
    shown = page(Value(signal("sequences", confidence=confidence), ("host:1",), 1.0, is_peak=False))
    assert confidence.value.replace("_", " ") in shown.words
    assert confidence.meaning in shown.titles


def test_labels_that_differ_stand_in_columns_and_those_that_do_not_are_said_once() -> None:
    sequences = signal("sequences", scope=Scope.RANK, labels=("state",))
    shown = page(
        Value(sequences, ("host:1", "0", "model", "running"), 3.0, is_peak=False),
        Value(sequences, ("host:1", "1", "model", "running"), 4.0, is_peak=False),
    )
    assert shown.words.count("rank") == 1
    assert shown.words.count("state") == 1
    assert shown.words.count("host:1") == 0
    assert "engine host:1 · model_name model" in shown.text


def test_what_others_wrote_is_escaped() -> None:
    evil = signal("evil", help=EVIL, labels=("label",))
    status = SourceStatus(
        EVIL, EVIL, answering=False, last_at=None, read_seconds=None, errors=((EVIL, 1),), last_error=EVIL
    )
    values = [Value(evil, (engine_name, EVIL), math.nan, is_peak=False) for engine_name in (EVIL, "other")]
    raw = landing_page(Publication(Snapshot(1.0, tuple(values), ready=False), (status,)))
    assert b"<script>alert" not in raw
    shown = Page(raw)
    assert shown.tags.count("script") == 1, "our own"
    assert shown.text.count(EVIL) == 7
    assert f"1 x {EVIL}" in shown.titles


def test_a_source_shows_its_state_and_last_error() -> None:
    up = SourceStatus("good:1", "engine", answering=True, last_at=1_799_999_998.0, read_seconds=0.0123)
    down = SourceStatus(
        "bad:1", "engine", answering=False, last_at=1_799_999_700.0, read_seconds=None,
        errors=(("timeout", 2), ("refused", 3)), last_error="nobody listens there",
    )  # fmt: skip
    shown = page(statuses=(up, down), ready=False)
    for word in (
        "good:1",
        "up",
        "2.5 s",
        "12.3 ms",
        "bad:1",
        "down",
        "5 min 00 s",
        "nobody listens there",
        "1 of 2 engines answer",
    ):
        assert word in shown.text
    assert "2 x timeout, 3 x refused" in shown.titles


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("kv_demand_ratio", 1.4041, "140.4 %"),
        ("swap_tier_bytes", 0.0, "0 B"),
        ("swap_tier_bytes", 1023.0, "1023 B"),
        ("swap_tier_bytes", 4.5 * 1024**3, "4.5 GiB"),
        ("swap_tier_bytes", 2.0**52, "4096.0 TiB"),
        ("swap_bytes_per_second", 1536.0, "1.5 KiB/s"),
        ("kv_bytes_per_token", 131072.0, "128.0 KiB"),
        ("generation_tokens_per_second", 13329.4, "13 329/s"),
        ("tpot_p99_seconds", 0.18, "180 ms"),
        ("tpot_p99_seconds", 0.9994, "999 ms"),
        ("tpot_p99_seconds", 0.9996, "1.0 s"),
        ("tpot_p99_seconds", 0.0, "0.0 s"),
        ("kv_exhaustion_seconds", 90.0, "90.0 s"),
        ("kv_exhaustion_seconds", 600.0, "10 min 00 s"),
        ("kv_exhaustion_seconds", 7260.0, "2 h 01 min"),
        ("kv_headroom_tokens", -1227.25, "-1 227"),
        ("tokens_per_preemption", 573.26, "573.3"),
        ("sequences", 1234567.0, "1 234 567"),
        ("sequences", math.inf, "∞"),
        ("sequences", -math.inf, "-∞"),
        ("sequences", math.nan, "NaN"),
    ],
)
def test_values_are_written_in_their_unit(name: str, value: float, text: str) -> None:
    shown = page(Value(signal(name), ("host:1",), value, is_peak=False))
    assert text in [word.replace("\N{THIN SPACE}", " ") for word in shown.words]


def test_a_counter_of_bytes_is_written_in_bytes() -> None:
    counter = signal("swap_bytes_total", Kind.COUNTER)
    assert "1.0 MiB" in page(Value(counter, ("host:1",), 1024.0**2, is_peak=False)).words


def test_a_total_of_estimated_bytes_is_written_in_bytes_too() -> None:
    assert "1.0 MiB" in page(Value(SWAP_ESTIMATE, RANK, 1024.0**2, is_peak=False)).words


@pytest.mark.parametrize(
    ("method", "value", "text"),
    [
        ("bound", 0.0, "0: not proven"),
        ("bound", 0.28, "28.0 %"),
        ("histogram", 0.0, "0.0 %"),
    ],
)
def test_a_bound_of_nothing_proves_nothing(method: str, value: float, text: str) -> None:
    shown = page(Value(PINGPONG, (*RANK, method), value, is_peak=False))
    assert text in shown.words
    assert ("0: not proven" in shown.words) is (text == "0: not proven")


@pytest.mark.parametrize("state", STATES)
def test_states_are_marked_in_colour_and_in_words(state: Signal) -> None:
    labels = tuple("x" for _ in state.label_names)
    alarm = STATES[state].alarm
    raised = page(Value(state, labels, alarm, is_peak=False))
    assert f"{alarm:g}: {STATES[state].word}" in raised.words
    assert "card alarm" in raised.classes
    calm = page(Value(state, labels, 1 - alarm, is_peak=False))
    assert "card alarm" not in calm.classes
    assert calm.classes.count("bad") == BAD_WHEN_ALL_IS_WELL < raised.classes.count("bad")


def test_which_states_are_marked() -> None:
    assert {each.name for each in STATES} == {
        "thrashing",
        "engine_frozen",
        "engine_deadlocked",
        "kv_leak",
        "quantile_saturated",
        "source_up",
        "gpu_up",
        "pcie_link_downgraded",
        "pcie_swap_share_impossible",
    }
    assert set(STATES) <= set(SIGNALS)


def test_no_other_value_is_ever_marked() -> None:
    """From where on a number means trouble is for alerts to say, but of GPUs that wait for PCIe and what is swapped."""
    values = [
        Value(each, tuple("x" for _ in each.label_names), 1e6, is_peak=False)
        for each in SIGNALS
        if each not in STATES and each not in {STARVED, SWAPPED}
    ]
    shown = page(*values)
    assert not {"card alarm", "tile alarm"} & set(shown.classes)
    assert shown.classes.count("bad") == BAD_WHEN_ALL_IS_WELL


def test_cards_of_an_engine_that_is_down_are_dimmed_and_say_their_age() -> None:
    usage = signal("kv_usage_ratio")
    own = signal("cycles_total", Kind.COUNTER, scope=Scope.SIDECAR)
    values = (Value(usage, ("one",), 0.5, is_peak=False), Value(own, (), 7.0, is_peak=False))
    shown = page(*values, statuses=(status("one", 12.0, up=False),))
    assert shown.classes.count("card old") == 1, "not the sidecar's own"
    assert "12 s old" in shown.words
    assert "card old" not in page(*values, statuses=(status("one", 0.3),)).classes


@pytest.mark.parametrize(("age", "old"), [(0.3, False), (2.9, False), (3.1, True), (14.0, True)])
def test_numbers_older_than_some_reads_are_dimmed_though_the_engine_answers(
    age: float,
    old: bool,  # noqa: FBT001 - a table's column
) -> None:
    shown = page(
        Value(signal("kv_usage_ratio"), ("one",), 0.5, is_peak=False), statuses=(status("one", age),)
    )
    assert ("card old" in shown.classes) is old
    assert (f"{age:.0f} s old" in shown.words) is old


def test_of_two_engines_the_rows_of_the_one_that_is_down_are_dimmed() -> None:
    usage = signal("kv_usage_ratio")
    values = [Value(usage, (engine,), 0.5, is_peak=False) for engine in ("one", "two")]
    shown = page(*values, statuses=(status("one", 0.3), status("two", 5.0, up=False)))
    assert "card old" not in shown.classes
    assert shown.classes.count("old") == 1
    assert shown.words.count("5 s old") == 1
    both = page(*values, statuses=(status("one", 4.0, up=False), status("two", 5.0, up=False)))
    assert "card old" in both.classes
    assert {"4 s old", "5 s old"} <= set(both.words), "each row its own age"


def test_values_of_a_cycle_that_breaks_off_grow_old_too() -> None:
    """The snapshot stands still; the source is still read."""
    value = Value(signal("kv_usage_ratio"), ("one",), 0.5, is_peak=False)
    assert "6 s old" in page(value, statuses=(status("one", -6.0),)).words


def test_a_page_is_made_once_for_each_publication() -> None:
    publication = Publication(Snapshot(1.0, (), ready=False), ())
    assert landing_page(publication) is landing_page(publication)


def test_before_the_first_cycle_there_is_a_page_too() -> None:
    shown = Page(landing_page(Publication(Snapshot(0.0, (), ready=False), ())))
    assert "never" in shown.text
    assert "No signals yet." in shown.text


def test_a_real_page_is_complete_and_needs_nothing_from_elsewhere() -> None:
    with engine(PAGE) as url, running("--engine", url) as sidecar:
        sidecar.wait_until_ready()
        answer = sidecar.get("/")
        metrics = sidecar.get("/metrics").text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    shown = Page(answer.content)
    assert all(address.startswith("/") and not address.startswith("//") for address in shown.addresses)
    assert not {"img", "link", "iframe"} & set(shown.tags)
    assert not any(word in STYLE + SCRIPT for word in ("url(", "@import", "http:", "https:", "//"))
    names = {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
    twins = {name for name in names if name.endswith("_peak")}
    for name in names - twins - {"thrashold_signal_info"}:
        assert name.replace("_", "_<wbr>") in answer.text
