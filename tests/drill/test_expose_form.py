"""What the drill's engines answer on /metrics beside what real vLLM answered: line for line, but for the numbers."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from drill.expose.buckets import Buckets
from drill.expose.release import Release, UnknownReleaseError
from drill.expose.text import Family, Page, Told
from drill.serving.config import EngineConfig, Generation
from tests.drill.exposing import OFFLOAD, V0_SWAP, V1, Play, play
from tests.support.captures import recording

OPTIONAL = re.compile(r"kv_block_(lifetime|idle_before_evict|reuse_gap)")
"""There with --kv-cache-metrics only, which the recorded engines had and the drill's have not."""
LOOKUP_TIMES = re.compile(r"^(# \w+ )?vllm:kv_offload_lookup_a?sync_delay_seconds_")
"""Series that come with the first observation: in the model a lookup takes no time."""
NEVER_ASKED = {"vllm-0.32.0", "vllm-0.32.0-offload"}
"""Recordings that begin before the engine's first request."""
CPU_ONLY = "cpu_kvcache_space_bytes,"
"""A label that 0.8.5 has on CPUs, as recorded, and not on GPUs."""


def form(page: str) -> list[str]:
    """Its lines without numbers, and without the values of the configuration."""
    lines = []
    for line in page.splitlines():
        told = line if line.startswith("#") else line.rpartition(" ")[0]
        if told.startswith("vllm:cache_config_info"):
            told = re.sub(r'="[^"]*"', "", told)
        if not OPTIONAL.search(told) and not LOOKUP_TIMES.match(told):
            lines.append(told.replace(CPU_ONLY, ""))
    return lines


def real(name: str, *, last: bool = True) -> str:
    scrapes = [body.decode() for _, body in recording(name).scrapes()]
    return scrapes[-1 if last else 0]


@pytest.fixture(
    scope="module", params=["V1", "V1 with offload", "V1, two ranks, two servers", "V0, swapping"]
)
def pair(request: pytest.FixtureRequest) -> tuple[Play, str]:
    """A play, and the name of the recording it is to look like."""
    plays: dict[str, tuple[EngineConfig, str, int]] = {
        "V1": (V1, "vllm-0.32.0", 1),
        "V1 with offload": (OFFLOAD, "vllm-0.32.0-offload", 1),
        "V1, two ranks, two servers": (V1, "vllm-0.32.0-dp2-api2", 2),
        "V0, swapping": (V0_SWAP, "vllm-0.8.5-v0-swap", 1),
    }
    config, name, ranks = plays[request.param]
    return play(config, ranks=ranks, several_servers=ranks > 1), name


def test_pages_are_those_of_the_recorded_engines_before_a_request_and_after_many(
    pair: tuple[Play, str],
) -> None:
    played, name = pair
    before = form(played.server.page())
    for _ in played.seconds(60):
        pass
    after = form(played.server.page())
    if name in NEVER_ASKED:
        assert before == form(real(name, last=False))
    assert after == form(real(name))


def test_the_numbers_are_written_as_prometheus_client_writes_them() -> None:
    registry = CollectorRegistry()
    gauge = Gauge("vllm:g", "A gauge.", ["b", "a"], registry=registry)
    counter = Counter("vllm:c", "A counter.", registry=registry)
    bounds = (0.001, 1.0, 2.5e6, float("inf"))
    histogram = Histogram("vllm:h", 'With "quotes" \\ and more.', registry=registry, buckets=bounds)
    values = (0.0, 1.0, 0.1 + 0.2, 123456.0, 1234567.0, 1.5e12, 1e-7)
    for place, value in enumerate(values):
        gauge.labels(b=str(place), a='q"u\\o\nte').set(value)
    counter.inc(2.0**31)
    buckets = Buckets(bounds)
    for value in (0.001, 0.5, 3e6, 1e7):
        histogram.observe(value)
        buckets.observe(value)
    created = [
        float(n) for n in re.findall(r"(?m)^vllm:\w+_created (\S+)", generate_latest(registry).decode())
    ]
    page = Page(several_processes=False)
    page.add(
        Family("vllm:g", "gauge", "A gauge."),
        [Told(value, (("b", str(place)), ("a", 'q"u\\o\nte'))) for place, value in enumerate(values)],
    )
    page.add(Family("vllm:c_total", "counter", "A counter."), [Told(2.0**31, (), created[0])])
    page.add(Family("vllm:h", "histogram", 'With "quotes" \\ and more.'), [Told(buckets, (), created[1])])
    assert page.text() == generate_latest(registry).decode()


@pytest.mark.parametrize("release", ["0.8.5", "0.9.2", "0.10.2", "0.11.2", "0.16.0", "0.24.0", "0.33.0"])
def test_an_engine_that_is_upgraded_calls_things_as_its_release_does(release: str) -> None:
    played = play(V1, Release.of(release))
    list(played.seconds(5))
    page = played.server.page()
    assert len(list(text_string_to_metric_families(page))) > 20
    parts = Release.of(release).parts
    assert ("vllm:gpu_cache_usage_perc{" in page) == (parts < (0, 11))
    assert ("vllm:kv_cache_usage_perc{" in page) == (parts >= (0, 9, 2))
    assert ("vllm:time_per_output_token_seconds_count{" in page) == (parts < (0, 12))
    assert ("vllm:inter_token_latency_seconds_count{" in page) == (parts >= (0, 10, 2))
    assert ("vllm:request_num_preemptions_count{" in page) == (parts >= (0, 30))


@pytest.mark.parametrize(
    ("release", "generation", "said"),
    [
        ("0.32", Generation.V0, "take 0.8.5"),
        ("0.8.3", Generation.V1, "take 0.32.0"),
        ("newest", Generation.V1, "write it as 0.32.0"),
    ],
)
def test_a_release_that_the_engine_never_had_is_refused(
    release: str, generation: Generation, said: str
) -> None:
    with pytest.raises(UnknownReleaseError, match=said):
        Release.of(release).check(generation)


def test_bounds_of_buckets_were_narrower_before_0_8_4() -> None:
    played = play(V0_SWAP, Release.of("0.8.3"))
    page = played.server.page()
    assert 'vllm:time_per_output_token_seconds_bucket{le="2.5",' in page
    assert 'vllm:time_per_output_token_seconds_bucket{le="5.0",' not in page
    assert 'vllm:e2e_request_latency_seconds_bucket{le="60.0",' in page
    assert 'vllm:e2e_request_latency_seconds_bucket{le="120.0",' not in page
