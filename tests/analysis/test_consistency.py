"""The errors of the incident's own document, each found by its rule, and what agrees left in peace."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import consistency as rules
from analysis.consistency import Rule, Stretch
from analysis.frame import Key, Values
from analysis.incident.subject import fleet
from exporter.derive.aborts import CLIENT_ABORTS
from exporter.derive.attribution import IMPOSSIBLE
from exporter.derive.blocks import KV_BLOCK_TOKENS, KV_BLOCKS, KV_BYTES_PER_TOKEN
from exporter.derive.fragmentation import RESERVE_RATIO, TAIL_BYTES, TAIL_TOKENS, USED_RATIO
from exporter.derive.gateway import INFLIGHT, REQUESTS
from exporter.derive.latency import SATURATED, TOKEN_INTERVAL, TPOT_P99
from exporter.derive.pcie import PCIE_BYTES
from exporter.derive.preemption import PREEMPTIONS
from exporter.derive.swap import SWAP_BYTES, SWAP_ESTIMATE, SWAP_TIER_BYTES, SWAPPED
from exporter.derive.traffic import SEQUENCES
from tests.support.histories import frame, labelled

RANK = {"engine": "a", "rank": "0", "model_name": "m"}
KV_BYTES = 327_680.0
"""A token of the incident's model, over the whole of it."""
BLOCK_BYTES = 16 * KV_BYTES
SECONDS = np.arange(600.0)
Columns = dict[Key, float | Values]


def _note(rule: Rule, columns: Columns):  # noqa: ANN202 -- a Note, or None
    whole = frame(columns)
    return rule(Stretch(fleet(whole), 60, 540))


def _kv_bytes() -> Columns:
    return {
        labelled(KV_BYTES_PER_TOKEN, scope="model", **RANK): KV_BYTES,
        labelled(KV_BYTES_PER_TOKEN, scope="gpu", **RANK): KV_BYTES / 8,
    }


def _links(bytes_per_second: float, gpus: int = 8) -> Columns:
    return {
        labelled(PCIE_BYTES, uuid=f"GPU-{n}", direction="in"): SECONDS * bytes_per_second / gpus
        for n in range(gpus)
    }


def _swapped(blocks_per_second: float) -> Columns:
    return {labelled(SWAP_BYTES, direction="in", **RANK): SECONDS * blocks_per_second * BLOCK_BYTES}


def test_1420_blocks_a_second_are_an_eighth_of_61_8_gigabytes() -> None:
    found = _note(rules.swap_against_pcie, {**_kv_bytes(), **_swapped(1420), **_links(61.8e9)})
    assert found is not None
    assert "swap explains 13 % of it" in found.words  # 12 % before packet headers
    assert not found.contradicts


def test_more_than_the_links_carried_cant_have_been_swapped() -> None:
    found = _note(rules.swap_against_pcie, {**_kv_bytes(), **_swapped(1420), **_links(2e9)})
    assert found is not None
    assert found.contradicts


def test_of_eight_gpus_one_that_is_watched_carries_an_eighth() -> None:
    per_gpu = 1420 * BLOCK_BYTES * 1.09 / 8
    assert (
        _note(rules.swap_against_pcie, {**_kv_bytes(), **_swapped(1420), **_links(per_gpu, gpus=1)}) is None
    )


def _tails(factor: float) -> Columns:
    return {
        **_kv_bytes(),
        labelled(TAIL_TOKENS, bound="expected", **RANK): 1200 * 8,
        labelled(TAIL_BYTES, bound="expected", **RANK): 1200 * 8 * KV_BYTES * factor,
    }


def test_1_57_gigabytes_of_tails_are_half_of_what_16_bit_keys_and_values_take() -> None:
    assert pytest.approx(1.57e9, rel=0.01) == 1200 * 8 * KV_BYTES / 2
    found = _note(rules.tail_dtype, _tails(0.5))
    assert found is not None
    assert "keys without values" in found.words
    assert found.contradicts
    assert _note(rules.tail_dtype, _tails(1.0)) is None


def test_65_percent_of_the_reserve_is_no_cause_where_it_is_nothing_of_the_pool() -> None:
    columns: Columns = {labelled(RESERVE_RATIO, **RANK): 0.66, labelled(USED_RATIO, **RANK): 0.004}
    found = _note(rules.tail_share, columns)
    assert found is not None
    assert "They are no cause" in found.words
    assert _note(rules.tail_share, {**columns, labelled(USED_RATIO, **RANK): 0.5}) is None


def test_a_quantile_above_the_top_bucket_is_told_with_its_bound_and_for_how_long() -> None:
    above = (SECONDS >= 100) & (SECONDS < 150)
    columns: Columns = {
        labelled(TPOT_P99, **RANK): np.where(above, 2.5, 0.2),
        labelled(SATURATED, of="tpot_p99", **RANK): above.astype(float),
    }
    found = _note(rules.above_top_bucket, columns)
    assert found is not None
    assert "tpot_p99 lay above its top bucket (2.5 s) for 50 s" in found.words
    assert _note(rules.above_top_bucket, {**columns, labelled(SATURATED, of="tpot_p99", **RANK): 0.0}) is None


