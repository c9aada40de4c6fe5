"""What both acts ask a stack: the desk's incidents and reports, the recorder, Prometheus and Alertmanager."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from tests.support.stack import RunningStack

Found = TypeVar("Found")
PATIENCE_SECONDS = 420.0
"""For what a busy machine delays; the judges see how long it took."""
_PAUSE_SECONDS = 0.25
_ANSWER_SECONDS = 60.0


class Client:
    """Asks a stack's parts."""

    def __init__(self, stack: RunningStack) -> None:
        self._stack = stack
        self._client = httpx.Client(timeout=_ANSWER_SECONDS, trust_env=False)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def get(self, part: str, path: str, **parameters: str | float) -> httpx.Response:
        """Raises httpx.HTTPError where there is no good answer."""
        return self._client.get(self._stack.url(part) + path, params=parameters).raise_for_status()

    def post(self, part: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 -- httpx's own
        """Raises httpx.HTTPError where there is no good answer."""
        return self._client.post(self._stack.url(part) + path, **more).raise_for_status()

    def incidents(self) -> list[dict[str, Any]]:
        """Of the desk, each with its alerts."""
        listed = self.get("desk", "/api/v1/incidents").json()
        return [self.incident(each["number"]) for each in listed]

    def incident(self, number: int) -> dict[str, Any]:
        """One of them."""
        found: dict[str, Any] = self.get("desk", f"/api/v1/incidents/{number}").json()
        return found

    def incident_with(self, alertname: str) -> dict[str, Any] | None:
        """The one that an alert belongs to."""
        for each in self.incidents():
            if any(alert["labels"]["alertname"] == alertname for alert in each["alerts"]):
                return each
        return None

    def report(self, number: int) -> dict[str, Any]:
        """As JSON, once no other is being made. Raises TimeoutError, and RuntimeError where there is none."""

        def made() -> dict[str, Any] | None:
            found = self.incident(number)
            if found["report"] == "failed":
                told = [each["text"] for each in found["events"]]
                raise RuntimeError(f"there is no report: {told}")
            return found if found["report"] == "done" else None

        self.until(made)
        report: dict[str, Any] = self.get("desk", f"/incidents/{number}/report.json").json()
        return report

    def report_anew(self, number: int) -> dict[str, Any]:
        """The same, made of all that was recorded until now."""
        self.post("desk", f"/api/v1/incidents/{number}/report")
        return self.report(number)

    def series(self, name: str, start: float, end: float) -> list[dict[str, Any]]:
        """Samples of a series that Prometheus keeps, as it scraped them: ``metric`` and ``values`` by time."""
        seconds = max(1, round(end - start))
        answer = self.get("prometheus", "/api/v1/query", query=f"{name}[{seconds}s]", time=end)
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def recorded(self, start: float, end: float, *signals: str) -> str:
        """The flight recorder's page."""
        asked = [("from", f"{start:.3f}"), ("to", f"{end:.3f}"), *(("signal", each) for each in signals)]
        return (
            self._client.get(self._stack.url("sidecar") + "/api/v1/recorder", params=asked)
            .raise_for_status()
            .text
        )

    def firing(self) -> set[str]:
        """Alerts that fire in Prometheus, by name."""
        alerts = self._stack.prometheus.alerts()
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def held(self) -> set[str]:
        """Alerts that Alertmanager has, by name, those among them that it keeps quiet."""
        return {each["labels"]["alertname"] for each in self.get("alertmanager", "/api/v2/alerts").json()}

    def sidecar_says(self, line_begins: str) -> float | None:
        """The value of the first line of its page that begins so."""
        for line in self.get("sidecar", "/metrics").text.splitlines():
            if line.startswith(line_begins):
                return float(line.rpartition(" ")[2])
        return None

    def until(self, wanted: Callable[[], Found | None], seconds: float = PATIENCE_SECONDS) -> Found:
        """What it gives once it gives something; no answer is none yet. Raises TimeoutError."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                found = wanted()
            except (httpx.HTTPError, AssertionError, json.JSONDecodeError):
                found = None
            if found:
                return found
            time.sleep(_PAUSE_SECONDS)
        raise TimeoutError(
            f"waited for {seconds:g} s in vain: {wanted.__qualname__}\n{''.join(self._stack.said)}"
        )
