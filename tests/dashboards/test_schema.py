"""Boards against Grafana's own types; `make boards-check` makes the schemas that this needs."""

from __future__ import annotations

import copy
import os

import pytest

from alerts.pack_settings import PackSettings
from dashboards.catalogue import boards
from tests.dashboards import browser_tools, schema


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    if browser_tools.installed() and (browser_tools.HOME / "schema" / "timeseries.json").is_file():
        return
    told = "no schemas of Grafana's types here: make boards-check makes them, with npm"
    if os.environ.get("THRASHOLD_BOARDS") == "1":
        pytest.fail(told, pytrace=False)
    pytest.skip(told)


def test_boards_are_what_grafana_types_say() -> None:
    for name, board in boards(PackSettings()).items():
        assert list(schema.errors(board.to_json())) == [], name


def test_what_is_no_board_of_grafana_is_found() -> None:
    board = boards(PackSettings())["incident"].to_json()
    panel = copy.deepcopy(board["panels"][1])
    panel["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "sketch"
    panel["fieldConfig"]["defaults"]["unit"] = 7
    panel["options"]["legend"]["placement"] = "middle"
    found = "\n".join(schema.errors({**board, "panels": [panel]}))
    assert "custom drawStyle" in found
    assert "fieldConfig/defaults/unit" in found
    assert "options legend/placement" in found
