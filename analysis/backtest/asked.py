"""What a user asked of ``thrashold backtest``, put into the terms of the rest. Raises UsageFailure throughout."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence

from alerts.alert import Alert, Expression
from alerts.catalogue import ALERTS
from alerts.conditions import leaves, readings
from alerts.pack_settings import PackSettings
from analysis.backtest.subjects import Subjects, series_name
from analysis.backtest.sweep import WAITS, Axis, SweepError, axis, usual_axes
from exporter.derive.inventory import ENGINE_GPU_INFO
from exporter.usage import UsageFailure

_GRID = re.compile(r"(-?\d*\.?\d+(?:e[+-]?\d+)?):(-?\d*\.?\d+(?:e[+-]?\d+)?):(\d+)")
Grid = tuple[Alert, tuple[Axis, ...] | None]
"""An alert and what of it to vary; None: what is usual."""


def chosen(names: Sequence[str], settings: PackSettings) -> tuple[Alert, ...]:
    """The shipped alerts of these names; without any, all that the settings leave on."""
    if not names:
        return tuple(alert for alert in ALERTS.values() if not settings.of(alert.name).disabled)
    return tuple(ALERTS[known(name, ALERTS)] for name in dict.fromkeys(names))


def known(name: str, names: Collection[str]) -> str:
    """The name, if there is an alert of it."""
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else "`thrashold alerts list` names them all"
    raise UsageFailure(f"no alert {name}: {hint}")


def series_names(alerts: Iterable[Alert]) -> frozenset[str]:
    """All series that conditions of these look at."""
    found = {ENGINE_GPU_INFO.full_name}
    for alert in alerts:
        if not isinstance(alert.condition, Expression):
            found |= {series_name(reading) for reading in readings(alert.condition)}
    return frozenset(found)


def grids(texts: Sequence[str], names: Sequence[str]) -> list[Grid]:
    """What ``--sweep`` asks for: ``THRESHOLD=FROM:TO:N``, each an axis of one grid, or names of alerts."""
    axes = tuple(_axis(text) for text in texts if "=" in text)
    of_alerts = [ALERTS[known(text, ALERTS)] for text in texts if "=" not in text]
    if axes and of_alerts:
        raise UsageFailure("--sweep takes an alert's name, or axes as THRESHOLD=FROM:TO:N, not both at once")
    if of_alerts:
        return [(_swept(alert), None) for alert in of_alerts]
    twice = [each.name for each in axes if [other.name for other in axes].count(each.name) > 1]
    if twice:
        raise UsageFailure(f"--sweep has {twice[0]} twice")
    wanted = {each.name for each in axes} - set(WAITS)
    if names:
        return [(_swept(ALERTS[known(name, ALERTS)]), axes) for name in names]
    if not wanted:
        raise UsageFailure(f"--sweep {axes[0].name}=... needs --alert NAME: every alert waits")
    found = [alert for alert in ALERTS.values() if wanted <= _thresholds(alert)]
    if not found:
        raise UsageFailure(f"no alert looks at {' and '.join(sorted(wanted))} in a way that can be swept")
    return [(alert, axes) for alert in found]


def axes_of(grid: Grid, settings: PackSettings, subjects: Subjects) -> tuple[Axis, ...]:
    """What is varied of an alert."""
    alert, axes = grid
    try:
        return usual_axes(alert, settings, subjects) if axes is None else axes
    except SweepError as error:
        raise UsageFailure(str(error)) from error


def _axis(text: str) -> Axis:
    name, _, rest = text.partition("=")
    found = _GRID.fullmatch(rest)
    if found is None:
        raise UsageFailure(f"--sweep {text}: is no THRESHOLD=FROM:TO:N, as kv_usage_full_ratio=0.8:0.98:19")
    try:
        return axis(name, float(found[1]), float(found[2]), int(found[3]))
    except SweepError as error:
        raise UsageFailure(f"--sweep {text}: {error}") from error


def _swept(alert: Alert) -> Alert:
    if isinstance(alert.condition, Expression):
        raise UsageFailure(
            f"{alert.name} is PromQL that only a server evaluates: its thresholds can't be swept"
        )
    return alert


def _thresholds(alert: Alert) -> set[str]:
    if isinstance(alert.condition, Expression):
        return set()
    return {leaf.limit for leaf in leaves(alert.condition) if isinstance(leaf.limit, str)}
