"""History without a sidecar against the sidecar: the same cycle over the same pages has to give the same bits."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from analysis.frame import Frame, Key, grid
from analysis.history.derived import derive
from analysis.history.history import History, HistoryError
from analysis.history.openmetrics import read_openmetrics
from analysis.history.reading import read
from exporter.catalogue import DERIVED_SIGNALS
from exporter.cycle import CycleSettings, initial, step
from exporter.derive.blocks import KV_USAGE
from exporter.derive.gateway import INFLIGHT
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_UP
from exporter.derive.ranks import RESTARTS
from exporter.derive.stalls import STALL_SECONDS, TOKEN_AGE
from exporter.derive.traffic import GENERATION_RATE, GENERATION_TOKENS, SEQUENCES
from exporter.exposition import Reader
from exporter.observation import ENGINE, Observation, SourceStatus
from exporter.recorder import Recorder
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import Kind, Signal
from exporter.source_signals import BUILD_INFO, SIGNAL_INFO, SOURCE_UP
from tests.support.captures import recording
from tests.support.dumps import Scrape, Scraped, dump, scrapes_of, thinned
from tests.support.gateways import envoy_page
from tests.support.pages import advanced, dialect_of

FOLLOWING = frozenset(signal for signal in DERIVED_SIGNALS if signal.follows_reads)
COUNTING = frozenset(signal for signal in DERIVED_SIGNALS if signal.misses_between_reads)
NAME = "worker-1:8000"
LABELS = {"instance": NAME, "job": "vllm"}
CAPTURES = (
    "vllm-0.32.0",
    "vllm-0.32.0-offload",
    "vllm-0.32.0-dp2-api2",
    "vllm-0.8.5-v0-swap",
    "llamacpp-2026.10.11549",
)
AT = 1_796_000_000.0


def lived(scrapes: Sequence[Scrape], file: Path) -> Frame:
    """What a recorder keeps of a sidecar that lived beside the engine: a cycle each second, whatever came in."""
    assert scrapes[0].body is not None
    dialect = dialect_of(scrapes[0].body)
    reader = Reader(dialect.interpret)
    ended = [
        (
            scrape.at + scrape.seconds,
            dialect.sample(
                reader.read(scrape.body or b""), engine=NAME, at=scrape.at, read_seconds=scrape.seconds
            ),
        )
        for scrape in scrapes
    ]
    recorder = Recorder(file)
    recorder.start()
    state = initial(CycleSettings())
    for cycle, now in enumerate(grid(ended[0][0], ended[-1][0] + 1, 1.0).tolist()):
        sample = [each for end, each in ended if end <= now][-1]
        status = SourceStatus(
            NAME, ENGINE, answering=True, last_at=sample.at, read_seconds=sample.read_seconds
        )
        state, snapshot = step(state, now, [Observation(status, sample)])
        recorder.put(snapshot)
        while recorder.status.written <= cycle:
            assert not recorder.status.failed
            time.sleep(0.0005)
    assert recorder.close(10.0)
    return read(str(file)).frame


def derived(folder: Path, *targets: Scraped, step_seconds: float | None = None) -> History:
    file = folder / "raw.om"
    file.write_text(dump(*targets))
    return read(str(file), step_seconds=step_seconds)


def column(frame: Frame, signal: Signal, **labels: str) -> np.ndarray:  # type: ignore[type-arg]
    found = frame.select(signal, **labels)
    assert len(found.keys) == 1, found.keys
    return found.values[:, 0]


@pytest.mark.parametrize("capture", CAPTURES)
def test_derived_history_is_what_a_sidecar_would_have_recorded(tmp_path: Path, capture: str) -> None:
    scrapes = scrapes_of(capture)
    history = derived(tmp_path, Scraped(LABELS, scrapes))
    ours, theirs = history.frame, lived(scrapes, tmp_path / "recording.db")
    told = theirs.take(
        [
            place
            for place, key in enumerate(theirs.keys)
            if key.name not in {SIGNAL_INFO.full_name, BUILD_INFO.full_name}
        ]
    )
    assert set(ours.keys) == set(told.keys)
    assert ours.times.tolist() == told.times.tolist()
    assert history.derived == {key.name for key in ours.keys}
    for key, values in ours.columns():
        as_kept = values if key.name.endswith("_total") else values.astype(np.float32).astype(np.float64)
        assert np.array_equal(as_kept, told.column(key), equal_nan=True), key
    assert np.isfinite(ours.values).sum() > 10 * len(ours)


def test_the_notes_say_that_it_is_derived_and_from_what(tmp_path: Path) -> None:
    history = derived(tmp_path, Scraped(LABELS, scrapes_of("vllm-0.32.0-oracle")))
    assert history.notes == (
        "no sidecar kept these signals: they were derived from the series of 1 engine, scraped every 1 s",
    )


@pytest.mark.parametrize("every", [15.0, 60.0])
def test_scrapes_that_come_seldom_tell_less_and_say_so(tmp_path: Path, every: float) -> None:
    # what a scraper's clock does must not decide what is there
    history = derived(
        tmp_path,
        Scraped(LABELS, [Scrape(at + 0.003 * (at % 4), 0.01, page) for at, page in moving(every, 1200)]),
    )
    assert history.frame.step_seconds == every
    full = derived(tmp_path, Scraped(LABELS, [Scrape(at, 0.01, page) for at, page in moving(5.0, 330)])).frame
    known = {key.name for key in history.frame.keys}
    missing = {key.name for key in full.keys} - known
    notes = " | ".join(history.notes)
    # each that is missing is one that so few pages can't tell, and nothing that looks at one page is
    for signal in _signals(full):
        if signal.full_name in missing:
            assert signal in FOLLOWING or 0 < signal.window_seconds < every
            assert every > STALE_AFTER_SECONDS
            assert "absent, as scrapes every 60 s can't tell" in notes
        elif 0 < signal.window_seconds < every:
            assert f"means over the {every:g} s between scrapes, not over less" in notes
            assert signal.name in notes
    assert (STALL_SECONDS.full_name in missing) == (every > STALE_AFTER_SECONDS)
    assert (GENERATION_RATE.full_name in missing) == (every > STALE_AFTER_SECONDS)
    bounds = [each for each in COUNTING if each.full_name in known]
    assert all(each.name in notes.partition("lower bounds, as what happens between")[2] for each in bounds)
    # a value that is there is there at each scrape: jitter doesn't make it come and go
    usage, tokens = column(history.frame, KV_USAGE), column(history.frame, GENERATION_TOKENS)
    assert np.isfinite(usage).all()
    assert np.isfinite(tokens).all()
    if every < STALE_AFTER_SECONDS + 1:
        assert np.isfinite(column(history.frame, GENERATION_RATE)[2:]).all()
        assert np.isfinite(column(history.frame, TOKEN_AGE)[2:]).all()


def moving(every: float, seconds: float) -> Iterator[tuple[float, bytes]]:
    """A busy engine's page as it moves on, so many seconds apart."""
    body = recording("vllm-0.32.0-oracle").files["044.prom"]
    return ((AT + at, advanced(body, at)) for at in np.arange(0, seconds, every).tolist())


