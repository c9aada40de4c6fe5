from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.kv_events.wire import Batch, BrokenBatchError, Event, decode, medium_of
from tests.support.kv_events import ENCODINGS, Encoding, cleared, payload, removed, stored

# As vLLM's own types encode them: arrays to release 0.23, maps from 0.24 on.
TO_0_23 = bytes.fromhex(
    "93cb3ff00000000000009398ab426c6f636b53746f7265649101c092010202c0a3475055c093ac426c6f636b52656d6f766564"
    "9101a347505591b0416c6c426c6f636b73436c656172656400"
)
FROM_0_24 = bytes.fromhex(
    "93cb3ff00000000000009389a474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739101b1706172656e74"
    "5f626c6f636b5f68617368c0a9746f6b656e5f696473920102aa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469"
    "756da3475055a96c6f72615f6e616d65c0a967726f75705f6964780083a474797065ac426c6f636b52656d6f766564ac626c6f"
    "636b5f6861736865739101a66d656469756da347505581a474797065b0416c6c426c6f636b73436c656172656400"
)


Told = tuple[str, str, int, tuple[int | bytes, ...]]
CLEARED: Told = ("cleared", "", 0, ())


def told(event: Event) -> Told:
    """What an event says, in whatever encoding: kind, medium, group, hashes."""
    if event.kind == "cleared":
        return CLEARED
    return event.kind, medium_of(event.medium), event.group_idx or 0, event.block_hashes


def read(encoded: bytes) -> tuple[float, int | None, list[Told], int]:
    """All that a batch says."""
    batch = decode(encoded)
    return batch.at, batch.rank, [told(event) for event in batch.events], batch.unknown_events


@pytest.mark.parametrize("encoded", [TO_0_23, FROM_0_24], ids=["to 0.23", "from 0.24"])
def test_both_encodings_of_vllm_say_the_same(encoded: bytes) -> None:
    assert read(encoded) == (1.0, 0, [("stored", "gpu", 0, (1,)), ("removed", "gpu", 0, (1,)), CLEARED], 0)


def test_a_batch_that_is_itself_a_map_is_read_too() -> None:
    encoded = msgspec.msgpack.encode({"ts": 2.5, "events": [removed(4)], "data_parallel_rank": 3, "new": [1]})
    assert read(encoded) == (2.5, 3, [("removed", "gpu", 0, (4,))], 0)


def test_what_the_first_releases_and_sglang_leave_out_is_no_fault() -> None:
    first = ["BlockStored", [11, 12], 10, [1, 2, 3, 4], 2, None]  # no medium yet: there was only the GPU
    encoded = msgspec.msgpack.encode([7, [first, ["BlockRemoved", [11]]]])
    events = [("stored", "gpu", 0, (11, 12)), ("removed", "gpu", 0, (11,))]
    assert read(encoded) == (7.0, None, events, 0)


