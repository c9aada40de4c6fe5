"""TLS and basic auth for the sidecar's own pages, by a web config file as Prometheus's exporters have it.

The keys are those of exporter-toolkit's ``web-config.yml``, and one of our own: there, everything is
behind the password, health checks too, which no Kubernetes probe can bring, so ``auth_excluded_paths``
(a proposal there, in no release) takes paths out. What Python's TLS can't do is refused rather than
left out in silence.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
import re
import secrets
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from starlette.types import ASGIApp, Receive, Scope, Send

from exporter.settings import RefusedError, SettingsError, load

logger = logging.getLogger(__name__)

_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_MOST_BCRYPT_COST = 14
"""Some 1 s for a password; each step more takes twice as long, and 31 a day and more."""
_BCRYPT_LETTERS = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_DIGEST_LETTERS = 31
_BCRYPT_BYTES = 72
"""bcrypt looks at no more of a password; what follows is left out, as htpasswd does."""
_PATH = re.compile(r"/[^?#*\s]*")
"""What can be the path of one of our pages. Anything else would never match, and nobody would know why."""


@dataclass(frozen=True, slots=True)
class TlsServerSettings:
    """How to speak TLS with those who scrape."""

    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth_type: str = "NoClientCert"
    min_version: Literal["TLS12", "TLS13"] = "TLS12"
    max_version: Literal["TLS12", "TLS13"] = "TLS13"

    def __post_init__(self) -> None:
        if self.client_auth_type not in _CLIENT_AUTH:
            raise RefusedError("client_auth_type", f"must be one of {', '.join(_CLIENT_AUTH)}")
        asked = self.client_auth_type != "NoClientCert"
        if asked and self.client_ca_file is None:
            raise RefusedError("client_auth_type", f"{self.client_auth_type} needs client_ca_file")
        if self.client_ca_file is not None and not asked:
            raise RefusedError("client_ca_file", "has no use while client_auth_type is NoClientCert")
        if self.min_version > self.max_version:
            raise RefusedError("min_version", f"{self.min_version} is above max_version {self.max_version}")


@dataclass(frozen=True, slots=True)
class HttpServerSettings:
    """``http2`` is read and has no effect: HTTP/1.1 is spoken either way. ``headers`` go on every answer."""

    http2: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The whole file.

    ``basic_auth_users`` maps a user's name to the bcrypt hash of the password. The pages at
    ``auth_excluded_paths`` are open to those who bring none; each is one path as it stands, so that
    nobody opens more than they wrote down. Client certificates are asked for before any path is told.
    """

    tls_server_config: TlsServerSettings | None = None
    http_server_config: HttpServerSettings = HttpServerSettings()
    basic_auth_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth_excluded_paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.auth_excluded_paths and not self.basic_auth_users:
            raise RefusedError("auth_excluded_paths", "has no use without basic_auth_users")
        for place, path in enumerate(self.auth_excluded_paths):
            if not _PATH.fullmatch(path):
                raise RefusedError(
                    ("auth_excluded_paths", place),
                    "is not one whole path, such as /-/healthy; there are no patterns",
                )
        for user, hashed in self.basic_auth_users.items():
            found = _BCRYPT.fullmatch(hashed)
            if found is None:
                raise RefusedError(
                    ("basic_auth_users", user), "is not a bcrypt hash; make one with: htpasswd -nBC 10 NAME"
                )
            if int(found[1]) > _MOST_BCRYPT_COST:
                raise RefusedError(
                    ("basic_auth_users", user),
                    f"has a bcrypt cost of {int(found[1])}, above {_MOST_BCRYPT_COST}: each check would take a core"
                    " for seconds to days; make one with: htpasswd -nBC 10 NAME",
                )


def read_web_config(file: Path) -> WebConfig:
    """Read a web config. Raises SettingsError. One that protects nothing is taken, and said."""
    web = load(WebConfig, file=file)
    if web.tls_server_config is None and not web.basic_auth_users:
        what = "is empty" if web == WebConfig() else "sets neither TLS nor passwords"
        logger.warning("%s %s: nothing is protected", file, what)
    return web


