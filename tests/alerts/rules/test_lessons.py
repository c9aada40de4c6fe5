"""What went wrong with other people's rules, tried on ours in promtool. Each test is a lesson."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from alerts.recording_slo import EVENTS, MISSED, MISSED_RATIOS
from tests.alerts.rules.lessons import RANK, Firing, Value, events, tried, usage
from tests.alerts.rules.promtool import OK


def test_lesson_03_a_rank_that_is_full_is_told_of_beside_one_that_is_empty(tmp_path: Path) -> None:
    """One series a data-parallel rank: neither averaged nor taken for the engine."""
    series = {
        f'thrashold_swapped_sequences{{cluster="c",engine="e",rank="{rank}",model_name="m"}}': f"{value}x20"
        for rank, value in (("0", 0), ("1", 7))
    }
    told = {"3m": {"KvSequencesSwapped": [{"cluster": "c", "engine": "e", "rank": "1", "model_name": "m"}]}}
    assert tried(tmp_path, ["KvSequencesSwapped"], series, told) == OK


def test_lesson_05_a_fact_that_two_sidecars_tell_counts_once(tmp_path: Path) -> None:
    series = {}
    for instance in ("one", "other"):
        labels = f'cluster="c",engine="e",{RANK},instance="{instance}"'
        series[f'thrashold_sequences{{{labels},state="running"}}'] = "8x20"
        series[f"thrashold_generation_tokens_per_second{{{labels}}}"] = "100x20"
        series[events("c", "e", good="true", instance=instance)] = "0+15x40"
        series[events("c", "e", good="false", instance=instance)] = "0+3x40"
    held, tokens = (
        "cluster_model:thrashold_sequences:sum",
        "cluster_model:thrashold_generation_tokens_per_second:sum",
    )
    slo = '{cluster="c",slo="ttft"}'
    values = [
        Value(held, "4m", [(f'{held}{{cluster="c",model_name="m",state="running"}}', 8)]),
        Value(tokens, "4m", [(f'{tokens}{{cluster="c",model_name="m"}}', 100)]),
        Value(f"round({MISSED.name}, 0.001)", "6m", [(slo, 0.2)]),
        Value(f"round({EVENTS.name}, 0.001)", "6m", [(slo, 1.2)]),
    ]
    assert tried(tmp_path, ["KvSequencesSwapped"], series, {}, values=values) == OK


@pytest.mark.parametrize("step", ["15s", "30s", "60s"])
def test_lesson_09_rules_work_at_any_usual_interval(step: str, tmp_path: Path) -> None:
    """Of scraping and of evaluation; the lookback of a minute is what is tight."""
    each = int(step.removesuffix("s"))
    steps = 900 // each
    series = {
        usage("c", "e"): f"0.97x{steps}",
        f'thrashold_sequences{{cluster="c",engine="e",{RANK},state="waiting"}}': f"12x{steps}",
        f'thrashold_preemptions_per_second{{cluster="c",engine="e",{RANK}}}': f"0.8x{steps}",
        'thrashold_gateway_requests_total{cluster="c",gateway="g",outcome="ok"}': f"0+{5 * each}x{steps}",
        'thrashold_gateway_requests_total{cluster="c",gateway="g",outcome="rejected"}': f"0+{5 * each}x{steps}",
        events("c", "e", good="true"): f"0+{each}x{steps}",
        events("c", "e", good="false"): f"0+{each}x{steps}",
    }
    rank = {"cluster": "c", "engine": "e", "rank": "0", "model_name": "m"}
    told = {
        "14m": {
            "KvCachePressure": [rank],
            "GatewayRejecting": [{"cluster": "c", "gateway": "g"}],
            "SloFirstTokenBurnFast": [{"cluster": "c", "slo": "ttft"}],
        }
    }
    assert tried(tmp_path, list(told["14m"]), series, told, step=step) == OK


def test_lesson_10_a_counter_that_is_born_at_one_is_seen(tmp_path: Path) -> None:
    series = {'thrashold_gpu_xid_errors_total{cluster="c",uuid="u",xid="79"}': "_x20 1x20"}
    told = {"4m": {"GpuXid": []}, "6m": {"GpuXid": [{"cluster": "c", "uuid": "u", "xid": "79"}]}}
    assert tried(tmp_path, ["GpuXid"], series, told) == OK


def test_lesson_11_one_cluster_that_is_gone_is_told_of_while_another_is_there(tmp_path: Path) -> None:
    series = {
        'thrashold_build_info{cluster="a",instance="one:9807",version="1"}': "1x80",
        'thrashold_build_info{cluster="b",instance="one:9807",version="1"}': "1x20 stale",
    }
    told = {"4m": {"SidecarDown": []}, "12m": {"SidecarDown": [{"cluster": "b", "instance": "one:9807"}]}}
    assert tried(tmp_path, ["SidecarDown"], series, told) == OK


def test_lesson_12_what_never_was_is_not_missed(tmp_path: Path) -> None:
    series = {'thrashold_engine_info{cluster="c",engine="e",engine_kind="tgi",generation=""}': "1x80"}
    quiet: Firing = {"SignalAbsent": [], "EngineDown": [], "SidecarDown": [], "PrefixHitsCollapsed": []}
    assert tried(tmp_path, list(quiet), series, {"5m": quiet, "15m": quiet}) == OK


def test_lesson_13_one_of_several_that_is_gone_is_told_of_by_name(tmp_path: Path) -> None:
    series = {
        f'thrashold_source_up{{cluster="c",instance="{instance}",source="nvml"}}': values
        for instance, values in (("one", "1x10 0x40"), ("other", "1x60"))
    }
    told = {"6m": {"SidecarBlind": [{"cluster": "c", "instance": "one", "source": "nvml"}]}}
    assert tried(tmp_path, ["SidecarBlind"], series, told) == OK


def test_lesson_15_without_traffic_nothing_fires_and_nothing_is_recorded_that_is_no_number(
    tmp_path: Path,
) -> None:
    series = {
        events("c", "e", good="true"): "5x60",
        events("c", "e", good="false"): "5x60",
        'thrashold_gateway_requests_total{cluster="c",gateway="g",outcome="ok"}': "5x60",
        'thrashold_gateway_requests_total{cluster="c",gateway="g",outcome="rejected"}': "5x60",
        f'thrashold_generation_tokens_per_second{{cluster="c",engine="e",{RANK}}}': "0x60",
        f'thrashold_sequences{{cluster="c",engine="e",{RANK},state="running"}}': "0x60",
    }
    quiet: Firing = {
        name: []
        for name in ("SloFirstTokenBurnFast", "GatewayRejecting", "GatewayTooTight", "FleetProgressFalling")
    }
    values = [Value(recording.name, "12m") for recording in MISSED_RATIOS.values()]
    assert tried(tmp_path, list(quiet), series, {"12m": quiet}, values=values) == OK


def test_lesson_16_what_is_of_the_same_name_in_another_cluster_is_not_meant(tmp_path: Path) -> None:
    """Set operators raise no error where a join lacks a label: they match what they shouldn't."""
    ill = {"thrashold_sequences": "12", "thrashold_preemptions_per_second": "0.8"}
    series = {usage("a", "e"): "0.97x40", usage("b", "e"): "0.5x40"}
    for name, value in ill.items():
        where = ',state="waiting"' if name == "thrashold_sequences" else ""
        series[f'{name}{{cluster="a",engine="e",{RANK}{where}}}'] = "0x40"
        series[f'{name}{{cluster="b",engine="e",{RANK}{where}}}'] = f"{value}x40"
    series['thrashold_gateway_requests_total{cluster="a",gateway="g",outcome="ok"}'] = "0+75x40"
    series['thrashold_gateway_requests_total{cluster="a",gateway="g",outcome="rejected"}'] = "0+75x40"
    quiet: Firing = {"KvCachePressure": [], "GatewayTooTight": []}
    assert tried(tmp_path, list(quiet), series, {"8m": quiet}) == OK


