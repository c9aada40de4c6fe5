"""The desk as a person uses it: a real Chromium, a real recording of the drill's incident, a real report."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import PROGRAM, Browser, browser
from tests.support.desk import RunningDesk
from tests.support.desk_incident import ALERT, desk_of_the_incident, report_is_there, tell

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here"),
]
PHONE = (390, 844)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    with desk_of_the_incident(tmp_path_factory.mktemp("incident")) as found:
        yield found


@pytest.fixture
def person() -> Iterator[Browser]:
    with browser(200.0) as found:
        yield found


def _click(person: Browser, what: str) -> None:
    person.value(f"document.querySelector({json.dumps(what)}).click()")


def _fits(person: Browser) -> bool:
    return bool(person.value("document.documentElement.scrollWidth <= innerWidth"))


def test_a_person_opens_an_incident_follows_its_report_reads_it_and_closes_it(
    desk: RunningDesk, person: Browser, tmp_path: Path
) -> None:
    person.visit(f"{desk.url}/", *PHONE)
    assert "No incident yet" in person.value("document.body.innerText")
    began = time.time() - 600
    tell(desk, began, "engine-0")
    person.visit(f"{desk.url}/", *PHONE)
    assert _fits(person)
    _click(person, "td a")
    person.wait("location.pathname === '/incidents/1' && document.readyState === 'complete'")
    # an alert that comes while somebody looks is there at once
    tell(desk, time.time() - 600, "engine-1")
    person.wait(f"document.getElementById('events').innerText.includes('{ALERT} engine-1 fires')")
    # the page shows the report by itself, once it is made
    person.wait("document.querySelector('iframe') !== null")
    assert "the report is there" in person.value("document.getElementById('events').innerText")
    assert _fits(person)
    assert person.problems() == []
    assert person.shot(tmp_path / "incident.png")

    person.visit(f"{desk.url}/incidents/1/report", *PHONE)
    said = person.value("document.body.innerText")
    assert "swap-thrash on engine-0 and engine-1" in said
    assert "flight.db" not in said
    assert str(tmp_path.parent) not in said
    assert _fits(person)

    person.visit(f"{desk.url}/incidents/1")
    note = "<b>the batch job</b>"
    person.value(f"document.querySelector('textarea').value = {json.dumps(note)}")
    _click(person, "form[action$=close] button")
    person.wait("document.readyState === 'complete' && document.querySelector('textarea') === null")
    lasted = math.ceil((time.time() - began) / 60)
    told = person.value("document.querySelector('main').innerText")
    assert any(f"closed, for {minutes} min: {note}" in told for minutes in range(10, lasted + 1))


def test_a_note_that_is_being_written_outlives_a_new_report(desk: RunningDesk, person: Browser) -> None:
    tell(desk, time.time() - 600, "engine-0", cluster="other")
    report_is_there(desk, 2)
    person.visit(f"{desk.url}/incidents/2")
    person.value("document.querySelector('textarea').value = 'it was '")
    with desk.client() as client:
        client.post("/api/v1/incidents/2/report").raise_for_status()
    person.wait("!document.getElementById('fresh').hidden")
    assert person.value("document.querySelector('textarea').value") == "it was "
