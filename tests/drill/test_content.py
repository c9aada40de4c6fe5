from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drill.serving.content import Segment, chain_hashes

SEGMENTS = st.lists(st.builds(Segment, st.integers(0, 3), st.integers(1, 9)), max_size=6)


def tokens(segments: list[Segment]) -> list[tuple[int, int]]:
    return [(part.content, index) for part in segments for index in range(part.tokens)]


@given(SEGMENTS, SEGMENTS, st.integers(1, 7))
def test_two_chains_agree_exactly_as_far_as_the_tokens_do(
    one: list[Segment], other: list[Segment], size: int
) -> None:
    first, second = tokens(one), tokens(other)
    one_chain, other_chain = chain_hashes(one, size).tolist(), chain_hashes(other, size).tolist()
    assert len(one_chain) == len(first) // size
    assert 0 not in one_chain
    for block, (a, b) in enumerate(zip(one_chain, other_chain, strict=False), 1):
        assert (a == b) == (first[: block * size] == second[: block * size])


def test_a_segment_that_goes_on_is_another_content_than_one_that_starts_again() -> None:
    assert (
        chain_hashes([Segment(1, 8)], 4).tolist() != chain_hashes([Segment(1, 4), Segment(1, 4)], 4).tolist()
    )


def test_a_chain_is_the_same_in_every_process() -> None:
    assert chain_hashes([Segment(1, 4), Segment(2, 5)], 4).tolist() == [
        12793040940332582595,
        16910352898644336242,
    ]
