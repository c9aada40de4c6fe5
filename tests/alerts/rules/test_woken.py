"""Whom the pack would have woken for nothing, and whom it would have let sleep: each a fleet that is like that."""

from __future__ import annotations

from pathlib import Path

import pytest

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.pack.explaining import FLEET_WIDE
from tests.alerts.rules.lessons import RANK, Firing, events, tried, usage
from tests.alerts.rules.promtool import OK

REQUESTS = "thrashold_gateway_requests_total"


def source(value: str, instance: str) -> dict[str, str]:
    return {f'thrashold_source_up{{cluster="c",instance="{instance}",source="e"}}': value}


def engine(name: str = "e", value: str = "1x80") -> dict[str, str]:
    return {f'thrashold_engine_info{{cluster="c",engine="{name}",engine_kind="vllm",generation="v1"}}': value}


def sidecar(instance: str, value: str) -> dict[str, str]:
    return {f'thrashold_build_info{{cluster="c",instance="{instance}",version="1"}}': value}


def target(instance: str, value: str) -> dict[str, str]:
    return {f'up{{cluster="c",instance="{instance}",job="thrashold"}}': value}


def requests(outcome: str, row: str, instance: str = "i") -> dict[str, str]:
    return {f'{REQUESTS}{{cluster="c",gateway="g",instance="{instance}",outcome="{outcome}"}}': row}


def test_an_engine_that_one_of_its_sidecars_cannot_read_is_not_down(tmp_path: Path) -> None:
    """The other reads it: what is wrong is the way of the one, which is blind."""
    series = engine() | source("1x10 0x60", "one") | source("1x80", "other")
    blind = {"cluster": "c", "instance": "one", "source": "e"}
    told: Firing = {"EngineDown": [], "SidecarBlind": [blind]}
    assert tried(tmp_path, list(told), series, {"10m": told}) == OK


def test_an_engine_that_no_sidecar_can_read_is_down_and_nobody_is_blind(tmp_path: Path) -> None:
    series = engine(value="1x10") | source("1x10 0x60", "one") | source("1x10 0x60", "other")
    told: Firing = {"EngineDown": [{"cluster": "c", "engine": "e"}], "SidecarBlind": []}
    assert tried(tmp_path, list(told), series, {"10m": told}) == OK


@pytest.mark.parametrize(
    ("engines", "down", "pages"), [(1, 1, 1), (2, 1, 1), (10, 1, 1), (11, 1, 0), (11, 2, 1)]
)
def test_engines_that_are_down_wake_somebody_where_they_are_much_of_their_fleet(
    engines: int, down: int, pages: int, tmp_path: Path
) -> None:
    """One of many is for somebody at work, and is told all the same; what is gone for long still counts."""
    series: dict[str, str] = {}
    for number in range(engines):
        name, gone = f"e{number}", number < down
        series |= engine(name, "1x10 stale" if gone else "1x180")
        series[f'thrashold_source_up{{cluster="c",instance="{name}",source="{name}"}}'] = (
            "1x10 0x170" if gone else "1x180"
        )
    told: Firing = {
        "EngineDown": [{"cluster": "c", "engine": f"e{number}"} for number in range(down)],
        "CapacityGone": [{"cluster": "c"}] * pages,
    }
    assert tried(tmp_path, list(told), series, {"6m": told, "45m": told}) == OK


def _thrashes(name: str, row: str) -> dict[str, str]:
    return {f'thrashold_thrashing{{cluster="c",engine="{name}",{RANK}}}': row}


def _goes_down(name: str, at: int, steps: int) -> dict[str, str]:
    """An engine that answers for ``at`` steps of 15 s, then for ``steps`` doesn't, and then does again."""
    there = f"1x{at} _x{steps} 1x100"
    return engine(name, there) | {
        f'thrashold_source_up{{cluster="c",instance="{name}",source="{name}"}}': f"1x{at} 0x{steps - 1} 1x100"
    }


def test_engines_that_are_started_anew_amid_trouble_wake_nobody_unless_they_stay_away(tmp_path: Path) -> None:
    """Two of four, ten minutes after all began to thrash: whoever was woken for that does it, within some minutes."""
    series: dict[str, str] = {}
    for number in range(4):
        series |= _thrashes(f"e{number}", "0x20 1x100")
        series |= _goes_down(f"e{number}", 60, 100) if number < 2 else _goes_down(f"e{number}", 160, 1)
    mended: Firing = {"CapacityGone": []}
    gone: Firing = {"CapacityGone": [{"cluster": "c"}]}
    assert tried(tmp_path, list(gone), series, {"18m": mended, "25m": mended, "35m": gone}) == OK


