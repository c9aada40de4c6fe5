"""How a served scene comes along, for people: a line that is written over on a terminal, lines a minute apart else."""

from __future__ import annotations

from typing import TextIO

from drill.scenarios.scene import Episode, Scene
from drill.second import Second
from drill.words import minute

_PLAIN_EVERY_SECONDS = 60


class Progress:
    """Of one scene, on ``stream``; ``live``: it is a terminal."""

    def __init__(self, scene: Scene, stream: TextIO, *, live: bool) -> None:
        self._scene = scene
        self._stream = stream
        self._live = live

    def see(self, second: Second, behind_seconds: float) -> None:
        """One more second is on; so many of the clock's it is late."""
        now = second.seconds
        for words in second.actions:
            self.say(f"{minute(now):>6}  {words}")
        for episode in self._scene.episodes:
            for at, what in ((episode.onset_seconds, "onset of"), (episode.end_seconds, "end of")):
                if now - 1 < at <= now:
                    self.say(f"{minute(now):>6}  {what} {episode.scenario} ({', '.join(episode.affected)})")
        if self._live:
            self._stream.write(f"\r\x1b[K{self.line(second, behind_seconds)}")
        elif now % _PLAIN_EVERY_SECONDS == 0:
            self._stream.write(f"{self.line(second, behind_seconds)}\n")
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

    def line(self, second: Second, behind_seconds: float) -> str:
        """Where it stands."""
        now = second.seconds
        parts = [f"{minute(now):>6} of {minute(self._scene.seconds)}"]
        coming = [each for each in self._scene.episodes if each.onset_seconds > now]
        parts += [f"in {each.scenario}" for each in self._scene.episodes if _lasts(each, now)]
        if coming:
            first = min(coming, key=lambda each: each.onset_seconds)
            parts.append(f"{first.scenario} in {minute(first.onset_seconds - now)}")
        parts += [
            f"{each.name} {each.state.value}" for each in second.engines if each.state.value != "serving"
        ]
        parts.append(f"{second.clients.in_flight} requests in flight")
        if behind_seconds >= 1:
            parts.append(f"{behind_seconds:.0f} s late")
        return ", ".join(parts)


def _lasts(episode: Episode, now: float) -> bool:
    return episode.onset_seconds <= now < episode.end_seconds
