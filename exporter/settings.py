"""The one loader of settings: frozen dataclasses out of flags, environment, a YAML file and defaults.

A part declares a frozen dataclass and calls :func:`load`. Precedence, strongest first: flag,
environment, file, default. A field that is itself a dataclass is merged field by field; anything
else, lists too, is replaced as a whole. What a field may say:

- its type, with ``Annotated[..., msgspec.Meta(...)]`` for limits and, as ``description``, for what it
  means: the one home of that, which the page of settings is made of;
- ``Path``: a relative path in a file counts from the folder of that file;
- ``tuple[X, ...]``: a list in the file, separated by commas in the environment;
- ``dict[str, X]``: keys of the user's own, each with an X; in a file alone;
- an enum: one of its values;
- a dataclass with ``shorthand: ClassVar[str] = "url"`` may be written as that one field's text, and one with
  ``shorthand_name: ClassVar[str] = "name"`` beside it as ``NAME=URL`` as well.

``__post_init__`` refuses what the types can't, by raising :class:`RefusedError` with the key.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from exporter.settings_file import KeyPath, SettingsError, read_settings_file
from exporter.settings_schema import environment_names, fields_of, plain_type

__all__ = [
    "Loaded",
    "RefusedError",
    "SettingsError",
    "load",
    "load_with_places",
]

Settings = TypeVar("Settings")

_ANY_KEY = "..."
_SHORT_NAME = re.compile(r"[^=/]*\w[^=/]*")  # a URL has a slash before it has an equals sign
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_SCALARS = (str, int, float, bool)


class RefusedError(ValueError):
    """Raised by a dataclass's ``__post_init__``: ``key`` within it holds what it can't use."""

    def __init__(self, key: str | KeyPath, problem: str) -> None:
        super().__init__(problem)
        self.key: KeyPath = (key,) if isinstance(key, str) else key


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Settings]):
    """Settings, and where each of them came from: what is found out later is refused with its place too."""

    settings: Settings
    file_is_empty: bool
    _places: Mapping[KeyPath, str]

    def refusal(self, error: RefusedError, under: KeyPath = ()) -> SettingsError:
        """Say what ``error`` says of the settings at ``under``, with file and line, variable or flag."""
        return _error(self._places, (*under, *error.key), str(error))

    def check_files(self) -> None:
        """Raise SettingsError for the first file named anywhere in the settings that can't be read."""
        for key, file in _files(self.settings):
            try:
                if not file.is_fifo():  # which would wait for a writer, and take from what it writes
                    file.open("rb").close()
            except (OSError, ValueError) as error:  # ValueError: a name that no file can have
                reason = getattr(error, "strerror", None) or error
                raise self.refusal(RefusedError(key, f"{file}: cannot be read: {reason}")) from error


def load(
    cls: type[Settings],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    prefix: str = "THRASHOLD_",
) -> Settings:
    """Make a ``cls`` of all that is given, as :func:`load_with_places` does."""
    return load_with_places(cls, file=file, environ=environ, flags=flags, prefix=prefix).settings


def load_with_places(
    cls: type[Settings],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    prefix: str = "THRASHOLD_",
) -> Loaded[Settings]:
    """Make a ``cls`` of all that is given, and keep where it came from.

    ``environ`` is searched for ``prefix`` + the field's name in capitals; an empty variable counts as
    not set, and variables that name no field are left alone (Kubernetes sets some for every
    service). ``flags`` go by field name, with dots for one within another; None and an empty tuple mean
    not given. Raises SettingsError: one line that says where (file and line, variable or flag), which key and why.
    """
    layers = _Layers()
    empty = False
    if file is not None:
        read = read_settings_file(file)
        layers.add(cls, read.values, {key: f"{file}:{line}" for key, line in read.lines.items()}, file.parent)
        layers.places[()] = str(file)
        empty = not read.values
    for name, key, annotation in environment_names(cls, prefix):
        text = (environ or {}).get(name, "")
        if text.strip():
            layers.add_one(cls, key, _from_text(text, annotation, name), name)
    for name, value in (flags or {}).items():
        if value is not None and value != ():
            plain = list(value) if isinstance(value, tuple) else value
            steps = name.split(".")
            layers.add_one(cls, tuple(steps), plain, _flag_name(cls, steps))
    return Loaded(layers.convert(cls), empty, layers.places)


def _files(value: object, key: KeyPath = ()) -> Iterator[tuple[KeyPath, Path]]:
    if isinstance(value, Path):
        yield key, value
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            if not each.metadata.get(
                "written"
            ):  # what we write need not be there, and says itself what it lacks
                yield from _files(getattr(value, each.name), (*key, each.name))
    elif isinstance(value, tuple):
        for place, item in enumerate(value):
            yield from _files(item, (*key, place))


def _flag_name(cls: type, key: list[str]) -> str:
    for step in key[:-1]:
        cls = plain_type(fields_of(cls)[step])
    flags = {each.name: each.metadata.get("flag") for each in dataclasses.fields(cls)}
    return flags.get(key[-1]) or "--" + key[-1].replace("_", "-")


