"""Why a read failed: a small fixed set of reasons, and one line for the person who has to act on it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

import httpcore

_MOST_SHOWN = 200
# OpenSSL's names for what a peer that speaks plain HTTP, and one that wants a client certificate, cause.
_NO_TLS_THERE = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"}
_WANTS_CERTIFICATE = {"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE"}
# Part of how TLS is read, or the end of a connection in its words.
_NO_TLS_ERROR = (ssl.SSLWantReadError, ssl.SSLWantWriteError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Reason(StrEnum):
    """The ``reason`` label of ``source_errors_total``. Fixed, so that dashboards can name each."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    TOO_LARGE = "too_large"
    HTTP_STATUS = "http_status"
    UNAUTHORISED = "unauthorised"
    NOT_TEXT = "not_text"
    NOT_AN_ENGINE = "not_an_engine"
    NOT_DCGM = "not_dcgm"
    NO_GPUS = "no_gpus"
    NOT_A_GATEWAY = "not_a_gateway"
    AMBIGUOUS = "ambiguous"
    STALE = "stale"
    TLS = "tls"
    DISCONNECTED = "disconnected"
    DNS = "dns"
    REDIRECT = "redirect"
    NOT_ZMQ = "not_zmq"
    NOT_INSTALLED = "not_installed"
    NOT_A_PROBE = "not_a_probe"
    NO_SOCKET = "no_socket"
    INTERNAL = "internal"


class Peer(NamedTuple):
    """Who answers, in messages: ``name``, and what to do where it answers with an error of its own.

    ``has_it_at`` says at which path metrics are, ``off`` how they are turned on where they may be off.
    """

    name: str
    failing: str
    has_it_at: str
    off: str = ""


ENGINE = Peer(
    "the engine",
    "look into the log of the engine",
    "engines have it at /metrics, trtllm-serve at /prometheus/metrics",
    "SGLang needs --enable-metrics, llama.cpp --metrics",
)
GATEWAY = Peer(
    "the gateway",
    "look into the log of the gateway",
    "Envoy has it at /stats/prometheus, LiteLLM at /metrics/",
)
DCGM = Peer(
    "dcgm-exporter",
    "look into the log of dcgm-exporter: one field that fails there fails the whole page",
    "dcgm-exporter has it at /metrics",
)


class ReadFailedError(Exception):
    """One read failed for ``reason``. The text is one line: where, what was wrong, what to do.

    ``status``: of an answer that was another than 200, where there was one.
    """

    def __init__(
        self, reason: Reason, where: str, problem: str, remedy: str, status: int | None = None
    ) -> None:
        super().__init__(f"{where}: {problem}; {remedy}")
        self.reason, self.status = reason, status


def remedy(status: int, peer: Peer) -> str:
    """What to do about an answer that is neither a page nor a redirect."""
    off = f"; {peer.off}" if peer.off else ""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return f"let {peer.name} answer the sidecar as often as it asks, or raise interval_seconds"
    if status == HTTPStatus.NOT_FOUND:
        return f"check the path of the URL: {peer.has_it_at}{off}"
    if status < 500:  # noqa: PLR2004
        return f"check the path of the URL: {peer.has_it_at}"
    # llama.cpp says so where its metrics are off
    return peer.failing + (off if status == HTTPStatus.NOT_IMPLEMENTED else "")


def one_line(text: str, most: int = _MOST_SHOWN) -> str:
    """``text`` as far as it fits a log line: no line breaks, no control characters, ``most`` characters."""
    words = " ".join("".join(char if char.isprintable() else " " for char in text[: 8 * most]).split())
    return words if len(words) <= most else words[: most - 3] + "..."


