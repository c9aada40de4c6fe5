"""What a pager shows of small, usual and extreme values, as a real Prometheus writes it."""

from __future__ import annotations

import pytest

from alerts.catalogue import ALERTS
from tests.alerts.rules.promtool import OK, verdicts

CASES: dict[str, tuple[tuple[float, str], ...]] = {
    "KvDemandBeyondPool": (
        (1.003, "a is asked for 100% of its KV pool"),
        (1.0312, "a is asked for 103% of its KV pool"),
        (1.13, "a is asked for 1.1 times its KV pool"),
        (2.437, "a is asked for 2.4 times its KV pool"),
        (134.6, "a is asked for 130 times its KV pool"),
        (0.85, "a is asked for 85% of its KV pool"),
    ),
    "KvExhaustionNear": (
        (0.0, "a has filled its KV pool"),
        (1.04, "a fills its KV pool within 1s"),
        (44.71, "a fills its KV pool within 45s"),
        (118.2, "a fills its KV pool within 2m 0s"),
    ),
    "KvCachePressure": (
        (0.9004, "a: KV pool 90% full, requests wait, sequences are preempted"),
        (0.9743, "a: KV pool 97% full, requests wait, sequences are preempted"),
        (1.0, "a: KV pool 100% full, requests wait, sequences are preempted"),
    ),
    "KvPingPong": (
        (0.5012, "a: 50% of preemptions hit a sequence again"),
        (0.8387, "a: 84% of preemptions hit a sequence again"),
        (0.9993, "a: 100% of preemptions hit a sequence again"),
    ),
    "TailWaste": (
        (0.1534, "a: 15% of used KV memory is empty tails of blocks"),
        (0.4071, "a: 41% of used KV memory is empty tails of blocks"),
        (0.9981, "a: 100% of used KV memory is empty tails of blocks"),
    ),
    "KvSequencesSwapped": (
        (1.0, "a: a sequence is swapped out"),
        (7.0, "a: 7 sequences are swapped out"),
        (1234.0, "a: 1234 sequences are swapped out"),
    ),
    "ManyEnginesStuck": (
        (0.0512, "5.1% of the fleet's engines thrash or stand still"),
        (0.3333, "33% of the fleet's engines thrash or stand still"),
        (1.0, "100% of the fleet's engines thrash or stand still"),
    ),
    "ManyEnginesGone": (
        (0.0512, "5.1% of the fleet's engines are down or start over and over"),
        (0.3333, "33% of the fleet's engines are down or start over and over"),
        (1.0, "100% of the fleet's engines are down or start over and over"),
    ),
    "CapacityGone": (
        (0.1, "10% of the fleet's engines are down"),
        (0.3333, "33% of the fleet's engines are down"),
        (1.0, "100% of the fleet's engines are down"),
    ),
    "CapacityGoneWithGpus": (
        (0.1, "10% of the fleet's engines are down, and GPUs are lost"),
        (0.3333, "33% of the fleet's engines are down, and GPUs are lost"),
        (1.0, "100% of the fleet's engines are down, and GPUs are lost"),
    ),
    "UsersStillWait": (
        (0.0612, "Engines are no longer stuck, and 6.1% of the fleet's users wait too long"),
        (0.4249, "Engines are no longer stuck, and 42% of the fleet's users wait too long"),
        (1.0, "Engines are no longer stuck, and 100% of the fleet's users wait too long"),
    ),
    "FleetUnseen": (
        (1.0, "No sidecar of the fleet is left, of 1 before"),
        (12.0, "No sidecar of the fleet is left, of 12 before"),
        (1000.0, "No sidecar of the fleet is left, of 1000 before"),
    ),
    "SwapPoolFilling": (
        (0.8013, "a: swap pool 80% full, and the engine dies when it is"),
        (0.9328, "a: swap pool 93% full, and the engine dies when it is"),
        (1.0, "a: swap pool 100% full, and the engine dies when it is"),
    ),
    "DecodeStalled": (
        (5.013, "a: no token for 5s while sequences run"),
        (12.48, "a: no token for 12s while sequences run"),
        (147.3, "a: no token for 2m 30s while sequences run"),
        (4012.0, "a: no token for 1h 6m 40s while sequences run"),
    ),
    "TokensCrawl": (
        (2.004, "a: 2s between two tokens"),
        (3.527, "a: 3.5s between two tokens"),
        (63.91, "a: 1m 4s between two tokens"),
    ),
    "HeadOfLineBlocking": (
        (0.2003, "a: sequences wait behind a prefill 20% of the time"),
        (0.2678, "a: sequences wait behind a prefill 27% of the time"),
        (1.0, "a: sequences wait behind a prefill 100% of the time"),
    ),
    "LongPromptsOverQuota": (
        (0.0034, "a: 0.34% of prompts are longer than the quota"),
        (0.05321, "a: 5.3% of prompts are longer than the quota"),
        (0.3333, "a: 33% of prompts are longer than the quota"),
        (1.0, "a: 100% of prompts are longer than the quota"),
    ),
    "PrefixHitsCollapsed": (
        (0.0, "a: the prefix cache hits 0%, and did far more before"),
        (0.04873, "a: the prefix cache hits 4.9%, and did far more before"),
        (0.1987, "a: the prefix cache hits 20%, and did far more before"),
    ),
    "CollectivesSlow": (
        (0.3009, "a: its GPUs exchange 30% less than usual"),
        (0.8192, "a: its GPUs exchange 82% less than usual"),
        (1.0, "a: its GPUs exchange 100% less than usual"),
    ),
    "RetryStorm": (
        (2.013, "g: 2 attempts for each answer"),
        (4.236, "g: 4.2 attempts for each answer"),
        (1873.0, "g: 1.9k attempts for each answer"),
    ),
    "OrphanedKv": (
        (0.1007, "g: 10% of KV blocks belong to clients that are gone"),
        (0.4126, "g: 41% of KV blocks belong to clients that are gone"),
        (1.0, "g: 100% of KV blocks belong to clients that are gone"),
    ),
    "GatewayTooTight": (
        (0.1002, "g turns away 10% of requests while engines have room"),
        (0.8017, "g turns away 80% of requests while engines have room"),
        (1.0, "g turns away 100% of requests while engines have room"),
    ),
    "GatewayRejecting": (
        (0.1002, "g turns away 10% of requests"),
        (0.4986, "g turns away 50% of requests"),
        (1.0, "g turns away 100% of requests"),
    ),
    "GatewayRejectsSlowly": (
        (0.1034, "g takes 100ms to turn a request away"),
        (0.8127, "g takes 810ms to turn a request away"),
        (61.3, "g takes 1m 1s to turn a request away"),
    ),
    "EngineRestarting": (
        (3.03, "a was started 3 times within half an hour"),
        (4.0, "a was started 4 times within half an hour"),
        (31.2, "a was started 31 times within half an hour"),
    ),
    "RanksOutOfBalance": (
        (1.503, "a: its busiest rank has 1.5 times the mean"),
        (1.943, "a: its busiest rank has 1.9 times the mean"),
        (8.0, "a: its busiest rank has 8 times the mean"),
    ),
    "FleetProgressFalling": (
        (0.0, "The fleet makes 0% of the tokens of ten minutes ago, with as many sequences"),
        (0.1973, "The fleet makes 20% of the tokens of ten minutes ago, with as many sequences"),
        (0.4996, "The fleet makes 50% of the tokens of ten minutes ago, with as many sequences"),
    ),
}
WHOM = {"engine": "a", "gateway": "g"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool says of each case: the alert's words on a series that bears the value."""
    files: dict[str, dict[str, object]] = {}
    labels = ",".join(f'{name}="{value}"' for name, value in WHOM.items())
    for name, cases in CASES.items():
        rule = {"alert": name, "expr": "given", "annotations": {"summary": ALERTS[name].summary}}
        files[f"{name}.rules.json"] = {"groups": [{"name": name, "rules": [rule]}]}
        for value, words in cases:
            expected = [{"exp_labels": WHOM, "exp_annotations": {"summary": words}}]
            files[f"{name}-{value}.json"] = {
                "rule_files": [f"{name}.rules.json"],
                "tests": [
                    {
                        "input_series": [{"series": f"given{{{labels}}}", "values": repr(value)}],
                        "alert_rule_test": [{"eval_time": "0s", "alertname": name, "exp_alerts": expected}],
                    }
                ],
            }
    return verdicts(files, tmp_path_factory.mktemp("wording"))


@pytest.mark.parametrize(
    "case", [f"{name}-{value}.json" for name, cases in CASES.items() for value, _ in cases]
)
def test_a_number_is_said_as_a_person_says_it(case: str, told: dict[str, str]) -> None:
    assert told[case] == OK


def test_every_summary_with_a_number_is_looked_at() -> None:
    assert set(CASES) == {name for name, alert in ALERTS.items() if "$value" in alert.summary}
    assert all(len(cases) >= 3 for cases in CASES.values())


def test_times_of_a_budget_are_said_where_there_are_several() -> None:
    said = {name: alert.summary for name, alert in ALERTS.items() if "Burn" in name}
    assert "miss their objective more often than the budget allows" in said["SloTokenPaceBurnCreeping"]
    assert "miss their objective 14.4 times as often as the budget allows" in said["SloTokenPaceBurnFast"]
