"""How a server with history is reached, and what may be asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from exporter.connection_settings import ConnectionSettings, Seconds, settle
from exporter.settings import RefusedError

MIB = 1 << 20
_OF_ITS_PAGES = ("/api/v1", "/graph", "/query")
"""What a URL copied from a browser ends in, beyond the server's own prefix."""


@dataclass(frozen=True, slots=True)
class ServerSettings(ConnectionSettings):
    """A Prometheus-compatible server: its URL up to before ``/api/v1``, and who asks.

    Mimir's tenant goes into ``headers`` as ``X-Scope-OrgID``. ``deadline_seconds`` is for one request, a little above
    the two minutes after which servers give up themselves; ``parallel`` how many requests are out at a time.
    """

    deadline_seconds: Seconds = 150.0
    max_body_bytes: int = 512 * MIB
    parallel: int = 4

    def __post_init__(self) -> None:
        """Raises RefusedError."""
        settle(self, "/")
        if "?" in self.url:
            raise RefusedError("url", "must not carry a query; give the URL up to before /api/v1")
        if not 1 <= self.parallel <= 64:  # noqa: PLR2004 - more is an attack
            raise RefusedError("parallel", f"{self.parallel} requests at a time: 1 to 64 is allowed")
        scheme, _, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        prefix = slash + path
        for page in _OF_ITS_PAGES:
            head, found, tail = prefix.partition(page)
            if found and tail[:1] in {"", "/"}:
                prefix = head
        object.__setattr__(self, "url", f"{scheme}://{host}{prefix.rstrip('/')}")