def explain(error: Exception, where: str, peer: str) -> ReadFailedError:
    """Say in the house's words what went wrong on the way to ``where`` or back; ``peer`` is who answers there.

    ``error`` is what httpcore or the socket below it raised; what it was caused by decides.
    """
    causes = list(_causes(error))
    for look in (_name_failure, _tls_failure, _connection_failure):
        for cause in causes:
            found = look(cause, where, peer)
            if found is not None:
                return found
    if isinstance(error, httpcore.RemoteProtocolError) and not _is_early_end(error):
        return ReadFailedError(
            Reason.NOT_TEXT,
            where,
            f"what answers there does not speak HTTP ({one_line(str(error), 80)})",
            "check the port, and whether the URL should start with http:// or https://",
        )
    if isinstance(error, httpcore.ConnectError) and any(isinstance(cause, OSError) for cause in causes):
        details = [str(cause.strerror) for cause in causes if isinstance(cause, OSError) and cause.strerror]
        detail = one_line(details[-1] if details else str(error), 80)
        return ReadFailedError(
            Reason.REFUSED, where, f"cannot be reached ({detail})", "check the host and the network between"
        )
    return _disconnected(where, peer, "the connection was closed before the answer was complete")


def _name_failure(cause: BaseException, where: str, _peer: str) -> ReadFailedError | None:
    if not isinstance(cause, (socket.gaierror, UnicodeError)):
        return None
    detail = one_line(str(cause.strerror if isinstance(cause, socket.gaierror) else cause), 80)
    return ReadFailedError(
        Reason.DNS,
        where,
        f"the host's name cannot be resolved ({detail})",
        "check its spelling, and the resolver of this machine",
    )


def _tls_failure(cause: BaseException, where: str, _peer: str) -> ReadFailedError | None:
    if isinstance(cause, ssl.SSLCertVerificationError):
        problem = f"its certificate is not trusted ({one_line(cause.verify_message, 120)})"
        remedy = "set tls.ca_file to the authority that signed it, or tls.server_name to the name it bears"
    elif isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS_THERE:
        problem, remedy = "does not speak TLS", "use http:// in the URL, or the port that has TLS"
    elif isinstance(cause, ssl.SSLError) and cause.reason in _WANTS_CERTIFICATE:
        problem = "the server broke off TLS, as it does where it wants a client certificate"
        remedy = "set tls.cert_file and tls.key_file"
    elif isinstance(cause, ssl.SSLError) and not isinstance(cause, _NO_TLS_ERROR):
        detail = cause.reason or cause.strerror or cause
        problem = f"TLS failed ({one_line(str(detail), 80)})"
        remedy = "compare the tls settings with what the server offers"
    else:
        return None
    return ReadFailedError(Reason.TLS, where, problem, remedy)


def _connection_failure(cause: BaseException, where: str, peer: str) -> ReadFailedError | None:
    if isinstance(cause, ConnectionRefusedError):
        return ReadFailedError(
            Reason.REFUSED,
            where,
            "refused: nothing listens there",
            f"look whether {peer} runs, and check host and port",
        )
    if isinstance(cause, TimeoutError):
        return ReadFailedError(
            Reason.TIMEOUT, where, "connecting timed out", "check the host and the network between"
        )
    if isinstance(cause, ConnectionError):  # reset, aborted or broken while it was open
        return _disconnected(where, peer, "the connection broke off")
    return None


def _disconnected(where: str, peer: str, problem: str) -> ReadFailedError:
    remedy = f"look whether {peer}, or a proxy before it, is restarting"
    if where.startswith("https:"):
        # Under TLS 1.3 the word of a server that wants a certificate is often lost with the connection.
        remedy += "; or does it want a client certificate (tls.cert_file)?"
    else:  # many servers that have TLS alone end a connection that begins in plain HTTP without a word
        remedy += ", or whether the port speaks https"
    return ReadFailedError(Reason.DISCONNECTED, where, problem, remedy)


def _is_early_end(error: httpcore.RemoteProtocolError) -> bool:
    """Whether the peer closed too early, rather than sent what isn't HTTP; only the text tells."""
    return "disconnected" in str(error) or "closed connection" in str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and all that it came from, several addresses tried at once included."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        waiting.extend(cause for cause in (each.__cause__, each.__context__) if cause is not None)