def test_a_mean_gap_above_the_99th_percentile_says_what_a_histogram_leaves_out() -> None:
    columns: Columns = {labelled(TOKEN_INTERVAL, **RANK): 40.0, labelled(TPOT_P99, **RANK): 0.2}
    found = _note(rules.gaps_that_ended, columns)
    assert found is not None
    assert "40 s" in found.words
    assert _note(rules.gaps_that_ended, {**columns, labelled(TPOT_P99, **RANK): 30.0}) is None


def _pool(sessions: float) -> Columns:
    """One node of eight GPUs with sequences of 48,000 tokens: 27 of them fill it."""
    return {
        labelled(INFLIGHT, gateway="g"): sessions,
        labelled(KV_BLOCK_TOKENS, **RANK): 16.0,
        labelled(KV_BLOCKS, state="total", **RANK): 81_250.0,
        labelled(KV_BLOCKS, state="used", **RANK): 60_000.0,
        labelled(SEQUENCES, state="running", **RANK): 20.0,
    }


def test_1200_sessions_of_48000_tokens_are_a_fleets_and_not_a_nodes() -> None:
    found = _note(rules.sessions_against_capacity, _pool(1200))
    assert found is not None
    assert "27 of them run at once" in found.words
    assert _note(rules.sessions_against_capacity, _pool(25)) is None


def test_more_sequences_than_clients_wait_for_are_somebodys_who_left() -> None:
    columns: Columns = {
        labelled(INFLIGHT, gateway="g"): 100.0,
        labelled(SEQUENCES, state="running", **RANK): 900.0,
    }
    found = _note(rules.held_against_in_flight, columns)
    assert found is not None
    assert "900 sequences while gateways waited for 100" in found.words


def test_clients_that_left_unnoticed_are_counted() -> None:
    columns: Columns = {
        labelled(REQUESTS, gateway="g", outcome="client_left"): SECONDS,
        labelled(CLIENT_ABORTS, engine="a"): SECONDS / 10,
    }
    found = _note(rules.left_against_noticed, columns)
    assert found is not None
    assert "480" in found.words
    assert (
        _note(rules.left_against_noticed, {**columns, labelled(CLIENT_ABORTS, engine="a"): SECONDS}) is None
    )


def _preempting(swapped: float) -> Columns:
    return {
        labelled(SWAP_TIER_BYTES, **RANK): 40e9,
        labelled(SWAPPED, **RANK): swapped,
        labelled(PREEMPTIONS, **RANK): SECONDS,
    }


def test_swap_space_that_is_set_and_never_used_is_inert() -> None:
    found = _note(rules.swap_set_but_inert, _preempting(0.0))
    assert found is not None
    assert "40 GB" in found.words
    assert "480 sequences were preempted" in found.words
    assert _note(rules.swap_set_but_inert, _preempting(3.0)) is None


@pytest.mark.parametrize("told", [{}, {labelled(SWAPPED, **RANK): 0.0}])
def test_what_was_preempted_and_not_swapped_was_computed_again(told: Columns) -> None:
    note = _note(rules.preempted_was_recomputed, {labelled(PREEMPTIONS, **RANK): SECONDS / 4} | told)
    assert note is not None
    assert note.words.startswith("120 preemptions, and as far as engines tell nothing was swapped")
    assert note.words.endswith("thrown away and computed again.")


@pytest.mark.parametrize(
    "moved",
    [
        {labelled(SWAPPED, **RANK): np.where(SECONDS == 300, 1.0, 0.0)},
        {labelled(SWAP_BYTES, direction="in", **RANK): SECONDS * BLOCK_BYTES},
        {labelled(SWAP_ESTIMATE, **RANK): SECONDS * BLOCK_BYTES},
    ],
)
def test_where_anything_was_moved_nobody_says_that_all_was_computed_again(moved: Columns) -> None:
    preempted = {labelled(PREEMPTIONS, **RANK): SECONDS / 4}
    assert _note(rules.preempted_was_recomputed, preempted | moved) is None
    assert _note(rules.preempted_was_recomputed, {labelled(PREEMPTIONS, **RANK): 7.0}) is None


def test_a_share_that_the_sidecar_found_impossible_is_passed_on() -> None:
    assert _note(rules.impossible_share, {labelled(IMPOSSIBLE, engine="a"): 1.0}) is not None
    assert _note(rules.impossible_share, {labelled(IMPOSSIBLE, engine="a"): 0.0}) is None


def test_of_nothing_no_rule_says_anything() -> None:
    nothing: Columns = {labelled(SWAPPED, engine="b", rank="0", model_name="m"): np.full(600, np.nan)}
    assert [rule for rule in rules.RULES if _note(rule, nothing) is not None] == []
