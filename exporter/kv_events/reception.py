"""What becomes of each message of one publisher: counted once, in order, the missing asked for again.

No socket: whoever has one hands the frames in.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence as Frames

from exporter.kv_events.sequence import NEXT, Fate, Sequence
from exporter.kv_events.tally import Tally
from exporter.kv_events.wire import Batch, BrokenBatchError, decode

NUMBER_BYTES = 8
_MOST_NUMBER = 1 << 63  # the end of a replay is marked by -1, all bits set
_LIVE_FRAMES = 3  # topic, number, payload
_MOST_RANK = 65_535


class Replay(enum.Enum):
    """How a replay stands."""

    GOES_ON = "goes on"
    OVER = "over"
    """What was missed is in, or lost; whatever else is on its way isn't needed."""
    AGAIN = "again"
    """It brought something and not all: it is to be asked for anew, from ``wanted`` on.

    A publisher sends faster than its socket takes and drops what is too much: vLLM brings some 4,000 batches a time.
    """


class Reception:
    """One publisher's stream.

    While ``wanted`` is not None, a replay from there on has to be asked for or is under way: its messages go to
    ``replayed``, and no live message may be handed in. Times are seconds on one clock that never jumps.
    """

    def __init__(self) -> None:
        self.tally = Tally()
        self.rank: int | None = None
        self._sequence = Sequence()
        self._held: tuple[int, Batch | None] | None = None
        self._has_progress = False
        self._reconnected = False

    @property
    def wanted(self) -> int | None:
        """The first number that a replay has yet to bring; None where none is needed."""
        return self._sequence.expected if self._held else None

    def connected(self) -> None:
        """The connection was made, perhaps anew."""
        self._reconnected = True

    def heard(self, frames: Frames[bytes], now: float, *, can_replay: bool) -> None:
        """Take a live message. After a gap, if there ``can_replay``, it is held until the replay is over."""
        found = _opened(frames) if len(frames) == _LIVE_FRAMES else None
        if found is None:
            self.tally.broken()
            return
        number, batch = found
        fate = self._sequence.fate(number, _time_of(batch), reconnected=self._reconnected)
        self._reconnected = False
        if fate is NEXT:
            self._take(number, batch, now)
            return
        if fate is Fate.RESTART:
            self.tally.restarted()
            self._sequence = Sequence(expected=0)
            fate = Fate.GAP if number else NEXT
        if fate is Fate.GAP and can_replay:
            self._held, self._has_progress = found, False
        elif fate is not Fate.DUPLICATE:
            self._take(number, batch, now)

    def replayed(self, frames: Frames[bytes], now: float) -> Replay:
        """Take a message of a replay, without the empty frame that begins it."""
        found = _opened(frames)
        expected = self._sequence.expected or 0
        if found is None or not frames[-1]:
            return self.replay_ended(now)
        number, batch = found
        if self._held is None or number < expected:
            return Replay.GOES_ON if self._held else Replay.OVER
        if number > expected and self._has_progress:
            return self._again()
        if number < self._held[0]:  # the first it has, where it isn't the first that was missed
            self._take(number, batch, now)
            self._has_progress = True
        if number + 1 < self._held[0]:
            return Replay.GOES_ON
        self.given_up(now)
        return Replay.OVER

    def replay_ended(self, now: float) -> Replay:
        """The replay said so, or fell silent."""
        if self._has_progress:
            return self._again()
        self.given_up(now)
        return Replay.OVER

    def given_up(self, now: float) -> None:
        """No more of the replay: what it did not bring is lost. Goes on with the message that showed the gap."""
        held, self._held = self._held, None
        if held:
            self._take(*held, now)

    def _again(self) -> Replay:
        self._has_progress = False
        return Replay.AGAIN

    def _take(self, number: int, batch: Batch | None, now: float) -> None:
        self.tally.lost(self._sequence.passed(number, _time_of(batch)))
        if batch is None:
            self.tally.broken()
            return
        self.tally.take(batch, now)
        if batch.rank is not None and 0 <= batch.rank <= _MOST_RANK:
            self.rank = batch.rank


def _time_of(batch: Batch | None) -> float | None:
    return None if batch is None else batch.at


def _opened(frames: Frames[bytes]) -> tuple[int, Batch | None] | None:
    """Number and batch (None: broken) of a message; None where it is none.

    Releases to 0.25 replay without the topic that a live message begins with.
    """
    if len(frames) not in {_LIVE_FRAMES - 1, _LIVE_FRAMES} or len(frames[-2]) != NUMBER_BYTES:
        return None
    number = int.from_bytes(frames[-2], "big")
    if number >= _MOST_NUMBER:
        return None
    try:
        return number, decode(frames[-1])
    except BrokenBatchError:
        return number, None
