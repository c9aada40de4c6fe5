"""Makes of what grafanalib writes what Grafana 10.4 and later reads: a pure function over JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA_VERSION = 39
"""Of Grafana 10.4 to 11; later ones migrate it by themselves."""
Json = dict[str, Any]
_DASHBOARD_DEAD = {
    "__inputs",
    "gnetId",
    "hideControls",
    "id",
    "rows",
    "sharedCrosshair",
    "style",
}
_PANEL_DEAD = {
    "cacheTimeout",
    "editable",
    "error",
    "height",
    "hideTimeOverride",
    "maxPerRow",
    "minSpan",
    "repeatDirection",
    "span",
    "timeShift",
}
_TARGET_DEAD = {"hide", "intervalFactor", "metric", "query", "step", "target"}
_VARIABLE_DEAD = {"auto", "auto_count", "auto_min", "tagValuesQuery", "tagsQuery", "useTags"}
_ROW_KEYS = ("collapsed", "gridPos", "id", "panels", "title", "type")


def normalise(dashboard: Mapping[str, Any]) -> Json:
    """The dashboard without dead keys and nulls, with the schema's version and keys in order.

    What is normal stays as it is: ``normalise(normalise(x)) == normalise(x)``.
    """
    made = _without(dashboard, _DASHBOARD_DEAD)
    made["schemaVersion"] = SCHEMA_VERSION
    if "timepicker" in made:
        made["timepicker"] = _without(made["timepicker"], {"time_options"})
    made["panels"] = [_panel(panel) for panel in made.get("panels", [])]
    made["templating"] = {"list": [_variable(each) for each in made.get("templating", {}).get("list", [])]}
    cleaned: Json = _clean(made)
    return cleaned


def _panel(panel: Mapping[str, Any]) -> Json:
    if panel.get("type") == "row":
        row = {key: panel[key] for key in _ROW_KEYS if key in panel}
        row["panels"] = [_panel(each) for each in row.get("panels", [])]
        return row
    made = _without(panel, _PANEL_DEAD)
    made["targets"] = [_target(target) for target in made.get("targets", [])]
    made["fieldConfig"] = {"overrides": [], **made.get("fieldConfig", {"defaults": {}})}
    return made


def _target(target: Mapping[str, Any]) -> Json:
    return _without(target, _TARGET_DEAD) | {"range": not target.get("instant", False)}


def _variable(variable: Mapping[str, Any]) -> Json:
    made = _without(variable, _VARIABLE_DEAD)
    # which value is picked belongs to who looks, not to the file
    made["current"] = {} if made.get("type") != "custom" else made.get("current", {})
    made["regex"] = made.get("regex") or ""
    return made


def _without(what: Mapping[str, Any], dead: set[str]) -> Json:
    return {key: value for key, value in what.items() if key not in dead}


def _clean(what: Any) -> Any:  # noqa: ANN401 -- JSON
    """Without nulls, but for the value of a threshold's first step, which is null by definition."""
    if isinstance(what, Mapping):
        step = set(what) == {"color", "value"}
        return {
            key: _clean(what[key])
            for key in sorted(what)
            if what[key] is not None or (step and key == "value")
        }
    if isinstance(what, list):
        return [_clean(each) for each in what]
    return what
