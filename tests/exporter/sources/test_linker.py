from __future__ import annotations

import ctypes.util
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.sources.linker import can_be_linked

NAME = "libnvidia-ml.so.1"


def test_a_library_is_found_where_the_variable_says(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    for path in (str(tmp_path), f"/nowhere:{tmp_path}", f"{tmp_path}:", f"/nowhere;{tmp_path}"):
        assert can_be_linked(NAME, {"LD_LIBRARY_PATH": path}, Path("/nowhere"))
    for path in ("", ":", "/nowhere"):
        assert not can_be_linked(NAME, {"LD_LIBRARY_PATH": path}, Path("/nowhere"))


def test_a_library_is_found_where_the_cache_says_unless_it_has_gone(tmp_path: Path) -> None:
    library, cache = tmp_path / "drivers" / NAME, tmp_path / "cache"
    cache.write_bytes(
        b"glibc-ld.so.cache1.1\x01\0\xff\0libnvidia-ml.so.1\0" + bytes(library) + b"\0libz.so\0"
    )
    assert not can_be_linked(NAME, {}, cache)
    library.parent.mkdir()
    library.touch()
    assert can_be_linked(NAME, {}, cache)
    assert not can_be_linked("libnvidia-ml.so", {}, cache), "another name"


@pytest.mark.skipif(not Path("/etc/ld.so.cache").exists(), reason="no cache of the dynamic linker here")
def test_it_agrees_with_the_linker_of_this_machine() -> None:
    names = [ctypes.util.find_library(name) for name in ("c", "m", "ssl")]
    assert any(names)
    for name in filter(None, names):
        assert can_be_linked(name, {})
    assert not can_be_linked("libnothing-of-this-name.so.1", {})


def test_nothing_is_loaded_to_find_out(tmp_path: Path) -> None:
    # a library that hangs or crashes when it is loaded would take this process with it
    (tmp_path / NAME).write_bytes(b"no library at all")
    script = f"from exporter.sources.linker import can_be_linked\nprint(can_be_linked({NAME!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "True\n"
