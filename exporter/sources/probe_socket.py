"""The Unix socket that probes connect to: made for this user alone, and taken away again."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path

_BACKLOG = 64
_ROOT = 0


class SocketError(Exception):
    """The socket can't be made; the text says where, why and what to do, in one line."""


class ProbeSocket:
    """A listening socket that keeps messages apart. Raises SocketError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make_room()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.setblocking(False)
            self.socket.bind(str(path))
            # whoever connects before it listens is refused: nobody gets in while the mode is still another
            path.chmod(stat.S_IRUSR | stat.S_IWUSR)
            self._made = _identity(path)
            self.socket.listen(_BACKLOG)
        except OSError as error:
            self.socket.close()
            raise SocketError(
                f"{path}: the socket can't be made ({error.strerror or error}); is its folder there, and this user's?"
            ) from error

    def is_there(self) -> bool:
        """Whether the path still leads to this socket."""
        with contextlib.suppress(OSError):
            return _identity(self._path) == self._made
        return False

    def close(self) -> None:
        """Stop to listen; the path goes too, unless it is another's by now."""
        with contextlib.suppress(OSError):
            if self.is_there():
                self._path.unlink()
        self.socket.close()

    def _make_room(self) -> None:
        """Take away what a sidecar that was killed has left. Raises SocketError where it is something else."""
        try:
            there = self._path.lstat()
        except FileNotFoundError:
            return
        except OSError as error:
            raise SocketError(f"{self._path}: can't be looked at ({error.strerror})") from error
        if not stat.S_ISSOCK(there.st_mode):
            raise SocketError(
                f"{self._path}: is there already and no socket; name another path, or take it away"
            )
        if there.st_uid != os.geteuid():
            raise SocketError(
                f"{self._path}: is the socket of user {there.st_uid}; name another path, or take it away"
            )
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as trial:
            trial.setblocking(False)
            try:
                trial.connect(str(self._path))
            except ConnectionRefusedError:
                self._path.unlink(missing_ok=True)
                return
            except OSError:  # of another kind, or too busy to answer: somebody listens all the same
                pass
        raise SocketError(
            f"{self._path}: another process listens there; if it is a sidecar that is meant to run, its page says how"
            " the probe does, else end it or name another path"
        )


def peer_is_trusted(connection: socket.socket) -> tuple[bool, int]:
    """Whether the process at the other end is this user's or root's, and whose it is."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", found)
    return user in {os.geteuid(), _ROOT}, user


def _identity(path: Path) -> tuple[int, int]:
    there = path.lstat()
    return there.st_dev, there.st_ino
