"""What a settings dataclass declares: its fields, their types, and the variables that set them."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from exporter.settings_file import KeyPath

_OF_KUBERNETES = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$")
_OF_KUBERNETES_VALUE = re.compile(r"(tcp|udp|sctp)://")


def environment_names(cls: type, prefix: str = "THRASHOLD_") -> Iterator[tuple[str, KeyPath, Any]]:
    """Yield each variable that is read for ``cls``, with its key path and its type."""
    for name, annotation in fields_of(cls).items():
        inner = plain_type(annotation)
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            for variable, key, leaf in environment_names(inner, f"{prefix}{name.upper()}_"):
                yield variable, (name, *key), leaf
        else:
            yield prefix + name.upper(), (name,), annotation


def misspelt_variables(
    cls: type, environ: Mapping[str, str], also: Collection[str] = (), prefix: str = "THRASHOLD_"
) -> Iterator[tuple[str, str]]:
    """Yield each variable that nobody reads but that is close to one somebody does, and that one.

    Somebody is :func:`exporter.settings.load` for ``cls``, or whoever reads the variables ``also``.
    What Kubernetes sets for a service whose name begins with the prefix is left alone, and so is what
    is close to nothing.
    """
    known = {name.removeprefix(prefix): name for name, _, _ in environment_names(cls, prefix)}
    known.update((name.removeprefix(prefix), name) for name in also)
    for name, value in sorted(environ.items()):
        rest = name.removeprefix(prefix)
        if rest == name or rest in known or _is_of_kubernetes(name, value):
            continue
        # A flag may be called by a part of its key: --dcgm is GPUS_DCGM_URL.
        whole = (each for each in known if f"_{rest}_" in f"_{each}_")
        close = difflib.get_close_matches(rest, known, n=1) or list(itertools.islice(whole, 1))
        for each in close:
            yield name, known[each]


def fields_of(cls: type) -> dict[str, Any]:
    """Name the fields that can be set, each with its type as it is annotated."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {each.name: hints[each.name] for each in dataclasses.fields(cls) if each.init}


def plain_type(annotation: Any) -> Any:  # noqa: ANN401 - a type expression
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


def _is_of_kubernetes(name: str, value: str) -> bool:
    of_a_port = name.endswith("_PORT") and _OF_KUBERNETES_VALUE.match(value)
    return bool(of_a_port or _OF_KUBERNETES.search(name))