def test_an_engine_that_goes_before_the_others_thrash_is_capacity_that_is_gone_for_as_long_as_it_is(
    tmp_path: Path,
) -> None:
    """It is why they do, and somebody who is awake because they do has to know."""
    series = _goes_down("e0", 40, 160)
    for number in range(1, 4):
        series |= _goes_down(f"e{number}", 200, 1) | _thrashes(f"e{number}", "0x42 1x160")
    gone: Firing = {"CapacityGone": [{"cluster": "c"}]}
    assert tried(tmp_path, list(gone), series, {"13m": gone, "20m": gone, "45m": gone}) == OK


def test_lost_gpus_that_are_fewer_than_the_engines_that_are_down_are_not_why(tmp_path: Path) -> None:
    series: dict[str, str] = {'thrashold_gpu_up{cluster="c",uuid="GPU-1"}': "1x20 0x60"}
    for number in range(4):
        series |= _goes_down(f"e{number}", 20, 60) if number < 2 else engine(f"e{number}")
    told: Firing = {"CapacityGone": [{"cluster": "c"}], "CapacityGoneWithGpus": []}
    assert tried(tmp_path, list(told), series, {"10m": told}) == OK


def test_a_pod_that_was_scaled_away_is_no_sidecar_that_is_down(tmp_path: Path) -> None:
    """Its target is gone with it; one that crashed is still a target."""
    series = sidecar("kept", "1x80") | target("kept", "1x80")
    series |= sidecar("away", "1x20 stale") | target("away", "1x20 stale")
    series |= sidecar("dead", "1x20 stale") | target("dead", "1x20 0x60")
    told: Firing = {"SidecarDown": [{"cluster": "c", "instance": "dead"}], "FleetUnseen": []}
    assert tried(tmp_path, list(told), series, {"12m": told}) == OK


def test_a_single_worker_whose_machine_dies_wakes_somebody(tmp_path: Path) -> None:
    """Engine and sidecar are gone at once: nobody is left to say that the engine is down."""
    series = engine(value="1x20 stale") | source("1x20 stale", "one")
    series |= sidecar("one", "1x20 stale") | target("one", "1x20 0x60")
    told: Firing = {"EngineDown": [], "FleetUnseen": [{"cluster": "c"}]}
    assert tried(tmp_path, list(told), series, {"12m": told}) == OK


def test_a_cluster_that_was_scaled_to_nothing_wakes_nobody(tmp_path: Path) -> None:
    series = sidecar("one", "1x20 stale") | target("one", "1x20 stale")
    told: Firing = {"FleetUnseen": []}
    assert tried(tmp_path, list(told), series, {"6m": told, "12m": told, "18m": told}) == OK


@pytest.mark.parametrize("minutes", [14, 16, 18, 20])
def test_few_refusals_at_night_are_no_gateway_that_is_too_tight(minutes: int, tmp_path: Path) -> None:
    """Demand fell to a tenth, and a key that is over its quota is refused."""
    series = requests("ok", "0+75x40 3000+6x60") | requests("rejected", "0+0x40 0+3x60")
    series |= {usage("c", "e"): "0.2x100"}
    told: Firing = {"GatewayTooTight": []}
    assert tried(tmp_path, list(told), series, {f"{minutes}m": told}) == OK


def test_one_full_rank_of_a_large_fleet_hides_no_gateway_that_is_too_tight(tmp_path: Path) -> None:
    series = requests("ok", "0+75x40 3000+15x60") | requests("rejected", "0+0x40 0+60x60")
    series |= {usage("c", f"e{place}"): "0.2x100" for place in range(20)} | {usage("c", "full"): "0.99x100"}
    told: Firing = {"GatewayTooTight": [{"cluster": "c", "gateway": "g"}]}
    assert tried(tmp_path, list(told), series, {"14m": told}) == OK


