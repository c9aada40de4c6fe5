"""The gateways on the landing page."""

from __future__ import annotations

import re
from html import unescape

from exporter.cycle import CycleSettings, initial, step
from exporter.derive.orphans import ORPHANS
from exporter.gateway_sample import Breaker, GatewaySample
from exporter.landing import landing_page
from exporter.landing_gateways import gateway_table
from exporter.observation import Observation, SourceStatus
from exporter.publication import Publication
from exporter.snapshot import Snapshot, Value
from tests.support.gateways import gateway, outcomes

NOW = 1_800_000_000.0


def lived(*samples: GatewaySample) -> Snapshot:
    state, shown = initial(CycleSettings()), Snapshot(0.0, (), ready=False)
    for sample in samples:
        status = SourceStatus(sample.gateway, "gateway", answering=True, last_at=sample.at, read_seconds=0.01)
        state, shown = step(state, sample.at, [Observation(status, gateway=sample)])
    return shown


def rows(values: tuple[Value, ...]) -> list[str]:
    table, _, _ = gateway_table(values).partition("</tbody>")
    return [
        unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", "<" + row))).strip()
        for row in table.split("<tr")[2:]
    ]


def test_a_retry_storm_in_one_row() -> None:
    told = [
        gateway(
            NOW + 10 * place,
            inflight=7.0,
            pending=2.0,
            outcomes_total=outcomes(ok=4.0 * place, rejected=8.0 * place),
            breakers=(
                Breaker("default", "requests", is_open=True),
                Breaker("high", "requests", is_open=False),
            ),
        )
        for place in range(8)
    ]
    values = (*lived(*told).values, Value(ORPHANS, ("g",), 5.0, is_peak=False))
    assert rows(values) == ["g envoy breaker at its limit: default requests 28 ok, 56 rejected 7 2 3 5"]


def test_what_is_not_known_is_absent_and_nothing_else_is_made_up() -> None:
    assert rows(lived(gateway(NOW)).values) == ["g envoy — — — — —"]
    assert rows(lived(gateway(NOW, outcomes_total=outcomes(), inflight=0.0)).values) == [
        "g envoy 0 ok 0 — — —"
    ]


def test_without_a_gateway_there_is_no_table_and_with_one_it_is_on_the_page_escaped() -> None:
    assert gateway_table(()) == ""
    shown = lived(gateway(NOW, name="<script>1", inflight=1.0))
    html = landing_page(Publication(shown, ())).decode()
    assert gateway_table(shown.values) in html
    assert "<script>1" not in html
