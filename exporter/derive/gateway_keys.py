"""Whose prompts they are: tokens and long prompts by API key, where the gateway tells keys apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exporter.derive.phenomenon import EngineFacts, Phenomenon
from exporter.gateway_sample import GatewaySample, KeyUse
from exporter.signal import Confidence, Kind, Point, Scope, Signal
from exporter.window import Total, Window

MOST_SHOWN = 20
"""Keys with series of their own at a time."""
RECENT_SECONDS = 60.0
OTHER = "other"
_CLEARLY = 2.0
"""A key must have asked for this many times what the least of those shown did to take its place."""

PROMPT_TOKENS = Signal(
    "gateway_prompt_tokens_total",
    Kind.COUNTER,
    Scope.GATEWAY,
    f"Prompt tokens by API key: up to {MOST_SHOWN} keys, those of most tokens; a key that asks for more takes the "
    f"place of the least one. All the rest is under `{OTHER}`. A key goes by the alias or hash that the gateway shows.",
    Confidence.MEASURED,
    "rises of LiteLLM's counter, from when the key got its place",
    ("keys", "keys_prompt_tokens_total"),
    labels=("key",),
    by_request=True,
)
LONG_PROMPTS = Signal(
    "gateway_long_prompts_total",
    Kind.COUNTER,
    Scope.GATEWAY,
    "Requests answered with success whose prompt had 64,000 tokens or more, by the same keys.",
    Confidence.MEASURED,
    "rises of LiteLLM's latency count under `64k+`, which it shows with prometheus_emit_input_sequence_length_label",
    ("keys",),
    labels=("key",),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """One key with series of its own."""

    tokens: Total = Total()
    long_prompts: Total = Total()


@dataclass(frozen=True, slots=True)
class KeysState:
    """Keys that have a place, the tokens of all keys, and those of keys that had none when they asked."""

    shown: Mapping[str, Shown] = field(default_factory=dict)
    everyone: Total = Total()
    other: float = 0.0


def _derive(
    window: Window[GatewaySample], _facts: EngineFacts, state: KeysState
) -> tuple[KeysState, list[Point]]:
    now, restarted = window.newest, window.restarted()
    if now.keys_prompt_tokens_total is None and not state.everyone.known:
        return state, []
    everyone = state.everyone.fed(now.keys_prompt_tokens_total, restarted=restarted)
    uses = {use.key: use for use in now.keys}
    # what is asked in the read in which a place changes hands is neither holder's
    shown, mine = {}, 0.0
    for key, each in _placed(state.shown, now.keys, _recent(window)).items():
        use = uses.get(key)
        if use is None and now.has_more_keys:
            # out of sight: what it asks for meanwhile is under other, and it goes on from where it comes back
            shown[key] = Shown(Total(each.tokens.value), Total(each.long_prompts.value))
            continue
        shown[key] = Shown(
            each.tokens.fed(use.prompt_tokens if use else None, restarted=restarted),
            each.long_prompts.fed(use.long_prompts if use else None, restarted=restarted),
        )
        mine += shown[key].tokens.value - each.tokens.value
    other = state.other + max(0.0, everyone.value - state.everyone.value - mine)
    state = KeysState(shown, everyone, other)
    points = [Point(PROMPT_TOKENS, (key,), each.tokens.value) for key, each in shown.items()]
    points += [
        Point(LONG_PROMPTS, (key,), each.long_prompts.value)
        for key, each in shown.items()
        if each.long_prompts.known
    ]
    return state, [*points, Point(PROMPT_TOKENS, (OTHER,), other)]


def _recent(window: Window[GatewaySample]) -> Mapping[str, float]:
    """What each key has asked for lately, at the least; one that wasn't there asked for all it has.

    Unless more keys were there than seen: then it had as much, at the most, as the least of those that were.
    """
    now = window.newest
    before = next((each for each in window.samples if each.at >= now.at - RECENT_SECONDS), now)
    if before is now or window.restarted_between(before, now):
        return {}
    then = {use.key: use.prompt_tokens for use in before.keys}
    unseen = min(then.values(), default=0.0) if before.has_more_keys else 0.0
    return {use.key: max(0.0, use.prompt_tokens - then.get(use.key, unseen)) for use in now.keys}


def _placed(
    shown: Mapping[str, Shown], keys: tuple[KeyUse, ...], recent: Mapping[str, float]
) -> dict[str, Shown]:
    """Free places go to those of most tokens; then who clearly asks for more lately takes the least one's.

    At most one place changes hands a read, so that a restart doesn't shuffle all of them.
    """
    placed = dict(shown)
    waiting = [use for use in keys if use.key not in placed and use.key != OTHER]
    for use in waiting[: max(0, MOST_SHOWN - len(placed))]:
        placed[use.key] = _begun(use)
    rest = [use for use in waiting if use.key not in placed]
    if rest and recent:
        eager = max(rest, key=lambda use: recent.get(use.key, 0.0))
        least = min(placed, key=lambda key: recent.get(key, 0.0))
        if recent.get(eager.key, 0.0) > _CLEARLY * recent.get(least, 0.0):
            del placed[least]
            placed[eager.key] = _begun(eager)
    return placed


def _begun(use: KeyUse) -> Shown:
    return Shown(Total(0.0, use.prompt_tokens), Total(0.0, use.long_prompts))


KEYS = Phenomenon("gateway_keys", (PROMPT_TOKENS, LONG_PROMPTS), _derive, KeysState())
