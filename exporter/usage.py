"""What every command says of what it was asked: one line, and exit code 2."""

from __future__ import annotations

import math

import click


class UsageFailure(click.ClickException):
    """Something the caller gave can't be used: one line, exit code 2."""

    exit_code = 2


class FiniteRange(click.FloatRange):
    """A number between two others. click's own lets NaN through, and infinity where there is no upper end."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give it. Fails for what is no number, or lies outside."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number to reckon with", param, ctx)
        return number
