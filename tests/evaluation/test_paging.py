"""What reaches whom, by a real Alertmanager in compressed time; and what is held against the bars."""

from __future__ import annotations

from alerts.catalogue import ALERTS
from analysis.firing import Episode
from tests.evaluation.bars import judge
from tests.evaluation.evaluating import Evaluated, Fired
from tests.evaluation.paging import notifications

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
    assert verdict.silent == ("KvCachePressure", "KvSwapEnabled", "RetryStorm")
    assert verdict.missed == ()
    wrong = judge("one", truth("gpu-lost"), cases["thrash"], got["thrash"])
    assert wrong.missed == ("KvSequencesSwapped tells of swap-thrash", "its own alert never fires")
    quiet = judge("one", truth(None), cases["thrash"], got["thrash"])
    assert "pages KvSequencesSwapped with nothing wrong" in quiet.missed
    assert judge("one", truth(None), cases["pressure"], got["pressure"]).missed == ()
