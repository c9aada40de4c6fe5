"""``--check`` as its user sees it: one screen, each source a line, what is missing with its reason."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import exporter.dialects
import exporter.sources
from exporter.catalogue import GATEWAY_PHENOMENA
from exporter.check_command import NOT_THERE, Lack, Line, line_of, table
from exporter.derivation import run
from exporter.derive.gateway_keys import LONG_PROMPTS, PROMPT_TOKENS
from exporter.derive.phenomenon import EngineFacts
from exporter.dialects.gateway_dialect import Asked
from exporter.dialects.gateways import of_gateway_kind
from exporter.exposition import Reader
from exporter.gateway_offers import GATEWAY_SIGNALS, gateway_offers
from exporter.gateway_sample import GatewaySample
from exporter.gpu_sample import GpuIdentity, GpuMemory, GpuSample, PcieTraffic
from exporter.observation import Observation, SourceStatus
from exporter.oddities import ODDITIES, in_words
from exporter.offers import SIGNALS
from exporter.signal import Signal
from exporter.sources.engine import SEVERAL_ENGINES, UNREADABLE_LINES
from exporter.window import Window
from tests.exporter.running import PAGE, call, engine, free_port
from tests.exporter.settings_files import write
from tests.support.gateways import envoy_names, envoy_page, envoy_sample
from tests.support.gateways import written as written_gateway
from tests.support.pages import AT, written
from tests.support.probes import probe


def test_an_engine_that_tells_much() -> None:
    with engine(PAGE) as url:
        done = call("--engine", url, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    head, line, *rest = done.stdout.splitlines()
    assert head.split() == ["SOURCE", "KIND", "ANSWER", "GIVES"]
    address = url.removeprefix("http://")
    assert line.startswith(f"{address}  vLLM v1  answered in 0.")
    assert line.endswith(f" s  46 of {len(SIGNALS)} signals")
    assert rest[:2] == ["", f"{address} lacks"]
    text = " ".join(" ".join(rest).split())
    assert (
        "set kv_bytes_per_token, model_config or tensor_parallel in a --config FILE (docs/settings.md): "
        "tail_fragmentation_bytes" in text
    )
    assert "V1 never swaps; V0 tells until 0.9.0: swapped_sequences, swap_bytes_estimate_total" in text


def test_every_source_has_its_line_and_one_that_fails_its_reason(tmp_path: Path) -> None:
    with engine(written("trtllm")) as trt, engine(written("sglang")) as sglang:
        file = write(
            tmp_path,
            f"engines:\n"
            f"  - {{url: '{trt}/prometheus/metrics', name: one, kv_bytes_per_token: 100}}\n"
            f"  - {{url: '{sglang}', name: two}}\n"
            f"  - {{url: 'http://127.0.0.1:{free_port()}', name: three}}\n",
        )
        done = call("--config", str(file), "--check")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == ["one", "two", "three"]
    assert "TensorRT-LLM serve" in lines[1]
    assert "SGLang" in lines[2]
    assert "refused: nothing listens there" in lines[3]
    assert "tail_fragmentation_bytes" not in done.stdout.partition("two lacks")[0]
    assert (
        "told when a request ends, with return_perf_metrics: true; not by Triton: prompt_tokens_per_second"
        in done.stdout
    )


def test_a_page_that_is_no_engine_s_is_one_line() -> None:
    with engine(b"go_goroutines 5\nenvoy_cluster_upstream_rq 4\n") as url:
        done = call("--engine", url, "--check")
    assert done.returncode == 1
    assert "is the page of Envoy; set the URL to an engine behind it" in done.stdout.splitlines()[1]
    assert "lacks" not in done.stdout


def test_two_engines_behind_one_url_and_half_a_page_are_told_of() -> None:
    body = b"vllm:num_requests_running 3\n" + written("sglang-0.4.9")
    with engine(body) as url:
        done = call("--engine", url, "--check")
    assert done.returncode == 0
    assert " is odd\n  several_engines: series of another engine stand there too," in done.stdout
    with engine(written("trtllm-unprefixed")) as url:
        done = call("--engine", url, "--check")
    assert " is odd\n  names_half_there: a group of series" in done.stdout
    assert "set enable_iter_perf_stats: true for trtllm-serve; idle, it shows its last step" in done.stdout


def test_gpus_are_counted_by_what_can_be_read() -> None:
    gpus = (GpuSample(AT, GpuIdentity("a")), GpuSample(AT, GpuIdentity("b"), up=False, down_because="lost"))
    status = SourceStatus("nvml", "gpu", answering=True, last_at=AT, read_seconds=0.02)
    line = line_of(Observation(status, gpus=gpus), {})
    assert (line.kind, line.answer) == ("gpu", "answered in 0.02 s")
    assert line.gives.startswith("1 of 2 GPUs, ")
    assert int(line.gives.split()[4]) >= 2


def test_a_long_failure_widens_no_column() -> None:
    rows = list(
        table([Line("a", "vLLM", "answered in 0.04 s", "46 signals"), Line("b", "engine", "no " * 60, "")])
    )
    assert rows[1] == "a       vLLM    answered in 0.04 s  46 signals"
    assert rows[2] == "b       engine  " + ("no " * 60).rstrip()
    alone = list(table([Line("a-long-name", "engine", "no " * 60, "")]))
    assert alone == ["SOURCE       KIND    ANSWER  GIVES", "a-long-name  engine  " + ("no " * 60).rstrip()]


def test_a_probe_s_line_says_what_it_makes_exact() -> None:
    status = SourceStatus("w/probe", "probe", answering=True, last_at=1.0, read_seconds=None)
    told = (probe(1.0), probe(1.0, rank="1", groups=()))
    line = line_of(Observation(status, probes=told), {})
    assert (line.answer, line.gives) == ("answered", "2 ranks, exact: tails, preemptions, aborts")
    blind = probe(1.0, groups=(), preemptions_total=None, aborts_total=None)
    assert line_of(Observation(status, probes=(blind,)), {}).gives == "1 rank, exact: nothing"


def checked_gateway(sample: GatewaySample) -> Line:
    status = SourceStatus(sample.gateway, "gateway", answering=True, last_at=sample.at, read_seconds=0.02)
    return line_of(Observation(status, gateway=sample), {})


def test_one_read_of_a_gateway_says_what_a_long_run_shows() -> None:
    pages = [name for name in envoy_names() if name.startswith("whole/")]
    samples = [envoy_sample(envoy_page(name), AT + 10.0 * place) for place, name in enumerate(pages)]
    window: Window[GatewaySample] = Window()
    memory: Mapping[str, Any] = {}
    shown: set[Signal] = set()
    for sample in samples:
        window = window.appended(sample)
        memory, points = run(GATEWAY_PHENOMENA, window, EngineFacts(), memory, failed)
        shown |= {point.signal for group in points.values() for point in group}
    assert gateway_offers(samples[0]) == shown
    line = checked_gateway(samples[0])
    assert (line.kind, line.gives) == ("Envoy gateway", f"{len(shown)} of {len(GATEWAY_SIGNALS)} signals")
    assert set(line.lacks) == {Lack("Envoy knows no API keys", (PROMPT_TOKENS, LONG_PROMPTS))}


@pytest.mark.parametrize(("page", "keys"), [("litellm-1.110", True), ("litellm-1.40", False)])
def test_what_litellm_lacks_has_its_reason(page: str, keys: bool) -> None:  # noqa: FBT001 -- a table's column
    dialect = of_gateway_kind("litellm")
    readings = Reader(dialect.interpret).read(written_gateway(page))
    sample = dialect.sample(readings, Asked("g"), at=AT, read_seconds=0.0)
    reasons = {signal.name: lack.why for lack in checked_gateway(sample).lacks for signal in lack.signals}
    assert reasons["gateway_breaker_open"] == "LiteLLM has no breaker that it shows"
    assert ("gateway_long_prompts_total" not in reasons) is keys
    assert not any(why.startswith(NOT_THERE) for why in reasons.values())


def failed(_phenomenon: str, error: Exception) -> None:
    raise error


def test_a_gateway_whose_cluster_or_listener_is_not_known_says_what_to_set() -> None:
    fresh = checked_gateway(envoy_sample(envoy_page("services/00-fresh"), AT))
    text = "\n".join(table([fresh]))
    assert "g is odd\n  no_traffic_yet: nothing was sent to any cluster yet" in text
    assert fresh.gives == f"1 of {len(GATEWAY_SIGNALS)} signals"
    shared = checked_gateway(envoy_sample(envoy_page("services/02-both-busy"), AT, cluster="engines"))
    text = " ".join("\n".join(table([shared])).split())
    assert "several_services: other clusters get requests too; set the gateway's listener" in text
    assert "set the gateway's listener, or look whether http stats are filtered: gateway_inflight" in text


def test_a_source_that_has_heard_nothing_says_so() -> None:
    status = SourceStatus(
        "w/kv_events", "kv_events", answering=True, last_at=None, read_seconds=None, last_error="no topic"
    )
    assert line_of(Observation(status), {}) == Line("w/kv_events", "kv_events", "no topic", "")


def test_every_oddity_there_is_has_its_meaning() -> None:
    """Whatever a dialect or a source notes, by the constants and the texts that are added to notes."""
    noted = set()
    for module in (*modules_of(exporter.dialects), *modules_of(exporter.sources)):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "notes.add":
                names = (each.id for each in ast.walk(node.args[0]) if isinstance(each, ast.Name))
                noted |= {vars(module)[name] for name in names if name == name.upper()}
    noted |= {SEVERAL_ENGINES, UNREADABLE_LINES}
    assert noted == set(ODDITIES)
    for oddity in ODDITIES:
        assert in_words(oddity).startswith(f"{oddity}: ")
        assert not in_words(oddity).endswith(".")


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        yield importlib.import_module(found.name)


def test_gpus_without_a_source_of_pcie_bytes_say_which_setting_gives_some() -> None:
    status = SourceStatus("nvml", "nvml", answering=True, last_at=AT, read_seconds=None)
    t4 = GpuSample(AT, GpuIdentity("a", name="Tesla T4"), memory=GpuMemory(16e9, 1e9))
    told = t4._replace(pcie=PcieTraffic("window", out_bytes_per_second=0.0, in_bytes_per_second=0.0))
    failed = t4._replace(errors_total=(("pcie", "timeout", 1.0),))
    instance = t4._replace(identity=GpuIdentity("c", parent_uuid="a"))
    (lack,) = line_of(Observation(status, gpus=(t4, told, failed, instance)), {}).lacks
    assert lack.why.startswith(
        "Tesla T4: the driver has neither profiling nor byte counters of PCIe; gpus.pcie_window"
    )
    assert {signal.name for signal in lack.signals} >= {"pcie_bytes_total", "pcie_saturation_ratio"}
    for gpu in (told, failed, instance, t4._replace(up=False, memory=None)):
        assert line_of(Observation(status, gpus=(gpu,)), {}).lacks == ()
