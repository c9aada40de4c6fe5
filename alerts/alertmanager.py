"""An Alertmanager configuration for the pack: who is told, and which alert is quiet under which.

What explains an alert is in the pack: ``Alert.quiet_under``, where that both are about the same subject is told by the
labels that the two have in common, and ``Alert.consequence_of``, where the cluster is all that they share.

A page is told within seconds, and each alert by itself: that a swap pool fills is news though its cluster is known to
swap. More engines of the same alert within ten minutes are not, and neither is one of them that recovers. What spreads
through a fleet is one story however many engines and alerts it has (``STORIES``): somebody is awake, and hears of it
anew each half hour at most, and that it is over. A warning waits for two minutes, in which the page that it is a
consequence of comes to be there, and goes with its cause; that it is over is nothing to be told of.

The desk is no person: it hears of all of that by a route of its own, each minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from alerts.alert import Alert, Severity
from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.pack.explaining import STILL, THRASH
from alerts.pack.watching import WATCHDOG
from alerts.pack_settings import PackSettings

PAGE, TELL, NOBODY, DEAD_MAN, DESK = "page", "tell", "nobody", "watchdog", "desk"
_PAGE_WAIT, _PAGE_INTERVAL, _PAGE_REPEAT = "10s", "10m", "4h"
PEOPLE = frozenset({PAGE, TELL})
"""Receivers behind whom there is somebody."""
ALERTS_PATH, WATCHDOG_PATH = "/alerts", "/watchdog"
"""Where the desk hears webhooks; and where it is told every minute that the way is open, to notice when it isn't."""
STORIES = (
    (f'alertname=~"{"|".join((*THRASH, STILL))}"', "30m"),
    (f'cause="{Cause.SLO_MISSED.value}"', _PAGE_INTERVAL),
)
"""Pages that are one however many they are: engines that thrash infect each other with their load, and users who wait
are the same users whatever counts them."""
_TELL_WAIT, _TELL_INTERVAL = "2m", "30m"
REPEAT_HOURS = 12
"""After which the example has Alertmanager tell again what fires, at the latest. The desk counts on it."""
_DESK_INTERVAL = "1m"


def configuration(settings: PackSettings) -> dict[str, Any]:
    """The whole of it: a page a story or alert of a cluster, a warning a cause; ``info`` reaches nobody."""
    labels = list(settings.cluster_labels)
    return {
        "route": {
            "receiver": TELL,
            "group_by": [*labels, "cause"],
            "group_wait": _TELL_WAIT,
            "group_interval": _TELL_INTERVAL,
            "repeat_interval": f"{REPEAT_HOURS}h",
            "routes": [
                {
                    "matchers": [f'alertname="{WATCHDOG.name}"'],
                    "receiver": DEAD_MAN,
                    "group_wait": _PAGE_WAIT,
                    "group_interval": "1m",
                    "repeat_interval": "1m",
                },
                {"matchers": [f'severity="{Severity.INFO.value}"'], "receiver": NOBODY},
                {
                    "matchers": [f'severity=~"{Severity.PAGE.value}|{Severity.WARNING.value}"'],
                    "receiver": DESK,
                    "group_by": labels,
                    "group_wait": _PAGE_WAIT,
                    "group_interval": _DESK_INTERVAL,
                    "continue": True,
                },
                {
                    "matchers": [f'severity="{Severity.PAGE.value}"'],
                    "receiver": PAGE,
                    "group_by": [*labels, "cause", "alertname"],
                    "group_wait": _PAGE_WAIT,
                    "group_interval": _PAGE_INTERVAL,
                    "repeat_interval": _PAGE_REPEAT,
                    "routes": [
                        {"matchers": [pages], "group_by": labels, "group_interval": interval}
                        for pages, interval in STORIES
                    ],
                },
                # who is sent to the desk as well doesn't fall back to the root
                {"matchers": [f'severity="{Severity.WARNING.value}"'], "receiver": TELL},
            ],
        },
        "inhibit_rules": list(inhibit_rules(settings, ALERTS)),
        "receivers": [
            _receiver(PAGE, ALERTS_PATH, settings, send_resolved=True),
            _receiver(TELL, ALERTS_PATH, settings, send_resolved=False),
            _receiver(DESK, ALERTS_PATH, settings, send_resolved=True),
            _receiver(DEAD_MAN, WATCHDOG_PATH, settings, send_resolved=False),
            {"name": NOBODY},
        ],
    }


def _receiver(name: str, path: str, settings: PackSettings, *, send_resolved: bool) -> dict[str, Any]:
    webhook: dict[str, Any] = {"url": settings.desk + path, "send_resolved": send_resolved}
    if settings.desk_token_file is not None:
        webhook["http_config"] = {"authorization": {"credentials_file": settings.desk_token_file}}
    return {"name": name, "webhook_configs": [webhook]}


def inhibit_rules(settings: PackSettings, alerts: Mapping[str, Alert]) -> Iterable[dict[str, Any]]:
    """One for each alert and each kind of subject that it shares with those that explain it."""
    for alert in alerts.values():
        by_subject: dict[tuple[str, ...], list[str]] = {}
        for name in alert.quiet_under:
            by_subject.setdefault(shared(alert, alerts[name]), []).append(name)
        if alert.consequence_of:
            by_subject.setdefault((), []).extend(alert.consequence_of)
        for labels, names in by_subject.items():
            yield {
                "source_matchers": [f'alertname=~"{"|".join(names)}"'],
                "target_matchers": [f'alertname="{alert.name}"'],
                "equal": [*settings.cluster_labels, *labels],
            }


def shared(one: Alert, other: Alert) -> tuple[str, ...]:
    """Labels that both have."""
    return tuple(label for label in one.labels if label in other.labels)
