"""An engine together with the GPUs it runs on: what signals that need both are derived from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from exporter.gpu_sample import GpuIdentity, GpuSample
from exporter.sample import EngineSample, RankSample
from exporter.window import Window


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another engine that runs on some of the same GPUs.

    ``within`` is whether it runs on no others: then all it moves goes over the GPUs that are shared.
    """

    engine: Window[EngineSample]
    within: bool
    fresh: bool


@dataclass(frozen=True, slots=True)
class Join:
    """One engine, its ranks, and its GPUs whose numbers are fresh.

    ``gpus_stale`` counts those that belong to the engine and are down, stale or told of by nobody: a sum
    over the engine's GPUs is known only where it is 0.
    """

    engine: Window[EngineSample]
    ranks: tuple[Window[RankSample], ...]
    gpus: tuple[Window[GpuSample], ...]
    gpus_stale: int = 0
    neighbours: tuple[Neighbour, ...] = ()


def belongs(identity: GpuIdentity, wanted: Sequence[str] | None) -> bool:
    """Whether a GPU is among those ``wanted``, each a UUID, an index or a PCI bus id; None wants all.

    A MIG instance belongs where it is named itself; what goes over PCIe is its parent's to tell.
    """
    if wanted is None:
        return not identity.parent_uuid
    names = _names(identity)
    return any(not names.isdisjoint(_spellings(each)) for each in wanted)


def unknown(wanted: Sequence[str] | None, identities: Sequence[GpuIdentity]) -> list[str]:
    """Those ``wanted`` that are none of the GPUs ``identities``."""
    if not wanted:
        return []
    names = frozenset[str]().union(*map(_names, identities))
    return [each for each in wanted if names.isdisjoint(_spellings(each))]


def joined(  # noqa: PLR0913, PLR0917 - an engine, its GPUs, and what is known of both
    engine: Window[EngineSample],
    ranks: tuple[Window[RankSample], ...],
    gpus: Sequence[Window[GpuSample]],
    neighbours: tuple[Neighbour, ...],
    stale_before: float,
    missing: int = 0,
) -> Join:
    """The engine with those of its ``gpus`` that are up and were read at ``stale_before`` or later.

    ``missing`` are GPUs of the engine that nobody tells of.
    """
    fresh = tuple(window for window in gpus if window.newest.up and window.newest.at >= stale_before)
    return Join(engine, ranks, fresh, len(gpus) - len(fresh) + missing, neighbours)


@lru_cache(maxsize=1024)
def _names(identity: GpuIdentity) -> frozenset[str]:
    """What a GPU or an instance can be called by; asked of each in each cycle."""
    if identity.parent_uuid:
        return frozenset({identity.uuid})
    index = () if identity.device_index is None else (str(identity.device_index),)
    return frozenset({identity.uuid, _short_bus_id(identity.pci_bus_id), *index})


@lru_cache(maxsize=1024)
def _spellings(name: str) -> frozenset[str]:
    return frozenset({name, _short_bus_id(name)})


def _short_bus_id(text: str) -> str:
    """A PCI bus id without regard to case and to how many digits the domain is written with."""
    domain, colon, rest = text.lower().partition(":")
    return f"{domain.lstrip('0')}:{rest}" if colon and ":" in rest else text.lower()
