"""The pack's settings as a command is given them: in a file, and by variables of the environment.

One file goes to rules, boards, backtests and triage alike, so that all of them draw the same lines. Reports judge by
those that are shipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from alerts.pack_settings import PackSettings
from exporter.settings import SettingsError, load
from exporter.usage import UsageFailure

ENVIRONMENT_PREFIX = "THRASHOLD_ALERTS_"
thresholds_option = click.option(
    "--thresholds",
    "thresholds_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of the pack in YAML, as `thrashold alerts render --config` takes them.",
)
"""Of a command that compares with the pack's thresholds."""


def read_pack_settings(file: Path | None) -> PackSettings:
    """Those of ``file``, and of variables before it. Raises UsageFailure with one line."""
    try:
        return load(PackSettings, file=file, environ=os.environ, prefix=ENVIRONMENT_PREFIX)
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
