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
from exporter.settings import SettingsError
from exporter.web_config import Passwords, WebConfig, read_web_config, tls_context

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0


@dataclass(slots=True)
class WebReload:
    """Keeps ``tls`` and ``passwords`` as ``file`` and the files it names say."""

    file: Path
    web: WebConfig
    tls: ssl.SSLContext | None
    passwords: Passwords | None
    _stamp: tuple[Stamp, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._stamp = self._look()

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """Take up what has changed. What can't be used is logged, and all stays as it was."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            web = read_web_config(self.file)
            self._take_up(web)
        except SettingsError as error:
            logger.error("web config not taken up, the one before stays: %s", error)  # noqa: TRY400 - says it all
            return
        self._stamp = self._look()  # it may name other files now

    def _take_up(self, web: WebConfig) -> None:
        new, old = web.tls_server_config, self.web.tls_server_config
        if self.tls is not None and new is not None and old is not None:
            tls_context(new)  # proves all of it before the one in use is touched
            self.tls.load_cert_chain(new.cert_file, new.key_file, password="")
            old = replace(old, cert_file=new.cert_file, key_file=new.key_file)
        if self.passwords is not None and web.basic_auth_users:
            self.passwords.replace(web.basic_auth_users)
        same_server = (
            new == old
            and bool(web.basic_auth_users) == (self.passwords is not None)
            and web.http_server_config == self.web.http_server_config
        )
        if same_server:
            logger.info("web config taken up: %s", self.file)
        else:
            logger.warning(
                "web config taken up in part: certificate and passwords; the rest needs a restart: %s",
                self.file,
            )
        self.web = replace(self.web, tls_server_config=old, basic_auth_users=web.basic_auth_users)

    def _look(self) -> tuple[Stamp, ...]:
        tls = self.web.tls_server_config
        files = (self.file, tls.cert_file, tls.key_file) if tls else (self.file,)
        return tuple(stamp_of(file) for file in files)
