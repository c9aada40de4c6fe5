"""What holds a process, by what the kernel tells of its threads."""

from __future__ import annotations

from pathlib import Path

_UNINTERRUPTIBLE = "D"
_GONE = ("Z", "X")


def held_in(pid: int) -> str:
    """The states of its threads in words, and where in the kernel those are that no signal reaches."""
    states: dict[str, int] = {}
    for thread in _threads(pid):
        state = _state(thread)
        if state == _UNINTERRUPTIBLE:
            state += f" in {_text(thread / 'wchan').strip('0') or 'the kernel'}"
        states[state] = states.get(state, 0) + 1
    if not states:
        return "it has no threads any more"
    said = ", ".join(f"{count} in state {state}" for state, count in sorted(states.items()))
    return f"threads: {said}"


def called(name: str) -> list[int]:
    """The processes of that name (``/proc/PID/comm``) that are not gone: a thread that the kernel holds is one."""
    processes = (each for each in _entries(Path("/proc")) if each.name.isdigit())
    found = [int(each.name) for each in processes if _text(each / "comm") == f"{name}\n"]
    return [pid for pid in found if any(_state(thread) not in _GONE for thread in _threads(pid))]


def _threads(pid: int) -> list[Path]:
    return _entries(Path(f"/proc/{pid}/task"))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _state(thread: Path) -> str:
    # pid (name) state ...; the name may hold anything
    rest = _text(thread / "stat").rpartition(")")[2].split()
    return rest[0] if rest else "?"


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
