"""Takes up a renewed certificate or a changed password while the sidecar runs.

Certificates are renewed every few weeks by others (cert-manager, ACME); nobody restarts a sidecar for
that. What changes the server itself, such as TLS where there was none, needs a restart and is said.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path

from exporter.file_stamp import Stamp, stamp_of
from exporter.settings import SettingsError, load
from exporter.web_config import Passwords, WebConfig, tls_context

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0


@dataclass(slots=True)
class WebReload:
    """Keeps what ``tls`` serves and ``passwords`` as ``file`` and the files it names say."""

    file: Path
    web: WebConfig
    tls: ssl.SSLContext | None
    passwords: Passwords | None
    _current: ssl.SSLContext | None = field(init=False)
    _stamp: tuple[Stamp, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._current = self.tls
        if self.tls is not None:
            # The server keeps the context it began with. Each handshake is handed on to the newest one, so
            # that one is either taken up as a whole or not at all, and never a certificate without its key.
            self.tls.sni_callback = self._hand_on
        if self.passwords is not None:
            # Here and not where they are made: what is open is then told in one place, at the start as later.
            self.passwords.replace(self.web.basic_auth_users, self.web.auth_excluded_paths)
        self._stamp = self._look()

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                self.refresh()
            except Exception:
                logger.exception(
                    "web config %s: an error in thrashold itself; what is in use stays", self.file
                )

    def refresh(self) -> None:
        """Take up what has changed. What can't be used is logged, once, and all stays as it was."""
        stamp, files = self._look(), self._files()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._take_up(load(WebConfig, file=self.file))
        except SettingsError as error:
            logger.error("web config not taken up, the one before stays: %s", error)  # noqa: TRY400 - says it all
            return
        if self._files() != files:
            self._stamp = self._look()

    def _take_up(self, web: WebConfig) -> None:
        new, old = web.tls_server_config, self.web.tls_server_config
        if self.tls is not None and new is not None and old is not None:
            old = replace(old, cert_file=new.cert_file, key_file=new.key_file)
            if new.client_auth_type == old.client_auth_type:
                old = replace(old, client_ca_file=new.client_ca_file)
            self._current = tls_context(old)
        if self.passwords is not None and web.basic_auth_users:
            self.passwords.replace(web.basic_auth_users, web.auth_excluded_paths)
        same_server = (
            new == old
            and bool(web.basic_auth_users) == (self.passwords is not None)
            and web.http_server_config == self.web.http_server_config
        )
        if same_server:
            logger.info("web config taken up: %s", self.file)
        else:
            logger.warning(
                "web config taken up in part: certificates and passwords; the rest needs a restart: %s",
                self.file,
            )
        self.web = replace(
            self.web,
            tls_server_config=old,
            basic_auth_users=web.basic_auth_users,
            auth_excluded_paths=web.auth_excluded_paths,
        )

    def _hand_on(self, handshake: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        if self._current is not None:
            handshake.context = self._current

    def _look(self) -> tuple[Stamp, ...]:
        return tuple(stamp_of(file) for file in self._files())

    def _files(self) -> tuple[Path, ...]:
        tls = self.web.tls_server_config
        named = (tls.cert_file, tls.key_file, tls.client_ca_file) if tls else ()
        return (self.file, *(file for file in named if file is not None))
