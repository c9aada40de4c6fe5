import pytest

from tests.evaluation import changepoints
from tests.evaluation.changepoints import COVER_BAR, F1_BAR, cover, f1, halves, ours, scores

NEEDS_DATA = pytest.mark.skipif(
    not changepoints.is_there(), reason="the Turing Change Point Dataset is not here"
)


def test_the_scores_are_those_of_the_definition_by_hand() -> None:
    people = (frozenset({50}), frozenset({50, 80}))
    assert f1(people, [53, 20]) == pytest.approx(2 * (2 / 3) * (1 + 2 / 3) / 2 / (2 / 3 + (1 + 2 / 3) / 2))
    assert f1(people, [56]) == pytest.approx(2 * 0.5 * (0.5 + 1 / 3) / 2 / (0.5 + (0.5 + 1 / 3) / 2))
    assert cover((frozenset({50}),), [50], 100) == 1.0
    assert cover((frozenset({50}),), [], 100) == pytest.approx(0.5)
    assert cover((frozenset(),), [50], 100) == pytest.approx(0.5)


@NEEDS_DATA
def test_finding_nothing_scores_what_others_measured() -> None:
    """0.642 and 0.549: the same series, and the same scores."""
    nothing = halves(scores(lambda _: ()))["all"]
    assert (round(nothing.f1, 3), round(nothing.cover, 3)) == (0.642, 0.549)


@NEEDS_DATA
def test_the_bars_are_met_and_the_page_says_so() -> None:
    found = scores(ours)
    assert len(found) == 26
    means = halves(found)
    assert means["all"].f1 >= F1_BAR
    assert means["all"].cover >= COVER_BAR
    assert changepoints.PAGE.read_text(encoding="utf-8") == changepoints.page(found, scores(lambda _: ()))
