"""An option of commands that read a server: which of its series."""

from __future__ import annotations

import click

match_option = click.option(
    "--match",
    "matchers",
    metavar="LABEL=VALUE",
    multiple=True,
    help='Of a server only series with this label, as cluster=east or instance=~"10.0.1.*". Repeatable.',
)
"""Gives ``matchers``, which ``analysis.history.reading.read`` checks."""
