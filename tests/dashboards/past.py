"""A past in which engines of all kinds were watched, each in a cluster of its own, for boards to be tried on.

``v0``, ``v1``, ``dp2``, ``sglang`` are recordings and written pages, played through the sidecar's cycle; ``v1`` has
GPUs, the others none. ``made-up`` has a series for every signal, so that rows of rare sources are tried too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from alerts.catalogue import RECORDINGS
from alerts.pack_settings import PackSettings
from exporter.catalogue import SIGNALS
from exporter.signal import PEAK_SUFFIX, Kind
from exporter.snapshot import Snapshot
from tests.exporter.golden import KV_BYTES_PER_TOKEN
from tests.support.gpu_replay import replayed_with_gpus
from tests.support.pages import ran
from tests.support.prometheus import serving
from tests.support.replay import replayed
from tests.support.scraped import Scraped

END, SECONDS, SCRAPE = 1_790_000_000.0, 300.0, 15.0
REAL = ("v0", "v1", "dp2", "sglang")
MADE_UP = "made-up"
SELECTOR = re.compile(r"((?:[a-z_]+:)?thrashold_[a-z0-9_]+(?::[a-z0-9_]+)?)\{([^}]*)\}")
"""A signal or what is recorded of one, and its matchers."""
_MATCHER = re.compile(r'([a-z_]+)="([^"]*)"')


def past(expressions: Iterable[str]) -> Scraped:
    """All of it; what is made up has the label values that ``expressions`` ask for."""
    kept = Scraped()
    played: dict[str, list[Snapshot]] = {
        "v0": [cycle.snapshot for cycle in replayed("vllm-0.8.5-v0-swap", KV_BYTES_PER_TOKEN)],
        "v1": [cycle.snapshot for cycle in replayed_with_gpus("vllm-0.32.0-offload")],
        "dp2": [cycle.snapshot for cycle in replayed("vllm-0.32.0-dp2-api2", KV_BYTES_PER_TOKEN)],
        "sglang": [cycle.snapshot for cycle in ran("sglang-0.5.10-dp2")],
    }
    for cluster, snapshots in played.items():
        last = snapshots[-1].at
        for snapshot in snapshots:
            kept.add_snapshot(
                snapshot,
                END + snapshot.at - last,
                cluster=cluster,
                instance=f"{cluster}:9807",
                job="thrashold",
            )
    _make_up(kept, expressions)
    return kept


def matched(selector_labels: str) -> dict[str, str]:
    """What a selector asks for by equality."""
    return dict(_MATCHER.findall(selector_labels))


def _make_up(kept: Scraped, expressions: Iterable[str]) -> None:
    asked: dict[str, set[tuple[tuple[str, str], ...]]] = defaultdict(set)
    for text in expressions:
        for name, labels in SELECTOR.findall(text):
            asked[name].add(tuple(matched(labels).items()))
    for signal in SIGNALS:
        for peak in (False, True) if signal.peak else (False,):
            name = signal.full_name + (PEAK_SUFFIX if peak else "")
            for wanted in asked.get(name, {()}):
                labels = {label: f"a-{label}" for label in signal.label_names} | dict(wanted)
                labels |= {"cluster": MADE_UP, "instance": "made-up:9807", "job": "thrashold"}
                for step in range(int(SECONDS / SCRAPE) + 1):
                    number = float(step) if signal.kind is Kind.COUNTER else 1.0
                    kept.add(name, END - SECONDS + step * SCRAPE, number, **labels)


def record(kept: Scraped, folder: Path, start: float, end: float) -> None:
    """Add what the pack's rules would have recorded of it, each 15 s; ``folder`` is for a Prometheus of its own.

    Rules that read what others record come after them, as in the pack.
    """
    rendering = PackSettings().rendering
    every = [recording for group in RECORDINGS.values() for recording in group.recordings]
    names = {recording.name for recording in every}
    texts = {recording.name: recording.promql(rendering) for recording in every}
    known: set[str] = set()
    while names - known:
        turn = [name for name in names - known if not any(other in texts[name] for other in names - known)]
        step = folder / f"after-{len(known)}"
        step.mkdir()
        kept.write(step / "past.om")
        with serving(step / "past.om", step) as server:
            for name in turn:
                for labels, values in server.query_range(texts[name], start, end, SCRAPE).items():
                    own = {label: text for label, text in labels if label != "__name__"}
                    for at, value in values.items():
                        kept.add(name, at, value, **own)
        known.update(turn)
