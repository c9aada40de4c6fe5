"""What was done, what people noted, and the timeline that both stand in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from alerts.alert import Severity
from analysis.incident.actions import actions
from analysis.incident.annotations import Annotation, AnnotationError, read_annotations
from analysis.incident.phases import incidents
from analysis.incident.subject import fleet
from analysis.incident.timeline import Fired, Kind, minutes, timeline
from exporter.derive.blocks import KV_BLOCKS
from exporter.derive.preemption import THRASHING
from exporter.derive.ranks import ENGINE_INFO, RESTARTS
from exporter.derive.swap import SWAP_TIER_BYTES, SWAP_TIER_ENABLED
from tests.support.histories import frame, labelled

RANK = {"engine": "a", "rank": "0", "model_name": "m"}
SECONDS = np.arange(600.0)
GONE = (SECONDS >= 400) & (SECONDS < 420)


def _history():  # noqa: ANN202 -- a Frame
    """From 300 to 400 s it thrashes; then it is restarted without swap, in 20 s, as another generation."""

    def there(before: float, after: float) -> np.ndarray:
        return np.where(GONE, np.nan, np.where(SECONDS < 400, before, after))

    kind = {"engine": "a", "engine_kind": "vllm"}
    return frame(
        {
            labelled(THRASHING, **RANK): np.where(GONE, np.nan, (SECONDS >= 300) & (SECONDS < 400)),
            labelled(RESTARTS, engine="a"): there(0, 1),
            labelled(SWAP_TIER_ENABLED, **RANK): there(1, 0),
            labelled(SWAP_TIER_BYTES, **RANK): there(40e9, 0),
            labelled(KV_BLOCKS, state="total", **RANK): there(1000, 900),
            labelled(KV_BLOCKS, state="used", **RANK): SECONDS,
            labelled(ENGINE_INFO, generation="v0", **kind): np.where(SECONDS < 400, 1.0, np.nan),
            labelled(ENGINE_INFO, generation="v1", **kind): np.where(SECONDS < 420, np.nan, 1.0),
        }
    )


def test_restarts_and_settings_that_changed_are_seen_and_what_merely_varies_is_not() -> None:
    found = actions(fleet(_history()))
    assert {each.at - 1.8e9 for each in found} == {420.0}
    assert {each.words for each in found} == {
        "began anew",
        "may swap to the host: no, was yes",
        "tier below the GPU: 0 B, was 40 GB",
        "KV blocks: 900, was 1,000",
        "is vllm v1 now, and was vllm v0",
    }


def test_a_timeline_has_everything_in_order_and_by_minute() -> None:
    whole = _history()
    subject = fleet(whole)
    start = whole.start
    clamped = Annotation(start + 350, "gateway clamped", is_action=True, where="gateway")
    incident = incidents(whole, actions=[each.at for each in actions(subject)]).fleet[0]
    told = timeline(
        subject,
        incident,
        fired=[Fired("KvThrashing", Severity.PAGE, start + 315, start + 400, "a", silenced=True)],
        actions=actions(subject),
        annotations=(clamped, Annotation(start + 310, "a call")),
    )
    assert [each.at for each in told] == sorted(each.at for each in told)
    by_words = {each.words: each for each in told}
    assert by_words["a call"].kind is Kind.NOTE
    assert by_words["gateway clamped"].kind is Kind.ACTION
    assert by_words["KvThrashing (page, explained by another) for 85 s"].at == start + 315
    assert by_words["thrashing"].kind is Kind.LINE
    assert by_words["thrashing"].at == start + 300
    assert [entry for _, entries in minutes(told) for entry in entries] == list(told)
    assert all(entry.at // 60 * 60 == minute for minute, entries in minutes(told) for entry in entries)


def test_notes_are_read_from_json_and_from_yaml_with_times_of_both_kinds(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text('[{"at": 1790692500, "text": "later"}, {"at": "2026-09-29T14:00:00Z", "text": "first"}]')
    assert [each.text for each in read_annotations(file)] == ["first", "later"]
    file.write_text("- at: 2026-09-29T14:35:00Z\n  text: clamped\n  action: true\n  where: gateway\n")
    assert read_annotations(file) == (Annotation(1790692500.0, "clamped", is_action=True, where="gateway"),)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{}", "a list of notes"),
        ("- [", "line 1"),
        ("- 3", "note 1: a mapping"),
        ("- {at: 1, text: a, what: b}", "note 1: no key 'what'"),
        ("- {at: 1}", "note 1: it has no text"),
        ("- {at: 1, text: a, action: 1}", "note 1: action"),
        ("- {at: yesterday, text: a}", "note 1: at is no time"),
        ("- {at: true, text: a}", "note 1: at is no time"),
    ],
)
def test_what_is_no_note_says_where_and_why(tmp_path: Path, text: str, wrong: str) -> None:
    file = tmp_path / "notes.yaml"
    file.write_text(text)
    with pytest.raises(AnnotationError, match=wrong) as raised:
        read_annotations(file)
    assert str(file) in str(raised.value)


def test_a_file_of_notes_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(AnnotationError, match="can't be read"):
        read_annotations(tmp_path / "none.yaml")
