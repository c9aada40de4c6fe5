"""A report as Markdown, for a ticket or a chat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from analysis.incident.unit import UNKNOWN, duration
from analysis.report.report import CauseFound, Episode, Report
from analysis.report.words import clock, listed
from exporter.recorder_times import shown


def markdown(report: Report) -> str:
    """The whole document."""
    lines = [
        f"# {report.headline}",
        "",
        f"`{report.source}`, {shown(report.start)} to {shown(report.end)}; UTC.",
        "",
    ]
    lines += [f"> What this can't see: {each}\n" for each in report.caveats]
    for place, episode in enumerate(report.episodes):
        if len(report.episodes) > 1:
            lines += [f"# Incident {place + 1}: {episode.headline}", ""]
        lines += section("What happened", what_happened(episode))
        lines += section("Key metrics", metrics(episode))
        lines += section("Why", why(episode.causes))
        lines += section("Phases", phases(episode))
        lines += section("What would have paged", paged(episode))
        lines += section("Timeline", timeline(episode))
        lines += section("Figures beside each other", disagreements(episode))
        lines += section("To do", to_do(episode))
        lines += section("How sure each statement is", how_sure(episode))
    return "\n".join(lines).rstrip() + "\n"


def section(title: str, body: Iterable[str], level: int = 2) -> list[str]:
    """A heading and what stands under it; nothing where there is nothing."""
    told = list(body)
    return [f"{'#' * level} {title}", "", *told, ""] if told else []


def what_happened(episode: Episode) -> Iterator[str]:
    """Numbered sentences, and what has to be known of them."""
    yield from (f"{number}. {each.words}" for number, each in enumerate(episode.statements, 1))
    if episode.notes:
        yield ""
        yield from (f"> {each}" for each in episode.notes)


def metrics(episode: Episode) -> Iterator[str]:
    """The table of key metrics."""
    yield from table(
        ("metric", "baseline", "at worst", "after", "times", "how sure"),
        [
            (
                each.title,
                each.baseline.words,
                each.peak.words,
                each.after.words,
                each.factor,
                each.confidence.value.replace("_", " "),
            )
            for each in episode.metrics
        ],
    )


def why(causes: Sequence[CauseFound]) -> Iterator[str]:
    """Causes in order, each with its evidence."""
    if not causes:
        yield "No known cause fits."
    for each in causes:
        of = f", comes of {listed([one.value for one in each.explained_by])}" if each.explained_by else ""
        since = f" since {clock(each.onset)}" if each.onset is not None else ""
        sure = f"{each.certainty} certainty, {each.score:.0%} of it seen"
        yield f"- **{each.cause}** ({sure}){since}{of}: {each.sentence}"
        yield from (f"  - {proof.words}" for proof in each.evidence)


def phases(episode: Episode) -> Iterator[str]:
    """From, to, and how sure."""
    yield from table(
        ("phase", "from", "to", "begins between", "who says so"),
        [
            (
                each.name.value,
                clock(each.begin.at),
                clock(each.end.at) if each.end is not None else "goes on",
                f"{clock(each.begin.earliest)} to {clock(each.begin.latest)}",
                listed(each.begin.said_by, 5) or each.begin.note or each.name.meaning,
            )
            for each in episode.phases
        ],
    )


def paged(episode: Episode) -> Iterator[str]:
    """Alerts that people would have got."""
    if not episode.pages:
        yield "Nobody would have been told by the alerts that can be tried on this history."
        return
    yield from table(
        ("alert", "who", "at", "after the first sign", "runbook"),
        [
            (
                each.name,
                "wakes somebody" if each.wakes else each.severity,
                clock(each.at),
                duration(each.after_seconds)
                if each.after_seconds >= 0
                else f"{duration(-each.after_seconds)} before",
                each.runbook,
            )
            for each in episode.pages
        ],
    )


def timeline(episode: Episode) -> Iterator[str]:
    """Minute by minute."""
    yield from table(
        ("UTC", "", "what"),
        [
            (clock(each.at), each.kind.value, f"{each.where}: {each.words}" if each.where else each.words)
            for each in episode.timeline
        ],
    )


def disagreements(episode: Episode) -> Iterator[str]:
    """What fits and what doesn't."""
    for each in episode.disagreements:
        yield f"- **{each.title}**{' (they disagree)' if each.contradicts else ''}: {each.words}"


def to_do(episode: Episode) -> Iterator[str]:
    """Boxes to tick."""
    for each in episode.actions:
        how = f" ({listed(each.runbooks)})" if each.runbooks else ""
        yield f"- [ ] {each.when}, against {each.cause}: {each.words}{how}"


def how_sure(episode: Episode) -> Iterator[str]:
    """By number of the sentence."""
    yield from table(
        ("statement", "how sure", "why"),
        [(str(number), each.how_sure, each.why) for number, each in enumerate(episode.statements, 1)],
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """As GitHub shows it; a bar in a cell is no border."""
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join((cell or UNKNOWN).replace('|', chr(92) + '|') for cell in row)} |"
