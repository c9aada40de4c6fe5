"""A scene played to a moment and served from there on, a second a read: engines' pages, the sidecar's beside them."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from drill.scenarios.scene import Scene
from drill.watching.watch import Watch
from exporter.render import PLAIN, Rendering

SIDECAR = "sidecar"


@dataclass(frozen=True, slots=True)
class Pages:
    """Of one second, by engine; None while nobody listens."""

    engines: Mapping[str, bytes | None]
    sidecar: bytes


def played(scene: Scene, seed: int, wanted: frozenset[int]) -> dict[int, Pages]:
    """The pages of the ``wanted`` seconds; the sidecar has watched from the first one on."""
    scene = replace(scene, epoch=time.time() - max(wanted))
    watch, found = Watch(scene, seed), {}
    for place, second in enumerate(scene.fleet(seed).run(max(wanted)), 1):
        snapshot = watch.cycle(watch.observe(second), second.seconds)
        if place in wanted:
            pages = {engine.name: engine.page() for engine in watch.engines}
            found[place] = Pages(
                {name: None if page is None else page.encode() for name, page in pages.items()},
                Rendering(snapshot).body(PLAIN),
            )
    return found


class Stage:
    """Serves pages at ``/READER/NAME/metrics``: to each reader the next second with each read, the last one for good.

    Who reads once a second sees time go by at its own pace, whatever else the machine does meanwhile.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._pages: list[Pages] = []
        self._read: Counter[str] = Counter()

    def show(self, pages: Iterable[Pages]) -> None:
        """Begin with the first of them, for all readers."""
        self._pages, self._read = [*pages], Counter()

    def engine_url(self, name: str, reader: str = "a") -> str:
        """Of one that is served at first, or of a port where nobody listens."""
        if self._pages[0].engines[name] is not None:
            return f"{self.url}/{reader}/{name}/metrics"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        return f"http://127.0.0.1:{port}/metrics"

    def sidecar_url(self, reader: str = "a") -> str:
        """Of the sidecar's page."""
        return f"{self.url}/{reader}/{SIDECAR}/metrics"

    def page(self, path: str) -> bytes | None:
        """What stands at a path now."""
        name = path.strip("/").split("/")[1:2]
        place = min(self._read[path], len(self._pages) - 1)
        self._read[path] += 1
        now = self._pages[place]
        return now.sidecar if name == [SIDECAR] else now.engines.get("".join(name))


@contextlib.contextmanager
def serving() -> Iterator[Stage]:
    """A stage on a free loopback port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = stage.page(self.path)
            self.send_response(503 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # who asked has given up
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stage = Stage(f"http://127.0.0.1:{server.server_port}")
    # a daemon, as commands that run in this process don't wait for other threads at their end
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stage
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
