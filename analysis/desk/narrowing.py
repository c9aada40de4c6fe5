"""What of a fleet's store a report reads: a store that knows thousands of workers holds more than can be analysed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from analysis.history.history import HistoryError
from analysis.history.server_census import instances_of
from analysis.history.server_client import Client, GoneError, TooMuchError
from analysis.history.server_names import literal
from analysis.history.server_settings import ServerSettings
from exporter.source_signals import SOURCE_UP

MOST_SIDECARS = 50
"""Each of some 550 series, with eight GPUs: together what a server is read of at a time."""
_SECONDS = 60.0


def narrowed(
    url: str, engines: Collection[str], cluster: Mapping[str, str], start: float, end: float
) -> tuple[str, ...]:
    """Matchers that keep a reading of the server at ``url`` to sidecars that matter; none where all can be read.

    Those that read ``engines``; where none is named those of the ``cluster``, whose labels needn't be on series: they
    may be put on alerts alone. The first ``MOST_SIDECARS`` of them. None too where the server can't say: whoever reads
    it then says what is wrong.
    """
    try:
        return asyncio.run(_narrowed(url, engines, cluster, (round(start * 1000), round(end * 1000))))
    except (HistoryError, TooMuchError, GoneError, TimeoutError):
        return ()


async def _narrowed(
    url: str, engines: Collection[str], cluster: Mapping[str, str], between: tuple[int, int]
) -> tuple[str, ...]:
    client = Client(ServerSettings(url))
    try:
        async with asyncio.timeout(_SECONDS):
            every = await instances_of(client, SOURCE_UP.full_name, between)
            if len(every) <= MOST_SIDECARS:
                return ()
            matchers = [f'{label}=~"{_any((value,))}|"' for label, value in cluster.items()]
            if engines:
                matchers.append(f'source=~"{_any(engines)}"')
            found = await instances_of(client, f"{SOURCE_UP.full_name}{{{','.join(matchers)}}}", between)
    finally:
        await client.aclose()
    return (f'instance=~"{_any(sorted(found)[:MOST_SIDECARS])}"',) if found else ()


def _any(texts: Collection[str]) -> str:
    return "|".join(literal(each) for each in sorted(texts))