def _signals(frame: Frame) -> list[Signal]:
    names = {key.name for key in frame.keys}
    return [signal for signal in DERIVED_SIGNALS if signal.full_name in names]


def test_what_counts_between_scrapes_is_never_more_than_what_is_seen_each_second(tmp_path: Path) -> None:
    scrapes = scrapes_of("vllm-0.32.0-oracle")
    often = derived(tmp_path, Scraped(LABELS, scrapes)).frame
    seldom = derived(tmp_path, Scraped(LABELS, thinned(scrapes, 15.0))).frame
    compared = 0
    for signal in COUNTING:
        if signal.kind is Kind.COUNTER:
            for key, values in seldom.select(signal).columns():
                assert np.nanmax(values) <= np.nanmax(often.column(key))
                compared += 1
    assert compared >= 4


def test_a_target_that_vanishes_does_so_as_live_and_one_that_answers_badly_is_down(tmp_path: Path) -> None:
    scrapes = scrapes_of("vllm-0.32.0-oracle")
    gone = 30
    last = scrapes[gone - 1].at
    failed = [Scrape(scrape.at, 0.001, None) for scrape in scrapes[gone:]]
    later = [Scrape(scrape.at + 300, scrape.seconds, scrape.body) for scrape in scrapes[gone:]]
    frame = derived(tmp_path, Scraped(LABELS, [*scrapes[:gone], *failed, *later])).frame
    usage, up = column(frame, KV_USAGE), column(frame, SOURCE_UP)
    held = (frame.times > last + 1) & (frame.times <= last + STALE_AFTER_SECONDS)
    assert np.isfinite(usage[held]).all()
    assert (up[held] == 0).all()  # the last read failed
    vanished = (frame.times > last + STALE_AFTER_SECONDS + 1) & (frame.times < scrapes[-1].at)
    assert vanished.sum() > 10
    assert np.isnan(usage[vanished]).all()
    assert (up[vanished] == 0).all()
    # while nobody looked nothing is known, not even that it was down
    unwatched = (frame.times > scrapes[-1].at + STALE_AFTER_SECONDS + 1) & (frame.times < later[0].at)
    assert unwatched.sum() > 100
    assert np.isnan(frame.values[unwatched]).all()
    assert np.isfinite(usage[-5:]).all()


