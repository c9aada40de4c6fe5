"""How a scene comes along, for people: a line that is written over on a terminal, and lines now and then elsewhere."""

from __future__ import annotations

import shutil
from typing import TextIO

from drill.scenarios.scene import Episode, Scene
from drill.second import EngineState, Second
from drill.words import minute


class Progress:
    """Of one scene, on ``stream``. ``live``: it is a terminal. ``every``: seconds of the drill from line to line.

    What is done to the fleet, and when something begins and ends to go wrong, is said in lines of their own.
    """

    def __init__(self, scene: Scene, stream: TextIO, *, live: bool, every: int) -> None:
        self._scene = scene
        self._stream = stream
        self._live = live
        self._every = every

    def see(self, second: Second, behind_seconds: float = 0.0) -> None:
        """One more second is over; the drill is so many of the clock's late."""
        now = second.seconds
        for words in second.actions:
            self.say(f"{minute(now):>6}  {words}")
        for episode in self._scene.episodes:
            for at, what in ((episode.onset_seconds, "onset"), (episode.end_seconds, "end")):
                if now - 1 < at <= now:
                    self.say(f"{minute(now):>6}  {what} of {episode.scenario}: {', '.join(episode.affected)}")
        if now % self._every == 0 or now == self._scene.seconds:
            line = self._line(second, behind_seconds)
            if self._live:
                # a line that wraps can't be written over
                line = "\r\x1b[K" + line[: shutil.get_terminal_size().columns - 1]
            self._stream.write(line if self._live else f"{line}\n")
            self._stream.flush()

    def say(self, words: str) -> None:
        """A line that stays."""
        self._stream.write(f"\r\x1b[K{words}\n" if self._live else f"{words}\n")
        self._stream.flush()

    def end(self) -> None:
        """Nothing more comes."""
        if self._live:
            self._stream.write("\n")
            self._stream.flush()

    def _line(self, second: Second, behind_seconds: float) -> str:
        """Where it stands."""
        now, episodes = second.seconds, self._scene.episodes
        parts = [f"{minute(now):>6} of {minute(self._scene.seconds)}"]
        parts += [f"in {each.scenario}" for each in episodes if _lasts(each, now)]
        coming = [each for each in episodes if each.onset_seconds > now]
        if coming:
            first = min(coming, key=lambda each: each.onset_seconds)
            parts.append(f"{first.scenario} in {minute(first.onset_seconds - now)}")
        parts += [
            f"{each.name} {each.state.value}"
            for each in second.engines
            if each.state is not EngineState.SERVING
        ]
        parts.append(f"{second.clients.in_flight} requests in flight")
        if behind_seconds >= 1:
            parts.append(f"{behind_seconds:.0f} s late")
        return ", ".join(parts)


def _lasts(episode: Episode, now: float) -> bool:
    return episode.onset_seconds <= now < episode.end_seconds
