"""What every dialect keeps, and issues that people reported of engines other than vLLM."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.check_command import EVENTS, NOT_THERE, lacks
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects import dynamo, llamacpp, sglang_names, tgi, trtllm, vllm_names
from exporter.dialects.names import Table
from exporter.dialects.registry import DIALECTS, detect, of_kind, others_beside
from exporter.exposition import Reader
from exporter.sample import EngineSample, RankSample
from tests.exporter.dialects.vllm_text import inside
from tests.support.captures import fixture
from tests.support.pages import WRITTEN, dialect_of, rank, read, written

TABLES: dict[str, tuple[str, Table]] = {
    "vllm": ("vllm:", vllm_names.TABLE),
    "sglang rank": ("sglang:", sglang_names.OF_A_RANK),
    "sglang front": ("sglang:", sglang_names.OF_THE_FRONT),
    "trtllm serve": ("trtllm_", trtllm.SERVE),
    "trtllm triton": ("nv_trt_llm_", trtllm.TRITON),
    "llamacpp": ("llamacpp:", llamacpp.TABLE),
    "tgi": ("tgi_", tgi.TABLE),
    "dynamo front": ("dynamo_frontend_", dynamo.FRONT),
    "dynamo worker": ("dynamo_component_", dynamo.COMPONENT),
}
CAPTURED = {
    "vllm": fixture("vllm-0.32.0/112.prom"),
    "vllm-offload": fixture("vllm-0.32.0-offload/097.prom"),
    "vllm-v0": fixture("vllm-0.8.5-v0-swap/092.prom"),
    "llamacpp": fixture("llamacpp-2026.10.11549/030.prom"),
}
PAGES = CAPTURED | {path.stem: path.read_bytes() for path in sorted(WRITTEN.glob("*.prom"))}


def test_kinds_and_titles_are_unique_and_found() -> None:
    assert (
        len({dialect.kind for dialect in DIALECTS}) == len({each.title for each in DIALECTS}) == len(DIALECTS)
    )
    for dialect in DIALECTS:
        assert of_kind(dialect.kind) is dialect
    with pytest.raises(LookupError, match="no dialect is called gpt"):
        of_kind("gpt")


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_read_by_its_own_dialect_alone(page: str) -> None:
    dialect = dialect_of(PAGES[page])
    assert dialect.kind == page.split("-", maxsplit=1)[0]
    names: set[str] = set()
    Reader(lambda series: names.add(series.name)).read(PAGES[page])
    assert others_beside(dialect, names) == ()
    assert read(PAGES[page]).kind == dialect.kind


@pytest.mark.parametrize("page", PAGES)
def test_order_of_the_text_does_not_matter(page: str) -> None:
    body = PAGES[page].decode().splitlines(keepends=True)
    assert read("".join(reversed(body))) == read("".join(sorted(body))) == read("".join(body))


@pytest.mark.parametrize("page", PAGES)
def test_everything_it_lacks_has_a_reason_in_words(page: str) -> None:
    for lack in lacks(read(PAGES[page]), EngineFacts()):
        assert lack.why != EVENTS
        assert not lack.why.startswith(NOT_THERE), [signal.name for signal in lack.signals]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.kind)
def test_reasons_are_given_for_fields_that_exist_once_each(dialect: object) -> None:
    known = {field.name for kind in (EngineSample, RankSample) for field in fields(kind)}
    told = [field for field, _ in dialect.absences]
    assert set(told) <= known
    assert len(told) == len(set(told))
    assert all(why and why == why.strip() and not why.endswith(".") for _, why in dialect.absences)


@pytest.mark.parametrize("table", TABLES)
def test_every_name_of_a_table_is_recognised_under_its_prefix_only(table: str) -> None:
    prefix, names = TABLES[table]
    kind = table.split(maxsplit=1)[0]
    for stem in names.by_stem:
        found = detect([prefix + stem])
        assert found is not None, stem
        assert found.kind == kind, stem
        assert detect(["my_" + prefix + stem]) is None


@given(
    st.sampled_from(sorted(TABLES)),
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.dictionaries(
                st.sampled_from(
                    ["dp_rank", "tp_rank", "model_name", "model", "le", "mode", "err", "page_size", "request_type",
                     "kv_cache_block_type", "dynamo_endpoint", "status", "quantile", "finished_reason"]
                ),
                st.sampled_from(["", "0", "1", "None", "NaN", "+Inf", "-3", "generate", "decode", "max", "used"]),
            ),
            st.sampled_from(["0", "1", "NaN", "-1", "+Inf", "1e308", "0.5"]),
        )
    ),
)  # fmt: skip
def test_no_series_makes_it_raise(table: str, series: list[tuple[int, dict[str, str], str]]) -> None:
    prefix, names = TABLES[table]
    stems = sorted(names.by_stem)
    text = "".join(
        f"{prefix}{stems[place % len(stems)]}{{{inside(labels)}}} {number}\n"
        for place, labels, number in series
    )
    dialect = of_kind(table.split(maxsplit=1)[0])
    readings = Reader(dialect.interpret).read(text.encode())
    sample = dialect.sample(readings, engine="e", at=1.0, read_seconds=0.1)
    for found in sample.ranks:
        assert found.kv_usage_ratio is None or 0 <= found.kv_usage_ratio <= 1
        assert found.blocks is None or found.blocks > 0
        assert found.running is None or found.running >= 0


# issues, by where they were reported


@pytest.mark.parametrize("page", ["sglang", "trtllm", "tgi", "dynamo-frontend"])
def test_functionary_263_families_without_samples_are_unknown(page: str) -> None:
    heads = b"\n".join(line for line in written(page).splitlines() if line.startswith(b"#"))
    dialect = dialect_of(written(page))
    sample = dialect.sample(
        Reader(dialect.interpret).read(heads + b"\n"), engine="e", at=1.0, read_seconds=0.1
    )
    assert sample.ranks == ()


def test_aibrix_1614_a_gauge_that_stands_there_once_a_process() -> None:
    labels = 'engine_type="unified",model_name="m",tp_rank="0"'
    body = "".join(
        f'sglang:num_running_reqs{{{labels},pid="{pid}"}} {count}\n'
        f'sglang:num_retracted_reqs{{{labels},pid="{pid}"}} {count}\n'
        for pid, count in ((4882, 3), (4883, 5))
    )
    found = rank(body)
    assert (found.running, found.preemptions_total) == (5, None)


@pytest.mark.parametrize(
    ("running", "usage"),
    [
        ("vllm:num_requests_running", "vllm:kv_cache_usage_perc"),
        ("sglang:num_running_reqs", "sglang:token_usage"),
        ("trtllm_num_requests_running", "trtllm_kv_cache_utilization"),
        ("llamacpp:requests_processing", "llamacpp:kv_cache_usage_ratio"),
    ],
)
def test_processes_that_show_the_same_gauges_are_not_added_up(running: str, usage: str) -> None:
    """Python's client has each process show a gauge of its own, also those that have ended."""
    body = "".join(
        f'{name}{{model_name="m",pid="{pid}"}} {value}\n'
        for pid, count, share in ((11, 3, 0.4), (12, 5, 0.5))
        for name, value in ((running, count), (usage, share))
    )
    sample = read(body)
    assert (sample.ranks[0].running, sample.ranks[0].kv_usage_ratio) == (5, 0.5)
    assert "usage_above_1" not in sample.notes


