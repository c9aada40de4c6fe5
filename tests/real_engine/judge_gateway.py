"""What may be claimed of orphans at a look, by what the engine really held and by how quick the machine was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exporter.derive.orphans import HELD_SECONDS
from tests.real_engine.gateway_run import POLL_SECONDS, orphans

Told = dict[str, Any]

SEEN_WITHIN_SECONDS = 3.0
"""As docs/gateways.md promises, for reads that keep to their ticks; a look comes up to that much later."""
READ_SECONDS = 0.2
"""A cycle comes a quarter of a second after the reads began: a read that takes longer is seen a second later."""
LOOK_SECONDS = 1.0
"""What a look that took longer shows is of no moment that could be told."""


def values(look: Told, name: str, gateway: str | None = None) -> dict[str, float]:
    """The values of a signal by its own label; of all gateways, or of one."""
    found = {}
    for called, labels, value in look["said"]:
        if called == name and gateway in {None, labels.get("gateway")}:
            found[next((text for label, text in labels.items() if label != "gateway"), "")] = value
    return found


def quick(looks: Sequence[Told]) -> list[Told]:
    """Looks that tell of one moment."""
    return [look for look in looks if look["over"] - look["began"] <= LOOK_SECONDS]


def allowed(looks: Sequence[Told]) -> float:
    """Within how many seconds the sidecar must have said something that happened before these looks.

    The promise speaks of reads on their ticks. Two reads of the engine and one of the gateway after them must come
    first, so each of the three may be late by as long as the longest took, and the cycle then waits for its next
    second; a cycle that a starved sidecar skipped costs one more. A look comes a quarter of a second after the last.
    """
    reads = [value for look in looks for value in values(look, "source_read_seconds").values()]
    skipped = [value for look in looks for value in values(look, "cycles_skipped_total").values()]
    late = 3 * max(reads) + 1.0 if max(reads) > READ_SECONDS else 0.0
    look = max(look["over"] - look["began"] for look in looks) + POLL_SECONDS
    return SEEN_WITHIN_SECONDS + late + max(skipped) - min(skipped) + look


def false_claims(looks: Sequence[Told], held: Sequence[tuple[float, float]]) -> list[str]:
    """Claims of more orphans than there can have been, a line each.

    ``held``: the earliest moment at which the gateway can have given up a request, and when the engine's scheduler was
    done with it. What was held for as long as the derivation demands may be claimed until the sidecar must have seen
    it gone, and nothing else: on a starved machine the step that frees may come seconds late, and then it is right to
    speak of orphans.
    """
    lasting = [(begin, end) for begin, end in held if end - begin >= HELD_SECONDS]
    late = allowed(looks)
    false = []
    for look in looks:
        claim = orphans(look) or 0.0
        at = look["over"]
        true = sum(begin <= at <= end + late for begin, end in lasting)
        if claim > true:
            since = at - looks[0]["began"]
            longest = max((end - begin for begin, end in held), default=0.0)
            false.append(
                f"{claim:g} orphans after {since:.1f} s, of which {true} were held for {HELD_SECONDS} s within the last"
                f" {late:.1f} s (the longest in all: {longest:.2f} s)"
            )
    return false
