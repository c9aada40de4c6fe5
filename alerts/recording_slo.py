"""How a fleet meets its objectives, over windows from five minutes to three days.

Only the windows of five minutes read the workers' counters. Longer ones are means of what was recorded over five
minutes, events and misses apart: their quotient is that of the sums, so a busy hour weighs more than a quiet one, and
three days cost 4,320 samples a series however many workers there are. A counter that begins anew is ``rate``'s affair,
once, within five minutes. Where Prometheus stood still both means lack the same instants.
"""

from __future__ import annotations

from functools import partial

from alerts.conditions import Rendering
from alerts.pack.promql import by
from alerts.recording import Recording, RecordingGroup
from exporter.derive.latency import SLO_EVENTS

BASE_WINDOW = "5m"
"""The longest that is read from counters; four scrapes of a minute fit into it."""
WINDOWS = (BASE_WINDOW, "30m", "1h", "2h", "6h", "1d", "3d")
EVERY_SECONDS = 60
LABELS = ("slo",)


def _counted(good: str, rendering: Rendering) -> str:
    """Events a second; an engine that two sidecars read, or that is scraped twice, counts once."""
    each = by(rendering, (*SLO_EVENTS.scope.labels, *LABELS))
    counter = SLO_EVENTS.full_name + rendering.matchers((("good", good),))
    return f"sum by ({by(rendering, LABELS)}) (max by ({each}) (rate({counter}[{BASE_WINDOW}])))"


MISSED = Recording(
    f"cluster:{SLO_EVENTS.full_name.removesuffix('_total')}_missed:rate{BASE_WINDOW}",
    "Events a second that missed an objective: first tokens, answers, clients that left.",
    partial(_counted, "false"),
    LABELS,
)


def _events(rendering: Rendering) -> str:
    """The sidecar tells both counts or none, so that means over both records speak of the same instants."""
    return f"{_counted('true', rendering)} + {MISSED.name}"


EVENTS = Recording(
    f"cluster:{SLO_EVENTS.full_name.removesuffix('_total')}:rate{BASE_WINDOW}",
    "All events a second that the objective speaks of.",
    _events,
    LABELS,
)


def mean(recording: Recording, window: str, matchers: str = "") -> str:
    """Of a recorded rate over a window of ``WINDOWS``."""
    series = recording.name + matchers
    return series if window == BASE_WINDOW else f"avg_over_time({series}[{window}])"


def _share(window: str, _: Rendering) -> str:
    return f"{mean(MISSED, window)} / ({mean(EVENTS, window)} > 0)"


MISSED_RATIOS = {
    window: Recording(
        f"cluster:{SLO_EVENTS.full_name.removesuffix('_total')}_missed_per_event:ratio_rate{window}",
        f"The share that missed over {window}. Absent without events.",
        partial(_share, window),
        LABELS,
    )
    for window in WINDOWS
}
"""By window."""
SLO = RecordingGroup((MISSED, EVENTS, *MISSED_RATIOS.values()), EVERY_SECONDS)
