"""What happens in a live run, line by line as it comes, and a bar that says how far it is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from drill.words import minute
from tests.evaluation.live_webhook import Notification

_BAR = 24
_PLAIN_EVERY_SECONDS = 60.0


@dataclass(slots=True)
class Timeline:
    """On ``stream``, since ``began``. ``live``: it is a terminal, whose last line is written over."""

    stream: TextIO
    live: bool
    began: float
    seconds: float
    said: list[dict[str, Any]] = field(default_factory=list)
    _firing: dict[str, str] = field(default_factory=dict)
    _drawn: float = 0.0

    def say(self, who: str, words: str, at: float | None = None) -> None:
        """One more line that stays."""
        at = time.time() if at is None else at
        self.said.append({"at": at, "who": who, "what": words})
        self._write(f"{minute(at - self.began):>6}  {who:12}  {words}\n")

    def hear(self, notification: Notification) -> None:
        """What people were told."""
        told = ", ".join(str(each) for each in notification.alerts)
        self.say(f"> {notification.receiver}", told, notification.at)

    def alerts(self, found: Sequence[Mapping[str, Any]]) -> None:
        """What Prometheus has now: what is new of it is said."""
        now = {
            ", ".join(
                each["labels"].get(name, "")
                for name in ("alertname", "engine", "rank", "uuid", "gateway", "source")
                if each["labels"].get(name)
            ): str(each["state"])
            for each in found
        }
        for name, state in now.items():
            if self._firing.get(name) != state and (state == "firing" or self._firing.get(name) == "firing"):
                self.say("prometheus", f"{name} {state}")
        for name in self._firing.keys() - now.keys():
            if self._firing[name] == "firing":
                self.say("prometheus", f"{name} over")
        self._firing = now

    def draw(self, notifications: int) -> None:
        """How far it is, where it wasn't said just now."""
        now = time.time()
        if now - self._drawn < (0.5 if self.live else _PLAIN_EVERY_SECONDS):
            return
        self._drawn = now
        gone = min(1.0, (now - self.began) / self.seconds)
        bar = "#" * round(gone * _BAR)
        firing = sum(state == "firing" for state in self._firing.values())
        words = (
            f"[{bar:.<{_BAR}}] {minute(now - self.began)} of {minute(self.seconds)}, "
            f"{firing} alerts fire, {notifications} notifications"
        )
        if self.live:
            self.stream.write("\r\x1b[K" + words[: shutil.get_terminal_size().columns - 1])
            self.stream.flush()
        else:
            self._write(words + "\n")

    def end(self) -> None:
        """Nothing more comes."""
        if self.live:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def _write(self, text: str) -> None:
        self.stream.write(("\r\x1b[K" if self.live else "") + text)
        self.stream.flush()
