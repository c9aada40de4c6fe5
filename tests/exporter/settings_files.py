"""Settings files of tests, and the one line with which a bad one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter.settings import SettingsError, load


def write(folder: Path, text: str) -> Path:
    file = folder / "settings.yaml"
    file.write_text(text)
    return file


def refusal(cls: type, **given: object) -> str:
    with pytest.raises(SettingsError) as caught:
        load(cls, **given)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)
