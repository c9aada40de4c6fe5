"""What each word of ``source_oddity`` means and what to do about it, for people: ``--check`` and docs/signals.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ODDITIES: Mapping[str, str] = MappingProxyType(
    {
        "below_0": "a counter or a gauge is below 0; it is left out",
        "block_size_unknown": "the block size that is told can't be right for this model; set block_group_tokens",
        "config_ambiguous": "several models share the page, and whose KV cache it describes can't be told; what is "
        "made of its size is left out",
        "kv_blocks_contradict": "blocks that are taken and the share that is taken don't agree; the share is left out",
        "more_failed_than_requests": "more requests failed than there were; the counters come from several workers "
        "(PROMETHEUS_MULTIPROC_DIR is not set)",
        "names_half_there": "a group of series that this engine always shows together is missing: a proxy filters the "
        "page, or the engine counts only a part (see what it lacks)",
        "no_traffic_yet": "nothing was sent to any cluster yet, and there are several or none; signals come with the "
        "first request, or where the gateway's cluster is set",
        "not_a_number": "a value is no number that can be; it is left out",
        "several_engines": "series of another engine stand there too, and are not read; give each a URL of its own",
        "several_listeners": "requests come to several listeners; set the gateway's listener for requests and outcomes",
        "several_services": "other clusters get requests too; set the gateway's listener for requests and outcomes",
        "unreadable_lines": "some lines are no metrics and are left out: the page is cut off, or something is mixed in",
        "usage_above_1": "a share is above 1; it is taken as 1",
    }
)


def in_words(oddity: str) -> str:
    """The word, and what it means."""
    meaning = ODDITIES.get(oddity)
    return oddity if meaning is None else f"{oddity}: {meaning}"
