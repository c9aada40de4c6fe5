"""Every (engine, signal) pair: a value, or a reason why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.check_command import BY_SETTINGS, EVENTS, NOT_THERE, OF_NO_USE, lacks
from exporter.derive.blocks import KV_BYTES_PER_TOKEN
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.registry import DIALECTS
from exporter.engine_settings import EngineSettings
from exporter.facts import engine_facts
from exporter.offers import SIGNALS, offers
from tests.exporter.engines_page import COLUMNS, SETTINGS, Column, page, seen

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engines.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_engine_has_a_column() -> None:
    assert {seen(column).sample.kind for column in COLUMNS} == {dialect.kind for dialect in DIALECTS}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.page)
def test_every_signal_has_a_value_or_a_reason(column: Column) -> None:
    found = seen(column)
    reasons = {
        signal: lack.why for lack in lacks(found.sample, SETTINGS, found.given) for signal in lack.signals
    }
    assert set(reasons) == set(SIGNALS) - found.given
    for signal, why in reasons.items():
        assert why not in {EVENTS, OF_NO_USE}, signal.name
        assert BY_SETTINGS not in why, signal.name
        assert not why.startswith(NOT_THERE), signal.name


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.page)
def test_one_read_says_what_a_long_run_shows(column: Column) -> None:
    found = seen(column)
    offered = offers(found.sample, SETTINGS)
    assert {signal.name for signal in offered} == {signal.name for signal in found.given}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.page)
def test_without_settings_bytes_are_what_they_would_bring(column: Column) -> None:
    sample = seen(column).sample
    wanting = [
        lack for lack in lacks(sample, EngineFacts()) if BY_SETTINGS in lack.why or lack.why == OF_NO_USE
    ]
    brought = offers(sample, SETTINGS) - offers(sample, EngineFacts())
    assert {signal for lack in wanting for signal in lack.signals} == brought
    assert brought
    assert (wanting[0].why == OF_NO_USE) is (brought == {KV_BYTES_PER_TOKEN})


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.page)
def test_each_key_that_is_asked_for_brings_all_that_it_is_asked_for(column: Column) -> None:
    sample = seen(column).sample
    by_model, by_gpus = (
        offers(sample, engine_facts(EngineSettings("http://engine:1", **told)))
        for told in ({"kv_bytes_per_token": 131_072.0}, {"tensor_parallel": 2})
    )
    for lack in lacks(sample, EngineFacts()):
        if BY_SETTINGS in lack.why:
            assert by_model >= set(lack.signals)
            assert (by_gpus >= set(lack.signals)) is ("tensor_parallel" in lack.why), lack.why


def test_what_engines_differ_in_is_what_the_page_says() -> None:
    def gives(head: str) -> set[str]:
        (column,) = (column for column in COLUMNS if column.head == head)
        return {signal.name for signal in seen(column).given}

    assert "pingpong_ratio" in gives("vLLM V1")
    assert "swapped_sequences" in gives("vLLM V0") - gives("vLLM V1")
    assert "swap_bytes_total" in gives("SGLang") & gives("TensorRT-LLM") & gives("vLLM V1, offload")
    assert "tpot_p99_seconds" not in gives("TensorRT-LLM") | gives("TGI") | gives("llama.cpp")
    assert "engine_frozen" in gives("llama.cpp") & gives("TGI") & gives("Triton") & gives("SGLang")
    assert "engine_frozen" not in gives("TensorRT-LLM")
    assert "decode_stall_seconds_total" not in gives("llama.cpp") | gives("SGLang")
    assert "rank_imbalance_ratio" in gives("vLLM V1, 2 ranks") & gives("SGLang 0.5.10, 2 ranks")
    assert "client_aborts_total" in gives("TGI") & gives("SGLang") & gives("Dynamo") & gives("vLLM V1")