@pytest.mark.parametrize(
    ("named", "word"),
    [
        (None, "gpu"),
        ("GPU", "gpu"),
        ("CPU", "cpu"),
        ("CPU_PINNED", "cpu"),
        ("cpu", "cpu"),  # the Mooncake connector of vLLM 0.32
        ("STORAGE", "storage"),
        ("DISK", "storage"),
        ("FS", "storage"),
        ("OBJ", "storage"),
        ("HOLOGRAM", "other"),
    ],
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_media_become_a_few_fixed_words(named: str | None, word: str, encoding: Encoding) -> None:
    events = [stored(1, medium=named, encoding=encoding), removed(2, medium=named, encoding=encoding)]
    assert [medium for _, medium, _, _ in map(told, decode(payload(1.0, events)).events)] == [word, word]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_hashes_may_be_any_64_bits_or_bytes(encoding: Encoding) -> None:
    hashes = (2**64 - 1, -(2**63), b"\x00" * 32)
    (event,) = decode(payload(1.0, [stored(*hashes, encoding=encoding)])).events
    assert told(event) == ("stored", "gpu", 0, hashes)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_groups_of_a_hybrid_model_are_told_apart(encoding: Encoding) -> None:
    events = [stored(1, group=3, encoding=encoding), removed(1, group=2, encoding=encoding)]
    events += [stored(1, group=None, encoding=encoding)]
    assert [group for _, _, group, _ in map(told, decode(payload(1.0, events)).events)] == [3, 2, 0]


def test_maps_of_any_size_are_maps() -> None:
    event = msgspec.msgpack.encode({"type": "AllBlocksCleared"})
    for head in (b"\x81", b"\xde\x00\x01", b"\xdf\x00\x00\x00\x01"):
        encoded = b"\x92\xca\x00\x00\x00\x00\x91" + head + event[1:]
        assert read(encoded) == (0.0, None, [CLEARED], 0)


def test_an_unknown_type_costs_itself_and_is_counted() -> None:
    unknown: list[Any] = [
        {"type": "BlockMoved", "block_hashes": [1]},
        ["BlockUpdated", [1], "GPU"],
        {"kind": "BlockStored"},
        {"type": "BlockStored", "block_hashes": "none"},
        {"type": "BlockRemoved"},
        [],
        17,
        None,
    ]
    for encoding in ENCODINGS:
        events = [stored(1, encoding=encoding), *unknown, cleared(encoding)]
        assert read(payload(1.0, events)) == (1.0, 0, [("stored", "gpu", 0, (1,)), CLEARED], len(unknown))


_HASHES = st.lists(st.integers(0, 2**64 - 1) | st.binary(max_size=32), max_size=3)
_MEDIA = st.sampled_from([None, "GPU", "cpu", "HOLOGRAM"])


@given(
    st.lists(
        st.tuples(st.sampled_from([stored, removed, cleared]), _HASHES, _MEDIA, st.integers(0, 3) | st.none())
    ),
    st.sampled_from(ENCODINGS),
)
def test_the_others_are_read_alike_whether_one_is_unknown_or_not(
    made: list[tuple[Any, list[int | bytes], str | None, int | None]], encoding: Encoding
) -> None:
    events = [
        make(encoding) if make is cleared else make(*hashes, medium=medium, encoding=encoding, group=group)
        for make, hashes, medium, group in made
    ]
    at, rank, told_of, unknown = read(payload(1.0, events))
    assert (len(told_of), unknown) == (len(events), 0)
    for more in (["BlockMoved"], {"type": "BlockMoved"}):
        assert read(payload(1.0, [*events, more])) == (at, rank, told_of, 1)


def test_newer_fields_are_skipped() -> None:
    newer = {
        **stored(1),
        "locality": {"node": [1, {"a": b"b"}]},
        "session_id": "s",
        "lookahead_token_ids": [9],
    }
    longer = [*stored(2, encoding="array"), "full_attention", None, {"locality": 1}]
    batch = decode(
        msgspec.msgpack.encode([1.0, [newer, longer, ["AllBlocksCleared", 5]], 0, "and", {"more": 1}])
    )
    assert [hashes for _, _, _, hashes in map(told, batch.events)] == [(1,), (2,), ()]
    assert batch.unknown_events == 0


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\xc1",
        b"HTTP/1.1 400 Bad Request\r\n",
        TO_0_23[:-1],
        TO_0_23 + b"\x00",
        msgspec.msgpack.encode([1.0]),
        msgspec.msgpack.encode(["now", []]),
        msgspec.msgpack.encode([float("nan"), []]),
        msgspec.msgpack.encode([float("inf"), []]),
        msgspec.msgpack.encode([1.0, {}, 0]),
        msgspec.msgpack.encode([1.0, [], "zero"]),
        msgspec.msgpack.encode({"events": []}),
        b"\x93\x01" + b"\x91" * 100_000,  # arrays in arrays, deeper than any stack
        b"\x82\xa2ts\x01\xa6events\xdd\xff\xff\xff\xff",  # four billion events in no bytes
        b"\x82\xa2t\xff\x01\xa6events\x90",  # text that is not UTF-8
    ],
)
def test_what_is_no_batch_is_refused(broken: bytes) -> None:
    with pytest.raises(BrokenBatchError):
        decode(broken)


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=9), st.binary(max_size=9)
)  # fmt: skip
_WORDS = st.sampled_from(
    ["type", "ts", "events", "block_hashes", "medium", "BlockStored", "AllBlocksCleared"]
)
_VALUES = st.recursive(
    _SCALARS | _WORDS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(_WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(st.binary(max_size=200) | _VALUES.map(msgspec.msgpack.encode))
def test_nothing_but_its_own_error_comes_out_whatever_goes_in(encoded: bytes) -> None:
    with contextlib.suppress(BrokenBatchError):
        assert isinstance(decode(encoded), Batch)


@given(st.sampled_from([TO_0_23, FROM_0_24]), st.data())
def test_a_real_message_with_flipped_bytes_neither(encoded: bytes, data: st.DataObject) -> None:
    flipped = bytearray(encoded)
    for _ in range(data.draw(st.integers(1, 4))):
        flipped[data.draw(st.integers(0, len(flipped) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BrokenBatchError):
        assert isinstance(decode(bytes(flipped)), Batch)
