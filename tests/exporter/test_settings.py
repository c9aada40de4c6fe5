"""The loader: precedence, and errors that name the place and the key."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.settings import RefusedError, SettingsError, load, load_with_places
from exporter.settings_schema import environment_names, misspelt_variables
from exporter.sidecar_settings import SidecarSettings
from tests.exporter.settings_files import refusal, write


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


@given(
    st.text(st.characters(codec="ascii", exclude_characters="=/,", categories=("L", "N", "P")), min_size=1)
)
def test_engines_and_gateways_may_be_given_with_their_name(name: str) -> None:
    url = "https://host:8000/metrics?a=b"
    hypothesis.assume(any(letter.isalnum() for letter in name))
    for made in (
        load(SidecarSettings, flags={"engines": (f"{name}={url}",), "gateways": (f"g{name}={url}",)}),
        load(
            SidecarSettings,
            environ={"THRASHOLD_ENGINES": f" {name} = {url}", "THRASHOLD_GATEWAYS": f"g{name}={url}"},
        ),
    ):
        assert [(each.name, each.url) for each in made.engines] == [(name, url)]
        assert [(each.name, each.url) for each in made.gateways] == [(f"g{name}", url)]
    assert load(SidecarSettings, flags={"engines": (url,)}).engines[0].name == "host:8000"


@pytest.mark.parametrize("text", ["=http://host:1", "name=", "  =http://host:1"])
def test_half_of_a_name_and_url_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="--engine"):
        load(SidecarSettings, flags={"engines": (text,)})


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
        ("text: a\nnumber: !!int ''\n", 2, "not a value: '' is no int"),
        ("nest: !!bool perhaps\n", 1, "not a value: 'perhaps' is no bool"),
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


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n"])
def test_an_empty_file_gives_the_defaults_and_is_known_to_be_empty(tmp_path: Path, text: str) -> None:
    loaded = load_with_places(Outer, file=write(tmp_path, text))
    assert (loaded.settings, loaded.file_is_empty) == (Outer(), True)
    assert not load_with_places(Outer, file=write(tmp_path, "items: []\n")).file_is_empty
    assert not load_with_places(Outer).file_is_empty


def test_files_that_can_not_be_read_are_refused_with_line_and_key(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("")
    load_with_places(Outer, file=write(tmp_path, "file: there\n")).check_files()
    for name, reason in (("gone", "No such file or directory"), (".", "Is a directory")):
        file = write(tmp_path, f"text: a\nfile: {name}\n")
        with pytest.raises(SettingsError) as caught:
            load_with_places(Outer, file=file).check_files()
        assert str(caught.value) == f"{file}:2: file: {tmp_path / name}: cannot be read: {reason}"
    with pytest.raises(SettingsError, match=r"settings.yaml:1: file: .*null byte"):
        load_with_places(Outer, file=write(tmp_path, 'file: "a\\0b"\n')).check_files()
    with pytest.raises(SettingsError, match=r"^THRASHOLD_FILE: file: gone: cannot be read"):
        load_with_places(Outer, environ={"THRASHOLD_FILE": "gone"}).check_files()


def test_what_is_found_out_later_is_refused_with_its_place(tmp_path: Path) -> None:
    file = write(tmp_path, "text: a\nitems:\n  - a\n  - name: b\n    size: 3\n")
    loaded = load_with_places(Outer, file=file)
    late = RefusedError("size", "is odd")
    assert str(loaded.refusal(late, ("items", 1))) == f"{file}:5: items[1].size: is odd"
    assert str(loaded.refusal(late, ("items", 0))) == f"{file}:3: items[0].size: is odd"
    assert str(loaded.refusal(RefusedError("limit", "is not set"))) == f"{file}: limit: is not set"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ENGINE", "ENGINES"),
        ("ENGINE_URL", "ENGINES"),
        ("LISTN", "LISTEN"),
        ("LISTEN_PORT", "LISTEN"),
        ("INTERVAL", "INTERVAL_SECONDS"),
        ("WEBCONFIG", "WEB_CONFIG"),
        ("CONFIG_FILE", "CONFIG"),
        ("GPUS", "GPUS_NVML"),
        ("DCGM", "GPUS_DCGM_URL"),
        ("RECORDER", "RECORDER_PATH"),
        ("GATEWAY", "GATEWAYS"),
    ],
)
def test_a_misspelt_variable_is_told_from_what_it_should_be(name: str, meant: str) -> None:
    found = misspelt_variables(SidecarSettings, {f"THRASHOLD_{name}": "9807"}, also=("THRASHOLD_CONFIG",))
    assert list(found) == [(f"THRASHOLD_{name}", f"THRASHOLD_{meant}")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # what is read
        ("THRASHOLD_LISTEN", ":1"),
        ("THRASHOLD_CONFIG", "a.yaml"),
        # what Kubernetes sets for services called thrashold and thrashold-engines
        ("THRASHOLD_PORT", "tcp://10.0.0.1:9807"),
        ("THRASHOLD_SERVICE_HOST", "10.0.0.1"),
        ("THRASHOLD_SERVICE_PORT", "9807"),
        ("THRASHOLD_SERVICE_PORT_METRICS", "9807"),
        ("THRASHOLD_PORT_9807_TCP", "tcp://10.0.0.1:9807"),
        ("THRASHOLD_PORT_9807_TCP_PROTO", "tcp"),
        ("THRASHOLD_PORT_9807_TCP_PORT", "9807"),
        ("THRASHOLD_PORT_9807_TCP_ADDR", "10.0.0.1"),
        ("THRASHOLD_ENGINES_PORT", "tcp://10.0.0.1:9807"),
        ("THRASHOLD_ENGINES_SERVICE_HOST", "10.0.0.1"),
        ("THRASHOLD_ENGINES_PORT_9807_TCP_ADDR", "10.0.0.1"),
        # what others set, for themselves
        ("THRASHOLD_VERSION", "0.1"),
        ("THRASHOLD_LOG_LEVEL", "debug"),
        ("ENGINES", "x"),
        ("MY_THRASHOLD_ENGINE", "x"),
    ],
)
def test_what_is_read_or_others_set_is_no_misspelt_variable(name: str, value: str) -> None:
    assert list(misspelt_variables(SidecarSettings, {name: value}, also=("THRASHOLD_CONFIG",))) == []


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


@settings(deadline=None)
@given(
    st.sampled_from(["int", "float", "bool", "null", "timestamp", "binary", "str", "set", "omap", "foo"]),
    st.from_regex(r"[-+.:0-9a-fox ]{0,12}", fullmatch=True),
)
def test_any_text_under_any_tag_is_a_value_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, tag: str, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "tagged.yaml"
    file.write_text(f"text: !!{tag} '{text}'\n")
    try:
        load(Outer, file=file)
    except SettingsError as error:
        assert str(error).startswith(f"{file}:1: ")  # noqa: PT017 - either outcome is right


@dataclass(frozen=True, slots=True)
class Within:
    shorthand: ClassVar[str] = "inner"

    inner: Inner


@dataclass(frozen=True, slots=True)
class Filed:
    shorthand: ClassVar[str] = "path"

    path: Path


@dataclass(frozen=True, slots=True)
class Shortened:
    nested: tuple[Within, ...] = ()
    filed: Filed | None = None


def test_a_shorthand_may_be_of_what_has_one_itself_or_a_path(tmp_path: Path) -> None:
    file = write(tmp_path, "nested: [a, {inner: b}, {inner: {name: c, size: 2}}]\nfiled: flight.db\n")
    loaded = load(Shortened, file=file)
    assert [each.inner for each in loaded.nested] == [Inner("a"), Inner("b"), Inner("c", 2)]
    assert loaded.filed == Filed(tmp_path / "flight.db")