def test_an_engine_that_starts_again_makes_no_rise(tmp_path: Path) -> None:
    scrapes = scrapes_of("vllm-0.32.0")
    again = [
        Scrape(scrape.at + 200, scrape.seconds, started_later(scrape.body or b"")) for scrape in scrapes[:60]
    ]
    once = derived(tmp_path, Scraped(LABELS, scrapes)).frame
    frame = derived(tmp_path, Scraped(LABELS, [*scrapes, *again])).frame
    tokens = column(frame, GENERATION_TOKENS)
    known = tokens[np.isfinite(tokens)]
    assert (np.diff(known) >= 0).all()
    end = column(once, GENERATION_TOKENS)[-1]
    second = derived(tmp_path, Scraped(LABELS, again)).frame
    assert known[-1] == end + column(second, GENERATION_TOKENS)[-1]
    assert np.nanmax(column(frame, RESTARTS)) == 1


def started_later(page: bytes) -> bytes:
    """The page of a process that started 200 s later."""
    return re.sub(
        rb"(?m)^(process_start_time_seconds) (\S+)",
        lambda found: b"%s %r" % (found[1], float(found[2]) + 200),
        page,
    )


def test_replicas_of_one_fleet_and_clusters_are_kept_apart(tmp_path: Path) -> None:
    scrapes = scrapes_of("vllm-0.32.0-oracle")[:20]
    targets = [
        Scraped({"cluster": cluster, "instance": instance, "job": "vllm", "pod": f"pod-{instance}"}, scrapes)
        for cluster in ("east", "west")
        for instance in ("a:8000", "b:8000")
    ]
    frame = derived(tmp_path, *targets).frame
    assert frame.label_values("cluster") == ("east", "west")
    assert frame.label_values("engine") == ("a:8000", "b:8000")
    alone = derived(tmp_path, Scraped(LABELS, scrapes)).frame
    for cluster in ("east", "west"):
        for engine in ("a:8000", "b:8000"):
            for key, values in alone.columns():
                if key.label("engine") == NAME:
                    labels = {**dict(key.labels), "engine": engine, "cluster": cluster}
                    assert np.array_equal(frame.column(Key.of(key.name, labels)), values, equal_nan=True)


def test_a_cluster_that_is_scraped_seldom_takes_nothing_from_another(tmp_path: Path) -> None:
    often = scrapes_of("vllm-0.32.0-oracle")[:60]
    seldom = [Scrape(at, 0.01, page) for at, page in moving(60.0, 400)]
    both = derived(
        tmp_path,
        Scraped({**LABELS, "cluster": "east"}, often),
        Scraped({**LABELS, "cluster": "west"}, seldom),
    )
    alone = derived(tmp_path, Scraped({**LABELS, "cluster": "east"}, often))
    assert alone.derived & {each.full_name for each in FOLLOWING}
    for key, values in alone.frame.columns():
        if key.label("cluster") == "east":
            there = both.frame.between(alone.frame.start, alone.frame.end)
            assert np.array_equal(there.column(key), values, equal_nan=True)
    told = [note for note in both.notes if "no sidecar kept these signals" in note]
    assert [note.partition(":")[0] for note in told] == ["in east", "in west"]
    assert not {key.name for key in both.frame.keys if key.label("cluster") == "west"} & {
        each.full_name for each in FOLLOWING
    }