def test_lesson_17_an_engine_that_is_read_twice_breaks_no_join(tmp_path: Path) -> None:
    series = {}
    for instance in ("one", "other"):
        at = f'cluster="c",engine="e",instance="{instance}"'
        series[f'thrashold_engine_gpu_info{{{at},uuid="u"}}'] = "1x40"
        series[
            f'thrashold_pcie_saturation_ratio{{cluster="c",instance="{instance}",uuid="u",direction="in"}}'
        ] = "0.97x40"
        series[f'thrashold_pcie_swap_share_ratio{{{at},direction="in"}}'] = "0.9x40"
    told: Mapping[str, Firing] = {
        "5m": {"PcieSaturatedBySwap": [{"cluster": "c", "engine": "e"}], "PcieSaturatedByOthers": []}
    }
    assert tried(tmp_path, list(told["5m"]), series, told) == OK


def test_lesson_18_a_failed_scrape_does_not_begin_anew(tmp_path: Path) -> None:
    """A failed scrape leaves a mark that ends a series at once; four in a row are held through."""
    row = "1 1 stale 1 1 stale stale stale 1 1 1 stale 1 1 1 1 stale stale 1 1 1 1 1 1 1 1"
    series = {f'thrashold_kv_leak{{cluster="c",engine="e",{RANK}}}': row}
    leaking = {"KvLeaking": [{"cluster": "c", "engine": "e", "rank": "0", "model_name": "m"}]}
    assert (
        tried(
            tmp_path,
            ["KvLeaking"],
            series,
            {"1m15s": leaking, "1m45s": leaking, "4m30s": leaking, "6m": leaking},
        )
        == OK
    )


