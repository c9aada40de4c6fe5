"""Writes ``docs/signals.md`` from the catalogue: ``python -m exporter.reference docs/signals.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from exporter import own_signals, recorder_signals, sampler_signals, source_signals
from exporter.catalogue import DERIVED_SIGNALS
from exporter.oddities import ODDITIES
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import PEAK_SECONDS, Confidence, Signal
from exporter.sources.failure import Reason

_HEAD = """\
# Signals

Written by `make docs` from the catalogue; a test fails when it is stale.

Every signal is scraped under the name below. Where a source is missing or its newest numbers are older
than {stale:g} s, its signals vanish: an absent signal is unknown, never zero. A trailing window that the sidecar
has not lived through yet gives an absent signal too.

How sure a value is, on each scrape also in `thrashold_signal_info{{signal,confidence,method}}`:

{confidences}

Labels: `engine` is the engine's name in settings, `rank` its data-parallel rank, `model_name` the model as
served; `uuid` is a GPU's; `gateway` is a gateway's name in settings; `direction` is `in` towards the GPU and `out`
away from it. Where it says *with peak*, a twin named `..._peak` carries the maximum of the trailing
{peak:g} s, so that a slow scrape misses nothing.
"""


def reference() -> str:
    """The whole page, Markdown."""
    grouped: dict[str, list[Signal]] = {}
    for signal in DERIVED_SIGNALS:
        grouped.setdefault(_title(signal), []).append(signal)
    grouped["The sources"] = list(source_signals.SIGNALS)
    grouped["The sampler: the process that reads the GPUs"] = list(sampler_signals.SIGNALS)
    grouped["The sidecar"] = list(own_signals.SIGNALS)
    grouped["The flight recorder"] = list(recorder_signals.SIGNALS)
    rows = ["| confidence | meaning |", "|---|---|"]
    rows += [f"| {each.value} | {each.meaning} |" for each in Confidence]
    lines = [_HEAD.format(confidences="\n".join(rows), stale=STALE_AFTER_SECONDS, peak=PEAK_SECONDS)]
    for title, signals in grouped.items():
        lines.append(f"\n## {title}\n")
        for signal in signals:
            lines.extend(_entry(signal))
    return "\n".join(lines)


def _title(signal: Signal) -> str:
    """What the file of ``derive/`` that declares ``signal`` calls its subject, in its first line."""
    for name, module in sorted(sys.modules.items()):
        if name.startswith("exporter.derive.") and any(each is signal for each in vars(module).values()):
            return (module.__doc__ or name).splitlines()[0].rstrip(".")
    raise LookupError(f"no file of exporter/derive declares {signal.name}")


def _entry(signal: Signal) -> Iterator[str]:
    labels = ", ".join(f"`{label}`" for label in signal.label_names) or "none"
    yield f"### `{signal.full_name}`\n"
    yield f"{signal.help}\n"
    facts = [signal.kind.value, signal.confidence.value]
    if signal.window_seconds:
        facts.append(f"trailing {signal.window_seconds:g} s")
    if signal.peak:
        facts.append("with peak")
    yield f"- {', '.join(facts)}; labels: {labels}"
    yield f"- how: {signal.method}"
    if signal.probed:
        yield f"- where the [probe](probe.md) tells it, measured: {signal.probed}"
    if signal.source:
        yield f"- checked: {signal.source}"
    if signal is source_signals.SOURCE_ERRORS:
        yield f"- reasons: {', '.join(f'`{reason}`' for reason in Reason)}; the log and the page say more"
    if signal is source_signals.SOURCE_ODDITY:
        yield from ("", "| oddity | meaning |", "|---|---|")
        yield from (f"| `{oddity}` | {meaning} |" for oddity, meaning in ODDITIES.items())
    yield ""


def main() -> None:
    """Write the page to the path given. Exits 2 without one."""
    if len(sys.argv) != 2:  # noqa: PLR2004 -- the command and its one argument
        raise SystemExit("usage: python -m exporter.reference PATH")
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
