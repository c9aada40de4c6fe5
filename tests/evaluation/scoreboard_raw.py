"""The pages of engines and gateway over a run as a Prometheus would have them: what rules of others read."""

from __future__ import annotations

import hashlib
import tempfile
from functools import lru_cache
from pathlib import Path

from drill.playing.raw import RawLog, scrapes
from drill.scenarios.catalogue import SCENARIOS
from drill.watching.watch import Watch
from tests.evaluation.playing import ROOT, Case, play
from tests.evaluation.scrapes import SCRAPE_SECONDS

_MAKES_RAW = ("tests/evaluation/scoreboard_raw.py", "tests/evaluation/scrapes.py")


def raw(case: Case) -> tuple[Path, tuple[float, float]]:
    """The dump of a case and the times of its first and last scrape; played again where it isn't kept.

    The run is the one that is kept, second by second: the same scene and seed. Scrapes come every 15 s, at another
    second for each seed. Raises SettingError, EngineConfigError and OSError.
    """
    scene = SCENARIOS[case.scenario].scene(case.setting, [SCENARIOS[name] for name in case.others])
    phase = 1 + case.setting.seed * 7 % int(SCRAPE_SECONDS)
    seconds = range(phase, scene.seconds + 1, int(SCRAPE_SECONDS))
    scraped = frozenset(seconds)
    folder = play(case).recording.parent
    file = folder / f"raw-{_code()}.om"
    if not file.is_file():
        watch = Watch(scene, case.setting.seed)
        with (
            tempfile.TemporaryDirectory(dir=folder, prefix="part-") as part,
            RawLog(Path(part) / "spool") as log,
        ):
            for second in scene.fleet(case.setting.seed).run(scene.seconds):
                watch.observe(second)
                if second.seconds in scraped:
                    log.see(scene.epoch + second.seconds, scrapes(watch, second))
            with (Path(part) / "raw.om").open("wb") as out:
                log.write(out)
            (Path(part) / "raw.om").replace(file)
    return file, (scene.epoch + seconds[0], scene.epoch + seconds[-1])


@lru_cache(maxsize=1)
def _code() -> str:
    digest = hashlib.sha256()
    for name in _MAKES_RAW:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()[:12]
