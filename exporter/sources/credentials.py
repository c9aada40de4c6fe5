"""What a request proves itself with: secrets from files that are rotated, and TLS."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from exporter.connection_settings import BasicAuthSettings, TlsSettings
from exporter.file_stamp import Stamp, stamp_of
from exporter.sources.failure import ReadFailedError, Reason, one_line


class CredentialSettings(Protocol):
    """The settings this file looks at; at most one of the three ways is set."""

    @property
    def basic_auth(self) -> BasicAuthSettings | None:
        """User and password."""

    @property
    def bearer_token(self) -> str | None:
        """The token itself."""

    @property
    def bearer_token_file(self) -> Path | None:
        """A file that holds the token; it may be rotated."""


class Authorization:
    """Makes the Authorization header, and keeps up with a secret file that changes."""

    def __init__(self, settings: CredentialSettings, where: str) -> None:
        self._where = where
        self._basic = settings.basic_auth
        self._token = settings.bearer_token
        basic_file = self._basic.password_file if self._basic is not None else None
        self._file = settings.bearer_token_file or basic_file
        self._key = "bearer_token_file" if settings.bearer_token_file else "basic_auth.password_file"
        self._stamp: Stamp = None
        self._header: str | None = None

    def header(self) -> str | None:
        """The header's value, or None without credentials.

        Costs one ``stat`` a call where a file is used. Raises ReadFailedError (``unauthorised``) when
        the file can't be read or holds what no header can carry.
        """
        stamp = stamp_of(self._file) if self._file is not None else None
        if self._header is None or stamp != self._stamp:
            self._header = self._made()
            self._stamp = stamp
        return self._header

    def _made(self) -> str | None:
        secret = self._from_file(self._file) if self._file is not None else self._token
        if self._basic is not None:
            password = self._basic.password if secret is None else secret
            pair = f"{self._basic.username}:{password}".encode()
            return "Basic " + base64.b64encode(pair).decode("ascii")
        return None if secret is None else f"Bearer {secret}"

    def _from_file(self, path: Path) -> str:
        try:
            secret = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            detail = one_line(str(getattr(error, "strerror", None) or "it is not text"), 80)
            raise self._unusable(path, f"cannot be read ({detail})") from error
        if not secret:
            raise self._unusable(path, "is empty")
        if self._basic is None and not (secret.isascii() and secret.isprintable()):
            raise self._unusable(path, "holds more than one line, or characters a header can't carry")
        return secret

    def _unusable(self, path: Path, problem: str) -> ReadFailedError:
        return ReadFailedError(
            Reason.UNAUTHORISED,
            self._where,
            f"not asked, as {self._key} {path} {problem}",
            "put the secret there, readable for this process",
        )


def tls_stamp(tls: TlsSettings) -> tuple[Stamp, ...]:
    """What to compare to see whether any file of ``tls`` changed."""
    files = (tls.ca_file, tls.cert_file, tls.key_file)
    return tuple(stamp_of(path) for path in files if path is not None)


def tls_context(tls: TlsSettings, where: str) -> ssl.SSLContext:
    """A client's TLS context: the system's authorities, or those of ``ca_file`` alone.

    Raises ReadFailedError (``tls``) naming the file that can't be used. Reads files and takes some
    20 ms with the system's authorities: once a source, not once a read.
    """
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
    except OSError as error:
        raise _unusable_files({"tls.ca_file": tls.ca_file}, error, where) from error
    if tls.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file is not None:
        try:
            context.load_cert_chain(tls.cert_file, tls.key_file, password=_no_passphrase)
        except OSError as error:
            pair = {"tls.cert_file": tls.cert_file, "tls.key_file": tls.key_file}
            raise _unusable_files(pair, error, where) from error
    return context


def _no_passphrase() -> str:
    """Nobody is there to type one; without this OpenSSL would ask on the terminal and wait."""
    return ""


def _unusable_files(paths: Mapping[str, Path | None], error: OSError, where: str) -> ReadFailedError:
    files = " or ".join(f"{key} {path}" for key, path in paths.items() if path is not None)
    detail = one_line(str((isinstance(error, ssl.SSLError) and error.reason) or error.strerror or error), 80)
    return ReadFailedError(
        Reason.TLS,
        where,
        f"not asked, as {files or 'the system store of authorities'} cannot be used ({detail})",
        "it must hold PEM, unencrypted and readable for this process",
    )
