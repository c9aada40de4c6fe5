"""What a user may set on the pack: one YAML file. All of it has a default; nothing has to be set."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.conditions import Rendering
from alerts.runbooks import BASE
from alerts.thresholds import Thresholds
from exporter.connection_settings import Text
from exporter.settings import RefusedError

_Label = Annotated[str, Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]
_MATCHER = r'\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(=|!=|=~|!~)\s*"([^"\\]|\\.)*"\s*'
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_Wait = Annotated[int, Meta(ge=0, le=86_400)]
DESK = "http://127.0.0.1:9808"
"""Where thrashold's desk listens unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Of one alert; None: as it is shipped."""

    severity: Annotated[Severity | None, Meta(description="Whom it wakes: `page`, `warning` or `info`.")] = (
        None
    )
    for_seconds: Annotated[
        _Wait | None, Meta(description="How long its condition has to hold before it fires.")
    ] = None
    keep_firing_seconds: Annotated[
        _Wait | None, Meta(description="How long it goes on after its condition has ended.")
    ] = None
    disabled: Annotated[bool, Meta(description="Leave it out.")] = False


@dataclass(frozen=True, slots=True)
class PackSettings:
    """``thrashold alerts --config FILE``. Raises RefusedError."""

    thresholds: Annotated[
        Thresholds, Meta(description="What signals are compared with. Base units; ratios from 0 to 1.")
    ] = field(default_factory=Thresholds)
    cluster_labels: Annotated[
        tuple[_Label, ...],
        Meta(
            description="Labels that tell apart what one Prometheus, or one query over several, sees more than once:"
            " every grouping and every join keeps them."
        ),
    ] = ("cluster",)
    selector: Annotated[
        str,
        Meta(
            pattern=rf"^({_MATCHER}(,{_MATCHER})*)?$",
            description='Matchers that every selector gets, as `job="thrashold"`. Unless set, none.',
        ),
    ] = ""
    lookback: Annotated[
        str,
        Meta(
            pattern="^[1-9][0-9]*[smh]$",
            description="How long a gauge holds where scrapes fail: four scrape intervals at least.",
        ),
    ] = "1m"
    runbooks: Annotated[
        str,
        Meta(
            pattern=r"^[^\s?#]+$",
            description="Where the runbooks are served: `NAME.md` is put behind it. A folder or a URL.",
        ),
    ] = BASE
    desk: Annotated[
        str,
        Meta(
            pattern=r"^https?://[^\s?#@]*[^\s?#@/]$",
            description="Where Alertmanager's example sends what people are told: the desk, or something of yours.",
        ),
    ] = DESK
    desk_token_file: Annotated[
        Text | None,
        Meta(
            description="A file where Alertmanager runs, with the bearer token that the desk wants"
            " (its `webhook_token_file`). Unless set, none is sent.",
        ),
    ] = None
    alerts: Annotated[dict[str, AlertSettings], Meta(description="Settings of single alerts, by name.")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        for name in self.alerts:
            if name not in ALERTS:
                near = difflib.get_close_matches(name, ALERTS, 1)
                hint = f"did you mean {near[0]}?" if near else "`thrashold alerts list` names them all"
                raise RefusedError(("alerts", name), f"there is no alert {name}: {hint}")
        calm, full = self.thresholds.kv_usage_calm_ratio, self.thresholds.kv_usage_full_ratio
        if calm >= full:
            raise RefusedError(
                ("thresholds", "kv_usage_calm_ratio"),
                f"{calm:g} is not below kv_usage_full_ratio ({full:g}): between them lies what is neither",
            )

    @property
    def rendering(self) -> Rendering:
        """How expressions are written."""
        return Rendering(self.thresholds, self.cluster_labels, self.selector, self.lookback, recorded=True)

    @property
    def lookback_seconds(self) -> float:
        """``lookback`` as a number."""
        return float(self.lookback[:-1]) * _UNIT_SECONDS[self.lookback[-1]]

    def of(self, name: str) -> AlertSettings:
        """Of one alert."""
        return self.alerts.get(name) or AlertSettings()
