"""An alert in words, for a terminal: what it means, when it fires, what it compares with, and which setting that is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import fields, replace

from alerts.alert import Alert, Expression
from alerts.conditions import All, Compare, Condition, Either, Recorded, Unless, leaves, number
from alerts.limits import limits, meaning, span
from alerts.pack_settings import PackSettings
from alerts.render import rule
from alerts.thresholds import THRESHOLDS, Thresholds

_WIDTH, _LABEL = 80, 12
_NUDGE = 0.015625
"""By which a threshold is moved to see whether an expression moves with it: exact in binary, and in no way round."""


def explained(alert: Alert, settings: PackSettings) -> str:
    """All of it, in 80 columns but for the expression."""
    made = rule(alert, settings)
    lines = [
        f"{alert.name}  ({made['labels']['severity']})",
        "",
        *textwrap.wrap(alert.meaning, _WIDTH),
        "",
        *_labelled("cause", f"{alert.cause.value}: {alert.cause.sentence}"),
        *_labelled(
            "fires",
            f"after {made.get('for', '0s')}, and for {made.get('keep_firing_for', '0s')} beyond its end",
        ),
        f"{'runbook':{_LABEL}}{made['annotations']['runbook_url']}",
    ]
    if alert.quiet_under:
        lines += _labelled("quiet under", ", ".join(alert.quiet_under))
    if alert.consequence_of:
        lines += _labelled("follows", ", ".join(alert.consequence_of))
    if alert.brought_by:
        lines += _labelled("brought by", ", ".join(alert.brought_by))
    if alert.counts:
        lines += _labelled("counts", ", ".join(alert.counts))
    lines += [*_compared(alert), *_set(alert, settings)]
    return "\n".join([*lines, "", textwrap.indent(made["expr"], "    ")])


def thresholds_of(alert: Alert) -> tuple[str, ...]:
    """Keys of the thresholds that its expression moves with, in the order of ``Thresholds``."""
    return tuple(field.name for field in fields(Thresholds) if _moves_with(alert, field.name))


def _moves_with(alert: Alert, name: str) -> bool:
    """Whether it is in the expression, or in what is recorded for it."""
    moved = replace(THRESHOLDS, **{name: getattr(THRESHOLDS, name) + _NUDGE})
    plain, other = (replace(PackSettings().rendering, thresholds=each) for each in (THRESHOLDS, moved))
    return any(
        alert.promql(replace(plain, recorded=recorded)) != alert.promql(replace(other, recorded=recorded))
        for recorded in (True, False)
    )


def _compared(alert: Alert) -> Iterator[str]:
    """Leaf by leaf, where it is a tree of them: where its brackets are the expression says."""
    if isinstance(alert.condition, Expression):
        return
    for place, (word, leaf) in enumerate(_leaves(alert.condition)):
        yield from _labelled("" if place else "compares", f"{word} {_words(leaf)}".lstrip())
        if not isinstance(leaf.limit, str) and leaf.reading.signal.inputs:
            # a flag's bounds are no settings: they are the sidecar's own
            yield from _labelled("", f"(made of {leaf.reading.signal.method})")


def _leaves(condition: Condition, word: str = "") -> Iterator[tuple[str, Compare]]:
    """Each with the word that ties it to those before it."""
    if isinstance(condition, All | Either | Unless):
        tie = {All: "and", Either: "or", Unless: "unless"}[type(condition)]
        for place, part in enumerate(condition.parts):
            yield from _leaves(part, tie if place else word)
    elif isinstance(condition, Recorded):
        yield from _leaves(condition.of, word)
    else:
        (leaf,) = leaves(condition)
        yield word, leaf


def _words(leaf: Compare) -> str:
    reading = leaf.reading
    where = ",".join(f'{name}="{value}"' for name, value in reading.where)
    name = reading.signal.full_name + (f"{{{where}}}" if where else "")
    return f"{name} {leaf.operator} {leaf.limit if isinstance(leaf.limit, str) else number(leaf.limit)}"


def _set(alert: Alert, settings: PackSettings) -> Iterator[str]:
    """Each threshold with its key, its value, what it may be and its reason; and the keys of the alert's own."""
    told = dict(limits(Thresholds))
    for name in thresholds_of(alert):
        now, shipped = getattr(settings.thresholds, name), getattr(THRESHOLDS, name)
        was = "" if now == shipped else f", shipped as {shipped:g}"
        yield from ("", f"thresholds.{name}: {now:g}  (may be {span(told[name])}{was})")
        yield from textwrap.wrap(meaning(told[name]), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    yield ""
    yield from textwrap.wrap(
        f"A file of settings for --config changes {'these, and ' if thresholds_of(alert) else ''}"
        f"alerts.{alert.name}: severity, for_seconds, keep_firing_seconds, disabled.",
        _WIDTH,
    )


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=label.ljust(_LABEL),
        subsequent_indent=" " * _LABEL,
        break_on_hyphens=False,
    )
