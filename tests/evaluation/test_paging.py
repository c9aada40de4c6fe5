"""What reaches whom, by a real Alertmanager in compressed time; and what is held against the bars."""

from __future__ import annotations

from dataclasses import replace

from alerts.catalogue import ALERTS
from analysis.firing import Episode
from tests.evaluation.bars import judge
from tests.evaluation.evaluating import Evaluated, Fired
from tests.evaluation.page import page as written
from tests.evaluation.paging import Notification, notifications
from tests.evaluation.recorded import Recorded

TIMES = 200.0
RANK = {"engine": "a", "rank": "0", "model_name": "m"}


def fired(name: str, start: float, end: float | None, **labels: str) -> Fired:
    alert = ALERTS[name]
    own = {"alertname": name, "severity": alert.severity.value, "cause": alert.cause.value, **labels}
    return Fired(name, own, Episode(start, start, end))


def truth(cause: str | None) -> dict[str, object]:
    episodes = [] if cause is None else [{"cause": cause}]
    onset = None if cause is None else 1000.0
    return {
        "scenario": "one",
        "episodes": episodes,
        "onset": onset,
        "end": 2000.0,
        "seconds": [1000.0],
        "engines": {},
    }


def test_people_get_what_explains_and_not_what_is_explained_each_case_by_itself() -> None:
    """A page within seconds, its all-clear within its interval; a warning where nothing explains it."""
    cases = {
        "thrash": Evaluated(
            [
                fired("KvCachePressure", 1010.0, 1900.0, **RANK),
                fired("KvSequencesSwapped", 1030.0, 1600.0, **RANK),
                fired("ManyEnginesStuck", 1030.0, 1600.0),
                fired("RetryStorm", 1100.0, 1500.0, gateway="g"),
                fired("KvSwapEnabled", 1100.0, 1500.0, **RANK),
            ],
            1000.0,
            1900.0,
        ),
        "pressure": Evaluated([fired("KvCachePressure", 1010.0, 1500.0, **RANK)], 1000.0, 1900.0),
    }
    got = notifications(cases, times=TIMES)
    page, clear = got["thrash"]
    assert (page.receiver, page.names, page.all_clear) == ("page", ("KvSequencesSwapped",), False)
    assert 1040.0 <= page.at < 1100.0
    assert (clear.receiver, clear.all_clear) == ("page", True)
    assert clear.at > 1600.0
    (told,) = got["pressure"]
    assert (told.receiver, told.names) == ("tell", ("KvCachePressure",))
    verdict = judge("one", truth("swap-thrash"), cases["thrash"], got["thrash"])
    assert verdict.own == ("KvSequencesSwapped", 30.0)
    assert verdict.silent == ("KvCachePressure", "KvSwapEnabled", "ManyEnginesStuck", "RetryStorm")
    assert verdict.missed == ()
    wrong = judge("one", truth("gpu-lost"), cases["thrash"], got["thrash"])
    assert wrong.missed == ("KvSequencesSwapped tells of swap-thrash", "its own alert never fires")
    quiet = judge("one", truth(None), cases["thrash"], got["thrash"])
    assert "pages KvSequencesSwapped with nothing wrong" in quiet.missed
    assert judge("one", truth(None), cases["pressure"], got["pressure"]).missed == ()


def test_a_load_that_is_to_keep_the_objective_has_to_be_high_and_to_keep_it_and_wakes_nobody() -> None:
    """It may go unsaid; where it isn't what it is to be, the run says nothing of that bar."""
    calm = Evaluated([], 1000.0, 1900.0)
    kept = Recorded((), 0.95, 5.0, {"ttft": 0.007})
    assert judge("one", truth("overload"), calm, [], kept, below=True).missed == ()
    for other in (
        replace(kept, usage_ratio=0.6),
        replace(kept, late_ratios={"ttft": 0.02}),
        replace(kept, late_ratios={}),
    ):
        assert len(judge("one", truth("overload"), calm, [], other, below=True).missed) == 1
    burning = Evaluated([fired("SloFirstTokenBurnFast", 1090.0, None, slo="ttft")], 1000.0, 1900.0)
    page = Notification("page", 1100.0, (burning.fired[0].labels,), ())
    assert judge("one", truth("overload"), burning, [page], kept, below=True).missed == (
        "SloFirstTokenBurnFast tells of slo-missed",
        "pages SloFirstTokenBurnFast though the objective is kept",
    )