def test_lesson_19_what_flaps_fires_once(tmp_path: Path) -> None:
    row = " ".join(["1 1 0 0"] * 15)
    series = {f'thrashold_thrashing{{cluster="c",engine="e",{RANK}}}': f"1 1 1 {row}"}
    thrashes = {"KvThrashing": [{"cluster": "c", "engine": "e", "rank": "0", "model_name": "m"}]}
    assert tried(tmp_path, ["KvThrashing"], series, {f"{minute}m": thrashes for minute in range(1, 15)}) == OK


def test_lesson_20_a_number_that_stands_for_ever_is_no_news(tmp_path: Path) -> None:
    series = {'thrashold_gpu_xid_errors_total{cluster="c",uuid="u",xid="79"}': "_x20 3x200"}
    gone: Firing = {"GpuXid": []}
    assert tried(tmp_path, ["GpuXid"], series, {"21m": gone, "50m": gone}) == OK


def test_lesson_22_a_label_that_one_side_lacks_neither_fires_nor_hides(tmp_path: Path) -> None:
    """Where no cluster label is scraped, all are of the same, nameless cluster."""
    series = {
        f'thrashold_kv_usage_ratio{{engine="e",{RANK}}}': "0.97x40",
        f'thrashold_sequences{{engine="e",{RANK},state="waiting"}}': "12x40",
        f'thrashold_preemptions_per_second{{engine="e",{RANK},zone="z"}}': "0.8x40",
    }
    told = {"5m": {"KvCachePressure": [{"engine": "e", "rank": "0", "model_name": "m"}]}}
    assert tried(tmp_path, ["KvCachePressure"], series, told) == OK


def test_lesson_23_the_first_failure_ever_fires(tmp_path: Path) -> None:
    """Nothing was seen before: no history, no earlier success."""
    series = {
        f'thrashold_swapped_sequences{{cluster="c",engine="e",{RANK}}}': "1x10",
        'thrashold_gpu_xid_errors_total{cluster="c",uuid="u",xid="79"}': "_x4 1x10",
        f'thrashold_engine_frozen{{cluster="c",engine="e",{RANK}}}': "1x10",
    }
    rank = {"cluster": "c", "engine": "e", "rank": "0", "model_name": "m"}
    told = {
        "1m15s": {
            "KvSequencesSwapped": [rank],
            "GpuXid": [{"cluster": "c", "uuid": "u", "xid": "79"}],
            "EngineFrozen": [rank],
        }
    }
    assert tried(tmp_path, list(told["1m15s"]), series, told) == OK


@pytest.mark.parametrize(("gap", "at"), [("stale", "stale"), ("silence", "_")])
def test_lesson_26_a_gap_neither_ends_an_alert_nor_begins_one(gap: str, at: str, tmp_path: Path) -> None:
    """No data isn't all well, and no trouble either. A gap of two minutes, of which one is held through."""
    row = "1x20 " + " ".join([at] * 8) + " 1x20"
    series = {
        f'thrashold_thrashing{{cluster="c",engine="e",{RANK}}}': row,
        usage("c", "e"): row.replace("1x20", "0.5x20"),
        'thrashold_engine_info{cluster="c",engine="e",engine_kind="vllm",generation="v1"}': "1x60",
    }
    thrashes = {
        "KvThrashing": [{"cluster": "c", "engine": "e", "rank": "0", "model_name": "m"}],
        "SignalAbsent": [],
    }
    instants = ("4m", "6m", "6m45s", "7m15s", "8m")
    assert tried(tmp_path, list(thrashes), series, dict.fromkeys(instants, thrashes)) == OK, gap


def test_burn_rates_survive_restarts_of_a_sidecar_and_gaps_of_prometheus(tmp_path: Path) -> None:
    """A steady tenth misses: whatever resets and whatever isn't seen, it stays a tenth."""
    good = "0+54x30 0+54x30 _x20 2700+54x30"
    bad = "0+6x30 0+6x30 _x20 300+6x30"
    series = {events("c", "e", good="true"): good, events("c", "e", good="false"): bad}
    tenth = [('{cluster="c",slo="ttft"}', 0.1)]
    values = [
        Value(f"round({MISSED_RATIOS[window].name}, 0.001)", at, tenth)
        for window, at in (
            ("1h", "25m"),
            ("5m", "34m"),
            ("1h", "60m"),
            ("5m", "90m"),
            ("1h", "110m"),
            ("3d", "110m"),
        )
    ]
    assert tried(tmp_path, ["SloFirstTokenBurnFast"], series, {}, step="60s", values=values) == OK
