"""The bearer token that Alertmanager sends, as its file has it now: who changes it restarts nobody."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from exporter.file_stamp import Stamp, stamp_of
from exporter.settings import SettingsError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class WebhookToken:
    """The token in ``file``. Raises SettingsError where there is none at the start."""

    file: Path
    _text: str = field(init=False, repr=False)
    _stamp: Stamp = field(init=False)

    def __post_init__(self) -> None:
        self._stamp = stamp_of(self.file)
        self._text = _read(self.file)

    def current(self) -> str:
        """What the file holds. One that can't be read any more, or is empty, leaves what was before, and is logged."""
        stamp = stamp_of(self.file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._text = _read(self.file)
            except SettingsError as error:
                logger.error("the webhook's token stays as it was: %s", error)  # noqa: TRY400 - says it all
            else:
                logger.info("the webhook's token is taken up anew: %s", self.file)
        return self._text


def _read(file: Path) -> str:
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not token:
        raise SettingsError(f"{file}: is empty: put the token there that Alertmanager sends")
    return token
