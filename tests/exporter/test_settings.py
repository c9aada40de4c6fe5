"""The loader: precedence, and errors that name the place and the key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.facts import engine_facts
from exporter.settings import RefusedError, SettingsError, environment_names, load
from exporter.sidecar_settings import EngineSettings, SidecarSettings, parse_address


@dataclass(frozen=True, slots=True)
class Inner:
    shorthand: ClassVar[str] = "name"

    name: str
    size: int = 1


@dataclass(frozen=True, slots=True)
class Nest:
    depth: float = 1.0
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Outer:
    text: str = "default"
    number: float = 1.5
    items: tuple[Inner, ...] = ()
    nest: Nest = Nest()
    file: Path | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.number > 100:
            raise RefusedError("number", "is above 100")


def write(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text)
    return file


def refusal(cls: type, **given: object) -> str:
    with pytest.raises(SettingsError) as caught:
        load(cls, **given)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_precedence_is_flag_environment_file_default(tmp_path: Path) -> None:
    file = write(tmp_path, "text: file\nnumber: 2\n")
    environ = {"THRASHOLD_TEXT": "environment", "THRASHOLD_NUMBER": "3"}
    assert load(Outer) == Outer()
    assert load(Outer, file=file) == Outer("file", 2.0)
    assert load(Outer, file=file, environ=environ) == Outer("environment", 3.0)
    flagged = load(Outer, file=file, environ=environ, flags={"text": "flag", "number": None})
    assert flagged == Outer("flag", 3.0)


def test_nested_settings_merge_field_by_field_and_lists_are_replaced(tmp_path: Path) -> None:
    file = write(tmp_path, "nest: {depth: 2}\nitems: [a, {name: b, size: 2}]\n")
    assert load(Outer, file=file).items == (Inner("a"), Inner("b", 2))
    environ = {"THRASHOLD_NEST_WIDE": "true", "THRASHOLD_ITEMS": " c , d,"}
    assert load(Outer, file=file, environ=environ) == Outer(
        nest=Nest(2.0, wide=True), items=(Inner("c"), Inner("d"))
    )
    assert load(Outer, file=file, environ=environ, flags={"items": ("e",)}).items == (Inner("e"),)
    assert load(Outer, file=file, flags={"items": ()}).items == (Inner("a"), Inner("b", 2))


def test_empty_and_foreign_variables_count_as_not_set() -> None:
    environ = {"THRASHOLD_TEXT": "", "THRASHOLD_PORT": "tcp://10.0.0.1:9807", "PATH": "/bin"}
    assert load(Outer, environ=environ) == Outer()


def test_a_relative_path_counts_from_the_folder_of_its_file(tmp_path: Path) -> None:
    assert load(Outer, file=write(tmp_path, "file: a/b.json\n")).file == tmp_path / "a/b.json"
    assert load(Outer, file=write(tmp_path, "file: /a/b.json\n")).file == Path("/a/b.json")
    assert load(Outer, environ={"THRASHOLD_FILE": "a/b.json"}).file == Path("a/b.json")


def test_every_field_has_a_variable() -> None:
    assert {name for name, _, _ in environment_names(Outer)} == {
        f"THRASHOLD_{name}"
        for name in ("TEXT", "NUMBER", "ITEMS", "NEST_DEPTH", "NEST_WIDE", "FILE", "LIMIT")
    }


def test_aliases_and_merged_mappings_work(tmp_path: Path) -> None:
    file = write(tmp_path, "items:\n  - &base {name: a, size: 5}\n  - <<: *base\n    name: b\n  - *base\n")
    assert load(Outer, file=file).items == (Inner("a", 5), Inner("b", 5), Inner("a", 5))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("text: a\nnumbr: 3\n", 2, "numbr: unknown key; did you mean number?"),
        ("zzz: 3\n", 1, "zzz: unknown key; known here: file, items, limit, nest, number, text"),
        ("text: a\n\nnumber: fast\n", 3, "number: expected a number, got text"),
        ("text: a\nnumber: true\n", 2, "number: expected a number, got true or false"),
        ("text: 3\n", 1, "text: expected text, got a whole number"),
        ("text:\n", 1, "text: expected text, got nothing"),
        ("number: 101\n", 1, "number: is above 100"),
        ("items:\n  - a\n  - size: 3\n", 3, "items[1]: lacks name"),
        ("items:\n  - name: a\n    size: 1.5\n", 3, "items[0].size: expected a whole number, got a number"),
        ("items:\n  - name: a\n    sise: 1\n", 3, "items[0].sise: unknown key; did you mean size?"),
        ("items: a\n", 1, "items: expected a list, got text"),
        ("items: [[a]]\n", 1, "items[0]: expected keys and values, got a list"),
        ("nest: 3\n", 1, "nest: expected keys and values, got a whole number"),
        ("nest:\n  wide: 1\n", 2, "nest.wide: expected true or false, got a whole number"),
        ("file: 3\n", 1, "file: expected text, got a whole number"),
        ("text: a\ntext: b\n", 2, "text: given twice, first on line 1"),
        ("nest:\n  depth: 1\n  depth: 2\n", 3, "depth: given twice, first on line 2"),
        ("- text\n", 1, "expected keys and values at the top"),
        ("text: [a\nnumber: 1\n", 2, "not valid YAML: "),
        ("text: a\n\tnumber: 1\n", 2, "not valid YAML: "),
        ("text: *nothing\n", 1, "not valid YAML: "),
        ("items: &a [*a]\n", 1, "an alias that contains itself"),
        ("[a]: b\n", 1, "a key must be a name"),
        ("text: !!python/name:os.system\n", 1, "not a value: "),
        ("a: b\n---\nc: d\n", 2, "not valid YAML: "),
    ],
)
def test_a_bad_file_is_refused_with_line_and_key(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = write(tmp_path, text)
    assert refusal(Outer, file=file).startswith(f"{file}:{line}: {said}")


def test_what_is_no_settings_file_at_all_is_refused(tmp_path: Path) -> None:
    assert refusal(Outer, file=tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    missing = tmp_path / "none.yaml"
    assert refusal(Outer, file=missing) == f"{missing}: cannot be read: No such file or directory"
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"text: \xff\xfe\x00")
    assert refusal(Outer, file=binary).startswith(f"{binary}: not YAML text: ")
    deep = write(tmp_path, "[" * 5000)
    assert refusal(Outer, file=deep).startswith(f"{deep}")


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "more than 100000 values" in refusal(Outer, file=write(tmp_path, "\n".join(lines)))


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load(Outer, file=write(tmp_path, "# nothing\n")) == Outer()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"THRASHOLD_NUMBER": "fast"}, "THRASHOLD_NUMBER: expected a number, got text"),
        ({"THRASHOLD_NUMBER": "101"}, "THRASHOLD_NUMBER: number: is above 100"),
        ({"THRASHOLD_LIMIT": "1.5"}, "THRASHOLD_LIMIT: expected a whole number, got text"),
        ({"THRASHOLD_NEST_WIDE": "perhaps"}, "THRASHOLD_NEST_WIDE: expected true or false, got text"),
    ],
)
def test_a_bad_variable_is_named(environ: dict[str, str], said: str) -> None:
    assert refusal(Outer, environ=environ) == said


def test_the_place_named_is_the_one_that_won(tmp_path: Path) -> None:
    file = write(tmp_path, "number: 2\nitems: [a]\n")
    assert refusal(Outer, file=file, flags={"number": 200}) == "--number: number: is above 100"
    engines = write(tmp_path, "engines: [http://a]\n")
    message = refusal(SidecarSettings, file=engines, flags={"engines": ("http://b", "b")})
    assert message == "--engine: engines[1].url: 'b' is not a URL; did you mean http://b?"


@settings(deadline=None)  # on a busy machine a file takes as long as it takes
@given(st.text())
def test_any_text_is_settings_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        load(Outer, file=file)
    except SettingsError as error:
        assert str(error).startswith(str(file))  # noqa: PT017 - either outcome is right


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
        ("", "'' is not a URL"),
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
    with pytest.raises(SettingsError, match=r"config\.json: "):
        engine_facts(EngineSettings("http://a", model_config=config))
    config.unlink()
    with pytest.raises(SettingsError, match=r"config\.json: cannot be read"):
        engine_facts(EngineSettings("http://a", model_config=config))
