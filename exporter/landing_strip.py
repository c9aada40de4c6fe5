"""The top of the landing page: who answers, and for each engine what tells whether it is in trouble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from exporter.derive.blocks import KV_LEAK, KV_USAGE
from exporter.derive.headroom import DEMAND, HEADROOM
from exporter.derive.inventory import ENGINE_GPU_INFO, GPU_UP
from exporter.derive.latency import SATURATED, TOKEN_INTERVAL, TPOT_P99, TTFT_P50, TTFT_P99
from exporter.derive.preemption import PREEMPTION_RATE, THRASHING, TOKENS_PER_PREEMPTION
from exporter.derive.ranks import ENGINE_INFO
from exporter.derive.stalls import DEADLOCKED, FROZEN, TOKEN_AGE
from exporter.derive.swap import SWAP_BYTES_RATE, SWAPPED
from exporter.derive.traffic import SEQUENCES
from exporter.landing_gpus import Gpu, gpus_of, starving
from exporter.landing_values import STATES, raised, shown
from exporter.landing_values import age as duration
from exporter.observation import ENGINE, SourceStatus
from exporter.publication import Publication
from exporter.sample import STALE_AFTER_SECONDS
from exporter.signal import PEAK_SECONDS, Confidence, Scope, Signal
from exporter.snapshot import Value

OLD_AFTER_SECONDS = 3.0
"""From this age on numbers say how old they are: at one read a second, some reads were missed."""
_ALARMING = {Scope.RANK, Scope.ENGINE, Scope.GPU}
_PEAK = f"the maximum of the trailing {PEAK_SECONDS:g} s"
_NOT_KNOWN = "not known"


class Number(NamedTuple):
    """One value of a rank: its signal, and the labels beyond the rank's."""

    signal: Signal
    labels: tuple[str, ...] = ()


class Tile(NamedTuple):
    """One place in the strip.

    Of ``numbers`` (each with its title) the first that is known stands large, ``beside`` stand what
    helps to read it, and ``states`` are the verdicts that belong to it.
    """

    numbers: tuple[tuple[str, Number], ...]
    beside: tuple[tuple[str, Number], ...] = ()
    states: tuple[Number, ...] = ()


TILES = (
    Tile((("KV usage", Number(KV_USAGE)),), states=(Number(KV_LEAK),)),
    Tile((("KV demand", Number(DEMAND)),), beside=(("headroom {} tokens", Number(HEADROOM)),)),
    Tile(
        (("waiting", Number(SEQUENCES, ("waiting",))),),
        beside=(("running {}", Number(SEQUENCES, ("running",))),),
    ),
    Tile(
        (("swapped", Number(SWAPPED)), ("swapped in", Number(SWAP_BYTES_RATE, ("in",)))),
        beside=(("out {}", Number(SWAP_BYTES_RATE, ("out",))),),
    ),
    Tile(
        (("tokens/preemption", Number(TOKENS_PER_PREEMPTION)),),
        beside=(("preemptions {}", Number(PREEMPTION_RATE)),),
        states=(Number(THRASHING),),
    ),
    Tile((("token interval", Number(TOKEN_INTERVAL)),), beside=(("p99 {}", Number(TPOT_P99)),)),
    Tile(
        (("first token p99", Number(TTFT_P99)),),
        beside=(("p50 {}", Number(TTFT_P50)),),
        states=(Number(SATURATED, (TTFT_P99.name.removesuffix("_seconds"),)),),
    ),
    Tile((("since last token", Number(TOKEN_AGE)),), states=(Number(FROZEN), Number(DEADLOCKED))),
)
"""What answers "am I in trouble?", from the left: the pool, the queue, what it costs, who is served."""


@dataclass(slots=True)
class Rank:
    """What is known of one rank, now and as peaks; of one that tells nothing, nothing."""

    engine: str
    name: str = ""
    model: str = ""
    now: dict[Number, float] = field(default_factory=dict)
    peak: dict[Number, float] = field(default_factory=dict)


def present(publication: Publication) -> float:
    """When the page speaks: a cycle that breaks off stands still, its sources may not."""
    read = (status.last_at for status in publication.statuses if status.last_at is not None)
    return max(publication.snapshot.at, *read, 0.0)


def answers(status: SourceStatus, now: float) -> bool:
    """Whether a source is up, as its signal says it."""
    return status.answering and status.last_at is not None and now - status.last_at <= STALE_AFTER_SECONDS


