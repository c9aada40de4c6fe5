"""The draft of a postmortem: what is known is filled in, and what only people know is left blank for them."""

from __future__ import annotations

from collections.abc import Iterator

from alerts.alert import Expression
from alerts.catalogue import ALERTS
from alerts.conditions import Compare, leaves
from alerts.thresholds import THRESHOLDS
from analysis.incident.timeline import Kind
from analysis.incident.unit import duration
from analysis.report.markdown import disagreements, metrics, section, table, timeline, to_do, why
from analysis.report.report import Episode, Report
from analysis.report.words import clock, day, listed
from exporter.recorder_times import shown

BLANK = "_(to be filled in: {})_"


def postmortem(report: Report) -> str:
    """The document, Markdown; one for each incident, in order."""
    if not report.episodes:
        return f"# Postmortem\n\n{report.headline}: there is nothing to write of.\n"
    return "\n".join(_of(report, each) for each in report.episodes)


def _of(report: Report, episode: Episode) -> str:
    lines = [
        f"# Postmortem (draft): {episode.headline}",
        "",
        (
            f"Figures are from `{report.source}`, {shown(report.start)} to {shown(report.end)}, and stand as they were"
            " computed; all times are UTC."
        ),
        "",
        *(f"> {each}\n" for each in (*report.caveats, *episode.notes)),
    ]
    lines += section("Overview", _overview(episode))
    lines += section(
        "1. Summary and timeline",
        [*_summary(episode), "", *metrics(episode), "", "### Timeline", "", *timeline(episode)],
    )
    lines += section("2. Root cause", _root(episode))
    lines += section("3. The chain of failure", _chain(episode))
    lines += section("4. Remediation and guardrails", _remediation(episode))
    lines += section("5. Runbooks and lines", _runbooks(episode))
    lines += section("6. Verification", _verification())
    return "\n".join(lines).rstrip() + "\n"


def _overview(episode: Episode) -> Iterator[str]:
    yield " ".join(each.words for each in episode.statements)
    yield ""
    yield BLANK.format("who the users were, what they were told, what it cost")


def _summary(episode: Episode) -> Iterator[str]:
    lasted = duration(episode.end - episode.begin) if episode.end is not None else "it goes on"
    over = clock(episode.end) if episode.end is not None else "now"
    earliest, latest = clock(episode.begin_earliest), clock(episode.begin_latest)
    began = f"{day(episode.begin)} {clock(episode.begin)}, between {earliest} and {latest}"
    earliest, latest = clock(episode.begin_earliest), clock(episode.begin_latest)
    began = f"{day(episode.begin)} {clock(episode.begin)}, between {earliest} and {latest}"
    yield from table(
        ("", ""),
        [
            ("severity", BLANK.format("SEV")),
            (
                "began",
                began,
            ),
            ("lasted", f"{lasted}, to {over}"),
            ("worst at", clock(episode.worst_at)),
            ("engines", listed([each.engine for each in episode.engines], 8) or "none by itself"),
            ("noticed by", BLANK.format("whom, and how")),
        ],
    )


def _root(episode: Episode) -> Iterator[str]:
    yield from why(episode.causes[:1])
    yield ""
    yield BLANK.format("why it was possible: the change, the setting or the load behind it, and since when")
    notes = list(disagreements(episode))
    if notes:
        yield from ["", "Figures that were held to each other:", "", *notes]


def _chain(episode: Episode) -> Iterator[str]:
    if len(episode.causes) < 2:  # noqa: PLR2004 -- a chain has two links
        yield "No other cause was found beside it."
    yield from why(episode.causes[1:])


def _remediation(episode: Episode) -> Iterator[str]:
    done = [each for each in episode.timeline if each.kind is Kind.ACTION]
    yield "### What was done"
    yield ""
    yield from (f"- {clock(each.at)} {each.where}: {each.words}" for each in done)
    yield f"- {BLANK.format('what no metric shows, and who decided it')}"
    yield ""
    yield "### What is to be done"
    yield ""
    yield from to_do(episode)
    yield f"- [ ] {BLANK.format('owner and date of each')}"


def _runbooks(episode: Episode) -> Iterator[str]:
    rows = []
    for each in episode.pages:
        condition = ALERTS[each.name].condition
        lines = [] if isinstance(condition, Expression) else [_line(leaf) for leaf in leaves(condition)]
        rows.append((each.name, "; ".join(lines) or "PromQL", clock(each.at), each.runbook))
    if rows:
        yield from table(("alert", "line", "would have fired", "runbook"), rows)
        yield ""
    yield BLANK.format("what of the runbooks helped, what was missing, which steps were taken in vain")


def _line(leaf: Compare) -> str:
    return f"{leaf.reading.signal.name} {leaf.operator} {leaf.bound(THRESHOLDS):g}"


def _verification() -> Iterator[str]:
    yield BLANK.format("load at which it was tried again, when, and its key metrics")
    yield ""
    yield "`thrashold drill run` plays incidents of this kind, and `thrashold analyze` reads what came of it."
