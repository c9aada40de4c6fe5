"""Cuts a stream of bytes into lines, none of them longer than it should be."""

from __future__ import annotations

from collections.abc import Callable


class Lines:
    """Hands each whole line to ``take``. Of one longer than ``most_bytes`` nothing is kept."""

    def __init__(self, most_bytes: int, take: Callable[[bytes], None]) -> None:
        self.dropped = 0
        """Lines that were too long."""
        self._most_bytes, self._take = most_bytes, take
        self._rest = b""
        self._is_skipping = False

    def feed(self, some: bytes) -> None:
        """Go on with ``some`` more bytes."""
        *whole, self._rest = (self._rest + some).split(b"\n")
        for line in whole:
            if self._is_skipping or len(line) > self._most_bytes:
                self.dropped += 1
                self._is_skipping = False
            else:
                self._take(line)
        if len(self._rest) > self._most_bytes:
            self._is_skipping, self._rest = True, b""
