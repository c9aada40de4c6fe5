"""The numbers that alerts, boards, triage and reports compare signals with: each once, with its reason.

A user overrides any of them in one YAML file (``alerts/pack_settings.py``); what a number may be stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from msgspec import Meta

_Ratio = Meta(gt=0, le=1)
_Seconds = Meta(gt=0, le=86_400)
_Count = Meta(ge=0, le=1e9)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Base units: seconds, bytes, ratios from 0 to 1.

    What is named after an incident is of 2026-09-29, in which a fleet was down for 47 minutes.
    """

    kv_usage_full_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="KV usage from which a pool counts as full. The incident's runbook draws the line at 90 %:"
            " above it is memory. Public packs take 0.90 to 0.95, and none of them pages on it alone."
        ),
    ] = 0.90
    kv_usage_calm_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="KV usage below which memory isn't what is wrong: the incident's runbook, 80 %."),
    ] = 0.80
    waiting_sequences: Annotated[
        float,
        _Count,
        Meta(
            description="Sequences of a rank that wait for blocks before pressure counts as such. Public packs take 5"
            " to 50; 5 is where schedulers of gateways call an engine saturated."
        ),
    ] = 5.0
    preemptions_per_second: Annotated[
        float,
        _Count,
        Meta(
            description="Preemptions a second of a rank that are more than what a full pool has now and then. Public"
            " packs take 0.1 to 1."
        ),
    ] = 0.1
    swapped_sequences: Annotated[
        float,
        _Count,
        Meta(description="Sequences swapped out: the incident's invariant is that there are none."),
    ] = 0.0
    swap_tier_used_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Of V0's swap pool: it dies when that is full, so it is told well before."),
    ] = 0.80
    repeat_preemption_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of preemptions that hit a sequence again within the window. Plain contention on a real"
            " engine showed 0.22 to 0.31 over a run; ping-pong in the drill is above 0.5."
        ),
    ] = 0.5
    kv_demand_ratio: Annotated[
        float,
        Meta(gt=0, le=1000),
        Meta(
            description="Blocks that are asked for over those that there are: above 1 somebody has to wait."
        ),
    ] = 1.0
    kv_exhaustion_seconds: Annotated[
        float,
        _Seconds,
        Meta(description="Time until the pool is full, on a ramp, in which somebody can still act."),
    ] = 120.0
    pcie_saturation_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of a PCIe link, in one direction. Host copies alone reach 0.9 to 1; in the incident a"
            " bus stood at 0.97. No public pack has one."
        ),
    ] = 0.80
    pcie_swap_share_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Share of PCIe bytes that swapping explains, above which it is to blame."),
    ] = 0.5
    tail_reserve_ratio: Annotated[
        float,
        Meta(gt=0, le=100),
        Meta(
            description="Empty tails of blocks over free blocks: above this, waste is worth as much as the reserve."
            " The incident's postmortem has 65 % of it."
        ),
    ] = 0.65
    tail_used_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of used KV that is empty tails of blocks. With blocks of 16 it is below 0.01."
        ),
    ] = 0.15
    decode_stall_seconds: Annotated[
        float,
        _Seconds,
        Meta(description="Without a token while sequences run: clients time out after 30 s in the incident."),
    ] = 5.0
    token_interval_seconds: Annotated[
        float,
        _Seconds,
        Meta(description="Mean gap between tokens from which clients give up: 2 s in the incident."),
    ] = 2.0
    head_of_line_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Share of time in which sequences wait behind a prefill while there is room."),
    ] = 0.2
    retry_amplification_ratio: Annotated[
        float,
        Meta(ge=1, le=1000),
        Meta(
            description="Attempts over answers at the gateway: 1 is none in vain, 3 is three for each answer."
        ),
    ] = 2.0
    retry_storm_per_second: Annotated[
        float,
        _Count,
        Meta(
            description="Requests a second whose client gave up, below which nobody is woken: at night two who press"
            " stop are most of what is asked."
        ),
    ] = 0.1
    orphan_kv_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Share of KV blocks that sequences hold whose client is gone."),
    ] = 0.1
    long_prompt_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Share of prompts that are longer than the quota (64k tokens in the incident)."),
    ] = 0.05
    prefix_hit_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Prefix hits below which the cache has stopped paying, where it did pay. A public pack warns"
            " below 0.3; the incident's hardened fleet had 0.442."
        ),
    ] = 0.2
    collective_drop_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="How much less collectives carry than usual: 0.82 in the incident. Above 0.3 the signal itself"
            " no longer learns from what it sees."
        ),
    ] = 0.3
    rank_imbalance_ratio: Annotated[
        float,
        Meta(ge=1, le=1000),
        Meta(
            description="Load of the busiest rank over the mean of all: with two ranks it can't be above 2. A public"
            " doctor warns where one has twice as much as another, which is 1.33 of the mean."
        ),
    ] = 1.5
    gateway_rejected_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of requests that the gateway turns away. A public pack warns at a tenth of answers."
        ),
    ] = 0.1
    gateway_let_through_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Requests let through over the most of any two minutes within the last hour. Admission control"
            " at a peak turns some away and lets through more than ever; a limit set too low lets through a fraction."
        ),
    ] = 0.5
    breaker_open_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of a minute in which a breaker of the gateway is at its limit: more often than not it"
            " turns somebody away."
        ),
    ] = 0.5
    slo_budget_ratio: Annotated[
        float,
        _Ratio,
        Meta(description="Share of first tokens, and of answers' pace, that may miss: an objective of 99 %."),
    ] = 0.01
    slo_events_per_second: Annotated[
        float,
        _Count,
        Meta(
            description="Fewer events say nothing of an objective: one miss of three is no trend. Of a page, over its"
            " long window as well: a few answers after an idle hour are all of the hour's."
        ),
    ] = 0.02
    engine_restarts: Annotated[
        float,
        Meta(ge=1, le=1000),
        Meta(
            description="Starts of one engine within half an hour that are a loop: a roll-out needs one, or two."
        ),
    ] = 3.0
    fleet_progress_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Tokens a second over those of ten minutes ago, with as many sequences. A public pack warns at"
            " half."
        ),
    ] = 0.5
    fleet_progress_sequences: Annotated[
        float,
        _Count,
        Meta(
            description="Sequences of a fleet, ten minutes ago, below which its tokens a second say nothing: one long"
            " prompt among a few makes as much of a difference."
        ),
    ] = 20.0
    fleet_share_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of a fleet's engines that are ill, from which that explains what its users suffer. Pages"
            " of objectives want a miss in seven: fewer engines than one in twenty can't be why."
        ),
    ] = 0.05
    capacity_gone_ratio: Annotated[
        float,
        _Ratio,
        Meta(
            description="Share of a fleet's engines that are down, from which somebody is woken. A tenth of the load is"
            " what takes pools that were calm (0.80) to where they are full (0.90); one of a thousand is for the"
            " morning, one of two is not."
        ),
    ] = 0.1
    gateway_reject_seconds: Annotated[
        float,
        _Seconds,
        Meta(
            description="Time to turn a request away, p99. The incident's admission controller takes under 5 ms."
        ),
    ] = 0.1


THRESHOLDS = Thresholds()
"""As they are shipped."""
NAMES = frozenset(field.name for field in fields(Thresholds))
