"""Inner loops in machine code; importing it needs numba (the extra ``fast``).

What is compiled is kept beside the source, or in the user's cache (or ``NUMBA_CACHE_DIR``) where that folder can't be
written; where nothing can, it is compiled anew in each process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def has_numba() -> bool:
    """Whether loops can be compiled here."""
    return find_spec("numba") is not None


def compiled(function: Callable[P, R], *, all_known: bool = False) -> Callable[P, R]:
    """The same function, compiled when it is first called. Raises ImportError: no numba.

    ``all_known``: no NaN is ever in it, so that minima of many values are taken at once, and the last bit may differ.
    """
    from numba import njit  # noqa: PLC0415 -- an extra, and most of a second to load

    flags = {"nnan", "nsz", "contract"} if all_known else False
    try:
        result: Callable[P, R] = njit(cache=True, nogil=True, fastmath=flags)(function)
    except RuntimeError:  # no folder to keep it in
        result = njit(nogil=True, fastmath=flags)(function)
    return result
