"""The GPUs of all machines of a scene as those of one, behind the fake NVML library, for a real sampler to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drill.fake_nvml import ANY_FUNCTION, DRIVER_590, Control, build
from drill.fake_nvml.block import MAX_DEVICES, Rule
from drill.gpu import Gpus
from drill.scenarios.scene import Scene
from drill.scenarios.setting import SettingError
from drill.second import Second
from drill.watching.gpus import FALLEN_OFF_THE_BUS

FOLDER = "nvml"


class FakeGpus:
    """In ``folder``: the library, which is built, and its control block. ``gpus``: of each engine.

    Raises SettingError where they are more than the library has, BuildError and OSError.
    """

    def __init__(self, scene: Scene, gpus: Sequence[Gpus], folder: Path) -> None:
        counts = [each.config.tensor_parallel for each in gpus]
        if sum(counts) > MAX_DEVICES:
            raise SettingError(
                f"--gpus fake: the fake library has {MAX_DEVICES} GPUs and the engines have {sum(counts)}: "
                "take fewer --engines"
            )
        self._scene = scene
        self._firsts = [sum(counts[:place]) for place in range(len(counts))]
        folder.mkdir(parents=True, exist_ok=True)
        self._library = build(folder, DRIVER_590.hidden)
        self._control = Control(
            folder / "control", [each.profile for each in gpus for _ in range(each.config.tensor_parallel)]
        )
        self._lost: set[int] = set()
        self._hung: dict[str, list[Rule]] = {}
        for first, each in zip(self._firsts, gpus, strict=True):
            each.install(self._control, first)

    @property
    def environment(self) -> dict[str, str]:
        """What a program's environment needs to find them."""
        return self._control.environment(self._library)

    def show(self, gpus: Sequence[Gpus], second: Second) -> None:
        """Let what the engines did in a second be in force from now on."""
        for name, first, each, told in zip(
            self._scene.names, self._firsts, gpus, second.engines, strict=True
        ):
            each.show(self._control, first)
            self._lose({first + index for index in told.gpus_lost}, range(first, first + len(each.rates)))
            self._hang(name, first, len(each.rates), second.seconds)

    def close(self) -> None:
        """Calls that hang come back, and no new program finds them."""
        self._control.__exit__(None, None, None)

    def _lose(self, lost: set[int], mine: range) -> None:
        before = {index for index in self._lost if index in mine}
        for index in lost - before:
            self._control.lose(index)
            self._control.xid(index, FALLEN_OFF_THE_BUS)
        for index in before - lost:
            self._control.find(index)
        self._lost = self._lost - before | lost

    def _hang(self, name: str, first: int, count: int, now: float) -> None:
        hangs = any(
            each.engine == name and each.start_seconds <= now < each.end_seconds
            for each in self._scene.blindness
        )
        if hangs and name not in self._hung:
            self._hung[name] = [
                self._control.hang(ANY_FUNCTION, index) for index in range(first, first + count)
            ]
        elif not hangs:
            for rule in self._hung.pop(name, []):
                self._control.release(rule)
