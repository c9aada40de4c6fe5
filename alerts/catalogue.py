"""All that is shipped. A new file of ``alerts/pack``, or of recording rules, is a line here."""

from __future__ import annotations

from collections.abc import Mapping

from alerts.alert import Alert
from alerts.pack.cache import CACHE
from alerts.pack.engine import ENGINE
from alerts.pack.fleet import FLEET_HEALTH
from alerts.pack.gateway import GATEWAY
from alerts.pack.latency import LATENCY
from alerts.pack.machine import MACHINE
from alerts.pack.swap import SWAP
from alerts.pack.watching import WATCHING
from alerts.recording import RecordingGroup
from alerts.recording_fleet import FLEET
from alerts.recording_gpus import GPUS, LOST_NOW
from alerts.recording_ill import ENGINES_NOW, SWAPPING_NOW, THRASHING_NOW
from alerts.recording_links import LINKS
from alerts.recording_presence import HISTORY, PRESENCE
from alerts.recording_slo import SLO
from alerts.recording_stuck import STUCK_NOW
from alerts.recording_watching import SIDECARS_NOW

GROUPS: Mapping[str, tuple[Alert, ...]] = {
    "cache": CACHE,
    "swap": SWAP,
    "latency": LATENCY,
    "machine": MACHINE,
    "gateway": GATEWAY,
    "engine": ENGINE,
    "fleet": FLEET_HEALTH,
    "watching": WATCHING,
}
ALERTS: Mapping[str, Alert] = {alert.name: alert for group in GROUPS.values() for alert in group}
RECORDINGS: Mapping[str, RecordingGroup] = {
    "slo": SLO,
    "presence": PRESENCE,
    "history": HISTORY,
    "gpus": GPUS,
    "links": LINKS,
    "fleet": FLEET,
    "thrashing": THRASHING_NOW,
    "swapping": SWAPPING_NOW,
    "lost": LOST_NOW,
    "engines": ENGINES_NOW,
    "stuck": STUCK_NOW,
    "sidecars": SIDECARS_NOW,
}
"""In order: what one reads of another is recorded before it."""
