"""What can be set on the sidecar: engines, addresses, secrets, and the facts that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.engine_settings import EngineSettings
from exporter.facts import engine_facts
from exporter.sample import STALE_AFTER_SECONDS
from exporter.settings import RefusedError, load
from exporter.sidecar_settings import SidecarSettings, parse_address
from tests.exporter.settings_files import refusal, write


@pytest.mark.parametrize(
    ("url", "normal", "name"),
    [
        ("http://host:8000", "http://host:8000/metrics", "host:8000"),
        ("http://host:8000/", "http://host:8000/metrics", "host:8000"),
        ("http://host/prometheus", "http://host/prometheus", "host:80"),
        ("https://host", "https://host/metrics", "host:443"),
        ("http://[::1]:8000", "http://[::1]:8000/metrics", "[::1]:8000"),
        ("http://host:8000?token=x", "http://host:8000/metrics?token=x", "host:8000"),
        ("HTTP://Host:8000", "http://Host:8000/metrics", "host:8000"),
    ],
)
def test_an_engine_url_is_completed_and_names_the_engine(url: str, normal: str, name: str) -> None:
    engine = load(SidecarSettings, flags={"engines": (url,)}).engines[0]
    assert (engine.url, engine.name) == (normal, name)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("host:8000", "'host:8000' is not a URL; did you mean http://host:8000?"),
        ("host", "'host' is not a URL; did you mean http://host?"),
        ("", "is empty; write http://HOST:PORT"),
        ("http://a:1,http://b:1", "is more than one URL; give each by itself"),
        ("ftp://host", "must start with http:// or https://"),
        ("file:///etc/passwd", "must start with http:// or https://"),
        ("http://", "has no host"),
        ("http://:8000", "has no host"),
        ("http://host:99999", "Port out of range"),
        ("http://host:eight", "is not a URL: Port could not be cast"),
        ("http://host:0", "port 0"),
        ("http://ho st", "holds spaces or control characters"),
        ("http://host\n", "holds spaces or control characters"),
        ("http://[::1", "is not a URL: "),
        ("http://host#top", "must not carry a #fragment"),
    ],
)
def test_what_is_no_engine_url_is_refused(url: str, said: str) -> None:
    message = refusal(SidecarSettings, flags={"engines": (url,)})
    assert message.startswith("--engine: engines[0].url: ")
    assert said in message


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@host", "user:hunter2@host", "http://host/?a=user:hunter2@x"]
)
def test_a_url_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    message = refusal(SidecarSettings, flags={"engines": (url,)})
    assert "basic_auth" in message
    assert "hunter2" not in message


def test_doubled_engine_names_are_refused_with_the_line(tmp_path: Path) -> None:
    file = write(tmp_path, "engines:\n  - http://a:1\n  - http://b:1\n  - {url: 'http://a:1/other'}\n")
    message = refusal(SidecarSettings, file=file)
    assert message.startswith(f"{file}:4: engines[2]: the name a:1 is already that of engines[0]")


def test_secrets_stay_out_of_what_is_shown(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "engines:\n"
        "  - {url: 'http://a', bearer_token: hunter2, headers: {X-Key: hunter2}}\n"
        "  - {url: 'http://b', basic_auth: {username: u, password: hunter2}}\n",
    )
    settings = load(SidecarSettings, file=file)
    assert settings.engines[0].bearer_token == "hunter2"  # noqa: S105 - the test's own
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("bearer_token: a, bearer_token_file: b", "set only one of"),
        ("basic_auth: {username: u}", "engines[0].basic_auth: needs either password or password_file"),
        (
            "basic_auth: {username: u, password: a, password_file: b}",
            "needs either password or password_file",
        ),
        ("tls: {cert_file: a}", "key_file is not set"),
        ("headers: {'a b': c}", "'a b' is not a header name"),
        ('headers: {a: "x\\r\\ny"}', "engines[0].headers.a: holds characters a header can't carry"),
        ("deadline_seconds: 0", "engines[0].deadline_seconds: expected a number > 0.0"),
        ("deadline_seconds: .nan", "engines[0].deadline_seconds: expected a number > 0.0"),
        ("deadline_seconds: .inf", "engines[0].deadline_seconds: expected a number <= 86400.0"),
        ("tensor_parallel: 0", "engines[0].tensor_parallel: expected a whole number >= 1"),
        ("slo: {tpot_seconds: -1}", "engines[0].slo.tpot_seconds: expected a number > 0.0"),
    ],
)
def test_engine_settings_that_can_not_be_meant_are_refused(tmp_path: Path, engine: str, said: str) -> None:
    assert said in refusal(
        SidecarSettings, file=write(tmp_path, f"engines: [{{url: 'http://a', {engine}}}]\n")
    )


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("engines: [{%s}]", "engines[0]"),
        ("gateways: [{%s}]", "gateways[0]"),
        ("gpus: {dcgm: {%s}}", "gpus.dcgm"),
    ],
)
def test_whatever_is_read_is_reached_by_the_same_rules(tmp_path: Path, where: str, key: str) -> None:
    for keys, said in (
        ("url: 'http://u:p@a'", f"{key}.url: must not carry a user or a password"),
        ("url: 'ftp://a'", f"{key}.url: 'ftp://a' must start with http:// or https://"),
        ("url: 'http://a', headers: {'a b': c}", f"{key}.headers: 'a b' is not a header name"),
        (
            'url: "http://a", headers: {a: "x\\r\\nEvil: y"}',
            f"{key}.headers.a: holds characters a header can't carry",
        ),
        ("url: 'http://a', bearer_token: a, bearer_token_file: b", "set only one of"),
        ("url: 'http://a', tls: {cert_file: a}", "key_file is not set"),
    ):
        assert said in refusal(SidecarSettings, file=write(tmp_path, where % keys + "\n"))


@pytest.mark.parametrize("seconds", [0.5, 1, 5])
def test_an_interval_that_windows_and_staleness_bear_is_taken(seconds: float) -> None:
    settings = load(SidecarSettings, environ={"THRASHOLD_INTERVAL_SECONDS": str(seconds)})
    assert settings.interval_seconds == seconds


@pytest.mark.parametrize("seconds", ["0.49", "5.01", "60", "0", "-1", "nan", "inf"])
def test_any_other_interval_is_refused_with_the_reason(seconds: str) -> None:
    message = refusal(SidecarSettings, environ={"THRASHOLD_INTERVAL_SECONDS": seconds})
    assert message.startswith(
        f"THRASHOLD_INTERVAL_SECONDS: interval_seconds: {seconds} is not within 0.5 to 5 s: "
    )
    assert "windows of 10 s" in message
    assert f"after {STALE_AFTER_SECONDS:g} s" in message


def test_gpus_are_all_of_the_machine_those_named_or_none(tmp_path: Path) -> None:
    text = "engines: [{url: 'http://a', gpus: [GPU-1]}, {url: 'http://b', gpus: []}, http://c]\n"
    engines = load(SidecarSettings, file=write(tmp_path, text)).engines
    assert [engine.gpus for engine in engines] == [("GPU-1",), (), None]


def test_an_index_of_a_gpu_may_be_written_as_a_number_or_as_text(tmp_path: Path) -> None:
    text = "engines: [{url: 'http://a', gpus: [0, '1', GPU-2, '0000:03:00.0']}]\n"
    (engine,) = load(SidecarSettings, file=write(tmp_path, text)).engines
    assert engine_facts(engine).gpus == ("0", "1", "GPU-2", "0000:03:00.0")


@pytest.mark.parametrize("number", ["-1", "1.5", "true", "0000:03:00.0"])
def test_a_number_that_is_no_index_is_no_gpu(tmp_path: Path, number: str) -> None:
    message = refusal(
        SidecarSettings, file=write(tmp_path, f"engines: [{{url: 'http://a', gpus: [0, {number}]}}]\n")
    )
    assert "engines[0].gpus[1]: " in message


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9807", ("127.0.0.1", 9807)),
        (":9807", ("", 9807)),
        ("[::1]:0", ("::1", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_split(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text", ["", "9807", "host:", "host:70000", "host:-1", "host:x", "::1:9807", "ho st:1", "a:²"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    message = refusal(SidecarSettings, environ={"THRASHOLD_LISTEN": text or " x"})
    assert message.startswith("THRASHOLD_LISTEN: listen: ")
    assert ("did you mean 127.0.0.1:9807, or :9807 for all" in message) == (text == "9807")


def test_the_facts_of_an_engine_follow_from_its_settings(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4,'
        ' "hidden_size": 64, "torch_dtype": "bfloat16"}'
    )
    bare = engine_facts(EngineSettings("http://a"))
    assert (bare.kv_bytes_per_token, bare.gpus_per_replica) == (None, None)
    from_model = engine_facts(EngineSettings("http://a", model_config=config, tensor_parallel=4))
    assert (from_model.kv_bytes_per_token, from_model.gpus_per_replica) == (2 * 2 * 4 * 8 * 2, 4)
    half = engine_facts(EngineSettings("http://a", model_config=config, kv_cache_dtype="fp8"))
    assert half.kv_bytes_per_token == 2 * 2 * 4 * 8
    told = engine_facts(EngineSettings("http://a", model_config=config, kv_bytes_per_token=7.0))
    assert told.kv_bytes_per_token == 7.0


@pytest.mark.parametrize("body", ["", "[]", "{}", "not json", '{"num_hidden_layers": "two"}'])
def test_a_model_config_that_tells_nothing_is_refused_by_name(tmp_path: Path, body: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(body)
    with pytest.raises(RefusedError, match=r"config\.json: ") as refused:
        engine_facts(EngineSettings("http://a", model_config=config))
    assert refused.value.key == ("model_config",)
    config.unlink()
    with pytest.raises(RefusedError, match=r"config\.json: cannot be read"):
        engine_facts(EngineSettings("http://a", model_config=config))
