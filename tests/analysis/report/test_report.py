"""A report of the drill's incident, in all its forms, and of histories that lack something."""

from __future__ import annotations

import json
import re

import pytest

from alerts.causes import Cause
from analysis.cascade.ranking import Answer
from analysis.frame import Frame, Key
from analysis.history.history import History
from analysis.history.recorded import recorded
from analysis.incident.annotations import Annotation
from analysis.page.document import MOST_BYTES
from analysis.report.action_items import ITEMS, runbooks
from analysis.report.as_json import as_json
from analysis.report.build import report
from analysis.report.html import page
from analysis.report.markdown import markdown
from analysis.report.postmortem import postmortem
from analysis.report.report import Report
from exporter.signal import Scope
from tests.evaluation.playing import ROOT, Case, Run, play
from tests.support.histories import only, torn, twice


@pytest.fixture(scope="module")
def run() -> Run:
    return play(Case("incident"))


@pytest.fixture(scope="module")
def history(run: Run) -> History:
    return recorded(run.recording)


@pytest.fixture(scope="module")
def made(history: History) -> Report:
    return report(history)


def _of(frame: Frame, **more: object) -> Report:
    return report(History(frame, "made", **more))  # type: ignore[arg-type]


def test_it_says_what_happened_in_five_sentences_with_numbers_and_how_sure_each_is(made: Report) -> None:
    assert made.answer is Answer.CAUSES
    (episode,) = made.episodes
    assert episode.causes[0].cause is Cause.SWAP_THRASH
    assert 4 <= len(episode.statements) <= 5
    for each in episode.statements:
        assert re.search(r"\d", each.words)
        assert each.how_sure
        assert each.why
    assert "engine-0 and engine-1" in made.headline
    assert episode.end is not None


def test_what_follows_is_said_to_begin_after_its_cause_only_where_it_does(made: Report) -> None:
    (episode,) = made.episodes
    first, *others = episode.causes
    assert first.onset is not None
    followed = [each for each in others if first.cause in each.explained_by]
    assert followed
    (why,) = (each.why for each in episode.statements if f"{len(followed)} of them are what" in each.why)
    early = [each for each in followed if each.onset is not None and each.onset < first.onset]
    assert ("begin after it" in why) == (not early)
    assert (f"{len(early)} of these seem to begin before it" in why) == bool(early)


def test_json_ranks_causes_with_their_evidence_and_is_json(made: Report) -> None:
    told = json.loads(as_json(made))
    assert told["causes"][0]["cause"] == Cause.SWAP_THRASH
    first = told["causes"][0]
    assert 0.5 <= first["score"] <= 1
    assert any(each["held"] and each["since"] for each in first["evidence"])
    assert told["answer"] == Answer.CAUSES
    metrics = {each["title"]: each for each in told["episodes"][0]["metrics"]}
    assert metrics["TPOT p99"]["peak"]["bucket"][0] <= metrics["TPOT p99"]["peak"]["value"]


def test_the_same_history_gives_the_same_report_in_every_form(history: History, made: Report) -> None:
    again = report(history)
    assert again == made
    assert page(again, history.frame) == page(made, history.frame)


def test_the_page_is_one_file_that_can_be_sent_and_says_the_same_as_the_others(
    history: History, made: Report
) -> None:
    html = page(made, history.frame)
    assert len(html.encode()) < MOST_BYTES
    outside = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(?:src|href)\s*=", outside)
    text = markdown(made)
    (episode,) = made.episodes
    for metric in episode.metrics:
        assert metric.peak.words in text
        assert metric.peak.words.replace(">", "&gt;") in html
    for each in episode.timeline:
        assert each.words.replace("|", "\\|") in text


def test_the_draft_has_the_outline_and_leaves_to_people_what_only_they_know(made: Report) -> None:
    text = postmortem(made)
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == [
        "Overview",
        "1. Summary and timeline",
        "2. Root cause",
        "3. The chain of failure",
        "4. Remediation and guardrails",
        "5. Runbooks and lines",
        "6. Verification",
    ]
    assert text.count("_(to be filled in:") >= 6
    assert "- [ ] now" in text


def test_what_people_noted_stands_in_it_and_begins_the_mitigation(run: Run, history: History) -> None:
    at = run.truth["actions"][0]["at"] + 15
    made = report(history, [Annotation(at, "<b>clamped</b>", is_action=True, where="gateway")])
    (episode,) = made.episodes
    assert any(each.words == "<b>clamped</b>" for each in episode.timeline)
    assert "<b>clamped</b>" not in page(made, history.frame)


def test_two_incidents_are_told_apart_and_each_has_its_own_causes(history: History) -> None:
    made = _of(twice(history.frame))
    assert len(made.episodes) == 2
    assert made.headline.startswith("2 incidents")
    for each in made.episodes:
        assert each.causes[0].cause is Cause.SWAP_THRASH
        onset = each.causes[0].onset
        assert onset is not None
        assert abs(onset - each.begin) < 60
    assert page(made, twice(history.frame)).count("Key metrics") == 2


def test_one_that_goes_on_is_told_as_such_with_what_to_do_now(run: Run, history: History) -> None:
    frame = history.frame.between(history.frame.start, run.truth["onset"] + 240)
    made = _of(frame)
    assert made.episodes[0].end is None
    assert "it goes on" in made.headline
    assert "Now: " in page(made, frame)


def test_a_hole_across_the_onset_is_said_with_what_it_costs(run: Run, history: History) -> None:
    made = _of(torn(history.frame, run.truth["onset"] - 20, run.truth["onset"] + 40))
    assert any("hole" in each for each in made.caveats)
    assert any("known to within" in each for each in made.episodes[0].notes)


def _is_gpu(key: Key) -> bool:
    return bool(key.label(Scope.GPU.labels[0])) and not key.label("engine")


def test_engines_alone_and_gpus_alone_say_what_they_cant_see(history: History) -> None:
    engines = _of(only(history.frame, lambda key: bool(key.label("engine")) and not key.label("uuid")))
    assert engines.episodes[0].causes[0].cause is Cause.SWAP_THRASH
    assert any(each.startswith("No GPU was watched") for each in engines.caveats)
    assert any(each.startswith("No gateway was watched") for each in engines.caveats)
    gpus = _of(only(history.frame, _is_gpu))
    assert any(each.startswith("No engine was watched") for each in gpus.caveats)
    assert page(gpus, only(history.frame, _is_gpu))


def test_without_a_sidecar_that_is_said(history: History) -> None:
    made = _of(history.frame, derived=frozenset({"thrashold_kv_usage_ratio"}), notes=("read from a dump",))
    assert any(each.startswith("No sidecar was there: 1 signals") for each in made.caveats)
    assert "read from a dump" in made.caveats


def test_a_peak_that_is_carried_is_nothing_unusual() -> None:
    quiet = recorded(play(Case("peak")).recording)
    made = report(quiet)
    assert made.answer is Answer.NOTHING_UNUSUAL
    assert made.headline == "Nothing unusual"
    assert made.episodes == ()
    for text in (page(made, quiet.frame), markdown(made), postmortem(made)):
        assert "Nothing unusual" in text


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_something_to_do_and_a_page_that_is_there(cause: Cause) -> None:
    assert all(each.strip().endswith(".") for each in ITEMS[cause])
    assert runbooks(cause)
    for each in runbooks(cause):
        assert (ROOT / each).is_file()
