"""The pack's settings as a command is given them: in a file, and by variables of the environment."""

from __future__ import annotations

import os
from pathlib import Path

from alerts.pack_settings import PackSettings
from exporter.settings import SettingsError, load
from exporter.usage import UsageFailure

ENVIRONMENT_PREFIX = "THRASHOLD_ALERTS_"


def read_pack_settings(file: Path | None) -> PackSettings:
    """Those of ``file``, and of variables before it. Raises UsageFailure with one line."""
    try:
        return load(PackSettings, file=file, environ=os.environ, prefix=ENVIRONMENT_PREFIX)
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
