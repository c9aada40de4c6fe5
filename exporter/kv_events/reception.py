"""What becomes of each message of one publisher: counted once, in order, the missing asked for again.

No socket: whoever has one hands the frames in.
"""

from __future__ import annotations

from collections.abc import Sequence as Frames

from exporter.kv_events.sequence import Fate, Sequence
from exporter.kv_events.tally import Tally
from exporter.kv_events.wire import Batch, BrokenBatchError, decode

NUMBER_BYTES = 8
_MOST_NUMBER = 1 << 63  # the end of a replay is marked by -1, all bits set
_LIVE_FRAMES = 3  # topic, number, payload
_MOST_RANK = 65_535


class Reception:
    """One publisher's stream.

    While ``is_waiting``, a replay has been asked for: its messages go to ``replayed`` until that, or
    ``given_up``, ends it, and no live message may be handed in. Times are seconds on one clock that never jumps.
    """

    def __init__(self) -> None:
        self.tally = Tally()
        self.rank: int | None = None
        self._sequence = Sequence()
        self._held: tuple[int, Batch | None] | None = None
        self._reconnected = False

    @property
    def is_waiting(self) -> bool:
        """Whether a replay is under way."""
        return self._held is not None

    def connected(self) -> None:
        """The connection was made, perhaps anew."""
        self._reconnected = True

    def heard(self, frames: Frames[bytes], now: float, *, can_replay: bool) -> int | None:
        """Take a live message. Gives the number from which to ask for a replay where one is needed."""
        found = _opened(frames) if len(frames) == _LIVE_FRAMES else None
        if found is None:
            self.tally.broken()
            return None
        number, batch = found
        fate = self._sequence.fate(number, _time_of(batch), reconnected=self._reconnected)
        self._reconnected = False
        if fate is Fate.RESTART:
            self.tally.restarted()
            self._sequence = Sequence(expected=0)
            fate = Fate.GAP if number else Fate.NEXT
        if fate is Fate.GAP and can_replay:
            self._held = found
            return self._sequence.expected
        if fate is not Fate.DUPLICATE:
            self._take(number, batch, now)
        return None

    def replayed(self, frames: Frames[bytes], now: float) -> bool:
        """Take a message of a replay, without the empty frame that begins it. True where it was the last."""
        found = _opened(frames)
        if found is None or not frames[-1]:
            self.given_up(now)
            return True
        number, batch = found
        if self._sequence.expected is None or number >= self._sequence.expected:
            self._take(number, batch, now)
        return False

    def given_up(self, now: float) -> None:
        """The replay is over: what it did not bring is lost. Goes on with the message that showed the gap."""
        held, self._held = self._held, None
        if held and held[0] >= (self._sequence.expected or 0):
            self._take(*held, now)

    def _take(self, number: int, batch: Batch | None, now: float) -> None:
        self.tally.lost(self._sequence.missing_before(number))
        if batch is None:
            self.tally.broken()
        else:
            self.tally.take(batch, now)
            if batch.rank is not None and 0 <= batch.rank <= _MOST_RANK:
                self.rank = batch.rank
        self._sequence = self._sequence.after(number, _time_of(batch))


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
