"""Mooncake's traces of Kimi: times, lengths, and a hash for each 512 tokens of a prompt, kept as its contents.

kvcache-ai/Mooncake, FAST25-release (Apache-2.0; Qin et al.: Mooncake, FAST 2025).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream
from drill.workload.contents import content_id
from drill.workload.trace_files import EXCERPTS, LONGEST_GAP_SECONDS, Clock, TraceError, lines, tokens

CONVERSATION = EXCERPTS / "mooncake-conversation.jsonl.xz"
BLOCK_TOKENS = 512

_FIELDS = ("timestamp", "input_length", "output_length", "hash_ids")


def mooncake(
    path: Path,
    tenant: str = "mooncake",
    longest_gap_seconds: float | None = LONGEST_GAP_SECONDS,
    spread_seconds: float = 0.0,
) -> Stream:
    """A trace's requests. Going through it raises TraceError where a line is bad.

    The published times are rounded to 3 s, so that many come at once: ``spread_seconds`` 3 lays those of one time
    evenly over the 3 s that follow.
    """
    return Stream(lambda: _spread(_read(path, tenant, longest_gap_seconds), spread_seconds))


def _spread(arrivals: Iterator[Arrival], seconds: float) -> Iterator[Arrival]:
    if not seconds:
        yield from arrivals
        return
    for at, together in groupby(arrivals, key=lambda one: one.seconds):
        row = list(together)
        for place, one in enumerate(row):
            later = at + seconds * place / len(row)
            yield Arrival(later, one.content, one.output_tokens, one.tenant)


def _read(path: Path, tenant: str, longest_gap_seconds: float | None) -> Iterator[Arrival]:
    clock = Clock(path, longest_gap_seconds)
    kind = content_id(*f"{tenant}/{path.name}".encode())
    number = 0
    for number, line in lines(path):
        row = _row(path, number, line)
        at = row["timestamp"]
        if isinstance(at, bool) or not isinstance(at, int | float):
            raise TraceError(path, number, f"timestamp is {at!r}: a number of milliseconds is expected")
        clock.check(at / 1000.0, number)
        prompt = tokens(path, number, "input_length", row["input_length"])
        output = tokens(path, number, "output_length", row["output_length"])
        yield Arrival(at / 1000.0, _content(path, number, row["hash_ids"], prompt, kind), output, tenant)
    if not number:
        raise TraceError(path, None, "holds no request")


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise TraceError(path, number, f"is no JSON: {error}") from None
    missing = [name for name in _FIELDS if name not in row] if isinstance(row, dict) else list(_FIELDS)
    if missing:
        raise TraceError(path, number, f"has no {', '.join(missing)}: {', '.join(_FIELDS)} are expected")
    found: dict[str, Any] = row
    return found


def _content(path: Path, number: int, hashes: object, prompt: int, kind: int) -> tuple[Segment, ...]:
    """One segment a hash: whole blocks, and what is left in the last one."""
    blocks = -(-prompt // BLOCK_TOKENS)
    if not isinstance(hashes, list) or len(hashes) != blocks or not all(type(each) is int for each in hashes):
        have = f"{len(hashes)} of them" if isinstance(hashes, list) else repr(hashes)
        raise TraceError(
            path,
            number,
            f"hash_ids: {have}, where {prompt} tokens have {blocks} blocks of {BLOCK_TOKENS}: whole numbers",
        )
    last = prompt - BLOCK_TOKENS * (blocks - 1)
    contents = [content_id(kind, each) for each in hashes]
    return (*(Segment(each, BLOCK_TOKENS) for each in contents[:-1]), Segment(contents[-1], last))
