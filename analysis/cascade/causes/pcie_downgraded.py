"""A PCIe link runs with fewer lanes or a lower generation than its GPU has."""

from __future__ import annotations

from alerts.causes import Cause
from alerts.pack.machine import PCIE_LINK_DOWNGRADED
from alerts.recording_gpus import SATURATED
from analysis.cascade.looks import alerted, holding
from analysis.cascade.template import Breadth, Link, Role, Template

_DOWNGRADED = alerted(PCIE_LINK_DOWNGRADED)

PCIE_DOWNGRADED = Template(
    Cause.PCIE_DOWNGRADED,
    (
        Link(
            "a PCIe link ran with fewer lanes or a lower generation than it can",
            _DOWNGRADED,
            Role.NECESSARY,
            least_seconds=30.0,
        ),
        Link("what was left of it was full", holding(SATURATED)),
    ),
    explains=frozenset({Cause.SLO_MISSED, Cause.PCIE_OTHER_TENANT}),
    breadth=Breadth.GPU,
    first_sign=_DOWNGRADED,
)