class _Layers:
    """Values laid one over the other, each with the place it came from."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.places: dict[KeyPath, str] = {}

    def add(
        self, cls: type, values: Mapping[str, Any], places: Mapping[KeyPath, str], folder: Path | None
    ) -> None:
        self.places.update(places)
        self.values = _merge(self.values, self._prepare(values, cls, (), folder))

    def add_one(self, cls: type, key: KeyPath, value: Any, place: str) -> None:  # noqa: ANN401
        for old in [known for known in self.places if known[: len(key)] == key]:
            del self.places[old]
        values = value
        for step in reversed(key):
            values = {step: values}
        self.add(cls, values, {key: place}, None)

    def convert(self, cls: type[Settings]) -> Settings:
        try:
            return msgspec.convert(self.values, cls, dec_hook=_decode)
        except msgspec.ValidationError as error:
            problem, _, trail = str(error).rpartition(" - at `$")
            if not problem:
                problem, trail = str(error), ""
            key = self._key(trail.rstrip("`"), cls)
            if isinstance(error.__cause__, RefusedError):
                key += error.__cause__.key
            elif problem.startswith("Invalid enum value"):
                problem = f"{problem.removeprefix('Invalid enum value ')} is not {_choices(cls, key)}"
            raise self._error(key, problem) from error

    def _key(self, trail: str, cls: type) -> KeyPath:
        """The way to a value, from msgspec's words for it, which leave out a key of the user's own."""
        key: KeyPath = ()
        value: Any = self.values
        annotation: Any = cls
        for name, place in _STEP.findall(trail):
            inner = plain_type(annotation)
            step: str | int = int(place) if place.isdecimal() else name
            if place == _ANY_KEY:
                annotation = typing.get_args(inner)[1]
                step = next(each for each, item in value.items() if not _converts(item, annotation))
            elif isinstance(step, int):
                annotation = typing.get_args(inner)[0]
            else:
                annotation = fields_of(inner).get(step, object)
            key, value = (*key, step), value[step]
        return key

    def _prepare(self, value: Any, annotation: Any, key: KeyPath, folder: Path | None) -> Any:  # noqa: ANN401
        """Refuse unknown keys, open shorthands and anchor relative paths in ``folder``."""
        inner = plain_type(annotation)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            shorthand = getattr(inner, "shorthand", None)
            if isinstance(value, str) and shorthand:
                # what is opened is prepared too: it may be a path, or a shorthand itself
                value = _opened(value, shorthand, getattr(inner, "shorthand_name", ""))
            if isinstance(value, dict):
                known = fields_of(inner)
                for name in value:
                    if name not in known:
                        raise self._error((*key, name), "unknown key" + _suggestion(name, known))
                return {
                    name: self._prepare(item, known[name], (*key, name), folder)
                    for name, item in value.items()
                }
        elif typing.get_origin(inner) is dict and isinstance(value, dict):
            named_type = typing.get_args(inner)[1]
            return {
                name: self._prepare(item, named_type, (*key, name), folder) for name, item in value.items()
            }
        elif inner is Path and isinstance(value, str) and folder is not None:
            return str(folder / value)
        elif typing.get_origin(inner) is tuple and isinstance(value, list):
            item_type = typing.get_args(inner)[0]
            return [self._prepare(item, item_type, (*key, place), folder) for place, item in enumerate(value)]
        return value

    def _error(self, key: KeyPath, problem: str) -> SettingsError:
        return _error(self.places, key, _in_words(problem))


def _opened(text: str, shorthand: str, shorthand_name: str) -> dict[str, str]:
    name, _, named = text.partition("=")
    if shorthand_name and named and _SHORT_NAME.fullmatch(name):
        return {shorthand_name: name.strip(), shorthand: named.strip()}
    return {shorthand: text}


def _error(places: Mapping[KeyPath, str], key: KeyPath, problem: str) -> SettingsError:
    place = next((places[key[:size]] for size in range(len(key), -1, -1) if key[:size] in places), "")
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key).lstrip(".")
    return SettingsError(": ".join(part for part in (place, name, problem) if part))


def _choices(cls: Any, key: KeyPath) -> str:  # noqa: ANN401 - a type expression
    """What the field at ``key`` can be, for people."""
    for step in key:
        inner = plain_type(cls)
        if typing.get_origin(inner) is dict:
            cls = typing.get_args(inner)[1]
        else:
            cls = typing.get_args(inner)[0] if isinstance(step, int) else fields_of(inner)[step]
    inner = plain_type(cls)
    is_enum = isinstance(inner, type) and issubclass(inner, enum.Enum)
    *others, last = (str(each.value) for each in inner) if is_enum else map(str, typing.get_args(inner))
    return f"{', '.join(others)} or {last}" if others else last


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _from_text(text: str, annotation: Any, place: str) -> Any:  # noqa: ANN401 - any field's type
    inner = plain_type(annotation)
    if typing.get_origin(inner) is tuple:
        item_type = typing.get_args(inner)[0]
        return [_from_text(item.strip(), item_type, place) for item in text.split(",") if item.strip()]
    if inner is not str and inner in _SCALARS:
        try:
            return msgspec.convert(text.strip(), inner, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{place}: {_in_words(str(error))}") from error
    return text


def _converts(value: object, annotation: Any) -> bool:  # noqa: ANN401 - a type expression
    try:
        msgspec.convert(value, annotation, dec_hook=_decode)
    except msgspec.ValidationError:
        return False
    return True


def _decode(wanted: type, value: object) -> object:
    if wanted is Path:
        if isinstance(value, str):
            return Path(value)
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    raise NotImplementedError(f"settings of type {wanted}")


_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "keys and values",
    "null": "nothing",
}


def _in_words(problem: str) -> str:
    """Say in the words of YAML what msgspec says in those of Python."""

    def words(match: re.Match[str]) -> str:
        names = match[1].split(" | ")
        wanted = [name for name in names if name != "null"] or names
        return " or ".join(_WORDS.get(name, name) for name in wanted)

    text = re.sub(r"`([^`]*)`", words, problem)
    for old, new in ((r"^Expected\b", "expected"), (r"^Object missing required field", "lacks")):
        text = re.sub(old, new, text)
    return text


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known here: {', '.join(sorted(known))}"
