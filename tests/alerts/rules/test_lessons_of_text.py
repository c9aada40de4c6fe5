"""What went wrong with other people's rules, looked for in the text of ours. Each test is a lesson."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from alerts.alert import Alert
from alerts.catalogue import ALERTS, RECORDINGS
from alerts.render import rule
from exporter import own_signals, recorder_signals, sampler_signals, source_signals
from exporter.catalogue import DERIVED_SIGNALS
from exporter.signal import PEAK_SUFFIX
from tests.alerts.rules.lessons import PLAIN

EXPRESSIONS = {name: alert.promql(PLAIN.rendering) for name, alert in ALERTS.items()} | {
    each.name: each.promql(PLAIN.rendering) for group in RECORDINGS.values() for each in group.recordings
}
MODULES = (source_signals, sampler_signals, own_signals, recorder_signals)
SIGNALS = {
    each.full_name: each
    for each in (*DERIVED_SIGNALS, *(one for module in MODULES for one in module.SIGNALS))
}
_SELECTOR = re.compile(r"(?<![:\w])(thrashold_\w+)(?:\{([^}]*)\})?(?:\[(\d+)([smhd])\])?")
_SUMMED = re.compile(r"sum by \([^)]*\) \((?:max by \([^)]*\) \()?(?:\w+_over_time\()?(thrashold_\w+)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
ABOUT_BOARDS = {2, 6, 7, 8, 27}
"""Variables on a metric that some GPUs lack, unnamed data sources, dead panels, misplaced options, schema versions."""


def selectors() -> list[tuple[str, str, str, int]]:
    """Of each expression what it selects: name of the rule, signal, matchers, window in seconds (0: an instant)."""
    return [
        (rule_name, found[1], found[2] or "", int(found[3]) * _UNITS[found[4]] if found[3] else 0)
        for rule_name, text in EXPRESSIONS.items()
        for found in _SELECTOR.finditer(text)
    ]


def test_of_lessons_about_rules_none_is_left_out() -> None:
    files = Path(__file__).parent.glob("test_lessons*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    told = {int(found) for found in re.findall(r"def test_lesson_([0-9]+)_", text)}
    assert told == set(range(1, 28)) - ABOUT_BOARDS


def test_lesson_01_every_name_in_a_rule_is_one_that_the_sidecar_tells() -> None:
    named = {name.removesuffix(PEAK_SUFFIX) for _, name, _, _ in selectors()}
    assert named
    assert named <= SIGNALS.keys()


def test_lesson_04_ratios_are_never_summed() -> None:
    for name, text in EXPRESSIONS.items():
        for summed in re.findall(
            r"sum by \([^)]*\) \((?:max by \([^)]*\) \()?(?:\w+_over_time\()?(thrashold_\w+)", text
        ):
            assert not re.search(r"_ratio$|_p\d\d_seconds$", summed), name


def test_lesson_09_no_window_is_shorter_than_four_scrapes() -> None:
    """Of 15 s for what holds a value, of 30 s for a rise."""
    for name, text in EXPRESSIONS.items():
        for function, seconds in re.findall(r"(\w+)\(thrashold_\w+(?:\{[^}]*\})?\[(\d+\w)\]", text):
            window = int(seconds[:-1]) * _UNITS[seconds[-1]]
            assert window >= (120 if function in {"rate", "increase"} else 60), name


def test_lesson_14_every_matcher_names_a_label_that_its_signal_has() -> None:
    seen = 0
    for name, signal, matchers, _ in selectors():
        for label in re.findall(r"(\w+)=~?\"", matchers):
            assert label in SIGNALS[signal.removesuffix(PEAK_SUFFIX)].label_names, name
            seen += 1
    assert seen


@pytest.mark.parametrize("alert", ALERTS.values(), ids=list(ALERTS))
def test_lesson_21_words_use_no_label_that_the_expression_drops(alert: Alert) -> None:
    made = rule(alert, PLAIN)
    kept = {*alert.labels, *PLAIN.cluster_labels}
    for words in made["annotations"].values():
        assert set(re.findall(r"\$labels\.(\w+)", words)) <= kept


def test_lesson_24_no_rule_compares_a_bucket_bound_as_text() -> None:
    """Prometheus 3 writes le="1.0" where 2 wrote le="1": the sidecar cuts at bounds itself."""
    assert not any(
        re.search(r"\b(le|quantile)\s*(=|!)", text) or "histogram_quantile" in text
        for text in EXPRESSIONS.values()
    )


def test_lesson_25_days_are_never_read_from_what_is_scraped() -> None:
    for name, signal, _, window in selectors():
        # a number of an XID has no series before its first
        assert window <= (6 * 3600 if signal == "thrashold_gpu_xid_errors_total" else 1800), name
