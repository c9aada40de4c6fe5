"""The page of a report as Chromium shows it, at a desk and on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.history.recorded import recorded
from analysis.report.build import report
from analysis.report.html import page
from tests.evaluation.playing import Case, play
from tests.support import chromium


@pytest.mark.skipif(chromium.PROGRAM is None, reason="there is no Chromium here")
def test_it_draws_without_a_complaint_asks_nobody_and_fits_a_phone(tmp_path: Path) -> None:
    history = recorded(play(Case("incident")).recording)
    file = tmp_path / "report.html"
    file.write_text(page(report(history), history.frame), encoding="utf-8")
    with chromium.browser(120) as browser:
        for width in (1280, 390):
            browser.open(file, width)
            browser.wait("document.documentElement.dataset.drawn === 'yes'")
            assert browser.problems() == []
            assert browser.requests() == []
            assert browser.value("document.documentElement.scrollWidth") <= width
            assert browser.value("document.querySelectorAll('figure').length") >= 5
