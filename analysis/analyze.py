"""From a source of history to a report and its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.history.history import History
from analysis.history.reading import read
from analysis.incident.annotations import Annotation
from analysis.report.as_json import as_json
from analysis.report.build import Progress, report
from analysis.report.html import page
from analysis.report.markdown import markdown
from analysis.report.postmortem import postmortem
from analysis.report.report import Report

PAGE, MARKDOWN, JSON, POSTMORTEM = "report.html", "report.md", "report.json", "postmortem.md"


def analyze(  # noqa: PLR0913 - what, when, and who is told
    source: str,
    start: float | None = None,
    end: float | None = None,
    annotations: Sequence[Annotation] = (),
    *,
    matchers: Sequence[str] = (),
    progress: Progress = lambda _: None,
) -> tuple[History, Report]:
    """Read a source and say what happened. Raises HistoryError. See ``analysis.history.reading.read`` for sources."""
    progress("history")
    history = read(source, start, end, matchers=matchers)
    return history, report(history, annotations, progress=progress)


def write(folder: Path, history: History, made: Report) -> tuple[Path, ...]:
    """The report in all its forms; what an earlier one left there is replaced. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        PAGE: page(made, history.frame),
        MARKDOWN: markdown(made),
        JSON: as_json(made) + "\n",
        POSTMORTEM: postmortem(made),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tuple(folder / name for name in files)