def ages_of_old(publication: Publication) -> dict[str, float]:
    """How old the numbers are of each engine that is down or was not read for a while."""
    now, at = present(publication), publication.snapshot.at
    ages = {
        status.name: (now - min(status.last_at, at), status.answering)
        for status in publication.statuses
        if status.kind == ENGINE and status.last_at is not None
    }
    return {name: age for name, (age, up) in ages.items() if not up or age > OLD_AFTER_SECONDS}


def how_old(age: float) -> str:
    """An age as a note beside numbers."""
    return f"{age:.0f} s old"


def strip(publication: Publication, old: Mapping[str, float]) -> str:
    """All engines, those in the settings first; ``old`` is of :func:`ages_of_old`."""
    ranks, now = _ranks(publication.snapshot.values), present(publication)
    gpus, kinds = _gpus(publication.snapshot.values), _kinds(publication.snapshot.values)
    states = {status.name: status for status in publication.statuses if status.kind == ENGINE}
    blocks = []
    for engine in dict.fromkeys((*states, *(rank.engine for rank in ranks))):
        own = [rank for rank in ranks if rank.engine == engine] or [Rank(engine)]
        down = engine in states and not answers(states[engine], now)
        notes = [note for note in (kinds.get(engine, ""), gpus.get(engine, "")) if note]
        blocks += [_block(rank, old.get(engine), down=down, alone=len(own) == 1, notes=notes) for rank in own]
    return "".join(blocks)


def verdict(publication: Publication) -> str:
    """How many engines answer, and what goes wrong by the engines' own word."""
    now = present(publication)
    engines = [status for status in publication.statuses if status.kind == ENGINE]
    if not engines:
        return ""
    up = [each for each in engines if answers(each, now)]
    kind = "ok" if len(up) == len(engines) else "bad"
    if not any(each.answering or each.last_at or each.errors for each in engines):
        kind, text = "hint", "no engine has answered yet"
    elif len(engines) == 1:
        text = "the engine answers" if up else "the engine does not answer"
    else:
        text = f"{len(up) or 'none'} of {len(engines)} engines answer"
    silent = _silent(publication.statuses)
    return " ".join((f'<b class="{kind}">{text}</b>', *_alarms(publication.snapshot.values), *silent))


def _silent(statuses: Iterable[SourceStatus]) -> Iterable[str]:
    """Sources beside the engines that were asked for and don't answer: what they tell is missing below."""
    names = [each.name for each in statuses if each.kind != ENGINE and not each.answering and each.last_error]
    if names:
        yield _alarm("no answer", ", ".join(names))


def _alarms(values: Sequence[Value]) -> Iterable[str]:
    found: dict[Signal, list[str]] = {}
    for signal, labels, value, is_peak in values:
        # One with labels of its own speaks of a number and not of the engine or the GPU.
        if signal.scope in _ALARMING and not signal.labels and not is_peak and raised(signal, value):
            found.setdefault(signal, []).append(labels[0])
    swapped = [row.labels[0] for row in values if row.signal is SWAPPED and row.value > 0 and not row.is_peak]
    if swapped:
        yield _alarm("swapped out", ", ".join(dict.fromkeys(swapped)))
    starved = starving(values)
    gpus = gpus_of(values) if found or starved else []
    for signal, whose in found.items():
        if signal is GPU_UP:
            yield from _down(gpus)
        elif signal.scope is Scope.GPU:
            yield _alarm(STATES[signal].word, _named([gpu for gpu in gpus if gpu.uuid in whose], gpus))
        else:
            yield _alarm(STATES[signal].word, ", ".join(dict.fromkeys(whose)))
    if starved:
        yield _alarm("waits for PCIe", _named([gpu for gpu in gpus if gpu.uuid in starved], gpus))


def _down(gpus: Sequence[Gpu]) -> Iterable[str]:
    words: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        if gpu.value(GPU_UP) == 0:
            words.setdefault(gpu.down_word, []).append(gpu)
    for word, own in words.items():
        yield _alarm(word, _named(own, gpus))


def _named(own: Sequence[Gpu], gpus: Sequence[Gpu]) -> str:
    return f"all {len(own)} GPUs" if len(own) == len(gpus) > 1 else ", ".join(gpu.title for gpu in own)


def _alarm(word: str, whose: str) -> str:
    return f'<b class="bad">{escape(word)}: {escape(whose)}</b>'


