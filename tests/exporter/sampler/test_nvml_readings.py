"""All that is read of each kind of GPU under a new driver and an old one."""

from __future__ import annotations

import json

import pytest

from drill.fake_nvml import PROFILES, Driver, Profile
from tests.exporter.sampler.conftest import Make
from tests.exporter.sampler.readings import DRIVERS, FOLDER, said


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.version)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name + " MIG" * bool(profile.mig))
def test_readings_are_those_kept(profile: Profile, driver: Driver, machine: Make) -> None:
    kept = json.loads((FOLDER / f"driver-{driver.version}.json").read_text(encoding="utf-8"))
    name = f"{profile.name}, partitioned" if profile.mig else profile.name
    read = json.loads(json.dumps(said(machine(profile, driver=driver))))
    assert read == kept[name]
