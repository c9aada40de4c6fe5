"""What to do about a cause, now and later, each in a line; how it is done is in the runbooks of its alerts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from alerts.alert import Severity
from alerts.catalogue import ALERTS
from alerts.causes import Cause
from alerts.runbooks import runbook_url
from analysis.report.report import ActionItem

NOW, LATER = "now", "later"
_CLAMP = "Clamp the gateway to half of what ran before the trouble, and give it back in steps of a quarter."
ITEMS: Mapping[Cause, tuple[str, str]] = {
    Cause.SWAP_THRASH: (
        "Clamp the gateway hard, and restart engines that don't recover, one at a time, without swap.",
        "Take --swap-space and --preemption-mode swap away everywhere; turn chunked prefill and prefix caching on.",
    ),
    Cause.RECOMPUTE_THRASH: (
        _CLAMP,
        "Let fewer sequences in (--max-num-seqs), and on V1 reserve the whole prompt before one is let in.",
    ),
    Cause.OFFLOAD_THRASH: (
        _CLAMP,
        "Let fewer sequences in, or run without the tier: preempted sequences are computed again then.",
    ),
    Cause.RETRY_STORM: (
        f"{_CLAMP} Turn the gateway's own retries off.",
        "Agree with the clients' owners on backoff with jitter and on a limit of retries.",
    ),
    Cause.ORPHANS: (
        "Find the hop that keeps to itself that clients left; restart engines that are full of orphans.",
        "Let every hop pass on that a client left, and test that it does.",
    ),
    Cause.PREFILL_BLOCKING: (
        "Limit the key that sends the long prompts, or send them to engines of their own.",
        "Turn chunked prefill on, with chunks that a decode step can wait for.",
    ),
    Cause.PCIE_OTHER_TENANT: (
        "Stop or move the other tenant; take the engine out if its users notice.",
        "Keep the GPUs behind one PCIe switch to one tenant; load models from the local disk in quiet hours.",
    ),
    Cause.PCIE_DOWNGRADED: (
        "Leave it in service unless it hurts; open a ticket for the machine.",
        "Drain, power the machine off and on, look again; then reseat card and riser.",
    ),
    Cause.COLLECTIVE_SLOW: (
        "Drain the engine, reset its GPUs, start it again; hand the machine in if the link is broken again.",
        "Watch links and throttling of that machine; mend what made them slow.",
    ),
    Cause.GPU_LOST: (
        "Take the engine out and cordon its node; clamp the gateway if the rest is above the calm line.",
        "Reset or reboot, and hand the machine in if it is lost again within a day.",
    ),
    Cause.ENGINE_FROZEN: (
        "Take the engine out at once, keep the evidence, and restart it without draining.",
        "Find what it stood in; roll its release back if it is frozen again within a day.",
    ),
    Cause.PREFIX_COLLAPSE: (
        "Roll the prompt template back, or put what differs behind what is common.",
        "Route conversations back to the same engine, and watch the share of prefix hits at each release of prompts.",
    ),
    Cause.GATEWAY_TOO_TIGHT: (
        "Take a limit that was left over back, or raise it by half and look again after five minutes.",
        "Keep the limit beside the capacity that it stands for, and set both together.",
    ),
    Cause.TAIL_WASTE: (_CLAMP, "Take a smaller --block-size, or keep short requests and long ones apart."),
    Cause.OVERLOAD: (
        "Wait if demand is below 1.5 times the pool and falls; else clamp the gateway.",
        "Give the queue an end, in the gateway or in the engine; add engines for load that stays.",
    ),
    Cause.KV_LEAK: (
        "Drain and restart the engine: only that gives the blocks back.",
        "Report it to the engine's makers with release and connector; watch its neighbours of the same release.",
    ),
    Cause.METRIC_RENAME: (
        "Upgrade the sidecar, or keep watch by the engine's own names until there is a release that knows them.",
        "Try a new engine release beside the sidecar before it is rolled out.",
    ),
    Cause.SIDECAR_BLIND: (
        "Let `thrashold exporter --check` say what each source lacks, and mend that.",
        "Reboot the node when it can be drained, if its driver hangs.",
    ),
    Cause.SLO_MISSED: (_CLAMP, "See whether the objective and the capacity behind it still fit each other."),
    Cause.LONG_PROMPTS: (
        "Limit the key in the gateway, and tell its owner.",
        "Agree on a quota, or on engines of its own.",
    ),
    Cause.ENGINE_DOWN: (
        "See that the gateway sends it nothing, keep the evidence, start it, and wait for /health.",
        "Find out why it went; leave it out if it goes again.",
    ),
    Cause.ENGINE_DEADLOCKED: (
        "Take the engine out at once and restart it without draining.",
        "Refuse prompts that are longer than the pool holds (--max-model-len).",
    ),
    Cause.ENGINE_RESTARTS: (
        "Take the engine out, so that it stops breaking requests.",
        "Look at its liveness probe, its release, its host's memory and its GPU, in this order.",
    ),
    Cause.RANK_IMBALANCE: (
        "Route by least requests, or bound the stickiness.",
        "Take hot conversations into account where requests are routed.",
    ),
    Cause.GATEWAY_BREAKER: (
        "Raise the breaker by half where engines idle; take an engine that hangs out.",
        "Put the limit that proved right into the configuration.",
    ),
    Cause.GATEWAY_SLOW: (
        "Give the gateway more CPU, and let fewer requests be pending.",
        "Put the limit before authorisation and buffering.",
    ),
    Cause.NOT_WATCHED: (
        "Bring the sidecar, its scrape or the way to the pager back.",
        "Page on the absence of the watching itself.",
    ),
}
"""By cause: what to do while it goes on, and what keeps it from coming again."""


def action_items(causes: Sequence[Cause]) -> tuple[ActionItem, ...]:
    """Of causes in order: first what is to be done now, then what is to be done later."""
    return (*_of(causes, NOW, 0), *_of(causes, LATER, 1))


def runbooks(cause: Cause) -> tuple[str, ...]:
    """Pages of the alerts that name a cause, those that wake first."""
    order = list(Severity)
    alerts = [alert for alert in ALERTS.values() if alert.cause is cause]
    return tuple(
        runbook_url(alert) for alert in sorted(alerts, key=lambda alert: order.index(alert.severity))
    )


def _of(causes: Sequence[Cause], when: str, place: int) -> Iterator[ActionItem]:
    told: set[str] = set()
    for cause in causes:
        words = ITEMS[cause][place]
        if words not in told:
            told.add(words)
            yield ActionItem(when, words, cause, runbooks(cause)[:2])
