"""The one shape of history: what series were worth on an even grid of instants, whoever kept them.

    frame.column(Key("thrashold_kv_usage_ratio", (("engine", "a"), ...)))    # shape (n,), NaN where not known
    frame.select(KV_USAGE, engine="a")                                       # a frame of those series only

An analysis reads nothing else of history. A gap is NaN: absent is not zero, and nothing is carried forward into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from exporter.signal import Signal

if TYPE_CHECKING:
    import pandas as pd

Values = NDArray[np.float64]
CLUSTER = "cluster"
"""The label that says where a series is from, as Prometheus adds it: names of engines are unique within one only."""
_SAME_SECONDS = 1e-3
"""Instants nearer to each other than this are one."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A series: its name as it is scraped, and its labels in order of their names."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, labels: Mapping[str, str]) -> Key:
        """Of labels in any order; one that is empty is none, as Prometheus has it."""
        return cls(name, tuple(sorted((label, text) for label, text in labels.items() if text)))

    def label(self, name: str) -> str:
        """The text of a label, empty where it has none."""
        return next((text for label, text in self.labels if label == name), "")

    def __str__(self) -> str:
        inside = ",".join(f'{name}="{text}"' for name, text in self.labels)
        return f"{self.name}{{{inside}}}" if inside else self.name


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Series by instants. ``times``: shape (n,), seconds since the epoch, ``step_seconds`` apart.

    ``values``: shape (n, k), one column a series of ``keys`` and each column contiguous; NaN: not known. A sample
    stands at the grid instant at or after it, less than one step later. Raises ValueError: shapes that don't fit, times
    that aren't even, a key that is there twice.
    """

    times: Values
    step_seconds: float
    keys: tuple[Key, ...]
    values: Values

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.times), len(self.keys)):
            raise ValueError(f"values of shape {self.values.shape} for {len(self.times)} x {len(self.keys)}")
        if self.step_seconds <= 0:
            raise ValueError(f"a step of {self.step_seconds} s: it has to be above 0")
        if len(self.times) > 1 and np.abs(np.diff(self.times) - self.step_seconds).max() > _SAME_SECONDS:
            raise ValueError(f"times that are not {self.step_seconds:g} s apart")
        if len(set(self.keys)) != len(self.keys):
            twice = next(key for key in self.keys if self.keys.count(key) > 1)
            raise ValueError(f"{twice} is there twice")
        object.__setattr__(self, "values", np.asfortranarray(self.values, dtype=np.float64))

    def __len__(self) -> int:
        return len(self.times)

    @property
    def start(self) -> float:
        """The first instant. Raises IndexError where there is none."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """One step after the last instant."""
        return float(self.times[-1]) + self.step_seconds

    def column(self, key: Key) -> Values:
        """Of one series, shape (n,). Raises KeyError where there is none of that key."""
        try:
            return self.values[:, self.keys.index(key)]
        except ValueError:
            raise KeyError(str(key)) from None

    def columns(self) -> Iterator[tuple[Key, Values]]:
        """All series with their values, in order."""
        for place, key in enumerate(self.keys):
            yield key, self.values[:, place]

    def select(self, name: str | Signal, **labels: str) -> Frame:
        """The series of that name, or signal, that have these labels."""
        wanted = name.full_name if isinstance(name, Signal) else name
        return self.take(
            [
                place
                for place, key in enumerate(self.keys)
                if key.name == wanted and all(key.label(label) == text for label, text in labels.items())
            ]
        )

    def take(self, places: Sequence[int]) -> Frame:
        """The series at these places."""
        return Frame(
            self.times, self.step_seconds, tuple(self.keys[each] for each in places), self.values[:, places]
        )

    def between(self, start: float, end: float) -> Frame:
        """From ``start`` to before ``end``."""
        first, last = np.searchsorted(self.times, (start, end))
        return Frame(self.times[first:last], self.step_seconds, self.keys, self.values[first:last])

    def label_values(self, label: str) -> tuple[str, ...]:
        """All texts that a label has, in order."""
        return tuple(sorted({text for key in self.keys if (text := key.label(label))}))

    def table(self) -> pd.DataFrame:
        """The same as pandas has it: instants in UTC down, keys as text across."""
        import pandas as pd  # noqa: PLC0415 - a second of loading that most analyses can do without

        index = pd.to_datetime(self.times, unit="s", utc=True)
        return pd.DataFrame(self.values, index=index, columns=[str(key) for key in self.keys])


def grid(start: float, end: float, step_seconds: float) -> Values:
    """Instants from ``start``, put on a whole multiple of the step, to before ``end``; shape (n,)."""
    first = np.ceil(round(start / step_seconds, 6))
    count = max(0, int(np.ceil(round(end / step_seconds, 6) - first)))
    return np.asarray((first + np.arange(count)) * step_seconds, dtype=np.float64)


def on_grid(instants: Values, times: Values, values: Values, step_seconds: float) -> Values:
    """Samples as they stand on a grid: the last of each step that ends at an instant, NaN where there is none.

    ``instants``: shape (n,), even; ``times`` and ``values``: shape (m,), rising; gives shape (n,).
    """
    result = np.full(len(instants), np.nan)
    if len(instants) and len(times):
        places = np.ceil(np.round((times - instants[0]) / step_seconds, 6)).astype(np.int64)
        inside = (places >= 0) & (places < len(instants))
        # of several in one step the last one stays: numpy assigns in order
        result[places[inside]] = values[inside]
    return result
