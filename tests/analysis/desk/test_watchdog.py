from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from alerts.alertmanager import WATCHDOG_PATH
from analysis.desk.application import SILENT_AFTER_SECONDS, Changes, Desk, application
from analysis.desk.schedule import Schedule
from analysis.desk.store import Store
from analysis.desk.work import Given, Worker

NOW = 1_800_000_000.0
SOON, LATER = SILENT_AFTER_SECONDS - 1, SILENT_AFTER_SECONDS
NEVER, NO_MORE = "no watchdog since the desk began, ", "no watchdog for "


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({0: False, SOON: False}, ""),
        ({LATER: False}, f"{NEVER}5 min"),
        ({7200: False}, f"{NEVER}120 min"),
        ({SOON: True, SOON + SOON: False}, ""),
        ({SOON: True, SOON + LATER: False}, f"{NO_MORE}5 min"),
        ({7200: False, 7201: True}, ""),
        ({60: True, 7200: False, 7201: True, 7201 + LATER: False}, f"{NO_MORE}5 min"),
    ],
)
def test_the_list_says_when_alertmanager_is_silent_and_when_it_always_was(
    tmp_path: Path, told: dict[float, bool], said: str
) -> None:
    """``told``: by the seconds since the desk began, whether a watchdog comes then; ``said``: by the list at last."""
    now = NOW

    def clock() -> float:
        return now

    async def listed() -> str:
        nonlocal now
        with Store(tmp_path / "desk.db", ("cluster",), 900.0) as store:
            changes = Changes()
            worker = Worker(store, tmp_path, Given(None, {}, {}), Schedule(3600, 21_600, 300), clock, changes)
            pages = httpx.ASGITransport(
                application(Desk(store, worker, changes, clock, "http://desk/alerts"))
            )
            async with httpx.AsyncClient(transport=pages, base_url="http://desk") as client:
                for seconds, comes in told.items():
                    now = NOW + seconds
                    if comes:
                        assert (await client.post(WATCHDOG_PATH)).status_code == 200
                return (await client.get("/")).text

    text = asyncio.run(listed())
    assert ("may not come through" in text) == bool(said)
    assert said in text
