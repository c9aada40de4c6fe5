"""The judges themselves: who says nothing passes nothing, and what is lost or out of order is told."""

from __future__ import annotations

import copy
from typing import Any

from tests.e2e import judge_engine, judge_incident
from tests.e2e.engine_run import ALERT, ENGINE, PARTS
from tests.real_engine.judging import judged

ALERTED = {
    "labels": {
        "alertname": ALERT,
        "engine": ENGINE,
        "severity": "warning",
        "cause": "overload",
        "cluster": "stack",
    },
    "starts": 1.0,
}
PREEMPTED = {
    "signal": "thrashold_preemptions_per_second",
    "held": True,
    "role": "supporting",
    "words": "so it was",
}
INCIDENT = {"cluster": {"cluster": "stack"}, "alerts": [ALERTED]}
WEBHOOKS = {"cluster": {"cluster": "webhooks"}, "alerts": [{"labels": {"alertname": "Kept1"}, "starts": 1.0}]}
TOTALS = "# TYPE thrashold_generation_tokens counter\n" + "".join(
    f'thrashold_generation_tokens_total{{engine="tiny"}} {at * 10}.0 {at}.0\n' for at in range(90, 120)
)
GOOD: dict[str, Any] = {
    "began": 0.0,
    "arrived": 10.0,
    "report_at": 20.0,
    "report": {
        "causes": [
            {
                "cause": "overload",
                "score": 1.0,
                "affected": [ENGINE],
                "certainty": "high",
                "evidence": [PREEMPTED],
            }
        ]
    },
    "report_words": "what these sequences held was thrown away and computed again",
    "page_names_it": True,
    "incident": INCIDENT,
    "kills": {
        part: {
            "at": 30.0,
            "back": 31.0,
            "answered": 32.0,
            "before": ["a", "b"],
            "after": ["b", "a", "c"],
            "said": [f"{part} died"],
            "kept_webhooks": ["Kept1"],
            "refused_webhooks": 3,
        }
        for part in PARTS
    },
    "engine_killed": {"at": 100.0, "down": 101.0, "read": 110.0},
    "at_the_end": {"incidents": [INCIDENT, WEBHOOKS]},
    "recorded": TOTALS + "# EOF\n",
    "stack_ended_with": 0,
    "broke_off": "",
}
REQUESTS = ({"end": "done", "tokens": 7, "max_tokens": 7}, {"end": "error", "tokens": 3, "max_tokens": 7})


def fallen(change: dict[str, Any], requests: tuple[dict[str, Any], ...] = REQUESTS) -> set[str]:
    """The claims that don't hold of a good act with something else in it."""
    act = judge_engine.Act(copy.deepcopy(GOOD) | change, requests)
    return {name for name, figure in judged(judge_engine.FIGURES, act).items() if not figure.holds}


def test_a_good_act_passes_and_an_empty_one_fails_all_but_what_it_has_not_lost() -> None:
    assert fallen({}) == set()
    silent = judge_engine.Act({}, ())
    assert not any(figure.holds for figure in judged(judge_engine.FIGURES, silent).values())


def test_what_is_lost_is_told() -> None:
    kills = copy.deepcopy(GOOD["kills"])
    kills["sidecar"]["after"] = ["a"]
    kills["prometheus"]["said"] = []
    kills["desk"]["kept_webhooks"] = ["Kept1", "Kept2"]
    assert fallen({"kills": kills}) == {"killed: sidecar", "killed: prometheus", "kept: webhooks"}
    twice = {"incidents": [INCIDENT, INCIDENT, WEBHOOKS]}
    assert fallen({"at_the_end": twice}) == {"kept: one incident"}
    cut = ({"end": "done", "tokens": 6, "max_tokens": 7}, *REQUESTS)
    assert fallen({}, cut) == {"kept: answers"}
    restarted = TOTALS + 'thrashold_generation_tokens_total{engine="tiny"} 5.0 121.0\n# EOF\n'
    assert fallen({"recorded": restarted}) == {"killed: engine"}


def test_a_report_of_something_else_is_told() -> None:
    def report(**change: Any) -> dict[str, Any]:  # noqa: ANN401 -- JSON
        (cause,) = GOOD["report"]["causes"]
        return {"report": {"causes": [cause | change]}}

    swapped = {"signal": "thrashold_swapped_sequences", "held": True, "role": "supporting", "words": "it was"}
    assert fallen(report(cause="swap-thrash")) == {"overload: cause", "overload: swap named"}
    assert fallen(report(evidence=[PREEMPTED, swapped])) == {"overload: swap named"}
    assert fallen(report(evidence=[])) == {"overload: preemption by recompute"}
    assert fallen(report(affected=["another"])) == {"overload: cause"}


def test_of_an_incident_that_nobody_told_of_no_claim_holds() -> None:
    told = {"report": {"causes": []}, "incident": {"alerts": []}, "arrived": 9.0}
    told |= {"scraped": {"preemptions_total": [], "gateway_requests_total": []}}
    column = [0, 1, 1]
    engine = {"swapped": column, "kv_usage_ratio": column, "preemptions": column, "running": column}
    truth = {"seconds": [1.0, 2.0, 3.0], "cause": "swap-thrash", "onset": 1.0, "affected": ["engine-0"]}
    truth |= {"fleet": {"answered": column, "timed_out": column}, "engines": {"engine-0": engine}}
    act = judge_incident.Act(told, truth, "# EOF\n")
    assert not any(figure.holds for figure in judged(judge_incident.FIGURES, act).values())
