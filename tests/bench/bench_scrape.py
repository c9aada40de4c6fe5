"""What a scrape costs while the engine behind hangs, beside the same server with a body that never changes.

Run as ``python -m tests.bench.bench_scrape``. Sixteen clients keep their connections and ask one
server as fast as it answers, for some seconds, then the other, in turns; the load comes from a
process of its own. Bar: no error, and a p99 of at most 1.5 times that of the constant body.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from exporter.ending import run_loop
from exporter.service import listening_socket, make_server
from tests.bench import report
from tests.bench.report import Figure
from tests.exporter.running import PAGE, engine, hanging_engine, running

CLIENTS = 16
ROUNDS = 6
ROUND_SECONDS = 1.2
WORST_RATIO = 1.5
WORST_END_SECONDS = 1.0
_SETTLE_SECONDS = 3.0
_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept: text/plain;version=0.0.4\r\n\r\n"


@dataclass(slots=True)
class Outcome:
    """Latencies in seconds of all requests to one server, and how many went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0

    def quantile(self, q: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


async def one_client(port: int, until: float, outcome: Outcome) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            start = time.perf_counter()
            writer.write(_REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            outcome.seconds.append(time.perf_counter() - start)
            outcome.errors += not head.startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.IncompleteReadError):
        outcome.errors += 1


async def one_round(port: int, outcome: Outcome) -> None:
    until = time.perf_counter() + ROUND_SECONDS
    await asyncio.gather(*(one_client(port, until, outcome) for _ in range(CLIENTS)))


def measure(ports: dict[str, int]) -> dict[str, Outcome]:
    """Load each of the servers in turns."""
    for port in ports.values():
        asyncio.run(one_round(port, Outcome()))  # warm up
    outcomes = {name: Outcome() for name in ports}
    for turn in range(ROUNDS):
        names = list(ports) if turn % 2 == 0 else list(ports)[::-1]
        for name in names:
            asyncio.run(one_round(ports[name], outcomes[name]))
    return outcomes


def serve_constant(size: int) -> None:
    """Serve ``size`` bytes that never change, by the sidecar's own server; prints the port."""
    body = b"x" * size

    async def constant(_request: Request) -> Response:
        return PlainTextResponse(body)

    listener = listening_socket("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)  # noqa: T201 - whoever started it waits for this line
    run_loop(make_server(Starlette(routes=[Route("/metrics", constant)])).serve(sockets=[listener]))


@contextlib.contextmanager
def constant_server(size: int) -> Iterator[int]:
    command = [sys.executable, "-m", "tests.bench.bench_scrape", "constant", str(size)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def size_of_body(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port)) as raw, raw.makefile("rb") as answer:
        raw.sendall(_REQUEST)
        while not (line := answer.readline().lower()).startswith(b"content-length:"):
            pass
        return int(line.split(b":")[1])


def compare(case: str, *engines: str) -> None:
    """Measure a sidecar that reads ``engines``, and a constant body of the same size beside it."""
    arguments = [argument for url in engines for argument in ("--engine", url)]
    with running(*arguments) as sidecar:
        port = int(sidecar.url.rpartition(":")[2])
        time.sleep(_SETTLE_SECONDS)
        with constant_server(size_of_body(port)) as constant:
            outcomes = measure({"sidecar": port, "constant": constant})
        for name, outcome in outcomes.items():
            p50, p99 = (outcome.quantile(q) * 1000 for q in (0.5, 0.99))
            report.line(
                f"  {case}: {name}: {len(outcome.seconds)} requests, p50 {p50:.2f} ms, p99 {p99:.2f} ms"
            )
        ratio = outcomes["sidecar"].quantile(0.99) / outcomes["constant"].quantile(0.99)
        report.record(Figure(f"p99 of a scrape over a constant body, {case}", ratio, "x", WORST_RATIO))
        report.record(Figure(f"failed scrapes, {case}", float(outcomes["sidecar"].errors), "", 0.0))
        report.record(Figure(f"SIGTERM to exit, {case}", sidecar.terminate(), "s", WORST_END_SECONDS))


def main() -> None:
    """Print the figures."""
    with hanging_engine() as hanging, engine(PAGE) as live:
        compare("engine hangs", hanging)
        compare("one answers, one hangs", live, hanging)


if __name__ == "__main__":
    if sys.argv[1:2] == ["constant"]:
        serve_constant(int(sys.argv[2]))
    else:
        report.standalone(main)
