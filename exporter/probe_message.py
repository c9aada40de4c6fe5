"""Reads a message of the probe: JSON, by its version."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from exporter.probe_sample import GroupHeld, ProbeSample

VERSION = 1

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]


class MessageError(Exception):
    """A message that can't be understood; the text says why, in one line."""


class _Versioned(msgspec.Struct):
    version: int


class _Message(msgspec.Struct):
    """What ``exporter/probe/thrashold_probe.py`` sends. A field that isn't known is left alone."""

    sender: Name
    rank: Name
    age: Seconds
    steps: Count
    running: Count
    groups: (
        Annotated[list[tuple[Annotated[int, Meta(ge=1)], Count | None, Count | None]], Meta(max_length=64)]
        | None
    )
    longest_step: Seconds
    preemptions: Count | None
    repeats: Count | None
    repeat_tokens: Count | None
    aborts: Count | None
    unclear_aborts: Count | None
    busy_seconds: Seconds
    own_seconds: Seconds


def read_message(data: bytes, engine: str, at: float) -> ProbeSample:
    """The sample of a message that came at ``at``. Raises MessageError."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).version
        if version != VERSION:
            raise MessageError(
                f"the probe speaks version {version} and this sidecar version {VERSION}; install the probe anew"
            )
        said = msgspec.json.decode(data, type=_Message)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MessageError(f"what comes is no message of a probe ({error})") from error
    seconds = (said.age, said.longest_step, said.busy_seconds, said.own_seconds)
    if not all(math.isfinite(each) for each in seconds):
        raise MessageError("what comes is no message of a probe (a time that is no number)")
    return ProbeSample(
        at=at,
        engine=engine,
        rank=said.rank,
        sender=said.sender,
        age_seconds=said.age,
        steps_total=said.steps,
        running=said.running,
        groups=tuple(GroupHeld(*group) for group in said.groups or ()),
        longest_step_seconds=said.longest_step,
        preemptions_total=said.preemptions,
        repeats_total=said.repeats,
        repeat_tokens_total=said.repeat_tokens,
        aborts_total=said.aborts,
        unclear_aborts_total=said.unclear_aborts,
        busy_seconds_total=said.busy_seconds,
        own_seconds_total=said.own_seconds,
    )
