"""What the benchmarks found, beside what they had to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value; ``bar`` is the worst it may be, None where nothing was promised."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    better: Literal["lower", "higher"] = "lower"

    @property
    def met(self) -> bool | None:
        """Whether the value keeps to its bar; None without one. Not a number never does."""
        if self.bar is None:
            return None
        return self.value <= self.bar if self.better == "lower" else self.value >= self.bar

    @property
    def promise(self) -> str:
        """The bar in words; empty without one."""
        if self.bar is None:
            return ""
        return f"at {'most' if self.better == 'lower' else 'least'} {self.bar:g} {self.unit}".rstrip()

    @property
    def verdict(self) -> str:
        """In one word; capitals where it has to be seen."""
        return {None: "", True: "met", False: "NOT MET"}[self.met]


FIGURES: list[Figure] = []
"""All that was recorded in this process, in order."""


def line(text: str = "") -> None:
    """Prints one line, at once: a benchmark that hangs has said how far it came."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def loud(text: str) -> None:
    """Prints one line that can't be overlooked."""
    line(f"!!! {text}")


def record(figure: Figure) -> None:
    """Prints one figure and keeps it for the table."""
    FIGURES.append(figure)
    text = f"  {figure.name}: {figure.value:.4g} {figure.unit}".rstrip()
    line(f"{text} ({figure.promise}: {figure.verdict})" if figure.promise else text)


def missed() -> list[Figure]:
    """The recorded figures that don't keep to their bars."""
    return [figure for figure in FIGURES if figure.met is False]


def table() -> None:
    """Prints all recorded figures."""
    name_width = max((len(figure.name) for figure in FIGURES), default=0)
    promise_width = max((len(figure.promise) for figure in FIGURES), default=0)
    unit_width = max((len(figure.unit) for figure in FIGURES), default=0)
    for figure in FIGURES:
        value = f"{figure.value:>9.4g} {figure.unit:<{unit_width}}"
        text = f"{figure.name:<{name_width}}  {value}  {figure.promise:<{promise_width}}  {figure.verdict}"
        line(text.rstrip())


def load() -> str:
    """How busy the machine is: a figure taken beside somebody else's work is worse than the truth."""
    return f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores"


def standalone(main: Callable[[], None]) -> None:
    """Runs one module's ``main`` by itself; exit code 1 where a bar is not met."""
    main()
    for figure in missed():
        loud(f"NOT MET: {figure.name}: {figure.value:.4g} {figure.unit}, {figure.promise}")
    sys.exit(1 if missed() else 0)
