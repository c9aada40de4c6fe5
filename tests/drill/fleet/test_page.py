from __future__ import annotations

from drill.second import EngineState, Second
from tests.drill.test_validate import PAGE


def test_the_pages_fleet_runs_and_does_what_it_says() -> None:
    names: dict[str, object] = {}
    exec(PAGE.read_text().split("```python")[2].split("```")[0], names)  # noqa: S102 -- our own page
    last = names["second"]
    assert isinstance(last, Second)
    assert last.seconds == 120.0
    assert last.gateway_gauges.config.rate_per_second == 400
    assert [each.state for each in last.engines] == [EngineState.SERVING, EngineState.STARTING]
    assert last.clients.answered > 50
    assert last.clients.timed_out > 0
