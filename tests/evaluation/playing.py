"""A case is a scenario in a setting; its run is played once and kept, while drill and sidecar are as they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from drill.playing.play import Play
from drill.playing.truth import TruthLog
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.setting import Setting
from exporter.recorder_writer import RecordingWriter, Retention

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".evaluation"
RECORDING, TRUTH = "recording.db", "truth.json"
_MAKES_A_RUN = ("drill", "exporter")
_EVERYTHING = Retention(keep_seconds=float(2**31), max_bytes=2**40)


@dataclass(frozen=True, slots=True)
class Case:
    """What is played: a scenario, its setting, and by name what else goes wrong. ``title``: how it is told."""

    scenario: str
    setting: Setting = field(default_factory=Setting)
    others: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Scenario, what it was moved to, seed."""
        setting = self.setting
        moved = [setting.size.value] if setting.size is not Setting().size else []
        moved += [f"with {name}" for name in self.others]
        moved += [f"{setting.ramp_seconds:g} s ramp"] if setting.ramp_seconds else []
        moved += [f"{setting.load_ratio:g} of its load"] if setting.load_ratio != Setting().load_ratio else []
        moved += [each for each in (setting.model, setting.gpu, setting.generation) if each]
        moved += [f"{setting.engines} engines"] if setting.engines else []
        return ", ".join([self.scenario, *moved, f"seed {setting.seed}"])


@dataclass(frozen=True, slots=True)
class Run:
    """One that was played: its recording, each second, and what is true of it, in a folder of its own."""

    recording: Path
    truth: dict[str, Any]


def kept(case: Case) -> Path:
    """The folder of a case's run, whether it is there or not."""
    told = f"{case.title} {case.setting.least_seconds}"
    name = "".join(each if each.isalnum() else "-" for each in case.title)
    return KEPT / f"{name}-{hashlib.sha256((told + code()).encode()).hexdigest()[:12]}"


@lru_cache(maxsize=1)
def code() -> str:
    """Of all that a run is made of; alerts are not, so that they may change without anything being played again."""
    digest = hashlib.sha256((ROOT / "alerts" / "causes.py").read_bytes())
    for folder in _MAKES_A_RUN:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def play(case: Case) -> Run:
    """The run of a case, from what is kept or played now. Raises SettingError, EngineConfigError and OSError."""
    folder = kept(case)
    if not folder.is_dir():
        KEPT.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=KEPT, prefix="part-") as part:
            _play_into(case, Path(part))
            with contextlib.suppress(OSError):  # another process was first
                Path(part).rename(folder)
    return Run(folder / RECORDING, json.loads((folder / TRUTH).read_bytes()))


def _play_into(case: Case, folder: Path) -> None:
    scene = SCENARIOS[case.scenario].scene(case.setting, [SCENARIOS[name] for name in case.others])
    truth = TruthLog(scene)
    with contextlib.closing(RecordingWriter(folder / RECORDING, _EVERYTHING)) as writer:
        for moment in Play(scene, case.setting.seed).moments():
            writer.write(moment.snapshot)
            truth.see(moment.second)
    told = truth.told(case.scenario, list(case.others))
    (folder / TRUTH).write_text(json.dumps(told), encoding="utf-8")
