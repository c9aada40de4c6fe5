from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.alertmanager import ALERTS_PATH, configuration
from alerts.pack_settings import PackSettings
from analysis.desk.incident import Work
from analysis.desk.reference import reference
from analysis.desk.store import LAPSE_HOURS, MOST_ALERTS, MOST_EVENTS, Store, StoreError, Taken
from analysis.desk.webhook import MOST_BYTES, Message, WebhookError, read
from tests.support.desk import alert, message

NOW = 1_800_000_000.0
DAY = 86_400.0


def store(folder: Path) -> Store:
    return Store(folder / "desk.db", ("cluster",), 900.0)


def told(*alerts: dict[str, Any]) -> tuple[Any, ...]:
    return read(message(*alerts)).alerts


def test_alerts_of_a_cluster_are_one_incident_and_each_is_kept_once(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        first = told(alert("KvThrashing", "aa", NOW, cluster="prod", engine="a"))
        assert kept.take(first, NOW).opened == (1,)
        assert kept.take(first, NOW + 1).opened == ()
        more = told(
            alert("RetryStorm", "bb", NOW + 30, cluster="prod"), alert("GpuLost", "cc", NOW, cluster="lab")
        )
        assert kept.take(more, NOW + 31).opened == (2,)
        incident = kept.incident(1)
        assert incident is not None
        assert [each.name for each in incident.alerts] == ["KvThrashing", "RetryStorm"]
        assert (incident.title, incident.engines, incident.state) == (
            "KvThrashing, RetryStorm in prod",
            ("a",),
            "goes on",
        )


def test_an_incident_is_over_with_its_last_alert_and_goes_on_when_one_comes_back_soon(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p"), alert("B", "bb", NOW, cluster="p")), NOW)
        assert kept.take(told(alert("A", "aa", NOW, NOW + 60, cluster="p")), NOW + 60).ended == ()
        assert kept.take(told(alert("B", "bb", NOW, NOW + 90, cluster="p")), NOW + 95).ended == (1,)
        over = kept.incident(1)
        assert over is not None
        assert (over.state, over.ended) == ("over", NOW + 90)
        # the same alert anew, within a quarter of an hour: another flare of the same fire
        assert kept.take(told(alert("A", "aa", NOW + 600, cluster="p")), NOW + 600).opened == ()
        again = kept.incident(1)
        assert again is not None
        assert (again.state, len(again.alerts)) == ("goes on", 3)
        kept.take(told(alert("A", "aa", NOW + 600, NOW + 700, cluster="p")), NOW + 700)
        assert kept.take(told(alert("A", "aa", NOW + 9000, cluster="p")), NOW + 9000).opened == (2,)


def test_what_was_never_told_to_fire_opens_nothing_when_it_is_over(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        assert kept.take(told(alert("A", "aa", NOW, NOW + 5, cluster="p")), NOW + 5).opened == ()
        assert kept.incidents() == ()


def test_one_that_is_closed_stays_closed(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p")), NOW)
        assert kept.close_incident(1, NOW + 10, "the load test")
        assert not kept.close_incident(1, NOW + 11, "again")
        # said again, it is the same alert; a new one is a new incident
        assert kept.take(told(alert("A", "aa", NOW, cluster="p")), NOW + 20).opened == ()
        assert kept.take(told(alert("B", "bb", NOW + 20, cluster="p")), NOW + 20).opened == (2,)
        closed = kept.incident(1)
        assert closed is not None
        assert (closed.state, closed.note) == ("closed", "the load test")


def test_what_is_old_goes_with_all_of_it_and_what_goes_on_stays(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p"), alert("B", "bb", NOW, cluster="q")), NOW)
        kept.take(told(alert("A", "aa", NOW, NOW + 5, cluster="p")), NOW + 5)
        assert kept.forget(NOW + 5) == ()
        assert kept.forget(NOW + 6) == (1,)
        assert [each.number for each in kept.incidents()] == [2]
        assert kept.events(1) == ()


def test_a_report_that_was_begun_is_known_after_a_restart(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p"), alert("B", "bb", NOW, cluster="q")), NOW)
        kept.set_work(1, Work.RUNNING)
        kept.set_work(2, Work.DONE, NOW + 9)
    with store(tmp_path) as kept:
        assert kept.unfinished() == (1,)
        done = kept.incident(2)
        assert done is not None
        assert (done.work, done.reported) == (Work.DONE, NOW + 9)


def test_what_is_kept_waits_for_a_report_whatever_comes_then(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        taken = kept.take(told(alert("A", "aa", NOW, cluster="p")), NOW)
        assert (taken.opened, taken.changed) == ((1,), (1,))
        assert kept.unfinished() == (1,)  # though nobody has asked for one
        kept.set_work(1, Work.DONE, NOW)
        kept.take(told(alert("A", "aa", NOW, NOW + 5, cluster="p")), NOW + 5)
        assert kept.unfinished() == (1,)


def test_a_full_disk_refuses_and_passes(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p")), NOW)
        (pages,) = kept._connection.execute("PRAGMA page_count").fetchone()  # noqa: SLF001
        kept._connection.execute(f"PRAGMA max_page_count = {pages}")  # noqa: SLF001
        many = told(*(alert("B", f"{each:x}", NOW, cluster="q", more="x" * 900) for each in range(50)))
        with pytest.raises(sqlite3.OperationalError, match="full"):
            kept.take(many, NOW)
        assert [each.number for each in kept.incidents()] == [1]
        kept._connection.execute("PRAGMA max_page_count = 100000")  # noqa: SLF001
        assert kept.take(many, NOW).opened == (2,)


def test_what_is_not_told_again_is_over_one_day(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        both = (alert("A", "aa", NOW, cluster="p"), alert("B", "bb", NOW, cluster="p"))
        kept.take(told(*both), NOW)
        kept.take(told(both[0]), NOW + 50_000)
        assert kept.lapse(NOW + 10, NOW + 60_000) == ()
        half = kept.incident(1)
        assert half is not None
        assert [each.ends for each in half.alerts] == [None, NOW]
        assert half.state == "goes on"
        assert kept.lapse(NOW + 50_001, NOW + 160_000) == (1,)
        over = kept.incident(1)
        assert over is not None
        assert (over.state, over.ended) == ("over", NOW + 50_000)
        assert kept.unfinished() == (1,)


def test_what_fires_is_told_twice_before_it_is_taken_as_over() -> None:
    made = configuration(PackSettings())
    hear = {
        each["name"]
        for each in made["receivers"]
        if any(hook["url"].endswith(ALERTS_PATH) for hook in each.get("webhook_configs", ()))
    }
    hours = {"m": 1 / 60, "h": 1.0}

    def repeats(route: Mapping[str, Any], receiver: str, repeat: str) -> Iterator[float]:
        receiver, repeat = route.get("receiver", receiver), route.get("repeat_interval", repeat)
        if receiver in hear:
            yield float(repeat[:-1]) * hours[repeat[-1]]
        for each in route.get("routes", ()):
            yield from repeats(each, receiver, repeat)

    found = list(repeats(made["route"], "", ""))
    assert len(found) > 3
    assert 2 * max(found) < LAPSE_HOURS


def test_one_that_is_closed_goes_though_its_alerts_never_end_and_its_events_have_a_bound(
    tmp_path: Path,
) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p"), alert("B", "bb", NOW, cluster="q")), NOW)
        kept.close_incident(1, NOW + 10, "")
        for each in range(MOST_EVENTS):
            kept.tell(2, NOW, f"event {each}")
        assert kept.forget(NOW + 10) == ()
        events = kept.events(2, most=2 * MOST_EVENTS)
        assert len(events) == MOST_EVENTS
        assert (events[0].text, events[-1].text) == ("event 0", f"event {MOST_EVENTS - 1}")
        assert kept.latest(2, 2) == events[-2:]
        assert kept.forget(NOW + 11) == (1,)


def test_thousands_of_alerts_are_kept_and_the_first_are_read(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        many = [
            alert("A", f"{each:x}", NOW + each, cluster="p", engine=f"e{each:04}") for each in range(3000)
        ]
        kept.take(told(*many), NOW + 3000)
        found = kept.incident(1)
        assert found is not None
        assert (len(found.alerts), found.more) == (MOST_ALERTS, 3000 - MOST_ALERTS)
        assert len(kept.engines(1)) == 3000
        assert kept.engines(1)[-1] == "e2999"


def test_one_from_the_future_begins_now(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW + 900, cluster="p")), NOW)
        found = kept.incident(1)
        assert found is not None
        assert found.opened == NOW


def test_a_file_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        kept.take(told(alert("A", "aa", NOW, cluster="p")), NOW)
    with contextlib.closing(sqlite3.connect(tmp_path / "desk.db")) as connection:
        connection.execute("ALTER TABLE alert DROP COLUMN heard")
        connection.execute("ALTER TABLE alert DROP COLUMN lapsed")
        connection.execute("PRAGMA user_version = 1")
    with store(tmp_path) as kept:
        assert kept.lapse(time.time() - 60, NOW) == ()
        assert kept.take(told(alert("A", "aa", NOW, NOW + 5, cluster="p")), NOW + 5).ended == (1,)


def test_a_file_of_the_second_version_knows_a_lapse_from_an_end(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        for name in "abc":
            kept.take(told(alert(name, name, NOW, cluster=name)), NOW)
        kept.take(told(alert("b", "b", NOW, NOW + 5, cluster="b")), NOW + 8)
        kept.take(told(alert("c", "c", NOW, cluster="c")), NOW + DAY)
        assert kept.lapse(NOW + 60, NOW + DAY) == (1,)
    with contextlib.closing(sqlite3.connect(tmp_path / "desk.db")) as connection:
        connection.execute("ALTER TABLE alert DROP COLUMN lapsed")
        connection.execute("PRAGMA user_version = 2")
    with store(tmp_path) as kept:
        again = [alert(name, name, NOW, cluster=name) for name in "abc"]
        assert kept.take(told(*again), NOW + 2 * DAY).changed == (1,)
        assert [each.state for each in kept.incidents()] == ["goes on", "over", "goes on"]


def test_one_folder_is_of_one_desk(tmp_path: Path) -> None:
    with store(tmp_path), pytest.raises(StoreError, match="another desk uses it"):
        store(tmp_path)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "desk.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match=r"desk\.db: file is not a database"):
        store(tmp_path)


_DELIVERIES = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([0, 100, 200]), st.booleans()), min_size=1, max_size=25
)


@settings(max_examples=40)
@given(_DELIVERIES)
def test_however_often_and_in_whatever_order_it_is_told_an_alert_is_kept_once(
    tmp_path_factory: pytest.TempPathFactory, deliveries: list[tuple[str, int, bool]]
) -> None:
    with store(tmp_path_factory.mktemp("store")) as kept:
        for name, starts, fires in deliveries:
            ends = None if fires else NOW + starts + 50
            kept.take(told(alert(name, name * 2, NOW + starts, ends, cluster="p")), NOW + 300)
        found = [each for incident in kept.incidents() for each in incident.alerts]
        assert len({(each.fingerprint, each.starts) for each in found}) == len(found)
        # it is there if it was ever told to fire, and over if that was told after it
        for name in "abc":
            for starts in (0, 100, 200):
                said = [fires for each, at, fires in deliveries if (each, at) == (name, starts)]
                there = [each for each in found if (each.name, each.starts) == (name, NOW + starts)]
                assert bool(there) == (True in said)
                if there:
                    over = False in said[said.index(True) :]
                    assert (there[0].ends is not None) == over


_FIRES, _ENDS, _TIDIES = "fires", "ends", "tidies"


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([_FIRES, _FIRES, _ENDS, _TIDIES]),
            st.sampled_from("ab"),
            st.sampled_from([60.0, 1200.0, 3 * DAY]),
        ),
        max_size=15,
    )
)
def test_what_alertmanager_says_goes_before_what_was_taken_for_it_and_said_again_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, float]]
) -> None:
    now, lapse = NOW, LAPSE_HOURS * 3600
    heard: dict[str, float] = {}
    guessed: dict[str, float] = {}
    ended: dict[str, float] = {}
    going_on: set[int] = set()
    with store(tmp_path_factory.mktemp("store")) as kept:
        for what, name, later in steps:
            now += later
            if what == _TIDIES:
                kept.lapse(now - lapse, now)
                silent = [each for each, at in heard.items() if each not in ended and at < now - lapse]
                guessed |= {each: heard[each] for each in silent if each not in guessed}
            else:
                ends = now - 30 if what == _ENDS else None
                notification = told(alert(name, name, NOW, ends, cluster="p"))
                news = name not in ended and (
                    (name not in heard or name in guessed) if what == _FIRES else name in heard
                )
                taken = kept.take(notification, now)
                assert bool(taken.changed) == news
                assert kept.take(notification, now) == Taken((), (), ())
                if name in ended:
                    pass
                elif what == _FIRES:
                    heard[name] = now
                    guessed.pop(name, None)
                elif name in heard:
                    ended[name] = now - 30
                    guessed.pop(name, None)
            over = guessed | ended
            before, going_on = going_on, set()
            for incident in kept.incidents():
                ends_of_all = [over.get(each.name) for each in incident.alerts]
                assert [each.ends for each in incident.alerts] == ends_of_all
                if None in ends_of_all:
                    going_on.add(incident.number)
                    assert (incident.state, incident.ended) == ("goes on", None)
                else:
                    assert incident.ended == max(each for each in ends_of_all if each is not None)
                    if incident.number in before:
                        assert incident.work is Work.WAITING  # for a report that tells it whole
                kept.set_work(incident.number, Work.DONE, now)
            assert {each.number for each in kept.going_on()} == going_on
            assert sorted(each.name for found in kept.incidents() for each in found.alerts) == sorted(heard)


def test_rules_that_fire_later_than_the_first_are_known_by_their_first_alert(tmp_path: Path) -> None:
    with store(tmp_path) as kept:
        first, page = alert("Warning", "1", NOW, cluster="p"), alert("Page", "2", NOW + 40, cluster="p")
        more = alert("Page", "3", NOW + 55, cluster="p"), alert("Warning", "4", NOW + 60, cluster="p")
        kept.take(told(first), NOW + 10)
        kept.set_work(1, Work.DONE, NOW + 12)
        assert [each.joined for each in kept.going_on()] == [()]
        kept.take(told(first, page, *more), NOW + 70)
        assert [each.joined for each in kept.going_on()] == [(NOW + 40,)]


def test_what_alertmanager_does_not_send_is_refused_without_repeating_it() -> None:
    secret = "s3cret-value"  # noqa: S105
    good = json.loads(message(alert("A", "aa", NOW)))
    for change in (
        {"version": "3"},
        {"version": None},
        {"alerts": secret},
        {"alerts": [{**good["alerts"][0], "fingerprint": "../../etc/passwd"}]},
        {"alerts": [{**good["alerts"][0], "status": secret}]},
        {"alerts": [{**good["alerts"][0], "startsAt": "2026-01-01T00:00:00"}]},
        {"alerts": [{**good["alerts"][0], "startsAt": "0001-01-01T00:00:00+23:59"}]},
        {"alerts": [{**good["alerts"][0], "startsAt": "9999-12-31T23:59:59-12:00"}]},
        {"alerts": [{**good["alerts"][0], "status": "resolved"}]},
        {"alerts": [{**good["alerts"][0], "status": "resolved", "endsAt": None}]},
        {"alerts": [{**good["alerts"][0], "labels": {"a": "x" * 9000}}]},
        {"alerts": [{**good["alerts"][0], "labels": {str(each): "" for each in range(200)}}]},
    ):
        with pytest.raises(WebhookError) as refused:
            read(json.dumps(good | change).encode())
        assert secret not in str(refused.value)
        assert "\n" not in str(refused.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_refused(body: bytes) -> None:
    try:
        assert isinstance(read(body), Message)
    except WebhookError:
        assert len(body) < MOST_BYTES


def test_the_committed_page_is_fresh() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "desk.md"
    assert page.read_text(encoding="utf-8") == reference(), "make docs"