@pytest.mark.parametrize("issue", ["miles 2023", "sglang 6892", "sglang 7305"])
def test_ranks_of_data_parallel_attention_are_kept_apart(issue: str) -> None:
    body = "".join(
        f'sglang:realtime_tokens_total{{model_name="m",dp_rank="{dp}",tp_rank="{dp}",mode="decode"}} {count}\n'
        f'sglang:num_running_reqs{{model_name="m",dp_rank="{dp}",tp_rank="{dp}"}} {dp}\n'
        for dp, count in ((0, 900), (1, 40), (10, 7), (9, 3))
    )
    sample = read(body)
    assert [found.rank for found in sample.ranks] == ["0", "1", "9", "10"], issue
    assert [found.generation_tokens_total for found in sample.ranks] == [900, 40, 3, 7]


def test_client_python_1177_underscores_through_openmetrics() -> None:
    renamed = read(written("sglang").replace(b"sglang:", b"sglang_"))
    assert renamed == read(written("sglang"))


def test_dynamo_adds_its_labels_to_its_engine_s_series_and_hides_none() -> None:
    own = 'dynamo_component="backend",dynamo_namespace="dynamo",'
    body = b"dynamo_component_uptime_seconds 9\n" + CAPTURED["vllm"].replace(
        b"{engine=", f"{{{own}engine=".encode()
    )
    sample = read(body)
    assert sample.kind == "vllm"
    plain = read(CAPTURED["vllm"])
    assert replace(sample, config=plain.config) == plain


def test_a_renamed_series_costs_its_own_fields_only() -> None:
    everything = rank(written("trtllm"))
    renamed = rank(written("trtllm").replace(b"trtllm_num_paused_requests", b"trtllm_num_evicted_requests"))
    assert renamed.paused is None
    assert replace(renamed, paused=everything.paused) == everything
