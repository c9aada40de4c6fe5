"""Whether the dynamic linker would find a library, without loading it: a load may hang, and can't be undone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_CACHE = Path("/etc/ld.so.cache")
_MOST_CACHE_BYTES = 16 << 20
_STANDARD_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
"""Those of glibc and musl; the ones of Debian's multiarch are in the cache."""


def can_be_linked(name: str, environ: Mapping[str, str] = os.environ, cache: Path = _CACHE) -> bool:
    """Whether a file called ``name`` is where ld.so looks: LD_LIBRARY_PATH, its cache, its own folders."""
    return any(os.path.isfile(file) for file in _candidates(name, environ, cache))  # noqa: PTH113 - bytes and text


def _candidates(name: str, environ: Mapping[str, str], cache: Path) -> Iterator[str | bytes]:
    for folder in re.split("[:;]", environ.get("LD_LIBRARY_PATH", "")):
        if folder:
            yield os.path.join(folder, name)  # noqa: PTH118 - as the linker reads it
    try:
        with cache.open("rb") as file:
            text = file.read(_MOST_CACHE_BYTES)
    except OSError:
        text = b""
    # The cache is a table of numbers, then the names and paths it points at, each with a zero behind it.
    yield from re.findall(rb"\0(/[^\0]*/" + re.escape(name.encode()) + rb")(?=\0)", text)
    for folder in _STANDARD_FOLDERS:
        yield os.path.join(folder, name)  # noqa: PTH118
