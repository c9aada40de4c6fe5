"""Which release of vLLM an engine shows itself as, and what of its metrics came or went with releases."""

from __future__ import annotations

import math
from dataclasses import dataclass

from drill.serving.config import Generation

_LEAST_PARTS = 2


class UnknownReleaseError(ValueError):
    """A release that the drill doesn't know the metrics of."""


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of vLLM, as ``0.32.0``. Which name came when is from tags and packages of its releases.

    V0's names are those of 0.8.5, whatever the release; V1's are known from 0.8.5 on.
    """

    parts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Release:
        """Read ``0.32.0``. Raises UnknownReleaseError."""
        parts = text.split(".")
        if len(parts) < _LEAST_PARTS or not all(part.isdecimal() for part in parts):
            raise UnknownReleaseError(f"{text!r} is no release of vLLM: write it as 0.32.0")
        return cls(tuple(int(part) for part in parts))

    def check(self, generation: Generation) -> None:
        """Raises UnknownReleaseError where it doesn't have this generation of the engine, or isn't known."""
        if generation is Generation.V0 and not self.in_range((0, 6, 4), (0, 9, 1)):
            raise UnknownReleaseError(
                f"V0's metrics are known from 0.6.4 to 0.9.0, not in {self}: take 0.8.5"
            )
        if generation is Generation.V1 and not self.in_range((0, 8, 5), (0, 34)):
            raise UnknownReleaseError(
                f"V1's metrics are known from 0.8.5 to 0.33, not in {self}: take 0.32.0"
            )

    def in_range(self, since: tuple[int, ...], until: tuple[int, ...] | None) -> bool:
        """Whether it is ``since`` or later, and before ``until``."""
        return self.parts >= since and (until is None or self.parts < until)

    def __str__(self) -> str:
        return ".".join(map(str, self.parts))


NEWEST_V0 = Release((0, 8, 5))
NEWEST_V1 = Release((0, 32, 0))
"""Those whose pages were compared with the recordings of real engines."""

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_REQUEST = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_ITERATION = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of buckets, the last infinite."""

    first_token: tuple[float, ...]
    token: tuple[float, ...]
    request: tuple[float, ...]
    iteration: tuple[float, ...]
    lengths: tuple[float, ...]
    counts: tuple[float, ...]
    preemptions: tuple[float, ...]
    transfer_bytes: tuple[float, ...]
    chunks: tuple[float, ...]


def bounds_of(release: Release, max_model_tokens: int) -> Bounds:
    """0.8.4 widened those of times; lengths are 1, 2, 5, 10, ... up to the longest request."""
    wide = release.in_range((0, 8, 4), None)
    first_token = _FIRST_TOKEN + ((20.0, 40.0, 80.0, 160.0, 640.0, 2560.0) if wide else ())
    token = _TOKEN + ((5.0, 7.5, 10.0, 20.0, 40.0, 80.0) if wide else ())
    request = _REQUEST + ((120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0) if wide else ())
    lengths = (
        float(figure * 10**power)
        for power in range(len(str(max_model_tokens)))
        for figure in (1, 2, 5)
        if figure * 10**power <= max_model_tokens
    )
    end = (math.inf,)
    return Bounds(
        first_token + end,
        token + end,
        request + end,
        _ITERATION + end,
        (*lengths, *end),
        (1.0, 2.0, 5.0, 10.0, 20.0, *end),
        (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, *end),
        (1e6, 5e6, 1e7, 2e7, 4e7, 6e7, 8e7, 1e8, 1.5e8, 2e8, *end),
        (*(4.0**power for power in range(10)), *end),
    )
