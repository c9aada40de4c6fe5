"""What a GPU can be called by in settings."""

from __future__ import annotations

import pytest

from exporter.gpu_sample import GpuIdentity
from exporter.join import belongs, unknown
from tests.support.gpus import identity

INSTANCE = GpuIdentity(
    "MIG-1", 2, pci_bus_id="00000000:03:00.0", parent_uuid=identity(2).uuid, gpu_instance=1
)


@pytest.mark.parametrize(
    "name", [identity(2).uuid, "2", "00000000:03:00.0", "0000:03:00.0", "0000:03:00.0".upper()]
)
def test_a_gpu_goes_by_its_uuid_its_index_and_its_bus_id_however_that_is_written(name: str) -> None:
    assert belongs(identity(2), ("7", name))
    assert not belongs(identity(3), (name,))
    assert unknown((name,), (identity(2),)) == []
    assert unknown((name, "7"), (identity(3),)) == [name, "7"]
    assert not belongs(INSTANCE, (name,)), "an instance goes by its own name alone"


def test_without_names_it_is_all_whole_gpus() -> None:
    assert belongs(identity(), None)
    assert not belongs(INSTANCE, None)
    assert not belongs(identity(), ())
    assert belongs(INSTANCE, ("MIG-1",))
    assert unknown(None, ()) == unknown((), ()) == []


def test_who_tells_no_bus_id_is_not_all_that_have_none() -> None:
    bare = GpuIdentity("GPU-a")
    assert not belongs(bare, ("0", "0000:03:00.0"))
    assert unknown(("GPU-a", "0"), (bare,)) == ["0"]