def _ranks(values: Iterable[Value]) -> list[Rank]:
    ranks: dict[tuple[str, ...], Rank] = {}
    for signal, labels, value, is_peak in values:
        if signal.scope is Scope.RANK:
            engine, name, model, *own = labels
            rank = ranks.setdefault((engine, name, model), Rank(engine, name, model))
            (rank.peak if is_peak else rank.now)[Number(signal, tuple(own))] = value
    return list(ranks.values())


def _kinds(values: Iterable[Value]) -> dict[str, str]:
    """What each engine is, as its signal says it."""
    return {
        labels[0]: " ".join(label for label in labels[1:] if label)
        for signal, labels, *_ in values
        if signal is ENGINE_INFO
    }


def _gpus(values: Sequence[Value]) -> dict[str, str]:
    """On which GPUs each engine runs, in words."""
    on: dict[str, set[str]] = {}
    for signal, labels, *_ in values:
        if signal is ENGINE_GPU_INFO:
            on.setdefault(labels[0], set()).add(labels[1])
    if not on:
        return {}
    known = gpus_of(values)
    return {
        engine: _in_words([gpu for gpu in known if gpu.uuid in uuids], known) for engine, uuids in on.items()
    }


def _in_words(own: Sequence[Gpu], known: Sequence[Gpu]) -> str:
    if len(own) == sum(not gpu.info["parent_uuid"] for gpu in known) > 1:
        return f"on all {len(own)} GPUs"
    if all(gpu.index for gpu in own):
        return f"on GPU{'s' if len(own) > 1 else ''} {', '.join(gpu.index for gpu in own)}"
    return f"on {', '.join(gpu.title for gpu in own)}"


def _block(rank: Rank, age: float | None, *, down: bool, alone: bool, notes: Sequence[str]) -> str:
    named = rank.engine if alone else f"{rank.engine} rank {rank.name}"
    # Numbers hold for a while; once they are gone there is nothing left to be old.
    dimmed = age is not None and bool(rank.now)
    said = [_small(escape(note)) for note in (rank.model, *notes) if note]
    if down:
        said.append('<b class="bad">down</b>')
    if age is not None:
        kept, gone = (
            f'<span class="age">{how_old(age)}</span>',
            f"<small>{duration(age)} since it answered</small>",
        )
        said.append(kept if dimmed else gone)
    return (
        f'<section class="{"engine old" if dimmed else "engine"}"><h2>{escape(named)} {" ".join(said)}</h2>'
        f'<dl class="tiles">{"".join(_tile(tile, rank) for tile in TILES)}</dl></section>'
    )


def _tile(tile: Tile, rank: Rank) -> str:
    title, number = next((each for each in tile.numbers if each[1] in rank.now), tile.numbers[0])
    signal, value = number.signal, rank.now.get(number)
    if value is None:
        large, notes = '<span class="large none">—</span>', [_small(_NOT_KNOWN)]
    else:
        figure, _, unit = shown(signal, value).partition(" ")
        large = f'<span class="large" title="{value!r}">{figure}<span class="unit"> {unit}</span></span>'
        notes = []
    if number in rank.peak:
        notes.append(_small(f"peak {shown(signal, rank.peak[number])}", f' title="{_PEAK}"'))
    for words, each in tile.beside:
        if each in rank.now:
            notes.append(_small(words.format(shown(each.signal, rank.now[each]))))
    # Of a rank that tells nothing it is said once: its numbers are not known.
    notes += [_state(each.signal, rank.now.get(each)) for each in tile.states] if rank.now else []
    if value is not None and signal.confidence is not Confidence.MEASURED:
        # Most are measured: only what is not says so.
        sure = signal.confidence.value
        notes.append(_small(sure.replace("_", " "), f' class="{sure}"'))
    swapped = signal is SWAPPED and bool(value)
    alarm = swapped or any(each in rank.now and raised(each.signal, rank.now[each]) for each in tile.states)
    return (
        f'<div class="{"tile alarm" if alarm else "tile"}">'
        f'<dt title="{escape(f"{signal.full_name}: {signal.help}")}">{title}</dt>'
        f"<dd>{large}{''.join(notes)}</dd></div>"
    )


def _state(signal: Signal, value: float | None) -> str:
    state = STATES[signal]
    if value is None:
        # Whatever has nothing to say while all is well is not missed either.
        return _small(f"{state.word}: {_NOT_KNOWN}") if state.calm else ""
    if value == state.alarm:
        return f'<b class="bad">{state.word}</b>'
    return _small(state.calm) if state.calm else ""


def _small(text: str, attributes: str = "") -> str:
    return f"<small{attributes}>{text}</small>"
