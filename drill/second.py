"""One simulated second of a fleet: what happened in it and how things stand at its end, with the truth.

Everything is as it is, not as an engine or a gateway would expose it. Bytes and times are those of this second.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drill.activity import Activity
from drill.clients import AttemptEnd, ClientTotals
from drill.gateway_counts import GatewayGauges, GatewayTotals
from drill.serving.config import EngineConfig
from drill.serving.step_result import Gauges, StepResult


class EngineState(StrEnum):
    """Of a replica, as its operator would put it."""

    SERVING = "serving"
    DRAINING = "draining"
    """It works off what it has; nothing more is sent to it."""
    FROZEN = "frozen"
    """No iteration ends, though its front end takes requests."""
    STARTING = "starting"
    """There is no engine yet: weights are loaded."""
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Truth:
    """What no metric tells of an engine, and nobody has to estimate here."""

    tail_waste_tokens: int
    """Slots in the last blocks of sequences that no token is in; room for prompts on their way is none."""
    orphans: int
    """Requests in the engine whose client is gone."""
    orphan_blocks: int
    """Blocks that they hold, those that several of them share counted once."""
    leaked_blocks: int
    preemptions: int
    repeat_preemptions_30s: int
    """Of those: preempted again within 30 s of the last time."""
    recomputed_tokens: int
    swap_in_bytes: float
    swap_out_bytes: float
    """V0's swapping, of all GPUs, counted as iterations end."""
    copy_seconds: float
    """In which forward passes waited for it."""
    tier_load_bytes: float
    tier_store_bytes: float


@dataclass(frozen=True, slots=True)
class EngineSecond:
    """One replica. ``life`` counts its starts from 0; counters of an engine begin anew with each.

    ``config`` is what it was last started with. ``results``: the iterations that ended. ``gauges``: None while
    there is no engine; those of a frozen one stand still. ``received``: requests that reached it, one by one.
    ``gpus_lost``: those that fell off the bus, by index.
    """

    name: str
    state: EngineState
    life: int
    started_seconds: float
    config: EngineConfig
    results: tuple[StepResult, ...]
    received: int
    gauges: Gauges | None
    activity: Activity
    truth: Truth
    gpus_lost: tuple[int, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether more is asked of it than runs."""
        return self.gauges is not None and self.gauges.waiting + self.gauges.swapped > 0


@dataclass(frozen=True, slots=True)
class Second:
    """The fleet at ``seconds``, which ends this second. Totals count from the drill's beginning.

    ``ended``: attempts of clients that ended, in the order of time. ``actions``: what was done to the fleet, in words.
    """

    seconds: float
    engines: tuple[EngineSecond, ...]
    gateway: GatewayTotals
    gateway_gauges: GatewayGauges
    clients: ClientTotals
    ended: tuple[AttemptEnd, ...]
    actions: tuple[str, ...] = ()
