"""What Alertmanager sends, version 4, and nothing else: read strictly, bounded, never run."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MOST_BYTES = 8 * 1024 * 1024
"""Some ten thousand alerts: Alertmanager sends a group in one piece."""
_MOST_ALERTS = 20_000
_Name = Annotated[str, Meta(max_length=256)]
_Value = Annotated[str, Meta(max_length=8192)]
_Labels = Annotated[dict[_Name, _Value], Meta(max_length=128)]


class WebhookError(ValueError):
    """A body that isn't what Alertmanager sends: one line."""


class Alert(msgspec.Struct, frozen=True):
    """One alert. ``fingerprint`` is of its labels: the same each time that it fires."""

    status: Literal["firing", "resolved"]
    labels: _Labels
    startsAt: datetime  # noqa: N815 - Alertmanager's own spelling
    fingerprint: Annotated[str, Meta(pattern=r"^[0-9a-f]{1,64}$")]
    endsAt: datetime | None = None  # noqa: N815
    annotations: _Labels = {}

    @property
    def starts(self) -> float:
        """Since when it fires, in seconds since the epoch."""
        return self.startsAt.timestamp()

    @property
    def ends(self) -> float | None:
        """When it ended; None: it fires, and what stands there is when it is thought to end."""
        return self.endsAt.timestamp() if self.status == "resolved" and self.endsAt is not None else None


class Message(msgspec.Struct, frozen=True):
    """A notification."""

    version: Literal["4"]
    alerts: Annotated[tuple[Alert, ...], Meta(max_length=_MOST_ALERTS)]
    receiver: _Value = ""
    truncatedAlerts: int = 0  # noqa: N815


_QUOTED = re.compile(r"'[^\n]*'")
"""A value that an error repeats; it may hold anything."""
_FIRST, _LAST = 946_684_800.0, 4_102_444_800.0
"""The years 2000 and 2100: what lies outside is a clock or a sender that is wrong, and no date on a page."""
_decoder = msgspec.json.Decoder(Message)


def read(body: bytes) -> Message:
    """Decode a body. Raises WebhookError, which never repeats what was sent."""
    try:
        message = _decoder.decode(body)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        said = _QUOTED.sub("...", str(error))
        raise WebhookError(f"not what Alertmanager sends (version 4): {said}") from error
    for alert in message.alerts:
        if alert.startsAt.tzinfo is None or (alert.endsAt is not None and alert.endsAt.tzinfo is None):
            raise WebhookError("an alert's times name no zone")
        if alert.status == "resolved" and alert.endsAt is None:
            raise WebhookError("an alert is resolved, and has no endsAt")
        if not all(_FIRST <= at <= _LAST for at in (alert.starts, alert.ends or alert.starts)):
            raise WebhookError("an alert's times are not of this century")
    return message
