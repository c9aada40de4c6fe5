"""Which series to ask a server for: our signals, or what the dialects know of others; and how a selector is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.history.history import HistoryError
from exporter.catalogue import SIGNALS
from exporter.dialects.dcgm_names import field_of
from exporter.dialects.gateways import GATEWAYS
from exporter.dialects.litellm import LONG_PROMPTS
from exporter.dialects.registry import DIALECTS, detect
from exporter.exposition import Series
from exporter.signal import PEAK_SUFFIX, PREFIX

_MATCHER = re.compile(
    r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^"\s,=~][^"\s,]*)?))\s*'
)
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_TELLING = (("le", "1"), ("input_sequence_length", LONG_PROMPTS))
"""Labels without which a dialect takes some of its names for nothing."""

OURS = frozenset(
    name
    for signal in SIGNALS
    for name in ((signal.full_name, signal.full_name + PEAK_SUFFIX) if signal.peak else (signal.full_name,))
)
"""All signals as they are scraped, peaks among them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Names to read. ``shared`` are those that any process may have, as its start time: of engines' instances only."""

    names: tuple[str, ...]
    shared: tuple[str, ...] = ()
    raw: bool = False


def wanted(there: Iterable[str]) -> Wanted:
    """Of the names a server has: our signals, and where there are none, what the dialects know."""
    names = sorted(set(there))
    ours = tuple(name for name in names if name in OURS)
    if ours:
        return Wanted(ours)
    telling = tuple(name for name in names if _is_telling(name))
    if not telling:  # names of an engine that is known only by all of them together
        together = detect(names)
        telling = () if together is None else tuple(name for name in names if _is_read(name))
    shared = tuple(name for name in names if name not in telling and _is_read(name)) if telling else ()
    return Wanted(telling, shared, raw=True)


def _is_telling(name: str) -> bool:
    """Whether an engine, a gateway or a GPU exporter that we know is the only one to have that name."""
    series = Series(name, _TELLING)
    return (
        any(each.recognises((name,)) for each in DIALECTS)
        or any(each.interpret(series) is not None for each in GATEWAYS)
        or field_of(name) is not None
    )


def _is_read(name: str) -> bool:
    return any(each.interpret(Series(name, _TELLING)) is not None for each in DIALECTS)


def selector(names: Sequence[str], matchers: Iterable[str] = ()) -> str:
    """A selector of series of these names that have all these labels; ``matchers`` as ``matcher`` gives them."""
    # a colon may stand in a name; nothing in one means anything in a regular expression
    named = f'__name__="{names[0]}"' if len(names) == 1 else f'__name__=~"{"|".join(names)}"'
    return "{" + ",".join((named, *matchers)) + "}"


def matcher(text: str) -> str:
    """``label=value``, also with ``!=``, ``=~`` and ``!~`` and in quotes or not, as a selector has it.

    Raises HistoryError.
    """
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise HistoryError(f'{text!r} is no matcher; write label="value", or with !=, =~ or !~ in between')
    label, how, quoted, bare = found.groups()
    value = quoted if quoted is not None else bare.replace("\\", "\\\\")
    return f'{label}{how}"{value}"'


def checked_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names as they are, in order. Raises HistoryError for none, and for one that is no name."""
    found = tuple(sorted(set(names)))
    if not found:
        raise HistoryError("no name of a series is given; leave names out to read all signals")
    for name in found:
        if not _NAME.fullmatch(name):
            raise HistoryError(
                f"{name!r} is no name of a series; take labels out of it and give them as matchers"
            )
    return found


def is_raw(names: Iterable[str]) -> bool:
    """Whether series of these names are an engine's or an exporter's own, which signals have to be derived from."""
    return not any(name.startswith(PREFIX) for name in names)


def literal(text: str) -> str:
    """A label's value for itself within a regular expression in quotes."""
    plain = "".join(char if char.isalnum() or char in "-_:" else "\\" + char for char in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')
