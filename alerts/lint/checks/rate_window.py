"""Rates over windows that hold too few scrapes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from alerts.lint.check import Check, Context, Found, at
from alerts.lint.problem import Severity
from alerts.lint.promql.tree import Call, Selector, walk
from alerts.lint.reading.query import Query

_OVER_SAMPLES = frozenset({"rate", "irate", "increase", "delta", "idelta", "deriv", "predict_linear"})
_SCRAPES = 4
_STEP = re.compile(r"\$__interval|\$\{__interval(?::\w+)?\}")


def _find(query: Query, context: Context) -> Iterator[Found]:
    scrape = context.settings.scrape_interval_seconds
    for node, _ in walk(query.tree):
        if not isinstance(node, Call) or node.name not in _OVER_SAMPLES:
            continue
        for selector in node.arguments:
            if not isinstance(selector, Selector) or selector.window is None:
                continue
            window = selector.window
            if _STEP.fullmatch(window.text):
                yield Found(
                    at(query, selector),
                    f"{window.text} is as short as the screen is wide: it may hold one scrape, or none",
                    "write [$__rate_interval]",
                )
            elif window.seconds is not None and window.seconds < _SCRAPES * scrape:
                few = int(window.seconds // scrape)
                yield Found(
                    at(query, selector),
                    f"{node.name} over {window.text} holds {few} scrape{'' if few == 1 else 's'} of {scrape:g} s: one"
                    " that fails leaves a gap, and with fewer than two there is nothing",
                    f"take {_SCRAPES * scrape:g}s or more"
                    + (", or [$__rate_interval]" if query.panel is not None else ""),
                )


CHECK = Check("rate-window", Severity.WARNING, "A rate over fewer than four scrapes.", _find)
