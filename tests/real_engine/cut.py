"""A TCP forwarder on loopback whose line can be cut and mended: a network that fails for a while."""

from __future__ import annotations

import contextlib
import socket
import threading

from tests.real_engine.serve import free_port

_CHUNK_BYTES = 65_536


class Line:
    """Forwards ``port`` to the port it is joined to, both on loopback, until it is cut."""

    def __init__(self) -> None:
        self.port = free_port()
        self._target = 0
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []

    def join(self, target: int) -> None:
        """From now on forward to the loopback port ``target``."""
        self._target = target
        self.mend()

    def cut(self) -> None:
        """Break all connections; nobody listens until it is mended."""
        if self._listener is not None:
            _shut(self._listener)
        for each in self._open:
            _shut(each)
        self._open.clear()

    def mend(self) -> None:
        """Listen again, on the same port."""
        self._listener = listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it was cut
            while True:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # nobody is there any more
                    _shut(near)
                    continue
                self._open += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_forward, args=(source, sink), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            sink.sendall(data)
    _shut(source)
    _shut(sink)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
