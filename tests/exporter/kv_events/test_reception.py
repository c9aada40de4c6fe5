from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from exporter.kv_events.reception import Reception, Replay
from exporter.kv_events_sample import KvEventsSample
from tests.support.kv_events import message, payload, removed, stored

END = [b"\xff" * 8, b""]


def live(number: int, at: float | None = None) -> list[bytes]:
    """Batch ``number``, which stores one block of its own."""
    return message(number, payload(100.0 + number if at is None else at, [stored(number)]))


def again(number: int, *, with_topic: bool = False) -> list[bytes]:
    frames = live(number)
    return frames if with_topic else frames[1:]


def sample(reception: Reception) -> KvEventsSample:
    return reception.tally.sample(0.0, "e", "0")


def heard(messages: Sequence[list[bytes]], *, can_replay: bool = False) -> Reception:
    reception = Reception()
    for each in messages:
        reception.heard(each, 1.0, can_replay=can_replay)
    return reception


def test_who_comes_late_has_lost_nothing() -> None:
    told = sample(heard([live(500), live(501)]))
    assert (told.batches_total, told.lost_batches_total) == (2, 0)


def test_a_gap_that_nobody_can_fill_is_counted_as_lost() -> None:
    told = sample(heard([live(1), live(5), live(6), live(9)]))
    assert (told.batches_total, told.lost_batches_total) == (4, 3 + 2)


def test_a_replay_fills_the_gap_in_order_and_ends_where_the_gap_does() -> None:
    for with_topic in (False, True):  # vLLM to 0.25, and from 0.26 on
        reception = heard([live(1)])
        reception.heard(live(4), 1.0, can_replay=True)
        assert reception.wanted == 2
        assert reception.replayed(again(1, with_topic=with_topic), 1.0) is Replay.GOES_ON
        assert reception.replayed(again(2, with_topic=with_topic), 1.0) is Replay.GOES_ON
        assert reception.replayed(again(3, with_topic=with_topic), 1.0) is Replay.OVER
        assert reception.wanted is None
        assert reception.replayed(again(4, with_topic=with_topic), 1.0) is Replay.OVER
        reception.heard(live(5), 1.0, can_replay=True)
        told = sample(reception)
        assert (told.batches_total, told.lost_batches_total) == (5, 0)
        assert told.stores_on("gpu") == 5


def test_what_the_publisher_itself_no_longer_has_is_lost() -> None:
    reception = heard([live(1)])
    reception.heard(live(10), 1.0, can_replay=True)
    assert reception.replayed(again(8), 1.0) is Replay.GOES_ON
    assert reception.replayed(again(9), 1.0) is Replay.OVER
    told = sample(reception)
    assert (told.batches_total, told.lost_batches_total) == (1 + 3, 6)


def test_a_publisher_that_has_nothing_of_it_says_so() -> None:
    for end in (END, [b"\xff" * 8, b"", b""], [b"kv-events", *END], [b""], []):
        reception = heard([live(1)])
        reception.heard(live(10), 1.0, can_replay=True)
        assert reception.replayed(end, 1.0) is Replay.OVER
        told = sample(reception)
        assert (told.batches_total, told.lost_batches_total) == (2, 8)


def test_a_replay_with_holes_is_asked_for_again_from_the_first_of_them() -> None:
    reception = heard([live(1)])
    reception.heard(live(10), 1.0, can_replay=True)
    assert [reception.replayed(again(number), 1.0) for number in (2, 3)] == [Replay.GOES_ON] * 2
    assert reception.replayed(again(6), 1.0) is Replay.AGAIN
    assert reception.wanted == 4
    assert [reception.replayed(again(number), 1.0) for number in (4, 5, 6)] == [Replay.GOES_ON] * 3
    assert reception.replayed(END, 1.0) is Replay.AGAIN  # its end went missing too
    assert reception.wanted == 7
    assert reception.replayed(END, 1.0) is Replay.OVER  # and now it has none
    told = sample(reception)
    assert (told.batches_total, told.lost_batches_total) == (7, 3)


def test_a_replay_that_is_given_up_loses_what_it_did_not_bring() -> None:
    reception = heard([live(1)])
    reception.heard(live(10), 1.0, can_replay=True)
    reception.replayed(again(2), 1.0)
    reception.given_up(2.0)
    told = sample(reception)
    assert (told.batches_total, told.lost_batches_total) == (3, 7)
    assert reception.wanted is None


