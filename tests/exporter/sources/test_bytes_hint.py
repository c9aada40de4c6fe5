"""Signals in bytes that stay absent for want of a setting: the log names the settings, once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.exporter.sources.reading import run, source
from tests.support.captures import fixture
from tests.support.http_servers import page, serving, slam
from tests.support.pages import written


@pytest.mark.parametrize(
    ("scrape", "settings", "keys"),
    [
        ("vllm-0.32.0/113.prom", {}, "kv_bytes_per_token, model_config or tensor_parallel"),
        ("vllm-0.32.0/113.prom", {"tensor_parallel": 8}, None),
        ("vllm-0.32.0/113.prom", {"pipeline_parallel": 2}, None),
        ("vllm-0.32.0/113.prom", {"kv_bytes_per_token": 1.0}, None),
        ("vllm-0.32.0/113.prom", {"model_config": Path("config.json")}, None),
        # this one doesn't tell what its pool takes on a GPU, so that the number of GPUs doesn't help
        ("vllm-0.8.5-v0-swap/091.prom", {"tensor_parallel": 8}, "kv_bytes_per_token or model_config"),
    ],
)
def test_the_log_says_once_what_signals_in_bytes_need(
    caplog: pytest.LogCaptureFixture, scrape: str, settings: dict[str, object], keys: str | None
) -> None:
    async def work() -> None:
        async with serving(slam) as server:
            engine = source(server.url, name="worker-1", **settings)
            await engine.read_once()
            for behaviour in (page(fixture(scrape)), slam, page(fixture(scrape))):
                server.behaviour = behaviour
                await engine.read_once()

    with caplog.at_level(logging.INFO):
        run(work())
    said = [line for record in caplog.records if "stay absent" in (line := record.getMessage())]
    expected = (
        f"engine worker-1: tail_fragmentation_bytes and swapped blocks stay absent until a --config FILE sets {keys}"
        " for it (docs/settings.md); bytes that the engine counts itself need neither"
    )
    assert said == ([] if keys is None else [expected])


@pytest.mark.parametrize("name", ["tgi", "dynamo-frontend", "dynamo-worker", "trtllm-unprefixed"])
def test_of_an_engine_without_blocks_no_setting_brings_bytes_and_none_is_asked_for(
    caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async def work() -> None:
        async with serving(page(written(name))) as server:
            await source(server.url).read_once()

    with caplog.at_level(logging.INFO):
        run(work())
    assert "reading " in caplog.text
    assert "stay absent" not in caplog.text
