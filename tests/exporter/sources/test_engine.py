"""How an engine is read over time: ticks, stalls, restarts, other engines in its place, and what is logged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection

import pytest

from exporter.dialects.vllm import Slot, VllmDialect
from exporter.exposition import Reader, Series
from exporter.sample import EngineSample
from exporter.sources import engine as engine_module
from exporter.sources.endpoint import Reply
from exporter.sources.source import Source
from tests.exporter.sources.reading import PAGE, observed, read, run, running, sample, source, until
from tests.support import own_time
from tests.support.captures import fixture
from tests.support.http_servers import (
    Exchange,
    hang,
    page,
    serving,
)


def test_before_the_first_read_nothing_is_known() -> None:
    engine: Source = source("http://127.0.0.1:1")
    status = engine.observe().status
    assert engine.observe().engine is None
    assert (status.name, status.kind, status.answering, status.last_at, status.last_error) == (
        "127.0.0.1:1",
        "engine",
        False,
        None,
        "",
    )


@pytest.mark.parametrize("scrape", ["vllm-0.32.0/113.prom", "vllm-0.8.5-v0-swap/091.prom"])
def test_a_real_page_becomes_a_sample(scrape: str) -> None:
    before = time.time()
    observation = observed(page(fixture(scrape)), name="worker-1")
    status, engine = observation.status, observation.engine
    assert engine is not None
    assert (engine.engine, engine.kind, len(engine.ranks)) == ("worker-1", "vllm", 1)
    assert engine.ranks[0].running is not None
    assert before <= engine.at <= time.time() - engine.read_seconds
    assert status.last_at == engine.at
    assert 0 < engine.read_seconds == status.read_seconds
    assert (status.answering, status.last_error) == (True, "")


def test_a_sample_bears_the_time_its_request_began() -> None:
    now = 1000.0

    async def slowly(exchange: Exchange) -> None:
        nonlocal now
        now += 0.25
        await page(PAGE)(exchange)

    engine = observed(slowly, clock=lambda: now).engine
    assert engine is not None
    assert (engine.at, engine.read_seconds) == (1000.0, 0.25)


def test_what_is_asked_for() -> None:
    async def work() -> dict[str, str]:
        async with serving(page(PAGE)) as server:
            await source(server.url + "?a=b", headers={"accept-language": "en", "x-key": "1"}).read_once()
            assert server.requests[0].target == "/metrics?a=b"
            return server.requests[0].headers

    headers = run(work())
    assert headers.pop("host").startswith("127.0.0.1:")
    assert headers == {
        "accept": "text/plain;version=0.0.4",
        "accept-encoding": "identity",
        "user-agent": "thrashold",
        "accept-language": "en",
        "x-key": "1",
    }


def test_an_engine_that_hangs_delays_no_other_and_keeps_its_last_sample() -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as good, serving(page(PAGE)) as bad:
            healthy, stalled = source(good.url), source(bad.url)
            async with running(healthy, stalled):
                await until(lambda: stalled.observe().engine is not None)
                bad.behaviour = hang
                asked = len(bad.requests)
                await until(lambda: len(bad.requests) > asked)
                held, asked, before = sample(stalled), len(bad.requests), len(good.requests)
                await until(lambda: len(good.requests) >= before + 10)
                # in flight all the while: no failure yet, no second read, the old sample with its old time
                assert len(bad.requests) == asked
                assert sample(stalled) is held
                assert stalled.observe().status.answering
                assert stalled.observe().status.errors == ()
                assert sample(healthy).at > held.at

    run(work())


def test_missed_ticks_are_skipped_and_the_next_read_keeps_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[float] = []

    class SlowThirdRead:
        shown_url = "http://host"

        def __init__(self, *_: object) -> None:
            pass

        async def read(self) -> Reply:
            starts.append(asyncio.get_running_loop().time())
            await asyncio.sleep(2.5 if len(starts) == 3 else 0.25)
            return Reply(starts[-1], 0.25, PAGE)

        async def aclose(self) -> None:
            pass

    monkeypatch.setattr(engine_module, "Endpoint", SlowThirdRead)

    async def work() -> None:
        async with running(source("http://host", interval=1.0)):
            await asyncio.sleep(7.5)

    own_time.run(work())
    # the third took two and a half ticks: 2 -> 5, nothing in a bunch afterwards
    assert starts == pytest.approx([0, 1, 2, 5, 6, 7])


def test_a_read_past_its_deadline_fails_and_the_next_ones_go_on() -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as server:
            engine = source(server.url, interval=0.05, deadline_seconds=0.2)
            async with running(engine):
                await until(lambda: engine.observe().engine is not None)
                server.behaviour = hang
                await until(lambda: not engine.observe().status.answering)
                held = sample(engine)
                assert dict(engine.observe().status.errors).keys() == {"timeout"}
                assert "within 0.2 s" in engine.observe().status.last_error
                server.behaviour = page(PAGE)
                await until(lambda: engine.observe().status.answering)
                assert sample(engine).at > held.at

    run(work())


def test_a_restart_on_the_same_port_is_dead_at_once_and_back_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work() -> None:
        async with serving(page(fixture("vllm-0.32.0/113.prom"))) as server:
            port = server.port
            engine = source(server.url, interval=0.03, name="worker-1", kv_bytes_per_token=1.0)
            task = running(engine)
            await task.__aenter__()
            await until(lambda: engine.observe().engine is not None)
        gone = time.time()
        await until(lambda: not engine.observe().status.answering)
        held = sample(engine)
        assert held.at <= gone
        await until(lambda: dict(engine.observe().status.errors).get("refused", 0) >= 3)
        assert sample(engine) is held
        async with serving(page(fixture("vllm-0.32.0/000.prom")), port=port):
            await until(lambda: engine.observe().status.answering)
            assert engine.observe().status.last_error == ""
            assert sample(engine).at > held.at
            await task.__aexit__(None, None, None)

    with caplog.at_level(logging.INFO):
        run(work())
    lines = [record.getMessage() for record in caplog.records if record.name == "exporter.sources.engine"]
    # changes only, not a line a second
    assert lines[0].startswith("engine worker-1: reading vllm at http://127.0.0.1:")
    assert 3 <= len(lines) <= 4
    assert any("nothing listens there" in line for line in lines)
    assert lines[-1].startswith("engine worker-1: reading vllm at")
    assert "failed reads" in lines[-1]


def test_another_engine_in_its_place_is_detected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(VllmDialect):
        @property
        def kind(self) -> str:
            return "other"

        def recognises(self, names: Collection[str]) -> bool:
            return any(name.startswith("other:") for name in names)

        def interpret(self, series: Series) -> Slot | None:
            return super().interpret(Series(series.name.replace("other:", "vllm:"), series.labels))

    def detect(names: Collection[str]) -> VllmDialect | None:
        return next((each for each in (VllmDialect(), Other()) if each.recognises(names)), None)

    monkeypatch.setattr(engine_module, "detect", detect)

    async def work() -> list[str]:
        kinds = []
        async with serving(page(PAGE)) as server:
            engine = source(server.url)
            for body in (PAGE, PAGE.replace(b"vllm:", b"other:"), b"python_info 1\n", PAGE, PAGE):
                server.behaviour = page(body)
                observation = await read(engine)
                answering = observation.status.answering
                kinds.append(sample(engine).kind if answering else observation.status.errors[0][0])
        return kinds

    assert run(work()) == ["vllm", "other", "not_an_engine", "vllm", "vllm"]


def test_a_bug_of_ours_is_counted_told_once_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> EngineSample:
        raise ZeroDivisionError("division\nby zero")

    async def work() -> None:
        async with serving(page(PAGE)) as server:
            engine = source(server.url, interval=0.02)
            async with running(engine):
                with monkeypatch.context() as patch:
                    patch.setattr(VllmDialect, "sample", broken)
                    await until(lambda: dict(engine.observe().status.errors).get("internal", 0) >= 4)
                    assert "ZeroDivisionError: division by zero" in engine.observe().status.last_error
                await until(lambda: engine.observe().status.answering)

    run(work())
    assert sum(record.exc_info is not None for record in caplog.records) == 1
    assert len(caplog.records) == 2


def test_a_large_page_is_parsed_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    big = PAGE + b"".join(b'padding{n="%d"} 1\n' % number for number in range(150_000))
    turns = 0
    turns_while_parsing: list[int] = []
    read_all = Reader.read

    def read_counted(reader: Reader[Slot], body: bytes) -> object:
        before = turns
        readings = read_all(reader, body)
        turns_while_parsing.append(turns - before)
        return readings

    monkeypatch.setattr(Reader, "read", read_counted)

    async def work() -> int:
        nonlocal turns
        async with serving(page(big)) as server:
            engine = source(server.url)
            reading = asyncio.create_task(engine.read_once())
            while not reading.done():
                await asyncio.sleep(0.001)
                turns += 1
            await reading
            return len(sample(engine).ranks)

    assert run(work()) == 1
    # Once for the names, to detect the engine, and once for the values; 0 where the loop was held up.
    assert len(turns_while_parsing) == 2
    assert min(turns_while_parsing) >= 3


def test_lines_that_cannot_be_read_are_noted_on_a_good_sample() -> None:
    observation = observed(page(PAGE + b"what is this\n"))
    assert observation.status.answering
    assert observation.status.errors == ()
    assert observation.engine is not None
    assert observation.engine.notes == ("unreadable_lines",)
