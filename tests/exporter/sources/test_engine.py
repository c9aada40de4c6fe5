"""How an engine is read over time: ticks, stalls, restarts, other engines in its place, and what is logged."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection

import pytest

from exporter.dialects.vllm import Slot, VllmDialect
from exporter.exposition import Series
from exporter.sample import EngineSample
from exporter.sources import engine as engine_module
from exporter.sources.source import Source
from tests.exporter.sources.reading import PAGE, observed, read, run, running, sample, source, until
from tests.support.captures import fixture
from tests.support.http_servers import (
    Behaviour,
    Exchange,
    hang,
    page,
    serving,
)


def delayed(behaviour: Behaviour, seconds: float) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await behaviour(exchange)

    return behave


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
    before = time.time()
    engine = observed(delayed(page(PAGE), 0.3)).engine
    assert engine is not None
    assert engine.at - before < 0.2
    assert engine.read_seconds >= 0.29


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
            healthy, stalled = source(good.url, interval=0.1), source(bad.url, interval=0.1)
            async with running(healthy, stalled):
                await until(lambda: stalled.observe().engine is not None)
                bad.behaviour = hang
                await asyncio.sleep(0.3)  # long enough for a read to be hanging
                before, held = len(good.requests), sample(stalled)
                began = time.monotonic()
                await asyncio.sleep(1.5)
                reads = len(good.requests) - before
                expected = (time.monotonic() - began) / 0.1
                assert expected - 3 <= reads <= expected + 2
                # in flight all the while: no failure yet, and the old sample with its old time
                assert sample(stalled) is held
                assert stalled.observe().status.answering
                assert time.time() - sample(healthy).at < 0.5
                assert time.time() - held.at > 1.5

    run(work())


def test_missed_ticks_are_skipped_and_the_next_read_keeps_to_them() -> None:
    async def work() -> list[float]:
        starts: list[float] = []

        async def behave(exchange: Exchange) -> None:
            starts.append(time.monotonic())
            await (delayed(page(PAGE), 0.5) if len(starts) == 3 else page(PAGE))(exchange)

        async with serving(behave) as server, running(source(server.url, interval=0.2)):
            await until(lambda: len(starts) >= 6)
        return starts

    starts = run(work())
    ticks = [(start - starts[0]) / 0.2 for start in starts]
    # the third took two and a half ticks: 2 -> 5, nothing in a bunch afterwards
    assert [round(tick) for tick in ticks] == [0, 1, 2, 5, 6, 7]
    assert all(abs(tick - round(tick)) < 0.45 for tick in ticks)


def test_a_read_past_its_deadline_fails_and_the_next_ones_go_on() -> None:
    async def work() -> None:
        async with serving(page(PAGE)) as server:
            engine = source(server.url, interval=0.05, deadline_seconds=0.2)
            async with running(engine):
                await until(lambda: engine.observe().engine is not None)
                server.behaviour = hang
                await until(lambda: not engine.observe().status.answering)
                held = sample(engine)
                assert dict(engine.observe().status.errors) == {"timeout": 1}
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
            engine = source(server.url, interval=0.03, name="worker-1")
            task = running(engine)
            await task.__aenter__()
            await until(lambda: engine.observe().engine is not None)
        await until(lambda: not engine.observe().status.answering, 1.0)
        held = sample(engine)
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


def test_a_large_page_is_parsed_beside_the_loop() -> None:
    big = PAGE + b"".join(b'padding{n="%d"} 1\n' % number for number in range(150_000))

    async def work() -> tuple[float, int]:
        async with serving(page(big)) as server:
            engine, longest = source(server.url), 0.0
            reading = asyncio.create_task(engine.read_once())
            while not reading.done():
                before = time.monotonic()
                await asyncio.sleep(0.001)
                longest = max(longest, time.monotonic() - before)
            await reading
            return longest, len(sample(engine).ranks)

    longest, ranks = run(work())
    # parsing takes about half a second; the loop went on meanwhile
    assert (ranks, longest < 0.25) == (1, True), longest


def test_lines_that_cannot_be_read_are_noted_on_a_good_sample() -> None:
    observation = observed(page(PAGE + b"what is this\n"))
    assert observation.status.answering
    assert observation.status.errors == ()
    assert observation.engine is not None
    assert observation.engine.notes == ("unreadable_lines",)
