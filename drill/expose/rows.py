"""A metric of vLLM as a row of a table: what it is called, in which releases, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from drill.expose.buckets import Buckets
from drill.expose.observed import Observed
from drill.expose.release import Release
from drill.expose.text import Family, Labels, Page, Summary, Told

Seen = TypeVar("Seen", bound=Observed)
Value = float | Buckets | Summary
Reading = Value | Sequence[Told]
"""A number or a histogram of a rank, or several of them by label; an empty row: not there before it is first seen."""

_KINDS = {"gauge": 0, "summary": 1, "counter": 2, "histogram": 3}
"""The order in which several processes' files are put together."""


@dataclass(frozen=True)  # slots leave no room for what Generic notes on an instance
class Row(Generic[Seen]):
    """``since`` and ``until``: the first release that has it and the first that hasn't; None: all later ones have."""

    name: str
    kind: str
    help: str
    read: Callable[[Seen], Reading]
    since: tuple[int, ...] = ()
    until: tuple[int, ...] | None = None

    def among(self, release: Release) -> bool:
        """Whether a release has it."""
        return release.in_range(self.since, self.until)

    @property
    def family(self) -> Family:
        """Its HELP and TYPE."""
        return Family("vllm:" + self.name, self.kind, self.help)


def told(row: Row[Seen], ranks: Sequence[tuple[Labels, Seen]]) -> Iterator[Told]:
    """Children in vLLM's order: one label after the other, each of all ranks. ``ranks``: labels and what was seen."""
    by_rank = [(labels, seen, _children(row.read(seen))) for labels, seen in ranks]
    for place in range(max(len(children) for *_, children in by_rank)):
        for labels, seen, children in by_rank:
            if place < len(children):
                child = children[place]
                created = seen.served.started_at if child.created is None else child.created
                yield Told(child.value, labels + child.labels, created)


def _children(reading: Reading) -> Sequence[Told]:
    return (Told(reading),) if isinstance(reading, float | int | Buckets | Summary) else reading


def by_kind(written: Iterable[tuple[Family, Iterable[Told]]]) -> list[tuple[Family, Iterable[Told]]]:
    """In the order in which several processes' metrics come."""
    return sorted(written, key=lambda each: _KINDS[each[0].kind])


def write(page: Page, written: Iterable[tuple[Family, Iterable[Told]]]) -> str:
    """The page with all of them."""
    for family, children in written:
        page.add(family, children)
    return page.text()
