import re
import time
from pathlib import Path

import numpy as np
import pytest

from analysis.page.chart import Band, Chart, Interval, IntervalKind, Marker, Series, Threshold
from analysis.page.charts import charts_html
from analysis.page.document import MOST_BYTES, Tone, document, heading, listing, note, paragraph, table
from tests.support import chromium

HOSTILE = "<img src=x onerror=hostile()></script><script>hostile()</script> @value $name & {{ 1 }} </style>"
TIMES = 1.79e9 + np.arange(7200.0)
NEEDS_CHROMIUM = pytest.mark.skipif(chromium.PROGRAM is None, reason="no Chromium on this machine")


def _charts() -> list[Chart]:
    usage = 0.5 + 0.2 * np.sin(TIMES / 900)
    usage[3000:3400] = np.nan
    sparse = np.where(np.arange(7200) % 60 == 0, 5e8, np.nan)
    return [
        Chart(
            "KV usage",
            "ratio",
            (Series("engine-0", TIMES, usage), Series("engine-1", TIMES, usage / 2)),
            bands=(Band("expected", TIMES, usage - 0.1, usage + 0.1),),
            thresholds=(Threshold(0.9, "pages"), Threshold(1e9, "far away")),
            intervals=(Interval(TIMES[3000], TIMES[3400], "", IntervalKind.MISSING),),
            markers=(Marker(TIMES[4000], "onset"),),
        ),
        Chart(
            HOSTILE,
            "bytes/s",
            (Series(HOSTILE, TIMES, 1e9 + TIMES - TIMES[0]), Series("sparse", TIMES, sparse)),
            bands=(Band(HOSTILE, TIMES, sparse, sparse),),
            thresholds=(Threshold(1e9, HOSTILE),),
            intervals=(Interval(TIMES[0], TIMES[9], HOSTILE),),
            markers=(Marker(TIMES[100], HOSTILE, 1e9), Marker(TIMES[100], HOSTILE)),
            note=HOSTILE,
        ),
        Chart(
            "nothing is known",
            "",
            (Series("empty", TIMES, np.full(7200, np.inf)), Series("none", TIMES[:0], TIMES[:0])),
        ),
    ]


def _page() -> str:
    blocks = [
        heading(HOSTILE),
        paragraph(HOSTILE),
        note(HOSTILE, Tone.ALARM),
        listing([HOSTILE]),
        table(["engine", HOSTILE], [[HOSTILE, 3], ["b", None]], caption=HOSTILE, numeric=[1]),
        charts_html(_charts()),
        charts_html(_charts(), shared_axis=False, name="more"),
    ]
    return document(HOSTILE, blocks, under=[HOSTILE])


@NEEDS_CHROMIUM
def test_a_browser_draws_it_and_asks_nobody_and_hostile_labels_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(_page(), encoding="utf-8")
    with chromium.browser() as browser:
        browser.open(path)
        browser.wait("document.documentElement.dataset.drawn === 'yes'")
        assert (
            browser.value("[...document.querySelectorAll('.plot')].filter((p) => p.firstElementChild).length")
            == 6
        )
        browser.value("hovered = document.getElementById('charts-1'), hovered.scrollIntoView()")
        browser.hover(600, browser.value("hovered.getBoundingClientRect().top") + 100)
        browser.scheme("dark")
        browser.resize(390, 800)
        browser.send("Page.printToPDF")
        assert browser.value("document.documentElement.scrollWidth") <= 390
        assert browser.value("document.querySelectorAll('img').length") == 0
        assert browser.value("document.querySelector('h1').textContent") == HOSTILE
        assert browser.value("document.querySelector('td').textContent") == HOSTILE
        assert browser.problems() == []
        assert browser.requests() == []


@NEEDS_CHROMIUM
def test_on_a_phone_what_stands_above_a_table_wraps_and_a_row_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    rows = [("14:12:32", "last_token_age_seconds", "0.00155 to 0.0929", "over 1,000 spreads above")]
    made = table(("since", "signal", "usual", "how far"), rows, "Never true: " + "SomeAlert, " * 20)
    path.write_text(document("wide", [made]), encoding="utf-8")
    with chromium.browser() as browser:
        browser.open(path)
        browser.resize(390, 800)
        assert browser.value("document.querySelector('caption span').getBoundingClientRect().right") <= 390
        assert browser.value("document.querySelector('tbody tr').getBoundingClientRect().height") < 40
        assert browser.value("document.querySelector('table').getBoundingClientRect().width") > 390


@NEEDS_CHROMIUM
def test_charts_are_linked_and_a_key_hides_its_line(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(document("linked", [charts_html(_charts())]), encoding="utf-8")
    with chromium.browser() as browser:
        browser.open(path)
        browser.wait("document.documentElement.dataset.drawn === 'yes'")
        ranges = "new Set(Bokeh.documents[0].roots().filter((r) => r.x_range).map((r) => r.x_range.id)).size"
        assert browser.value(ranges) == 1
        line = (
            "Bokeh.documents[0].get_model_by_id(document.querySelector('.keys button').dataset.lines).visible"
        )
        assert browser.value(line) is True
        browser.value("document.querySelector('.keys button').click()")
        assert browser.value(line) is False


@NEEDS_CHROMIUM
def test_colours_follow_the_scheme_of_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(document("colours", [charts_html(_charts()[:1])]), encoding="utf-8")
    corner = (
        "(() => { const canvas = Bokeh.index.roots[0].export('png', false).canvas;"
        " return canvas.getContext('2d').getImageData(2, 2, 1, 1).data[0]; })()"
    )
    with chromium.browser() as browser:
        browser.open(path)
        browser.wait("document.documentElement.dataset.drawn === 'yes'")
        assert browser.value(corner) == 255
        browser.scheme("dark")
        for _ in range(200):
            if (dark := browser.value(corner)) < 40:
                break
            time.sleep(0.02)
        assert dark < 40


def test_a_report_of_forty_long_series_is_small_enough_to_be_sent() -> None:
    chance = np.random.default_rng(7)
    times = 1.79e9 + np.arange(50_000.0)
    charts = [
        Chart(
            f"chart {each}",
            "",
            tuple(Series(f"{line}", times, chance.normal(size=50_000)) for line in range(4)),
        )
        for each in range(10)
    ]
    block = charts_html(charts)
    page = document("long", [block])
    assert len(page.encode()) < MOST_BYTES
    assert "thinned for drawing" in block.html
    assert (
        "thinned for drawing"
        not in charts_html([Chart("short", "", (Series("a", times[:9], times[:9]),))]).html
    )


def test_the_same_charts_give_the_same_page() -> None:
    assert _page() == _page()


def test_nothing_runs_but_the_two_scripts_of_the_page() -> None:
    page = _page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert "<noscript>" in page
    words = document("words", [paragraph("no charts")])
    assert "<script>" not in words
    assert "script-src &#39;none&#39;" in words
    assert len(words) < 6000


def test_series_out_of_order_and_names_that_are_no_names_are_refused() -> None:
    with pytest.raises(ValueError, match="in order"):
        Series("a", np.array([2.0, 1.0]), np.array([1.0, 1.0]))
    with pytest.raises(ValueError, match="shape"):
        Series("a", np.array([1.0, 2.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="letters, digits and dashes"):
        charts_html([], name="a b")
    with pytest.raises(ValueError, match="level"):
        heading("a", 1)
