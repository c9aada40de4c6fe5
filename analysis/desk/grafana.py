"""Marks incidents in a Grafana: an annotation from an incident's first alert to its last."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpcore

from analysis.desk.incident import Incident
from analysis.desk.settings import GrafanaSettings
from exporter.sources.credentials import Authorization, tls_context
from exporter.sources.endpoint import shown
from exporter.sources.failure import ReadFailedError

logger = logging.getLogger(__name__)

_MARK = "grafana.json"
_TAGS = ("thrashold", "incident")
_MOST_ANSWER = 65_536
_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)


@dataclass(frozen=True, slots=True)
class Marker:
    """Of one Grafana. What goes wrong is logged and costs nothing else."""

    settings: GrafanaSettings

    async def mark(self, incident: Incident, folder: Path) -> None:
        """Mark an incident, or its end where it is marked already; its mark's number is kept in its folder."""
        mark = folder / _MARK
        try:
            known = json.loads(mark.read_text(encoding="utf-8"))["id"] if mark.is_file() else None
            if known is None:
                body = {"time": _milliseconds(incident.opened), "tags": list(_TAGS), "text": incident.title}
                told = await self._send("POST", "", body | _end(incident))
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.write_text(json.dumps({"id": int(told["id"])}), encoding="utf-8")
            elif incident.ended is not None:
                await self._send("PATCH", f"/{int(known)}", _end(incident))
        except (*_ERRORS, ReadFailedError, OSError, ValueError, KeyError, TypeError, TimeoutError) as error:
            logger.warning(
                "incident %d is not marked in %s: %s",
                incident.number,
                shown(self.settings.url),
                str(error) or type(error).__name__,
            )

    async def _send(self, method: str, more: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        where = shown(self.settings.url)
        headers: dict[bytes | str, bytes | str] = {}
        headers.update(self.settings.headers.items())
        headers |= {"Content-Type": "application/json", "User-Agent": "thrashold"}
        allowed = Authorization(self.settings, where).header()
        if allowed is not None:
            headers["Authorization"] = allowed
        secure = self.settings.url.startswith("https://")
        context = tls_context(self.settings.tls, where) if secure else None
        content = json.dumps(body).encode()
        async with (
            asyncio.timeout(self.settings.deadline_seconds),
            httpcore.AsyncConnectionPool(ssl_context=context) as pool,
            pool.stream(method, self.settings.url + more, headers=headers, content=content) as response,
        ):
            answer = bytearray()
            async for piece in response.aiter_stream():
                answer += piece
                if len(answer) > _MOST_ANSWER:
                    raise ValueError("its answer has no end")
        if response.status >= 300:  # noqa: PLR2004 - redirects are not followed
            raise ValueError(f"it answered {response.status}")
        return json.loads(answer)


def _end(incident: Incident) -> dict[str, int]:
    return {} if incident.ended is None else {"timeEnd": _milliseconds(incident.ended)}


def _milliseconds(at: float) -> int:
    return round(at * 1000)
