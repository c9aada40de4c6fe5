"""What is needed to build the fake library, and what is said where it is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from drill.fake_nvml import H100, BuildError, Control, build
from tests.support.fake_library import need_parts


def test_without_a_compiler_the_message_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no gcc"):
        build(tmp_path)


def test_only_what_is_there_can_be_hidden(tmp_path: Path) -> None:
    need_parts()
    with pytest.raises(BuildError, match="can't hide what isn't there: nvmlFly"):
        build(tmp_path, hidden=["nvmlFly", "nvmlInit_v2"])


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_missing_parts_skip_and_fail_where_they_must_be_there(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="NOT TESTED: the fake NVML library needs gcc"):
        need_parts()


def test_a_control_says_what_it_cannot_do(tmp_path: Path) -> None:
    with Control(tmp_path / "control", [H100]) as control:
        with pytest.raises(IndexError, match="no GPU 1: there are 1"):
            control.traffic(1, transmit=1)
        with pytest.raises(ValueError, match="can't be advanced"):
            control.advance(1)
    assert not (tmp_path / "control").exists()
    with pytest.raises(ValueError, match="9 GPUs asked for"):
        Control(tmp_path / "control", [H100] * 9)
