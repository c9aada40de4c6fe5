"""What every command says of what it was asked: one line, and exit code 2."""

from __future__ import annotations

import click


class UsageFailure(click.ClickException):
    """Something the caller gave can't be used: one line, exit code 2."""

    exit_code = 2
