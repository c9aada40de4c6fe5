from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.incident.spans import merged, spans

MASKS = st.lists(st.booleans(), max_size=60)


@given(MASKS, st.integers(0, 5), st.integers(1, 5))
def test_spans_hold_what_is_true_and_gaps_that_are_bridged_and_are_far_apart(
    truth: list[bool], bridge: int, least: int
) -> None:
    found = spans(np.array(truth, dtype=bool), bridge, least)
    for each in found:
        assert truth[each.begin]
        assert truth[each.end - 1]
        assert each.length >= least
        gap = 0
        for place in range(each.begin, each.end):
            gap = 0 if truth[place] else gap + 1
            assert gap <= bridge
    for one, other in pairwise(found):
        assert other.begin - one.end > bridge
    if least == 1:
        assert {place for each in found for place in range(*each)} >= {
            place for place, each in enumerate(truth) if each
        }


@given(MASKS, MASKS)
def test_spans_of_two_masks_as_one_are_those_of_either(one: list[bool], other: list[bool]) -> None:
    length = min(len(one), len(other))
    masks = [np.array(each[:length], dtype=bool) for each in (one, other)]
    both = list(merged(span for mask in masks for span in spans(mask)))
    assert both == list(spans(masks[0] | masks[1]))
