"""What a server's front end shows of itself: its process, Python's garbage collector, answers over HTTP.

The process's figures are those of a server that was recorded (two cores, a tiny model) and stand still, but for its
start: the drill's engines are no processes.
"""

from __future__ import annotations

import math

from drill.expose.buckets import Buckets
from drill.expose.text import Family, Summary, Told
from drill.serving.request import Outcome
from drill.serving.step_result import StepResult

HANDLER = "/v1/completions"
TOKEN_BYTES = 4
"""Of a prompt in a request's body: English text has some four characters a token."""
_HIGHR = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 7.5)
_HIGHR_BOUNDS = (*_HIGHR, 10.0, 30.0, 60.0, math.inf)
_PROCESS = (
    ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", 1.923985408e9),
    ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", 6.60086784e8),
    (
        "process_start_time_seconds",
        "gauge",
        "Start time of the process since unix epoch in seconds.",
        None,
    ),
    ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", 34.26),
    ("process_open_fds", "gauge", "Number of open file descriptors.", 34.0),
    ("process_max_fds", "gauge", "Maximum number of open file descriptors.", 20000.0),
)
_COLLECTOR = (
    ("objects_collected", "Objects collected during gc", (16499.0, 2168.0, 1302.0)),
    ("objects_uncollectable", "Uncollectable objects found during GC", (0.0, 0.0, 0.0)),
    ("collections", "Number of times this generation was collected", (1614.0, 147.0, 10.0)),
)
_PYTHON = (
    ("implementation", "CPython"),
    ("major", "3"),
    ("minor", "11"),
    ("patchlevel", "7"),
    ("version", "3.11.7"),
)
Written = list[tuple[Family, tuple[Told, ...]]]


class FrontEnd:
    """One server, or several before the same engines, since ``started_at``; ``epoch`` is the drill's 0.

    Both are seconds since the epoch.

    Requests are counted when their answer ends, those that a client broke off as well: as 2xx, for the answer had
    begun. What died with its engine is not.
    """

    def __init__(self, epoch: float, started_at: float, *, several_servers: bool = False) -> None:
        self.epoch = epoch
        self.started_at = started_at
        self.several_servers = several_servers
        self.answers = 0
        self.first_at: float | None = None
        """End of the first answer, seconds since the epoch."""
        self._request_bytes = 0
        self._seconds = Buckets(_HIGHR_BOUNDS)
        self._handler_seconds = Buckets((0.1, 0.5, 1.0, math.inf))

    def see(self, result: StepResult) -> None:
        """What one of its engines came to."""
        for record in result.finished:
            if record.outcome is Outcome.LOST:
                continue
            ended = result.started_seconds if record.finished_seconds is None else record.finished_seconds
            if self.first_at is None:
                self.first_at = self.epoch + ended
            self.answers += 1
            self._request_bytes += record.request.prompt_tokens * TOKEN_BYTES
            took = max(0.0, ended - record.request.arrival_seconds)
            self._seconds.observe(took)
            self._handler_seconds.observe(took)

    def of_process(self) -> Written:
        """The collector's, Python's and the process's families; there with a single process only."""
        written: Written = []
        for name, text, figures in _COLLECTOR:
            children = tuple(
                Told(figure, (("generation", str(generation)),)) for generation, figure in enumerate(figures)
            )
            written.append((Family(f"python_gc_{name}_total", "counter", text), children))
        written.append((Family("python_info", "gauge", "Python platform information"), (Told(1.0, _PYTHON),)))
        for name, kind, text, figure in _PROCESS:
            told = Told(self.started_at if figure is None else figure)
            written.append((Family(name, kind, text), (told,)))
        return written

    def of_http(self) -> Written:
        """What prometheus_fastapi_instrumentator counts; most of it is not there before the first answer."""
        by_handler = (("handler", HANDLER),)
        post = (*by_handler, ("method", "POST"))
        created = self.first_at
        some = created is not None
        at = created or 0.0

        def told(value: float | Buckets | Summary, labels: tuple[tuple[str, str], ...]) -> tuple[Told, ...]:
            return (Told(value, labels, at),) if some else ()

        return [
            (
                Family(
                    "http_requests_total",
                    "counter",
                    "Total number of requests by method, status and handler.",
                ),
                told(float(self.answers), (*post, ("status", "2xx"))),
            ),
            (
                Family("http_request_size_bytes", "summary", _size_help("incoming requests")),
                told(Summary(self.answers, self._request_bytes), by_handler),
            ),
            (
                Family("http_response_size_bytes", "summary", _size_help("outgoing responses")),
                told(Summary(self.answers, 0.0), by_handler),  # streamed answers tell no length
            ),
            (
                Family(
                    "http_request_duration_highr_seconds",
                    "histogram",
                    "Latency with many buckets but no API specific labels. Made for more accurate percentile "
                    "calculations. ",
                ),
                (Told(self._seconds, (), self.started_at),),
            ),
            (
                Family(
                    "http_request_duration_seconds",
                    "histogram",
                    "Latency with only few buckets by handler. Made to be only used if aggregation by handler is "
                    "important. ",
                ),
                told(self._handler_seconds, post),
            ),
        ]


def _size_help(what: str) -> str:
    return (
        f"Content length of {what} by handler. Only value of header is respected. Otherwise ignored. "
        "No percentile calculated. "
    )
