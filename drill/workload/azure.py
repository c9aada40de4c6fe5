"""Azure's LLM inference traces: a time, the prompt's tokens and the answer's, of each request of a service.

Code and conversation of 2023 (CC-BY 4.0; Patel et al.: Splitwise, ISCA 2024). Contents are not told: no prompt
shares anything with another.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from drill.serving.content import Segment
from drill.workload.arrivals import Arrival, Stream
from drill.workload.contents import content_id
from drill.workload.trace_files import EXCERPTS, LONGEST_GAP_SECONDS, Clock, TraceError, lines, tokens

CODE = EXCERPTS / "azure-2023-code.csv.xz"
CONVERSATION = EXCERPTS / "azure-2023-conversation.csv.xz"

_COLUMNS = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]


def azure(
    path: Path, tenant: str = "azure", longest_gap_seconds: float | None = LONGEST_GAP_SECONDS
) -> Stream:
    """A trace's requests, the first one at 0 s. Going through it raises TraceError where a line is bad."""
    return Stream(lambda: _read(path, tenant, longest_gap_seconds))


def _read(path: Path, tenant: str, longest_gap_seconds: float | None) -> Iterator[Arrival]:
    clock = Clock(path, longest_gap_seconds)
    kind = content_id(*f"{tenant}/{path.name}".encode())
    began: datetime | None = None
    rows = lines(path)
    _, header = next(rows, (1, ""))
    if header.split(",") != _COLUMNS:
        raise TraceError(path, 1, f"columns are {header!r}: {','.join(_COLUMNS)} are expected")
    for number, row in rows:
        cells = row.split(",")
        if len(cells) != len(_COLUMNS):
            raise TraceError(path, number, f"{len(cells)} columns: {','.join(_COLUMNS)} are expected")
        try:
            at = datetime.fromisoformat(cells[0])
            began = began or at
            seconds = (at - began).total_seconds()
        except (TypeError, ValueError):
            raise TraceError(
                path, number, f"TIMESTAMP is {cells[0]!r}: no time like the ones before"
            ) from None
        if seconds < 0:
            raise TraceError(
                path, number, f"a time before the first one's, by {-seconds:g} s: sort the file by time"
            )
        clock.check(seconds, number)
        prompt = tokens(path, number, "ContextTokens", cells[1])
        output = tokens(path, number, "GeneratedTokens", cells[2])
        yield Arrival(seconds, (Segment(content_id(kind, number), prompt),), output, tenant)
    if began is None:
        raise TraceError(path, None, "holds no request")