def test_a_publisher_that_begins_anew_is_no_duplicate() -> None:
    reception = heard([live(0), live(1), live(2), live(0, at=500.0), live(1, at=501.0)])
    told = sample(reception)
    assert (told.batches_total, told.lost_batches_total) == (5, 0)


def test_a_publisher_that_begins_anew_with_its_clock_set_back_is_known_by_the_connection() -> None:
    reception = heard([live(0), live(1), live(2)])
    reception.connected()
    reception.heard(live(0, at=3.0), 1.0, can_replay=False)
    reception.heard(live(1, at=4.0), 1.0, can_replay=False)
    assert sample(reception).batches_total == 5


def test_a_connection_made_anew_to_the_same_publisher_makes_no_duplicate_a_restart() -> None:
    reception = heard([live(0), live(1)])
    reception.connected()
    for number in (2, 0, 3):
        reception.heard(live(number), 1.0, can_replay=False)
    assert sample(reception).batches_total == 4


def test_the_first_batches_after_a_restart_are_asked_for_too() -> None:
    reception = heard([live(0), live(1), live(2), live(3)])
    reception.heard(live(2, at=500.0), 1.0, can_replay=True)
    assert reception.wanted == 0
    assert reception.replayed(message(0, payload(498.0, [stored(1)])), 1.0) is Replay.GOES_ON
    assert reception.replayed(message(1, payload(499.0, [stored(2)])), 1.0) is Replay.OVER
    told = sample(reception)
    assert (told.batches_total, told.lost_batches_total) == (7, 0)


def test_after_a_restart_nothing_is_a_restore() -> None:
    reception = Reception()
    reception.heard(message(0, payload(1.0, [removed(7)])), 1.0, can_replay=False)
    reception.heard(message(0, payload(2.0, [stored(7)])), 2.0, can_replay=False)
    assert sample(reception).restores_total == 0


def test_the_same_message_twice_counts_once() -> None:
    told = sample(heard([live(0), live(1), live(1), live(0), live(2)]))
    assert (told.batches_total, told.lost_batches_total) == (3, 0)


def test_garbage_is_counted_and_moves_nothing() -> None:
    garbage = [
        [],
        [b"kv"],
        [b"kv", b"\0" * 8],
        [b"kv", b"\0" * 7, b"x"],
        [b"kv", b"\xff" * 8, b""],  # the mark that ends a replay has no place here
        [b"kv", b"\0" * 8, b"x", b"y"],
    ]
    told = sample(heard([live(0), *garbage, live(1)]))
    assert (told.batches_total, told.lost_batches_total, told.broken_batches_total) == (2, 0, len(garbage))


def test_a_broken_payload_takes_its_number_and_is_counted() -> None:
    told = sample(heard([live(0), message(1, b"\xc1"), live(2)]))
    assert (told.batches_total, told.lost_batches_total, told.broken_batches_total) == (2, 0, 1)


def test_the_rank_is_what_the_newest_batch_tells() -> None:
    reception = heard([message(0, payload(1.0, [], rank=None))])
    assert reception.rank is None
    reception.heard(message(1, payload(2.0, [], rank=5)), 1.0, can_replay=False)
    reception.heard(message(2, payload(3.0, [], rank=None)), 1.0, can_replay=False)
    reception.heard(message(3, payload(4.0, [], rank=-1)), 1.0, can_replay=False)
    assert reception.rank == 5


@given(
    st.sets(st.integers(0, 30)),
    st.integers(0, 31),
    st.integers(0, 8),
    st.lists(st.integers(0, 30), max_size=5),
)
def test_every_batch_is_counted_once_or_lost_once(
    unheard: set[int], kept: int, sent_at_once: int, doubled: list[int]
) -> None:
    """Numbers 0 to 31: some never come live, some twice; a replay has the last ``kept`` and drops beyond a few."""
    reception = Reception()
    arriving = [number for number in range(32) if number not in unheard]
    for number in arriving:
        for _ in range(1 + doubled.count(number)):
            reception.heard(live(number), 1.0, can_replay=sent_at_once > 0)
            while (start := reception.wanted) is not None:
                answer = [again(old) for old in range(max(start, 32 - kept), 32)][:sent_at_once]
                for frames in (*answer, END):
                    if reception.replayed(frames, 1.0) is not Replay.GOES_ON:
                        break
    told = sample(reception)
    assert told.batches_total + told.lost_batches_total == 32 - arriving[0]
    assert told.stores_on("gpu") == told.batches_total
    missed = set(range(arriving[0], 32)) - set(arriving)
    gone = {number for number in missed if not sent_at_once or number < 32 - kept}
    assert told.lost_batches_total == len(gone)
