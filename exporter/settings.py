"""The one loader of settings: frozen dataclasses out of flags, environment, a YAML file and defaults.

A part declares a frozen dataclass and calls :func:`load`. Precedence, strongest first: flag,
environment, file, default. A field that is itself a dataclass is merged field by field; anything
else, lists too, is replaced as a whole. What a field may say:

- its type, with ``Annotated[..., msgspec.Meta(...)]`` for limits;
- ``Path``: a relative path in a file counts from the folder of that file;
- ``tuple[X, ...]``: a list in the file, separated by commas in the environment;
- a dataclass with ``shorthand: ClassVar[str] = "url"`` may be written as that one field's text.

``__post_init__`` refuses what the types can't, by raising :class:`RefusedError` with the key.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from exporter.settings_file import KeyPath, SettingsError, read_settings_file

__all__ = ["RefusedError", "SettingsError", "environment_names", "load"]

Settings = TypeVar("Settings")

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_SCALARS = (str, int, float, bool)


class RefusedError(ValueError):
    """Raised by a dataclass's ``__post_init__``: ``key`` within it holds what it can't use."""

    def __init__(self, key: str | KeyPath, problem: str) -> None:
        super().__init__(problem)
        self.key: KeyPath = (key,) if isinstance(key, str) else key


def load(
    cls: type[Settings],
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    prefix: str = "THRASHOLD_",
) -> Settings:
    """Make a ``cls`` of all that is given.

    ``environ`` is searched for ``prefix`` + the field's name in capitals; an empty variable counts as
    not set, and variables that name no field are left alone (Kubernetes sets some for every
    service). ``flags`` go by field name; None and an empty tuple mean not given. Raises
    SettingsError: one line that says where (file and line, variable or flag), which key and why.
    """
    layers = _Layers()
    if file is not None:
        read = read_settings_file(file)
        layers.add(cls, read.values, {key: f"{file}:{line}" for key, line in read.lines.items()}, file.parent)
        layers.places[()] = str(file)
    for name, key, annotation in environment_names(cls, prefix):
        text = (environ or {}).get(name, "")
        if text.strip():
            layers.add_one(cls, key, _from_text(text, annotation, name), name)
    for field_name, value in (flags or {}).items():
        if value is not None and value != ():
            plain = list(value) if isinstance(value, tuple) else value
            layers.add_one(cls, (field_name,), plain, _flag_name(cls, field_name))
    return layers.convert(cls)


def environment_names(cls: type, prefix: str = "THRASHOLD_") -> Iterator[tuple[str, KeyPath, Any]]:
    """Yield each variable that :func:`load` reads for ``cls``, with its key path and its type."""
    for name, annotation in _fields(cls).items():
        inner = _plain_type(annotation)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            for variable, key, leaf in environment_names(inner, f"{prefix}{name.upper()}_"):
                yield variable, (name, *key), leaf
        else:
            yield prefix + name.upper(), (name,), annotation


def _flag_name(cls: type, field_name: str) -> str:
    flags = {each.name: each.metadata.get("flag") for each in dataclasses.fields(cls)}
    return flags.get(field_name) or "--" + field_name.replace("_", "-")


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
            key: KeyPath = tuple(
                int(place) if place else name for name, place in _STEP.findall(trail.rstrip("`"))
            )
            if isinstance(error.__cause__, RefusedError):
                key += error.__cause__.key
            raise self._error(key, problem) from error

    def _prepare(self, value: Any, annotation: Any, key: KeyPath, folder: Path | None) -> Any:  # noqa: ANN401
        """Refuse unknown keys, open shorthands and anchor relative paths in ``folder``."""
        inner = _plain_type(annotation)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            shorthand = getattr(inner, "shorthand", None)
            if isinstance(value, str) and shorthand:
                return {shorthand: value}
            if isinstance(value, dict):
                known = _fields(inner)
                for name in value:
                    if name not in known:
                        raise self._error((*key, name), "unknown key" + _suggestion(name, known))
                return {
                    name: self._prepare(item, known[name], (*key, name), folder)
                    for name, item in value.items()
                }
        elif inner is Path and isinstance(value, str) and folder is not None:
            return str(folder / value)
        elif typing.get_origin(inner) is tuple and isinstance(value, list):
            item_type = typing.get_args(inner)[0]
            return [self._prepare(item, item_type, (*key, place), folder) for place, item in enumerate(value)]
        return value

    def _error(self, key: KeyPath, problem: str) -> SettingsError:
        place = next(
            (self.places[key[:size]] for size in range(len(key), -1, -1) if key[:size] in self.places), ""
        )
        name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key).lstrip(".")
        return SettingsError(": ".join(part for part in (place, name, _in_words(problem)) if part))


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[name] = _merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def _fields(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(cls) if each.init}


def _plain_type(annotation: Any) -> Any:  # noqa: ANN401 - a type expression
    """Take ``Annotated`` and ``| None`` off."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            choices = [each for each in typing.get_args(annotation) if each is not types.NoneType]
            if len(choices) != 1:
                return annotation
            annotation = choices[0]
        else:
            return annotation


def _from_text(text: str, annotation: Any, place: str) -> Any:  # noqa: ANN401 - any field's type
    inner = _plain_type(annotation)
    if typing.get_origin(inner) is tuple:
        item_type = typing.get_args(inner)[0]
        return [_from_text(item.strip(), item_type, place) for item in text.split(",") if item.strip()]
    if inner is not str and inner in _SCALARS:
        try:
            return msgspec.convert(text.strip(), inner, strict=False)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{place}: {_in_words(str(error))}") from error
    return text


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