def tls_context(settings: TlsServerSettings) -> ssl.SSLContext:
    """Make the server's side of TLS. Raises SettingsError, with the file, where one can't be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[settings.min_version]
    context.maximum_version = _VERSIONS[settings.max_version]
    for file in (settings.cert_file, settings.key_file, settings.client_ca_file):
        if file is not None:
            try:
                file.open("rb").close()
            except OSError as error:
                raise SettingsError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        # An empty password instead of none: OpenSSL would ask for one on the terminal.
        context.load_cert_chain(settings.cert_file, settings.key_file, password="")
    except OSError as error:
        raise SettingsError(
            f"{settings.cert_file}: not a certificate that goes with the key in {settings.key_file}"
            f" ({_detail(error)})"
        ) from error
    if settings.client_ca_file is not None:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except OSError as error:
            raise SettingsError(
                f"{settings.client_ca_file}: holds no CA certificate ({_detail(error)})"
            ) from error
        context.verify_mode = _CLIENT_AUTH[settings.client_auth_type]
        # A resumed session is not verified again: it would outlive the authority it was verified by.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return context


def _detail(error: OSError) -> object:
    """OpenSSL's word, or the system's: a file may go between two looks at it."""
    return getattr(error, "reason", None) or error.strerror or error


class Passwords:
    """Checks passwords against bcrypt hashes, and remembers for each user the one that was right.

    A hash is made to be slow, some 60 ms; a scrape a second would spend 6 % of a core on it. What is
    remembered is a keyed digest under a key that only this process knows, never the password.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        import bcrypt  # noqa: PLC0415 - only those who use passwords load it

        self._check = bcrypt.checkpw
        self._make_salt = bcrypt.gensalt
        self._key = secrets.token_bytes(32)
        self._one_at_a_time = asyncio.Lock()
        self.replace(users)

    def replace(self, users: Mapping[str, str], open_paths: Collection[str] = ()) -> None:
        """Forget all users and know these; none is asked for at ``open_paths``."""
        self.open_paths = frozenset(open_paths)
        self._users = {user.encode(): hashed.encode() for user, hashed in users.items()}
        self._known: dict[bytes, bytes] = {}
        # Whoever guesses names must not learn from the time taken which of them exist. No password needs to
        # be hashed for that: a digest made up at random goes with none that anybody knows.
        rounds = max((int(hashed.split("$")[2]) for hashed in users.values()), default=10)
        digest = "".join(secrets.choice(_BCRYPT_LETTERS) for _ in range(_DIGEST_LETTERS))
        self._nobody = self._make_salt(rounds) + digest.encode()

    async def right(self, user: bytes, password: bytes) -> bool:
        """Whether ``user`` exists and has this password. The slow check runs beside the loop."""
        digest = hmac.digest(self._key, user + b"\0" + password, "sha256")
        if hmac.compare_digest(self._known.get(user, b""), digest):
            return True
        async with self._one_at_a_time:  # a flood of wrong passwords takes one core at most
            hashed = self._users.get(user, self._nobody)
            matches = await asyncio.to_thread(self._matches, hashed, password)
        # The users may have been replaced meanwhile: only a hash that still stands counts.
        if matches and self._users.get(user) == hashed:
            self._known[user] = digest
            return True
        return False

    def _matches(self, hashed: bytes, password: bytes) -> bool:
        try:
            return self._check(password[:_BCRYPT_BYTES], hashed)
        except ValueError:  # a password bcrypt can't take
            return False


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """Lets a request through to ``app`` if it brings a user's password, and answers 401 otherwise.

    The path it looks at is the one that pages are found by, escapes and all resolved.
    """

    app: ASGIApp
    passwords: Passwords

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["path"] in self.passwords.open_paths:
            await self.app(scope, receive, send)
            return
        credentials = _credentials(scope)
        if credentials is not None and await self.passwords.right(*credentials):
            await self.app(scope, receive, send)
            return
        body = b"Unauthorized\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"www-authenticate", b'Basic realm="thrashold", charset="UTF-8"'),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _credentials(scope: Scope) -> tuple[bytes, bytes] | None:
    value = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, encoded = value.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return None
    return (user, password) if colon else None
