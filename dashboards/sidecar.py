"""The Sidecar board: whether what the other boards show can be trusted, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.board import Board, Row, Variable
from dashboards.context import Context
from dashboards.panels import Visual, stat, table, time_series
from dashboards.queries import Expression, Look, variable
from dashboards.shape import CALM, NEUTRAL, Line, Query, Unit, above, below
from dashboards.wording import INSTANCE
from exporter.derive.inventory import GPU_READ_ERRORS, GPU_UP
from exporter.own_signals import CYCLE_FAILURES, CYCLE_SECONDS, CYCLES, CYCLES_SKIPPED
from exporter.recorder_signals import RECORDER_BYTES, RECORDER_DROPPED, RECORDER_UP
from exporter.sample import STALE_AFTER_SECONDS
from exporter.sampler.pace import CPU_SHARE, DRIVER_SHARE
from exporter.sampler_signals import (
    GPUS_EXPECTED,
    SAMPLER_CPU,
    SAMPLER_DRIVER,
    SAMPLER_RESIDENT,
    SAMPLER_RESTARTS,
    SAMPLER_STUCK,
)
from exporter.source_signals import (
    BUILD_INFO,
    DERIVE_ERRORS,
    SIGNAL_INFO,
    SOURCE_AGE,
    SOURCE_ERRORS,
    SOURCE_ODDITY,
    SOURCE_READ_SECONDS,
    SOURCE_UP,
)

UID = "thrashold-sidecar"


def board(context: Context) -> Board:
    """The board for these settings."""
    look = context.look("instance")
    instances = Variable("instance", "Sidecar", variable(context.settings.rendering, BUILD_INFO, "instance"))
    return Board(
        "Sidecar",
        UID,
        "The sidecars themselves: who answers them, how sure their numbers are, and what they cost.",
        (*context.clusters(), instances),
        (
            Row("Can it be trusted?", (*_now(context, look), *_sources(context, look))),
            Row("Its own work", _work(context, look)),
            Row("GPUs: the process that reads them", _sampler(context, look)),
            Row("Flight recorder", _recorder(context, look)),
            Row("How sure are the signals?", (_signals(context, look),)),
        ),
        since="now-6h",
    )


def _now(context: Context, look: Look) -> tuple[Visual, ...]:
    up = look.gauge(SOURCE_UP, over="min")

    def total(title: str, each: Expression, do: str, lines: Sequence[Line]) -> Visual:
        query = Query(each.across("sum"), context.legend())
        return stat(title, Unit.COUNT, query, do=do, lines=lines, size=(6, 4), decimals=0)

    return (
        total("Sources that answer", up, "Compare with those that don't, beside it.", (NEUTRAL,)),
        total(
            "Sources that don't",
            up.compared("==", 0),
            "What they tell is absent. Below: who, since when, and why.",
            above(bad=1),
        ),
        total(
            "GPUs that can't be read",
            look.gauge(GPU_UP, over="min").compared("==", 0),
            "docs/runbooks/GpuLost.md, docs/runbooks/SidecarBlind.md.",
            above(bad=1),
        ),
        total(
            "Oddities",
            look.gauge(SOURCE_ODDITY),
            "Something in a page isn't as expected: docs/signals.md says what each oddity means.",
            above(1),
        ),
        table(
            "Sources that don't answer, by sidecar",
            Query(up.only("==", 0), ""),
            do="It can't be reached, or its page can't be read: the reasons are below. docs/runbooks/SidecarBlind.md.",
            columns=(*context.settings.cluster_labels, "instance", "source"),
            size=(24, 5),
            nothing="all answer",
        ),
    )


def _sources(context: Context, look: Look) -> tuple[Visual, ...]:
    source = context.legend("source")
    return (
        time_series(
            "Sources that answer: 1, or 0",
            Unit.COUNT,
            Query(look.gauge(SOURCE_UP, over="min").across("min", "source"), source),
            do="0: it doesn't answer in time. Its signals are absent, never 0.",
            most=1,
        ),
        time_series(
            "Age of the newest numbers",
            Unit.SECONDS,
            Query(look.gauge(SOURCE_AGE).across("max", "source"), source),
            do=f"An engine under load answers late; after {STALE_AFTER_SECONDS:g} s its signals vanish.",
            lines=above(bad=STALE_AFTER_SECONDS),
        ),
        time_series(
            "Time that a read takes",
            Unit.SECONDS,
            Query(look.gauge(SOURCE_READ_SECONDS).across("max", "source"), source),
            do="A slow page is itself a sign: the engine's front end has no time.",
            logarithmic=True,
        ),
        time_series(
            "Reads that failed",
            Unit.COUNT,
            Query(
                look.counted(SOURCE_ERRORS).across("sum", "source", "reason"),
                context.legend("source", "reason"),
            ),
            do="refused: nobody listens. timeout: it hangs. Others are in docs/signals.md.",
        ),
    )


def _work(context: Context, look: Look) -> tuple[Visual, ...]:
    del context
    return (
        time_series(
            "Time a cycle takes",
            Unit.SECONDS,
            Query(look.gauge(CYCLE_SECONDS), INSTANCE),
            do="Some milliseconds are usual. More: it gets too little CPU, or reads very many engines.",
            size=(8, 8),
        ),
        time_series(
            "Cycles a second",
            Unit.PER_SECOND,
            Query(look.rate(CYCLES), f"{INSTANCE} made"),
            Query(look.rate(CYCLES_SKIPPED), f"{INSTANCE} left out", color="orange"),
            Query(look.rate(CYCLE_FAILURES), f"{INSTANCE} failed", color="red"),
            do="Left out: too little CPU. Failed: a bug, its log names it.",
            size=(8, 8),
        ),
        time_series(
            "Derivations that broke off",
            Unit.COUNT,
            Query(
                look.counted(DERIVE_ERRORS).across("sum", "instance", "phenomenon"),
                f"{INSTANCE} {{{{phenomenon}}}}",
            ),
            do="A bug that costs one phenomenon's signals: please report it with the log's lines.",
            size=(8, 8),
        ),
    )


def _sampler(context: Context, look: Look) -> tuple[Visual, ...]:
    del context
    both = f"{INSTANCE} {{{{source}}}}"
    return (
        time_series(
            "What it costs",
            Unit.RATIO,
            Query(look.rate(SAMPLER_CPU), f"{both} of a core"),
            Query(look.rate(SAMPLER_DRIVER), f"{both} inside the driver", dashed=True),
            Query(look.gauge(SAMPLER_RESIDENT), f"{both} memory", unit=Unit.BYTES, right=True),
            do=f"It holds itself to {CPU_SHARE:.0%} of a core and {DRIVER_SHARE:.0%} of the driver's time.",
            size=(8, 8),
        ),
        time_series(
            "Stuck, restarted",
            Unit.SECONDS,
            Query(look.gauge(SAMPLER_STUCK), f"{both} says nothing for"),
            Query(look.increase(SAMPLER_RESTARTS), f"{both} restarts", unit=Unit.COUNT, right=True),
            do="Stuck: the kernel holds it, and only a reboot or the driver's end frees it.",
            size=(8, 8),
        ),
        time_series(
            "GPUs that the driver counts, and that are read",
            Unit.COUNT,
            Query(look.gauge(GPUS_EXPECTED).across("max", "instance"), f"{INSTANCE} counted"),
            Query(look.gauge(GPU_UP, over="min").across("sum", "instance"), f"{INSTANCE} read", dashed=True),
            Query(
                look.counted(GPU_READ_ERRORS).across("sum", "instance"),
                f"{INSTANCE} failed reads",
                right=True,
            ),
            do="Fewer read than counted: gpu_down_info says why.",
            size=(8, 8),
        ),
    )


def _recorder(context: Context, look: Look) -> tuple[Visual, ...]:
    del context
    return (
        time_series(
            "Writes",
            Unit.COUNT,
            Query(look.gauge(RECORDER_UP, over="min"), f"{INSTANCE}: 1 while it writes"),
            Query(
                look.rate(RECORDER_DROPPED), f"{INSTANCE} cycles missing", unit=Unit.PER_SECOND, right=True
            ),
            do="0: the disk is full or gone; its log says which.",
            lines=below(1),
            most=1,
        ),
        time_series(
            "Size on disk",
            Unit.BYTES,
            Query(look.gauge(RECORDER_BYTES), INSTANCE),
            do="It stays below the limit of its settings: docs/recorder.md.",
        ),
    )


def _signals(context: Context, look: Look) -> Visual:
    told = look.gauge(SIGNAL_INFO).across("count", "signal", "confidence", "method")
    return table(
        "Signals that have a value, by how sure they are",
        Query(told, "Sidecars", lines=(CALM,), decimals=0),
        do="What isn't here has no value now: docs/engines.md says which engine gives what, and why not.",
        columns=("signal", "confidence", "method"),
        hidden=context.settings.cluster_labels,
        size=(24, 12),
    )
