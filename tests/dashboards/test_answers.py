"""What single panels answer on a real Prometheus, where a plausible query would answer something else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from alerts.pack_settings import PackSettings
from alerts.recording_gpus import SATURATED
from alerts.recording_links import BY_SWAP
from dashboards.catalogue import boards
from dashboards.lint.finding import panels_of
from dashboards.queries import interpolated
from tests.dashboards.past import END, SCRAPE
from tests.support.prometheus import Prometheus, serving
from tests.support.scraped import Scraped

JSON = {name: board.to_json() for name, board in boards(PackSettings()).items()}
_STEPS = 40
Answer = dict[frozenset[tuple[str, str]], float]


def _kept() -> Scraped:
    kept = Scraped()

    def add(name: str, values: list[float], **labels: str) -> None:
        """The last value is told at ``END``, those before it a scrape earlier each."""
        told = {"cluster": "one", "instance": "a:9807", "job": "thrashold"} | labels
        for step, value in enumerate(values):
            kept.add(f"thrashold_{name}", END - (len(values) - 1 - step) * SCRAPE, value, **told)

    steady = [1.0] * _STEPS
    # two sidecars, each with an nvml of its own
    add("source_up", steady, source="nvml")
    add("source_up", [0.0] * _STEPS, source="nvml", instance="b:9807")
    # engines that tell what they swap, and one of which it is estimated
    for direction in ("in", "out"):
        add("swap_bytes_per_second", [1e6] * _STEPS, engine="v1", rank="0", direction=direction)
    add("swap_bytes_estimate_total", [SCRAPE * 500.0 * at for at in range(_STEPS)], engine="v0", rank="0")
    # next to nothing, all of it swap; a full link, a twentieth of it swap
    for engine, busy, share in (("idle", 0.001, 1.0), ("busy", 0.95, 0.05)):
        add("engine_gpu_info", steady, engine=engine, uuid=f"GPU-{engine}")
        add("pcie_saturation_ratio", [busy] * _STEPS, uuid=f"GPU-{engine}", direction="in")
        add("pcie_swap_share_ratio", [share] * _STEPS, engine=engine, direction="in")
    for step in reversed(range(_STEPS)):
        kept.add(SATURATED.record, END - step * SCRAPE, 1.0, cluster="one", engine="busy")
    add("source_errors_total", [1.0, 1.0], source="nvml", reason="timeout")
    # the first of its kind half a minute ago; one restart among none; an engine that began anew with its sidecar
    add("gpu_xid_errors_total", [1.0, 1.0, 1.0], uuid="GPU-busy", xid="79")
    add("gpu_xid_errors_total", [2.0] * _STEPS, uuid="GPU-busy", xid="31")
    add("engine_restarts_total", [0.0] * (_STEPS - 2) + [1.0, 1.0], engine="busy")
    add("engine_restarts_total", [7.0] * (_STEPS - 2) + [0.0, 2.0], engine="idle")
    # one that makes tokens, and one that hangs
    add("tpot_p99_seconds", [0.05] * _STEPS, engine="busy", rank="0")
    add("last_token_age_seconds", [0.0] * _STEPS, engine="busy", rank="0")
    add("last_token_age_seconds", [300.0] * _STEPS, engine="hung", rank="0")
    for subject in (
        {"alertname": "KvThrashing", "engine": "busy", "severity": "page"},
        {"alertname": "KvThrashing", "engine": "idle", "severity": "page"},
        {"alertname": "OrphanedKv", "gateway": "g", "severity": "page"},
        {"alertname": "SidecarDown", "instance": "b:9807", "severity": "warning"},
        {"alertname": "SidecarDown", "instance": "c:9807", "severity": "warning"},
    ):
        for step in reversed(range(_STEPS)):
            kept.add("ALERTS", END - step * SCRAPE, 1.0, alertstate="firing", cluster="one", **subject)
    return kept


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("answers")
    _kept().write(folder / "past.om")
    with serving(folder / "past.om", folder) as server:
        yield server


def _answer(prometheus: Prometheus, expression: str, engine: str = ".*") -> Answer:
    variables = {"cluster": ".*", "engine": engine, "instance": ".*"}
    asked = prometheus.query_range(interpolated(expression, variables, "60s"), END, END, SCRAPE)
    return {frozenset(labels): values[END] for labels, values in asked.items()}


def _of(board: str, title: str, legend: str = "") -> str:
    """The query of a panel whose legend ends so."""
    panel = next(each for each in panels_of(JSON[board]) if each["title"] == title)
    return next(str(target["expr"]) for target in panel["targets"] if target["legendFormat"].endswith(legend))


def _values(answer: Answer) -> list[float]:
    return sorted(answer.values())


def test_a_source_is_down_though_another_sidecar_has_one_of_its_name(prometheus: Prometheus) -> None:
    assert _values(_answer(prometheus, _of("fleet", "Sources that don't answer"))) == [1.0]
    (listed,) = _answer(prometheus, _of("sidecar", "Sources that don't answer, by sidecar"))
    assert dict(listed) == {"cluster": "one", "instance": "b:9807", "source": "nvml"}


def test_estimated_swap_stands_beside_what_other_engines_tell(prometheus: Prometheus) -> None:
    (moved,) = _values(_answer(prometheus, _of("incident", "3. Swapped out", "moved")))
    assert moved == pytest.approx(2e6 + 500.0)


def test_all_of_next_to_nothing_is_not_what_fills_a_link(prometheus: Prometheus) -> None:
    (link,) = _values(_answer(prometheus, _of("incident", "PCIe, busiest link", "to the GPU")))
    (by_swap,) = _values(_answer(prometheus, _of("incident", "PCIe, busiest link", "to the GPU, by swap")))
    assert (link, by_swap) == (0.95, pytest.approx(0.0475))

    (recorded,) = _values(_answer(prometheus, BY_SWAP.promql(PackSettings().rendering)))
    assert recorded == 0.05


def test_what_is_rare_is_counted_whole_and_from_its_birth(prometheus: Prometheus) -> None:
    xids = _of("worker", "Throttled, and XIDs", "XIDs")
    assert _values(_answer(prometheus, xids, "busy")) == [1.0]
    restarts = _of("worker", "Quantiles that are floors, restarts", "restarts")
    assert _values(_answer(prometheus, restarts, "busy")) == [1.0]
    assert _values(_answer(prometheus, restarts, "idle")) == [2.0]


def test_an_engine_that_hangs_is_the_slowest(prometheus: Prometheus) -> None:
    listed = _answer(prometheus, _of("fleet", "The 20 slowest engines"))
    assert {dict(labels)["engine"]: value for labels, value in listed.items()} == {
        "hung": 300.0,
        "busy": 0.05,
    }


def test_the_first_failed_read_is_shown(prometheus: Prometheus) -> None:
    assert _values(_answer(prometheus, _of("sidecar", "Reads that failed"))) == [1.0]


def test_each_subject_of_an_alert_is_listed(prometheus: Prometheus) -> None:
    listed = [dict(labels) for labels in _answer(prometheus, _of("fleet", "Alerts that fire"))]
    assert {each.get("instance") for each in listed if each["alertname"] == "SidecarDown"} == {
        "b:9807",
        "c:9807",
    }
    assert _values(_answer(prometheus, _of("fleet", "Pages"))) == [3.0]


@pytest.mark.parametrize("board", ["worker", "incident"])
def test_marks_are_of_the_engine_that_is_looked_at_and_of_what_has_none(
    board: str, prometheus: Prometheus
) -> None:
    (pages,) = (each for each in JSON[board]["annotations"]["list"] if each["name"] == "Pages")
    marked = [dict(labels) for labels in _answer(prometheus, pages["expr"], "busy")]
    assert {each.get("engine", each.get("gateway")) for each in marked} == {"busy", "g"}
    assert len(_answer(prometheus, pages["expr"])) == 3
    assert all(f"{{{{{label}}}}}" in json.dumps(pages) for label in ("engine", "gateway", "instance"))
