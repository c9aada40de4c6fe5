"""How packs are scored, what is written down of others, and that the page is of its figures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from alerts.causes import Cause
from analysis.firing import Episode
from tests.evaluation.evaluating import Fired
from tests.evaluation.paging import Notification
from tests.evaluation.scoreboard import FIGURES, PAGE
from tests.evaluation.scoreboard_page import page
from tests.evaluation.scoreboard_peers import FOLDER, Peer, PeerError, peers, read, rule_file
from tests.evaluation.scoreboard_score import Heard, Outcome, Told, outcome, total
from tests.support.prometheus import tool

NAMES = {"Swaps": frozenset({Cause.SWAP_THRASH}), "Slow": frozenset[Cause]()}
THRASH = {"episodes": [{"cause": "swap-thrash"}], "onset": 1100.0, "end": 1500.0}
CALM: Mapping[str, object] = {"episodes": [], "onset": None, "end": None}


def fired(name: str, active: float, at: float) -> Fired:
    return Fired(name, {"alertname": name, "cluster": "drill"}, Episode(active, at, None))


def told(receiver: str, at: float, *names: str) -> Notification:
    return Notification(receiver, at, tuple({"alertname": name} for name in names), ())


def of(truth: Mapping[str, object], *got: Notification, thrash_at: float | None = None) -> Outcome:
    began = [fired(name, each.at - 30.0, each.at - 20.0) for each in got for name in each.names]
    return outcome(("p", "incident, seed 1"), truth, Heard(began, got), NAMES, thrash_at)


def test_what_is_told_first_what_wakes_and_what_names_the_cause_are_told_apart() -> None:
    found = of(
        THRASH,
        told("tell", 1130.0, "Slow"),
        told("page", 1160.0, "Swaps"),
        told("watchdog", 1101.0, "Watchdog"),
        Notification("page", 1400.0, (), ({"alertname": "Swaps"},)),
        thrash_at=1200.0,
    )
    assert found.first == Told(("Slow",), 30.0)
    assert found.page == found.named == Told(("Swaps",), 60.0)
    assert found.lead == 70.0  # from 1130 to 1200
    assert (found.caught, found.late) == (True, False)
    assert (found.false_pages, found.false_warnings) == (0, 0)
    assert found.notified == 3  # the all-clear is one, the watchdog's is for nobody


def test_before_the_onset_and_where_nothing_is_wrong_all_that_is_told_is_false() -> None:
    before = of(THRASH, told("page", 1099.0, "Swaps"), told("tell", 1000.0, "Slow"))
    assert (before.false_pages, before.false_warnings, before.first) == (1, 1, None)
    calm = of(CALM, told("page", 1099.0, "Swaps"), Notification("page", 1200.0, (), ({},)))
    assert (calm.false_pages, calm.false_warnings, calm.caught) == (1, 0, False)


def test_what_held_before_the_onset_tells_nothing_of_it_however_late_it_comes() -> None:
    got = [told("tell", 1400.0, "Slow"), told("page", 1410.0, "Slow", "Swaps")]
    heard = Heard([fired("Slow", 1099.0, 1390.0), fired("Swaps", 1100.0, 1400.0)], got)
    found = outcome(("p", "incident, seed 1"), THRASH, heard, NAMES, None)
    assert (found.false_warnings, found.false_pages) == (1, 0)
    assert found.first == Told(("Slow", "Swaps"), 310.0)


def test_told_when_it_is_over_is_late() -> None:
    soon, late = (of(THRASH, told("tell", at, "Slow")) for at in (1500.0, 1501.0))
    assert (soon.caught, soon.late, late.caught, late.late) == (True, False, True, True)
    figures = total([soon, late], {})
    assert (figures.caught, figures.in_time) == (2, 1)


def test_totals_count_what_a_pack_is_not_made_for_apart_from_what_it_misses() -> None:
    caught, missed = of(THRASH, told("page", 1160.0, "Swaps"), thrash_at=1150.0), of(THRASH)
    figures = total([caught, missed, of(CALM, told("page", 1.0, "Slow"))], {})
    assert (figures.caught, figures.named, figures.faults, figures.cannot_see) == (1, 1, 2, 0)
    assert (figures.false_pages, figures.incident_notifications) == (1, 1)
    assert figures.incident_lead_seconds == -10.0  # told 10 s after it thrashed
    blind = total([caught, missed], {Cause.SWAP_THRASH: "nothing of it"})
    assert (blind.cannot_see, blind.caught) == (1, 1)
    assert total([missed], {}).incident_lead_seconds is None


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: peer.name)
def test_prometheus_takes_the_rules_of_a_peer(peer: Peer, tmp_path: Path) -> None:
    (tmp_path / "peer.yml").write_text(rule_file(peer.rules), encoding="utf-8")
    done = subprocess.run(
        [tool("promtool"), "check", "rules", tmp_path / "peer.yml"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(peer.names) == {rule["alert"] for rule in peer.rules}


def test_a_mended_pack_has_the_same_alerts_and_only_other_names_of_metrics() -> None:
    by_name = {peer.name: peer for peer in peers()}
    for name, peer in by_name.items():
        if peer.mended:
            plain = by_name[name.removesuffix("-mended")]
            assert plain.names == peer.names
            assert [rule["for"] for rule in plain.rules] == [rule["for"] for rule in peer.rules]
            assert plain.rules != peer.rules


def test_a_peer_with_a_key_too_many_or_another_severity_is_refused_by_its_name(tmp_path: Path) -> None:
    text = (FOLDER / "l9gpu.yml").read_text(encoding="utf-8")
    (tmp_path / "a.yml").write_text(text + "more: 1\n", encoding="utf-8")
    with pytest.raises(PeerError, match=r"a\.yml: more: there are about, cannot_see"):
        read(tmp_path / "a.yml")
    (tmp_path / "b.yml").write_text(text.replace("severity: critical", "severity: loud", 1), encoding="utf-8")
    with pytest.raises(PeerError, match=r"b\.yml: VLLMHighTTFT: severity 'loud': critical or warning"):
        read(tmp_path / "b.yml")


def test_the_page_is_of_its_figures() -> None:
    figures = json.loads(FIGURES.read_bytes())
    assert PAGE.read_text(encoding="utf-8") == page(figures, peers())
    assert {peer.name for peer in peers()} | {"thrashold"} == set(figures["packs"])
