from __future__ import annotations

import pytest

from drill.scenarios.benign_day import heaviest, held
from drill.workload import servegen

DAY_SECONDS, WINDOW_SECONDS = 86_400, 600
CLIENTS = servegen.clients(servegen.DEEPSEEK_R1)


def test_no_ten_minutes_of_the_day_hold_more_than_the_heaviest_that_rates_are_scaled_by() -> None:
    """Drawn requests, not the distributions that the scenario reckons with."""
    start, rate = heaviest(CLIENTS, held)
    holds = [0.0] * (DAY_SECONDS // WINDOW_SECONDS)
    count = 0
    for each in servegen.servegen(CLIENTS, seed=5).between(0.0, float(DAY_SECONDS)):
        place = int(each.seconds // WINDOW_SECONDS)
        holds[place] += (each.prompt_tokens + each.output_tokens / 2) * each.output_tokens
        count += place == start // WINDOW_SECONDS
    assert count == pytest.approx(rate * WINDOW_SECONDS, rel=0.1)
    heavy = holds[int(start // WINDOW_SECONDS)]
    assert max(holds) <= 1.1 * heavy
    # at the hour of most requests less than half of that is held: it is no measure of the day
    busiest, _ = heaviest(CLIENTS, lambda _client, _at: 1.0)
    assert holds[int(busiest // WINDOW_SECONDS)] < heavy / 2
