"""Files that are made and committed: what isn't as it would be is named, whatever stands in its place."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from exporter.rendered import write_or_check

FILES = {"a.yml": "one\n", "below/b.yml": "two\n"}


def test_what_was_written_is_as_it_would_be_and_what_was_changed_is_not(tmp_path: Path) -> None:
    write_or_check(FILES, tmp_path, "thrashold x render", check=False)
    write_or_check(FILES, tmp_path, "thrashold x render", check=True)
    (tmp_path / "a.yml").write_text("another\n")
    (tmp_path / "below" / "b.yml").unlink()
    with pytest.raises(click.ClickException) as refused:
        write_or_check(FILES, tmp_path, "thrashold x render", check=True)
    assert refused.value.message == (
        f"not as `thrashold x render` writes it: {tmp_path / 'a.yml'}, {tmp_path / 'below' / 'b.yml'}"
    )


def test_what_is_no_text_or_a_folder_is_not_as_it_would_be(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_bytes(b"\xff\xfe")
    (tmp_path / "below" / "b.yml").mkdir(parents=True)
    with pytest.raises(click.ClickException, match=r"a\.yml, .*b\.yml$"):
        write_or_check(FILES, tmp_path, "thrashold x render", check=True)
