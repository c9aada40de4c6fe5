"""Gathers the body of an answer, unpacked where it comes packed, and never more of it than allowed."""

from __future__ import annotations

import asyncio
import zlib

from exporter.sources.failure import ReadFailedError, Reason, one_line

_PACKED = {"gzip", "x-gzip", "deflate"}
# A zlib or a gzip header, whichever comes: servers mix up the two names.
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
_SLICE_BYTES = 1 << 20
"""Unpacked in one go, some 3 ms; then others get their turn. One chunk of 64 kB can hold 64 MB."""


class BoundedBody:
    """Takes chunks as they come; ``most`` bytes at most, counted as sent and again when unpacked.

    ``encoding`` is the Content-Encoding, ``where`` the URL for messages. Every method and the making
    of one may raise ReadFailedError: ``too_large`` or ``not_text``.
    """

    def __init__(self, encoding: str, most: int, where: str) -> None:
        encoding = encoding.strip().lower()
        self._packed = encoding in _PACKED
        self._most = most
        self._where = where
        self._unpacking = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._body = bytearray()  # not a list of chunks: a peer may send them a byte each
        self.received = 0
        """Bytes as sent, so far."""
        if not self._packed and encoding not in {"", "identity"}:
            raise self._unreadable(f"packs its answer as {one_line(encoding, 20)}, which was not asked for")

    def expect(self, announced: str) -> None:
        """Refuse at once what a Content-Length announces as too large."""
        if announced.isdecimal() and int(announced[:20]) > self._most:
            raise self._too_large()

    async def add(self, chunk: bytes) -> None:
        """Take the next chunk."""
        self.received += len(chunk)
        if self._packed:
            await self._unpack(chunk)
        else:
            self._body += chunk
        if max(len(self._body), self.received) > self._most:
            raise self._too_large()

    def whole(self) -> bytes:
        """All of it, once the last chunk has come."""
        if self._packed and self.received and not self._unpacking.eof:
            raise self._unreadable("sends a packed answer that ends too early")
        return bytes(self._body)

    async def _unpack(self, chunk: bytes) -> None:
        """One byte past the limit at most: a few bytes can hold gigabytes."""
        while chunk and len(self._body) <= self._most:
            if self._unpacking.eof:  # one packed piece may follow another
                self._unpacking = zlib.decompressobj(_ZLIB_OR_GZIP)
            try:
                piece = self._unpacking.decompress(chunk, min(_SLICE_BYTES, self._most + 1 - len(self._body)))
            except zlib.error as error:
                raise self._unreadable(
                    "says that its answer is packed, but that can't be unpacked"
                ) from error
            self._body += piece
            chunk = self._unpacking.unused_data or self._unpacking.unconsumed_tail
            if len(piece) == _SLICE_BYTES:
                await asyncio.sleep(0)

    def _unreadable(self, problem: str) -> ReadFailedError:
        return ReadFailedError(
            Reason.NOT_TEXT, self._where, problem, "let it, or the proxy before it, send plain text"
        )

    def _too_large(self) -> ReadFailedError:
        return ReadFailedError(
            Reason.TOO_LARGE,
            self._where,
            f"the answer is larger than {self._most} bytes",
            "check that the URL is the right /metrics, or raise max_body_bytes",
        )