def test_p99_tpot_above_2_s_is_held_against_the_page_whatever_made_it_and_why_is_said() -> None:
    """Prompts that are computed whole stop decodes before anything is swapped: the bar is missed, and that is why."""
    columns = {"preemptions": [0, 0, 1], "swap_in_bytes": [0, 0, 1], "repeat_preemptions_30s": [0, 0, 0]}
    told = truth("swap-thrash") | {"seconds": [1000.0, 1050.0, 1100.0], "engines": {"a": columns}}
    told["scenario"] = "incident"
    seen = Recorded((1050.0, 1200.0), 1.0, 9.0, {"ttft": 0.5})
    swapped = fired("KvSequencesSwapped", 1110.0, 1600.0, **RANK)
    page = Notification("page", 1120.0, (swapped.labels,), ())
    verdict = judge("incident", told, Evaluated([swapped], 1000.0, 1900.0), [page], seen)
    assert (verdict.thrash, verdict.ever_slow, verdict.slow) == (100.0, 50.0, 200.0)
    why = "prefills hold up decodes 50 s before anything is preempted"
    (missed,) = verdict.missed
    assert missed == f"the page comes 70 s after p99 TPOT first passes 2 s, 50 s after the onset: {why}"
    (row,) = (line for line in written([verdict]).splitlines() if line.startswith("| incident | 100 s"))
    assert row == "| incident | 100 s | KvSequencesSwapped 120 s | 120 s | 50 s | missed | 200 s | met |"
    late = replace(seen, slow=(1115.0,))
    (missed,) = judge("one", told, Evaluated([swapped], 1000.0, 1900.0), [page], late).missed
    assert missed == "the page comes 5 s after p99 TPOT first passes 2 s, 115 s after the onset"


def test_what_the_pack_calls_a_consequence_is_one_only_where_what_explains_it_fired() -> None:
    """A page of another cause beside the true one is false, and so is one that something else would have explained."""
    frozen = fired("EngineFrozen", 1050.0, 1600.0, **RANK)
    many = fired("ManyEnginesStuck", 1060.0, 1600.0)
    storm = fired("RetryStorm", 1100.0, 1500.0, gateway="g")
    told = [Notification("page", one.at, (one.labels,), ()) for one in (frozen, storm)]

    def missed(*others: Fired) -> tuple[str, ...]:
        evaluated = Evaluated([frozen, storm, *others], 1000.0, 1900.0)
        return judge("one", truth("engine-frozen"), evaluated, told).missed

    assert missed(many) == ()
    assert missed() == ("RetryStorm tells of retry-storm",)
    assert missed(fired("OrphanedKv", 1090.0, 1500.0, gateway="g")) == ("RetryStorm tells of retry-storm",)


def test_that_an_objective_is_missed_is_true_where_the_recording_says_so() -> None:
    own = fired("TailWaste", 1050.0, 1600.0, **RANK)
    burns = fired("SloFirstTokenBurnFast", 1090.0, None, slo="ttft")
    told = [
        Notification("tell", 1060.0, (own.labels,), ()),
        Notification("page", 1100.0, (burns.labels,), ()),
    ]
    evaluated = Evaluated([own, burns], 1000.0, 1900.0)
    late = Recorded((), 1.0, 9.0, {"ttft": 0.3, "tpot": 0.0})
    assert judge("one", truth("tail-waste"), evaluated, told, late).missed == ()
    kept = replace(late, late_ratios={"ttft": 0.001, "tpot": 0.3})
    (missed,) = judge("one", truth("tail-waste"), evaluated, told, kept).missed
    assert missed == "SloFirstTokenBurnFast tells of slo-missed"
