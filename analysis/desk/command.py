"""``thrashold desk``: the service that Alertmanager tells, and that has the report when somebody comes to look."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import sqlite3
import ssl
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from alerts.alertmanager import ALERTS_PATH
from analysis.desk.application import Changes, Desk, application
from analysis.desk.grafana import Marker
from analysis.desk.guard import LOOPBACK_NAMES, Guard, is_loopback, open_to_others
from analysis.desk.job import ENVIRONMENT_PREFIX
from analysis.desk.schedule import HOUR, Schedule
from analysis.desk.settings import DeskSettings
from analysis.desk.store import LAPSE_HOURS, Store, StoreError
from analysis.desk.token import WebhookToken
from analysis.desk.work import Given, Worker
from exporter.clock import anchored_clock
from exporter.command import warn_if_open
from exporter.ending import leave, run_loop
from exporter.service import Server, listening_socket, make_server
from exporter.settings import RefusedError, SettingsError, load_with_places
from exporter.sidecar_settings import parse_address
from exporter.usage import UsageFailure
from exporter.web_config import BasicAuth, Passwords, WebConfig, read_web_config, tls_context
from exporter.web_reload import WebReload

logger = logging.getLogger(__name__)

_TIDY_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class _Made:
    """What was asked for, checked and opened."""

    settings: DeskSettings
    given: Given
    store: Store
    listener: socket.socket
    web: WebConfig
    tls: ssl.SSLContext | None
    token: WebhookToken | None


@click.command()
@click.option(
    "--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="Settings in YAML."
)
@click.option("--listen", metavar="HOST:PORT", help="Where to serve.  [default: 127.0.0.1:9808]")
@click.option("--data", metavar="DIRECTORY", help="Where incidents and reports are kept.  [default: desk]")
@click.option("--prometheus", metavar="URL", help="History of what no flight recorder holds.")
def desk(config_file: Path | None, listen: str | None, data: str | None, prometheus: str | None) -> None:
    """Hear Alertmanager's webhook, open incidents, and make their reports.

    A flag goes before the environment (THRASHOLD_DESK_LISTEN, ...), the environment before the settings file. All that
    a file can hold: docs/desk.md.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    flags = {"listen": listen, "data": data, "prometheus": prometheus}
    try:
        loaded = load_with_places(
            DeskSettings, file=config_file, environ=os.environ, flags=flags, prefix=ENVIRONMENT_PREFIX
        )
        loaded.check_files()
        settings = loaded.settings
        web = read_web_config(settings.web_config) if settings.web_config else WebConfig()
        tls = tls_context(web.tls_server_config) if web.tls_server_config else None
        token = WebhookToken(settings.webhook_token_file) if settings.webhook_token_file else None
        try:
            host, port = parse_address(settings.listen)
        except ValueError as error:
            raise loaded.refusal(RefusedError("listen", str(error))) from error
        if why := open_to_others(host, web.basic_auth_users, token, tls, open_pages=settings.open_pages):
            raise loaded.refusal(RefusedError("listen", why))
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
    given = Given(
        config_file.resolve() if config_file else None,
        {name: text for name, text in os.environ.items() if name.startswith(ENVIRONMENT_PREFIX)},
        {name: text for name, text in flags.items() if text is not None},
    )
    try:
        listener = listening_socket(host, port)
    except OSError as error:
        raise click.ClickException(f"can't listen on {settings.listen}: {error.strerror or error}") from error
    warn_if_open(listener, web)
    try:
        settings.data.mkdir(parents=True, exist_ok=True)
        store = Store(settings.data / "desk.db", settings.cluster_labels, settings.join_seconds)
    except OSError as error:
        raise UsageFailure(f"{settings.data}: {error.strerror}") from error
    except StoreError as error:
        raise UsageFailure(str(error)) from error
    _serve(_Made(settings, given, store, listener, web, tls, token))


def _serve(made: _Made) -> None:
    settings, users = made.settings, made.web.basic_auth_users
    clock, changes = anchored_clock(), Changes()
    host, port = made.listener.getsockname()[:2]
    url = f"{'https' if made.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    marker = Marker(settings.grafana) if settings.grafana else None
    folder = settings.data / "incidents"
    schedule = Schedule(
        settings.look_back_seconds, settings.report_hours * HOUR, settings.report_again_seconds
    )
    worker = Worker(made.store, folder, made.given, schedule, clock, changes, marker)
    pages = application(Desk(made.store, worker, changes, clock, url + ALERTS_PATH))
    passwords = Passwords(users) if users else None
    protected = BasicAuth(pages, passwords) if passwords else pages
    names = LOOPBACK_NAMES.union(settings.host_names) if is_loopback(host) else settings.host_names
    guard = Guard(pages, protected, made.token, names or None)
    server = make_server(guard, tls=made.tls, headers=made.web.http_server_config.headers)
    logger.info("listening on %s; incidents are kept in %s", url, settings.data)
    beside = [worker.run(), worker.keep_up(), _tidy(worker, settings)]
    if settings.web_config:
        beside.append(WebReload(settings.web_config, made.web, made.tls, passwords).run())
    run_loop(_run(server, made.listener, beside))
    logger.info("ended")
    leave(0)


async def _run(server: Server, listener: socket.socket, beside: Sequence[Coroutine[Any, Any, None]]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    tasks = [loop.create_task(each) for each in beside]
    try:
        await server.serve(sockets=[listener])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _tidy(worker: Worker, settings: DeskSettings) -> None:
    """Let go of what is old, now and every hour."""
    while True:
        try:
            now = worker.clock()
            for number in worker.store.lapse(now - LAPSE_HOURS * HOUR, now):
                worker.ask(number)
            for number in worker.store.forget(now - settings.keep_days * _DAY_SECONDS):
                shutil.rmtree(worker.files(number), ignore_errors=True)
                logger.info("incident %d is older than %g days and is gone", number, settings.keep_days)
        except sqlite3.Error:
            logger.exception("what is old could not be let go of; it is tried again in an hour")
        await asyncio.sleep(_TIDY_SECONDS)