def dcgm_page(power: float, uuids: Sequence[str], pod: str = "") -> bytes:
    own = f',pod="{pod}"' if pod else ""
    return "".join(
        f'{name}{{gpu="{place}",UUID="{uuid}",modelName="NVIDIA H100",Hostname="node-1"{own}}} {value}\n'
        for place, uuid in enumerate(uuids)
        for name, value in (
            ("DCGM_FI_DEV_POWER_USAGE", power),
            ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1e6 * power),
            ("DCGM_FI_DEV_FB_USED", 70_000),
            ("DCGM_FI_DEV_FB_FREE", 10_000),
        )
    ).encode()


def test_gpus_of_dcgm_belong_to_the_engines_that_labels_put_on_them(tmp_path: Path) -> None:
    engine = Scraped(
        {"instance": "10.0.0.1:8000", "job": "vllm", "namespace": "llm", "pod": "vllm-0"},
        scrapes_of("vllm-0.32.0-oracle")[:20],
    )
    at = engine.scrapes[0].at
    gpus = Scraped(
        {"instance": "10.0.0.9:9400", "job": "dcgm", "namespace": "gpu-operator", "pod": "dcgm-x"},
        [
            Scrape(
                at + place,
                0.01,
                dcgm_page(300 + place, ["GPU-a"], "vllm-0") + dcgm_page(100, ["GPU-b"], "other"),
            )
            for place in range(20)
        ],
    )
    history = derived(tmp_path, engine, gpus)
    frame = history.frame
    assert frame.select(GPU_UP).label_values("uuid") == ("GPU-a", "GPU-b")
    joined = frame.select(ENGINE_GPU_INFO)
    assert joined.label_values("uuid") == ("GPU-a",)
    assert joined.label_values("engine") == ("10.0.0.1:8000",)
    # without a word of pods, or of the same machine, nobody knows
    gpus.scrapes[:] = [Scrape(each.at, 0.01, dcgm_page(300, ["GPU-a"])) for each in gpus.scrapes]
    history = derived(tmp_path, engine, gpus)
    assert not history.frame.select(ENGINE_GPU_INFO).keys
    assert any(note.startswith("which GPUs 10.0.0.1:8000 runs on can't be told") for note in history.notes)


def test_a_gateway_is_read_beside_its_engines(tmp_path: Path) -> None:
    scrapes = scrapes_of("vllm-0.32.0-oracle")[:20]
    gateway = Scraped(
        {"instance": "envoy:9901", "job": "envoy"},
        [Scrape(scrape.at, 0.01, envoy_page("whole/03-err")) for scrape in scrapes],
    )
    frame = derived(tmp_path, Scraped(LABELS, scrapes), gateway).frame
    assert frame.select(INFLIGHT).label_values("gateway") == ("envoy:9901",)
    assert frame.select(SEQUENCES).label_values("engine") == (NAME,)
    assert frame.select(SOURCE_UP).label_values("source") == ("envoy:9901", NAME)


def test_series_of_nobody_we_know_are_no_history_of_signals(tmp_path: Path) -> None:
    file = tmp_path / "node.om"
    file.write_text(f'node_load1{{instance="a"}} 1 {AT}\nup{{instance="a"}} 1 {AT}\n# EOF\n')
    with pytest.raises(HistoryError, match="holds neither thrashold's signals nor series of an engine"):
        derive(read_openmetrics(file))
    # nor are marks that series have ended
    file.write_text(f'vllm:num_requests_running{{instance="a"}} NaN {AT}\n# EOF\n')
    with pytest.raises(HistoryError, match="holds neither"):
        derive(read_openmetrics(file))


def test_engines_that_are_scraped_less_often_than_gpus_are_told_as_seldom_as_they_are(tmp_path: Path) -> None:
    engine = Scraped({"instance": "node-1:8000"}, [Scrape(at, 0.01, page) for at, page in moving(60.0, 400)])
    gpus = Scraped(
        {"instance": "node-1:9400"},
        [Scrape(AT + place, 0.01, dcgm_page(300 + place % 7, ["GPU-a"])) for place in range(400)],
    )
    history = derived(tmp_path, engine, gpus)
    assert history.frame.step_seconds == 1.0
    assert not history.derived & {each.full_name for each in FOLLOWING}
    assert "scraped every 60 s" in history.notes[-3]
    # a scrape holds for as long as a sidecar's read, and no longer
    usage = column(history.frame, KV_USAGE)
    assert np.isfinite(usage).sum() == pytest.approx(STALE_AFTER_SECONDS * len(engine.scrapes), abs=15)
    assert np.isfinite(column(history.frame, GPU_UP)).all()