def test_a_few_sequences_that_come_and_go_are_no_progress_that_falls(tmp_path: Path) -> None:
    """Answers that are short beside a scrape: none runs whenever it is looked, and tokens come all the same."""
    labels = f'cluster="c",engine="e",{RANK}'
    series = {f"thrashold_generation_tokens_per_second{{{labels}}}": "40x48 8x60"}
    series |= {
        f'thrashold_sequences{{{labels},state="{state}"}}': "0x110" for state in ("running", "waiting")
    }
    told: Firing = {"FleetProgressFalling": []}
    assert tried(tmp_path, list(told), series, dict.fromkeys(("15m", "16m", "18m", "20m"), told)) == OK


def test_a_few_late_answers_after_an_idle_hour_wake_nobody(tmp_path: Path) -> None:
    """Two dozen answers within six minutes, of which six are late: a quarter of the hour's."""
    busy = {"true": "3 6 9 12 15 18", "false": "1 2 3 4 5 6"}
    series = {events("c", "e", good=good): f"0x60 {row} {row[-2:]}x20" for good, row in busy.items()}
    told: Firing = {"SloFirstTokenBurnFast": []}
    instants = {f"{minute}m": told for minute in range(60, 75)}
    assert tried(tmp_path, list(told), series, instants, step="60s") == OK


def test_a_few_who_press_stop_are_no_retry_storm(tmp_path: Path) -> None:
    """At night: three requests in two minutes, two of which were not waited for."""
    series = (
        requests("ok", "0+0.125x80") | requests("client_left", "0+0.25x80") | requests("rejected", "0x80")
    )
    series |= {'thrashold_retry_amplification_ratio{cluster="c",gateway="g"}': "3x80"}
    told: Firing = {"RetryStorm": []}
    assert tried(tmp_path, list(told), series, {"8m": told, "15m": told}) == OK


def test_a_storm_is_seen_at_a_gateway_that_has_never_refused_anybody(tmp_path: Path) -> None:
    series = requests("ok", "0+15x80") | requests("timeout", "0+45x80")
    series |= {'thrashold_retry_amplification_ratio{cluster="c",gateway="g"}': "4x80"}
    told: Firing = {"RetryStorm": [{"cluster": "c", "gateway": "g"}]}
    assert tried(tmp_path, list(told), series, {"8m": told}) == OK


def test_a_gateway_that_every_sidecar_reads_is_counted_once(tmp_path: Path) -> None:
    """Forty sidecars tell of the few who press stop: still a few."""
    series = {}
    for place in range(40):
        for outcome, row in (("ok", "0+0.125x80"), ("client_left", "0+0.25x80"), ("rejected", "0x80")):
            series |= requests(outcome, row, f"i{place}")
    series |= {'thrashold_retry_amplification_ratio{cluster="c",gateway="g"}': "3x80"}
    told: Firing = {"RetryStorm": []}
    assert tried(tmp_path, list(told), series, {"8m": told, "15m": told}) == OK


@pytest.mark.parametrize("ill", [1, 2])
@pytest.mark.parametrize(
    "name", ["thrashold_thrashing", "thrashold_swapped_sequences", "thrashold_engine_frozen"]
)
def test_one_ill_engine_of_forty_explains_nothing_of_its_cluster_and_two_do(
    name: str,
    ill: int,
    tmp_path: Path,
) -> None:
    series = {}
    for place in range(40):
        series |= engine(f"e{place}")
        value = int(place < ill)
        series[f'{name}{{cluster="c",engine="e{place}",{RANK}}}'] = f"0x20 {value}x60"
    told: Firing = {"ManyEnginesStuck": [{"cluster": "c"}] if ill > 1 else []}
    assert tried(tmp_path, list(told), series, {"10m": told}) == OK


@pytest.mark.parametrize("name", [each.name for each in ALERTS.values() if each.severity is Severity.PAGE])
def test_a_page_is_silent_only_where_somebody_has_been_woken(name: str) -> None:
    """By a page about the same subject, or by so many of them that their cluster suffers; never by a warning."""
    alert = ALERTS[name]
    assert all(ALERTS[each].severity is Severity.PAGE for each in alert.quiet_under)
    for each in alert.consequence_of:
        fleet_wide = ALERTS[each].severity is Severity.PAGE and not set(ALERTS[each].labels) & {
            "engine",
            "uuid",
        }
        assert each in FLEET_WIDE or fleet_wide
