"""A process that runs the real binding on the fake library, asked from a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from drill.fake_nvml import Control

CALLER = Path(__file__).with_name("caller.py")


class RefusedError(AssertionError):
    """The binding raised: its class by name, and the library's code."""

    def __init__(self, name: str, code: int | None) -> None:
        super().__init__(f"{name} ({code})")
        self.name, self.code = name, code


class Caller:
    def __init__(self, control: Control, library: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(CALLER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **control.environment(library)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def __call__(self, text: str) -> Any:  # noqa: ANN401 - as the call has it
        """The value of an expression over the binding's names. Raises RefusedError."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the process ended at {text!r}"
        answer = json.loads(line)
        if "error" in answer:
            raise RefusedError(answer["error"], answer["code"])
        return answer["value"]

    def refusal(self, text: str) -> tuple[str, int | None]:
        """How the binding refused: the error's name and its code."""
        try:
            value = self(text)
        except RefusedError as refused:
            return refused.name, refused.code
        raise AssertionError(f"{text} gave {value!r}")

    def fields(self, *ids: int | tuple[int, int], device: int = 0) -> list[Any]:
        answer = self(f"nvmlDeviceGetFieldValues(gpu({device}), {list(ids)!r})")
        assert isinstance(answer, list)
        return answer
