"""Reads all GPUs in one thread, for as long as no call of the library is slow.

A thread that wakes up finds nothing of its own in the caches: eight that read a GPU each take several times as long
as one that reads eight. But a driver that is slow on one GPU is to delay no other. So a second thread stands by: a
call that is out for longer than ``PATIENCE_SECONDS`` keeps its thread and its GPU, and whoever stands by reads the
others on. Without such calls there are two threads, and with one that hangs for good there are three.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from exporter.sampler.log import log, where

PATIENCE_SECONDS = 0.01
"""For a turn. Byte counters of a Gen5 x16 link may be read 18 ms late, no more; most calls take far below one."""
_IDLE_SECONDS = 1.0
"""Between two looks where there is nothing to read: new GPUs may have come."""
_AFTER_A_BUG_SECONDS = 1.0


class Turns(Protocol):
    """What is read in turns: a GPU or a MIG instance; see ``gpu_reader``."""

    @property
    def due_at(self) -> float:
        """When the next turn is due (CLOCK_MONOTONIC)."""

    @property
    def owes(self) -> bool:
        """Whether the next turn can wait until those of others that don't are done."""

    def turn(self) -> None:
        """Take it."""


class Team:
    """A GPU and its MIG instances: never two threads at once, as what hangs on the one hangs on the others."""

    __slots__ = ("due_at", "is_taken", "members", "next")

    def __init__(self, members: Iterable[Turns]) -> None:
        self.members = tuple(members)
        self.is_taken = False
        self.plan()

    def plan(self, not_before: float = 0.0) -> None:
        """Look whose turn is next."""
        # of a GPU that can't be opened all MIG instances may go
        self.next = min(self.members, key=lambda each: (each.due_at, each.owes), default=None)
        self.due_at = max(not_before, self.next.due_at) if self.next else float("inf")


class Shift:
    """Takes turns at GPUs until ``ending`` is set."""

    def __init__(self, ending: threading.Event) -> None:
        self._ending = ending
        self._lock = threading.Lock()
        self._teams: dict[str, Team] = {}
        self._on_duty: threading.Thread | None = None
        self._standing_by: threading.Thread | None = None
        self._turn_began: float | None = None
        """Of who is on duty, while in a turn."""
        self._due_at = 0.0
        """When who is on duty wakes up, while in none."""
        self._threads: set[threading.Thread] = set()
        self._is_alone = False

    @property
    def threads(self) -> tuple[threading.Thread, ...]:
        """Those that have not come to their end."""
        with self._lock:
            return tuple(self._threads)

    def assign(self, teams: Mapping[str, Sequence[Turns]]) -> None:
        """From now on these are read, by what each GPU is known by; those that are new within a second."""
        with self._lock:
            for name in self._teams.keys() - teams.keys():
                del self._teams[name]
            for name, members in teams.items():
                team = self._teams.get(name)
                if team is None:
                    self._teams[name] = Team(members)
                elif team.members != tuple(members):
                    team.members = tuple(members)
                    if not team.is_taken:
                        team.plan()
            self._have_one_stand_by()

    def _have_one_stand_by(self) -> None:
        if self._standing_by is not None or self._ending.is_set():
            return
        thread = threading.Thread(target=self._work, name="reading", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # there are too many; the next turn tries again
            if not self._is_alone:
                log(f"no second thread to read GPUs with, one slow call delays all: {error}")
            self._is_alone = True
            return
        self._is_alone = False
        self._standing_by = thread
        self._threads.add(thread)

    def _work(self) -> None:
        me = threading.current_thread()
        try:
            while self._is_called_on_duty(me):
                self._read(me)
        finally:
            with self._lock:
                self._threads.discard(me)

    def _is_called_on_duty(self, me: threading.Thread) -> bool:
        """Stand by until who is on duty is held up; false at the end, or where another stands by."""
        with self._lock:
            if self._standing_by is None:
                self._standing_by = me
            elif self._standing_by is not me:
                return False
            wait = self._patience(time.monotonic())
        while not self._ending.wait(wait):
            with self._lock:
                wait = self._patience(time.monotonic())
                if wait <= 0:
                    self._on_duty, self._standing_by = me, None
                    self._turn_began, self._due_at = None, 0.0
                    return True
        return False

    def _patience(self, now: float) -> float:
        """For how long there is nothing to do for who stands by."""
        if self._on_duty is None:
            return 0.0
        if self._turn_began is None:
            return max(0.0, self._due_at - now) + PATIENCE_SECONDS
        if all(team.is_taken for team in self._teams.values()):
            return _IDLE_SECONDS
        return self._turn_began + PATIENCE_SECONDS - now

    def _read(self, me: threading.Thread) -> None:
        """Take turns until another is on duty."""
        while not self._ending.is_set():
            now = time.monotonic()
            with self._lock:
                if self._on_duty is not me:
                    return
                self._have_one_stand_by()
                team = self._most_urgent(now)
                wait = self._due_at - now
                if team is not None:
                    team.is_taken = True
                self._turn_began = None if team is None else now
            if team is None:
                self._ending.wait(wait)
                continue
            not_before = _take_turn(team)
            with self._lock:
                team.is_taken = False
                team.plan(not_before)
                if self._on_duty is not me and self._turn_began is None:
                    self._on_duty = me  # whoever sleeps doesn't know that this team is free again

    def _most_urgent(self, now: float) -> Team | None:
        """One that is due now, bytes first; else ``_due_at`` is when there will be one."""
        owing, soonest = None, now + _IDLE_SECONDS
        for team in self._teams.values():
            if team.is_taken or team.next is None:
                continue
            if team.due_at > now:
                soonest = min(soonest, team.due_at)
            elif not team.next.owes:
                return team
            else:
                owing = owing or team
        self._due_at = soonest
        return owing


def _take_turn(team: Team) -> float:
    """Gives the time before which none more is to be taken: 0, but for a bug."""
    try:
        if team.next is not None:
            team.next.turn()
    except Exception as error:  # noqa: BLE001 - the other GPUs go on
        log(f"a turn broke off in thrashold itself: {where(error)}")
        return time.monotonic() + _AFTER_A_BUG_SECONDS
    return 0.0
