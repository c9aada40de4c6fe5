"""A report as a page in one file: the answer first, then the figures, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis.frame import Frame
from analysis.incident.timeline import Kind, minutes
from analysis.incident.unit import UNKNOWN, duration
from analysis.page.charts import charts_html
from analysis.page.document import Block, Tone, document, heading, listing, note, paragraph, table
from analysis.report.charts import charts
from analysis.report.report import CauseFound, Episode, Proof, Report
from analysis.report.words import clock, day, listed
from exporter.recorder_times import shown

_NOTHING = "No line was crossed that hurts anybody, and no known cause was found."


def page(report: Report, frame: Frame) -> str:
    """The whole page, HTML. ``frame``: what the charts are drawn from."""
    blocks: list[Block] = []
    if not report.episodes:
        blocks.append(
            note(_NOTHING if report.answer.value == "nothing unusual" else report.headline, Tone.FINE)
        )
    blocks += [note(f"What this can't see: {each}") for each in report.caveats]
    for place, episode in enumerate(report.episodes):
        if len(report.episodes) > 1:
            blocks.append(heading(f"Incident {place + 1}: {episode.headline}"))
        blocks += _episode(episode, frame, place)
    if report.untested:
        blocks += [
            heading("Alerts that can't be tried on this history"),
            paragraph(
                f"{len(report.untested)} alerts are PromQL, or look at what isn't recorded; they may have paged."
            ),
            listing(report.untested),
        ]
    return document(_title(report), blocks, _under(report))


def _title(report: Report) -> str:
    return report.headline if len(report.episodes) < 2 else f"{len(report.episodes)} incidents"  # noqa: PLR2004 -- several


def _under(report: Report) -> tuple[str, ...]:
    span = f"{shown(report.start)} to {shown(report.end)} ({duration(report.end - report.start)})"
    return (f"{report.source}: {span}, a value each {report.step_seconds:g} s. All times are UTC.",)


def _episode(episode: Episode, frame: Frame, place: int) -> Iterator[Block]:
    yield heading("What happened")
    yield listing([each.words for each in episode.statements], ordered=True)
    for each in episode.notes:
        yield note(each, Tone.ALARM)
    urgent = [each for each in episode.actions if each.when == "now"]
    if urgent and episode.end is None:
        yield note(f"Now: {urgent[0].words} How: {listed(urgent[0].runbooks)}", Tone.ALARM)
    yield heading("Key metrics")
    yield _metrics(episode)
    yield heading("Why")
    yield from _causes(episode.causes)
    yield heading("The chain on one time axis")
    drawn = charts(frame, episode)
    yield (
        charts_html(drawn, name=f"chain-{place}")
        if drawn
        else paragraph("Nothing that could be drawn is known.")
    )
    yield heading("Phases")
    yield _phases(episode)
    yield heading("What would have paged")
    yield from _pages(episode)
    yield heading("Timeline")
    yield _timeline(episode)
    if episode.disagreements:
        yield heading("Figures beside each other")
        yield table(
            ("compared", "what comes of it"),
            [
                (each.title, ("They disagree. " if each.contradicts else "") + each.words)
                for each in episode.disagreements
            ],
        )
    if episode.actions:
        yield heading("To do")
        yield table(
            ("when", "what", "against", "how"),
            [(each.when, each.words, each.cause.value, listed(each.runbooks)) for each in episode.actions],
        )
    yield heading("How sure each statement is")
    yield table(
        ("statement", "how sure", "why"),
        [(number, each.how_sure, each.why) for number, each in enumerate(episode.statements, 1)],
    )


def _metrics(episode: Episode) -> Block:
    rows = [
        (
            each.title,
            each.baseline.words,
            each.peak.words,
            each.after.words,
            each.factor,
            each.confidence.value.replace("_", " "),
        )
        for each in episode.metrics
    ]
    notes = "Baseline and after are medians of three minutes, at worst is the worst instant. Of a percentile its bucket"
    return table(
        ("metric", "baseline", "at worst", "after", "times", "how sure"),
        rows,
        caption=f"{notes} is known: the value in it is interpolated, and > marks a floor.",
        numeric=(1, 2, 3, 4),
    )


def _causes(causes: Sequence[CauseFound]) -> Iterator[Block]:
    if not causes:
        yield paragraph("No known cause fits. The lines that were crossed are in the timeline.")
        return
    yield table(
        ("cause", "how sure", "seen of it", "since", "where", "comes of"),
        [
            (
                each.cause.value,
                f"{each.certainty} certainty",
                f"{each.score:.0%}",
                clock(each.onset) if each.onset is not None else UNKNOWN,
                listed(each.affected) or "the fleet",
                listed([one.value for one in each.explained_by]) or "itself",
            )
            for each in causes
        ],
        numeric=(2,),
    )
    first = causes[0]
    yield heading(f"Evidence for {first.cause}", 3)
    yield paragraph(first.sentence)
    yield table(
        ("", "evidence", "from", "to", "how sure"),
        [
            (
                _held(each),
                each.words,
                clock(each.since) if each.since is not None else UNKNOWN,
                clock(each.until) if each.until is not None else UNKNOWN,
                each.confidence.value.replace("_", " ") if each.confidence is not None else "not watched",
            )
            for each in first.evidence
        ],
    )
    for each in first.caveats:
        yield note(each)


def _held(proof: Proof) -> str:
    if proof.held is None:
        return "not watched"
    if proof.role == "against":
        return "against it" if proof.held else "nothing against it"
    return "seen" if proof.held else "not seen"


def _phases(episode: Episode) -> Block:
    rows = []
    for each in episode.phases:
        begin = each.begin
        spread = f"{clock(begin.earliest)} to {clock(begin.latest)}" if begin.uncertainty_seconds else "exact"
        rows.append(
            (
                each.name.value,
                clock(begin.at),
                clock(each.end.at) if each.end is not None else "goes on",
                duration(each.end.at - begin.at) if each.end is not None else UNKNOWN,
                spread,
                listed(begin.said_by, 5) or begin.note or each.name.meaning,
            )
        )
    return table(("phase", "from", "to", "lasts", "begins between", "who says so"), rows)


def _pages(episode: Episode) -> Iterator[Block]:
    if not episode.pages:
        yield paragraph("Nobody would have been told by the alerts that can be tried on this history.")
        return
    yield table(
        ("alert", "who", "at", "after the first sign", "until", "runbook"),
        [
            (
                each.name,
                "wakes somebody" if each.wakes else each.severity,
                clock(each.at),
                duration(each.after_seconds)
                if each.after_seconds >= 0
                else f"{duration(-each.after_seconds)} before",
                clock(each.until),
                each.runbook,
            )
            for each in episode.pages
        ],
    )


def _timeline(episode: Episode) -> Block:
    rows = []
    for minute, entries in minutes(episode.timeline):
        for place, each in enumerate(entries):
            words = f"{each.where}: {each.words}" if each.where else each.words
            rows.append(
                (
                    clock(minute)[:5] if not place else "",
                    clock(each.at)[6:],
                    each.kind.value,
                    words,
                )
            )
    caption = f"{day(episode.begin)}, minute by minute; {Kind.OVER.value}: it was beyond until then."
    return table(("minute", "s", "", "what"), rows, caption=caption)
