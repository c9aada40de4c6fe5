"""Series of others with labels of what was wrong: Microsoft's cloud monitoring and NAB, as TSB-AD has cut them.

They aren't in the repository. ``THRASHOLD_SHARED`` names a folder that holds ``data/``; else ``shared`` beside the
checkout is looked at. In it are the archives ``ms-cloud-monitoring`` (microsoft/cloud-monitoring-dataset, MIT), ``nab``
(numenta/NAB, MIT) and ``tsb-ad`` (TheDatumOrg/TSB-AD, Apache-2.0), each as ``.tar.xz``.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(os.environ.get("THRASHOLD_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
_LEAST_INSTANTS = 300
_NAMED = re.compile(r"\d+_NAB_.*_1st_(\d+)\.csv")
_PUBLISHED = "tsb-ad/uni_mergedTable_VUS-PR.csv"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A series. ``values`` and ``labels``: shape (n,), nothing missing; ``name``: as its set has it."""

    name: str
    values: NDArray[np.float64]
    labels: NDArray[np.bool_]


def is_there() -> bool:
    """Whether all of it is."""
    return all((DATA / f"{name}.tar.xz").is_file() for name in ("ms-cloud-monitoring", "nab", "tsb-ad"))


def microsoft() -> tuple[Labelled, ...]:
    """The 53 series with a label and 300 values or more, by path."""
    found = []
    for path, text in sorted(_files("ms-cloud-monitoring").items()):
        if not path.endswith(".csv"):
            continue
        rows = [row for row in csv.DictReader(io.StringIO(text)) if row["Value"] and row["Label"]]
        labels = np.array([float(row["Label"]) == 1 for row in rows])
        if len(rows) >= _LEAST_INSTANTS and labels.any():
            found.append(Labelled(path, np.array([float(row["Value"]) for row in rows]), labels))
    return tuple(found)


def nab() -> tuple[Labelled, ...]:
    """The 16 series that TSB-AD's are made of and that can be made again, by TSB-AD's names.

    Values from the second on, as many as TSB-AD has; labels at the places of NAB's windows, their ends left out. A
    series is TSB-AD's where its length, the number of labels and the place of the first are.
    """
    files = _files("nab")
    windows = json.loads(files["nab/combined_windows.json"])
    ours = [(f"nab/data/{name}", spans) for name, spans in sorted(windows.items()) if spans]
    read = [_nab_series(path, files[path], spans) for path, spans in ours]
    found = []
    for name, row in sorted(published().items()):
        named = _NAMED.fullmatch(name)
        if named is None:
            continue
        length, count = int(row["ts_len"]), int(row["anomaly_len"])
        for each in read:
            values, labels = each.values[1 : length + 1], each.labels[:length]
            fits = len(values) == length and labels.sum() == count
            if fits and int(np.argmax(labels)) == int(named.group(1)):
                found.append(Labelled(name, values, labels))
    return tuple(found)


@lru_cache(maxsize=1)
def published() -> Mapping[str, Mapping[str, float]]:
    """VUS-PR of each method, and facts, by TSB-AD's names of series."""
    rows = csv.DictReader(io.StringIO(_files("tsb-ad")[_PUBLISHED]))
    return {row.pop("file"): {name: float(value) for name, value in row.items()} for row in rows}


def _nab_series(path: str, text: str, spans: list[tuple[str, str]]) -> Labelled:
    rows = list(csv.DictReader(io.StringIO(text)))
    times = [datetime.fromisoformat(row["timestamp"]) for row in rows]
    labels = np.zeros(len(rows), dtype=bool)
    seconds = np.array([(each - times[0]).total_seconds() for each in times])
    for begin, end in spans:
        first, last = (
            np.searchsorted(seconds, (datetime.fromisoformat(each) - times[0]).total_seconds())
            for each in (begin, end)
        )
        labels[first:last] = True
    return Labelled(path, np.array([float(row["value"]) for row in rows]), labels)


@lru_cache(maxsize=3)
def _files(archive: str) -> Mapping[str, str]:
    return dict(_texts(DATA / f"{archive}.tar.xz"))


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as opened:
        for member in opened:
            content = opened.extractfile(member) if member.name.endswith((".csv", ".json")) else None
            if content is not None:
                yield member.name.removeprefix("./"), content.read().decode("utf-8-sig")
