"""Why a fleet of serving engines fails: each cause by its name and one sentence.

Drill scenarios have one, alerts name one, templates of incidents look for one, runbooks are about one.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """A cause, by the name that truth, alerts and reports give it."""

    SWAP_THRASH = "swap-thrash"
    RECOMPUTE_THRASH = "recompute-thrash"
    OFFLOAD_THRASH = "offload-thrash"
    RETRY_STORM = "retry-storm"
    ORPHANS = "orphans"
    PREFILL_BLOCKING = "prefill-blocking"
    PCIE_OTHER_TENANT = "pcie-other-tenant"
    PCIE_DOWNGRADED = "pcie-downgraded"
    COLLECTIVE_SLOW = "collective-slow"
    GPU_LOST = "gpu-lost"
    ENGINE_FROZEN = "engine-frozen"
    PREFIX_COLLAPSE = "prefix-collapse"
    GATEWAY_TOO_TIGHT = "gateway-too-tight"
    TAIL_WASTE = "tail-waste"
    OVERLOAD = "overload"
    KV_LEAK = "kv-leak"
    METRIC_RENAME = "metric-rename"
    SIDECAR_BLIND = "sidecar-blind"
    SLO_MISSED = "slo-missed"
    LONG_PROMPTS = "long-prompts"
    ENGINE_DOWN = "engine-down"
    ENGINE_DEADLOCKED = "engine-deadlocked"
    ENGINE_RESTARTS = "engine-restarts"
    RANK_IMBALANCE = "rank-imbalance"
    GATEWAY_BREAKER = "gateway-breaker"
    GATEWAY_SLOW = "gateway-slow"
    NOT_WATCHED = "not-watched"

    @property
    def sentence(self) -> str:
        """What it is, for somebody who reads of it for the first time."""
        return _SENTENCES[self]


_SENTENCES = {
    Cause.SWAP_THRASH: "The KV pool ran dry and sequences went to the host and back instead of being worked on.",
    Cause.RECOMPUTE_THRASH: "The KV pool ran dry and sequences were thrown out and computed again, over and over.",
    Cause.OFFLOAD_THRASH: "The KV pool ran dry and sequences came back from the tier below to be thrown out again.",
    Cause.RETRY_STORM: "Clients timed out and sent the same prompts again, faster than the engines could answer them.",
    Cause.ORPHANS: "Engines worked on for clients that had left, and their sequences held the KV blocks.",
    Cause.PREFILL_BLOCKING: "Long prompts that aren't computed in chunks stopped the decoding of all other sequences.",
    Cause.PCIE_OTHER_TENANT: "Somebody else on the same machine filled the PCIe links.",
    Cause.PCIE_DOWNGRADED: "A PCIe link ran with fewer lanes or a lower generation than its GPU has.",
    Cause.COLLECTIVE_SLOW: "The GPUs of an engine exchanged their parts more slowly than before.",
    Cause.GPU_LOST: "A GPU fell off the bus, and its engine with it.",
    Cause.ENGINE_FROZEN: "An engine stood still with sequences in it.",
    Cause.PREFIX_COLLAPSE: "Prompts no longer shared their beginnings, and the prefix cache stopped paying.",
    Cause.GATEWAY_TOO_TIGHT: "The gateway turned away requests for which the engines had room.",
    Cause.TAIL_WASTE: "Large blocks stood half empty, and the pool was full before its memory was.",
    Cause.OVERLOAD: "More was asked for than the engines can do, and they did what they can.",
    Cause.KV_LEAK: "Blocks were lost: held by no sequence and never free again.",
    Cause.METRIC_RENAME: "An engine was upgraded, and what it called its metrics changed.",
    Cause.SIDECAR_BLIND: "The sidecar could no longer read the GPUs.",
    Cause.SLO_MISSED: "Users waited longer than they were promised, for whatever reason.",
    Cause.LONG_PROMPTS: "More prompts than agreed were longer than their quota.",
    Cause.ENGINE_DOWN: "An engine answered no more.",
    Cause.ENGINE_DEADLOCKED: "Requests waited in an engine that let nobody in, until nothing ran.",
    Cause.ENGINE_RESTARTS: "An engine was started over and over.",
    Cause.RANK_IMBALANCE: "One rank of an engine had far more to do than the others.",
    Cause.GATEWAY_BREAKER: "A circuit breaker of the gateway kept requests from engines.",
    Cause.GATEWAY_SLOW: "The gateway took long to decide whom it lets through, and to turn others away.",
    Cause.NOT_WATCHED: "The watching itself failed: a sidecar, a scrape, the way to the pager.",
}
