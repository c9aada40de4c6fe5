"""``raw.om``: the engines' own pages as OpenMetrics wants them, and what a real Prometheus makes of that."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from drill.actions import Restart
from drill.playing.play import Moment, Play
from drill.playing.raw import RawLog, Scrape
from drill.playing.run import METRICS, RAW, RECORDING, run
from drill.scenarios.catalogue import SCENARIOS
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import Setting
from drill.serving.config import Generation

SECONDS, EVERY = 40, 10
LINE = re.compile(r"(\S+?)(\{.*\})? (\S+) (\d+\.\d{3})")


def restarting(generation: Generation | None) -> Scenario:
    """Forty seconds of two engines, one of which starts anew amid them."""
    whole = SCENARIOS["overload"]

    def fleet(setting: Setting) -> Scene:
        scene = whole.fleet(replace(setting, generation=generation))
        return replace(
            scene, seconds=SECONDS, start_seconds=8.0, plan=((15.0, Restart("engine-0", drain_seconds=0.0)),)
        )

    return replace(whole, fleet=fleet)


@pytest.fixture(scope="module", params=list(Generation))
def kept(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    folder = tmp_path_factory.mktemp("raw")
    scenario = restarting(request.param)
    run(scenario, Setting(), folder, raw_every=EVERY)
    return scenario, folder


def test_every_line_of_every_page_is_there_with_its_time_and_nothing_else(
    kept: tuple[Scenario, Path],
) -> None:
    scenario, folder = kept
    wanted = set()
    play = Play(scenario.scene(Setting()), 1)
    for moment in play.moments():
        if moment.second.seconds % EVERY:
            continue
        at = f"{play.scene.epoch + moment.second.seconds:.3f}"
        for engine in play.watch.engines:
            page = engine.page()
            wanted.add((engine.name, "up", "", str(int(page is not None)), at))
            for line in (page or "").splitlines():
                if not line.startswith("#"):
                    series, _, value = line.rpartition(" ")
                    name, _, labels = series.partition("{")
                    wanted.add((engine.name, name, labels.removesuffix("}"), value, at))
    found = set()
    for line in (folder / RAW).read_text().splitlines():
        if line.startswith("#") or 'job="envoy"' in line:
            continue
        name, labels, value, at = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
        instance, own = re.fullmatch(r'\{instance="(\S+?):8000",job="vllm",?(.*)\}', labels).groups()  # type: ignore[union-attr]
        found.add((instance, name, own, value, at))
    assert found == wanted
    assert ("engine-0", "up", "", "0", f"{play.scene.epoch + 20:.3f}") in found


def test_families_and_metrics_stand_in_one_piece_in_the_order_of_time(kept: tuple[Scenario, Path]) -> None:
    heads: list[str] = []
    metrics: list[tuple[str, str]] = []
    times: list[float] = []
    for line in (kept[1] / RAW).read_text().splitlines():
        if line.startswith("# TYPE "):
            heads.append(line.split()[2])
        elif not line.startswith("#"):
            name, labels, _, at = LINE.fullmatch(line).groups()  # type: ignore[union-attr]
            assert name.startswith(heads[-1])
            metric = (heads[-1], re.sub(r',le="[^"]*"', "", labels))
            if not metrics or metric != metrics[-1]:
                metrics.append(metric)
            else:
                assert float(at) >= times[-1]
            times.append(float(at))
    assert len(set(heads)) == len(heads) > 50
    assert len(set(metrics)) == len(metrics)
    assert {head for head, _ in metrics} <= set(heads)


def test_each_scrape_is_openmetrics_by_the_reference_parser(kept: tuple[Scenario, Path]) -> None:
    # which loses all but the first of several points of a histogram: one time is read by itself
    lines = (kept[1] / RAW).read_text().splitlines()
    times = {line.rpartition(" ")[2] for line in lines if not line.startswith("#")}
    assert len(times) == SECONDS // EVERY
    for at in times:
        part = [line for line in lines if line.startswith("#") or line.endswith(f" {at}")]
        families = list(text_string_to_metric_families("\n".join(part) + "\n"))
        read = sum(len(family.samples) for family in families)
        assert read == sum(not line.startswith("#") for line in part) > 300


def test_prometheus_takes_metrics_and_raw(kept: tuple[Scenario, Path], tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        why = "NOT TESTED: promtool, of Prometheus, is not here"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)
    for file in (METRICS, RAW):
        blocks = tmp_path / file
        done = subprocess.run(
            [promtool, "tsdb", "create-blocks-from", "openmetrics", str(kept[1] / file), str(blocks)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(list(blocks.iterdir())) == 1
        analysed = subprocess.run(
            [promtool, "tsdb", "analyze", str(blocks)], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        series = int(re.findall(r"(?m)^Series: (\d+)$", analysed)[0])
        lines = (kept[1] / file).read_text().splitlines()
        told = {line.rsplit(" ", 2)[0] for line in lines if not line.startswith("#")}
        assert series == len(told)


class Full:
    def write(self, _: bytes) -> int:
        raise OSError("the disk is full")


def test_no_spool_is_left_whatever_happens(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with RawLog(spool) as log:
        log.see(1.0, [Scrape("vllm", "e:8000", "# TYPE a gauge\na 1\n")])
        assert spool.exists()
        with pytest.raises(OSError, match="full"):
            log.write(Full())
    assert not spool.exists()


def test_without_raw_none_is_left_of_an_earlier_run(tmp_path: Path) -> None:
    whole = SCENARIOS["overload"]
    scenario = replace(whole, fleet=lambda setting: replace(whole.fleet(setting), seconds=5))
    run(scenario, Setting(engines=1), tmp_path, raw_every=1)
    assert (tmp_path / RAW).exists()
    run(scenario, Setting(engines=1), tmp_path)
    assert RAW not in {path.name for path in tmp_path.iterdir()}


def test_a_run_that_is_broken_off_leaves_nothing_of_an_earlier_one_beside_its_recording(
    tmp_path: Path,
) -> None:
    whole = SCENARIOS["overload"]
    scenario = replace(whole, fleet=lambda setting: replace(whole.fleet(setting), seconds=5))
    run(scenario, Setting(engines=1), tmp_path)

    def interrupted(_: Moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scenario, Setting(engines=1, seed=2), tmp_path, told=interrupted)
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"} == {RECORDING}
