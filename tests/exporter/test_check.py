"""``--check`` as its user sees it: one screen, each source a line, what is missing with its reason."""

from __future__ import annotations

from pathlib import Path

from exporter.check_command import Line, line_of, table
from exporter.gpu_sample import GpuIdentity, GpuSample
from exporter.observation import Observation, SourceStatus
from exporter.offers import SIGNALS
from tests.exporter.running import PAGE, call, engine, free_port
from tests.exporter.settings_files import write
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
    assert "holds what can't be right: several_engines" in done.stdout
    with engine(written("trtllm-unprefixed")) as url:
        done = call("--engine", url, "--check")
    assert "holds what can't be right: names_half_there" in done.stdout
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
    assert rows[1] == "a       vLLM  answered in 0.04 s  46 signals"
    assert rows[2] == "b       engine  " + ("no " * 60).rstrip()


def test_a_probe_s_line_says_what_it_makes_exact() -> None:
    status = SourceStatus("w/probe", "probe", answering=True, last_at=1.0, read_seconds=None)
    told = (probe(1.0), probe(1.0, rank="1", groups=()))
    line = line_of(Observation(status, probes=told), {})
    assert (line.answer, line.gives) == ("answered", "2 ranks, exact: tails, preemptions, aborts")
    blind = probe(1.0, groups=(), preemptions_total=None, aborts_total=None)
    assert line_of(Observation(status, probes=(blind,)), {}).gives == "1 rank, exact: nothing"
