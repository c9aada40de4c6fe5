"""One page of dcgm-exporter as values by GPU: copies for pods put together, blanks and nonsense left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exporter.dialects.dcgm_names import (
    LINK_GENERATION,
    LINK_WIDTH,
    MAX_LINK_GENERATION,
    MAX_LINK_WIDTH,
    PCIE_IN_RATE,
    PCIE_IN_WINDOW,
    PCIE_OUT_RATE,
    PCIE_OUT_WINDOW,
    Field,
    field_of,
    identity_of,
    is_blank,
    is_of_a_pod,
    most_bytes_per_second,
)
from exporter.exposition import Series
from exporter.gpu_sample import GpuIdentity

MOST_LISTED = 512
"""GPUs and MIG instances taken from one page; further ones are left out, whatever fills it."""

_MEMORY = "memory"
_LINK_RATES = (PCIE_OUT_RATE, PCIE_IN_RATE, PCIE_OUT_WINDOW, PCIE_IN_WINDOW)


class Slot(NamedTuple):
    """What a series means: a field of a GPU, or of a MIG instance, perhaps told once more for a pod."""

    identity: GpuIdentity
    field: Field
    of_a_pod: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What a page tells of one GPU or MIG instance: ``values`` in base units.

    ``implausible`` counts by group the values that can't be.
    """

    identity: GpuIdentity
    values: Mapping[Field, float]
    implausible: Mapping[str, int]


def interpret(series: Series) -> Slot | None:
    """What one series means; None for the many we have no use for."""
    field = field_of(series.name)
    if field is None:
        return None
    labels = dict(series.labels)
    identity = identity_of(labels)
    if identity is None:
        return None
    if identity.parent_uuid:
        if field.of_device:
            identity = identity._replace(uuid=identity.parent_uuid, parent_uuid="", gpu_instance=None)
        elif field.group != _MEMORY:  # an instance has memory of its own and nothing else
            return None
    return Slot(identity, field, is_of_a_pod(labels))


def told(readings: Iterable[tuple[Slot, float]]) -> dict[str, Told]:
    """By UUID, in the order of the page; who has no value at all is left out.

    Where GPUs are shared, a field stands there once a pod: as copies, or, for memory used and
    utilisation, as each pod's part beside the GPU's own. So a series that names no pod goes first, and
    of several the largest is taken, as of what several MIG instances say of their GPU.
    """
    identities: dict[str, GpuIdentity] = {}
    own: dict[str, dict[Field, float]] = {}
    of_pods: dict[str, dict[Field, float]] = {}
    for (identity, field, of_a_pod), value in readings:
        if is_blank(value) or (identity.uuid not in identities and len(identities) == MOST_LISTED):
            continue
        identities.setdefault(identity.uuid, identity)
        values = (of_pods if of_a_pod else own).setdefault(identity.uuid, {})
        values[field] = max(values.get(field, 0.0), value)
    return {
        uuid: _plausible(identity, {**of_pods.get(uuid, {}), **own.get(uuid, {})})
        for uuid, identity in identities.items()
    }


def _plausible(identity: GpuIdentity, raw: Mapping[Field, float]) -> Told:
    values: dict[Field, float] = {}
    implausible: Counter[str] = Counter()
    for field, value in raw.items():
        if value <= field.most:
            values[field] = value * field.scale
        else:
            implausible[field.group] += 1
    most = most_of_link(values)
    for field in _LINK_RATES:
        if values.get(field, 0.0) > most:
            del values[field]
            implausible[field.group] += 1
    return Told(identity, values, implausible)


def most_of_link(values: Mapping[Field, float]) -> float:
    """The most bytes a second that the GPU's PCIe link can have carried in one direction."""
    return most_bytes_per_second(
        max(values.get(LINK_GENERATION, 0.0), values.get(MAX_LINK_GENERATION, 0.0)),
        max(values.get(LINK_WIDTH, 0.0), values.get(MAX_LINK_WIDTH, 0.0)),
    )
