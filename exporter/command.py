"""``thrashold exporter``: settings in, a running sidecar or one printed cycle out."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from starlette.routing import Route

from exporter.clock import anchored_clock
from exporter.cycle import CycleSettings, State, initial, step
from exporter.derive.phenomenon import EngineFacts
from exporter.ending import leave, run_loop
from exporter.facts import engine_facts
from exporter.gateway_join import Behind
from exporter.live import LiveCycle, read_all_once
from exporter.observation import ENGINE
from exporter.publication import Board
from exporter.recorder_api import PATH as RECORDER_API
from exporter.recorder_api import RecorderPage
from exporter.render import PLAIN
from exporter.service import application, listening_socket, make_server
from exporter.settings import Loaded, RefusedError, SettingsError, load_with_places
from exporter.settings_schema import misspelt_variables
from exporter.sidecar import serve
from exporter.sidecar_settings import (
    DEFAULT_LISTEN,
    TRIAGE_VARIABLES,
    RecorderSettings,
    SidecarSettings,
    parse_address,
)
from exporter.sources.configured import configured_sources
from exporter.sources.quiet import logging_from
from exporter.usage import UsageFailure
from exporter.version import installed_version
from exporter.web_config import Passwords, WebConfig, read_web_config, tls_context
from exporter.web_reload import WebReload

if TYPE_CHECKING:
    from exporter.recorder import Recorder

logger = logging.getLogger(__name__)


CONFIG_VARIABLE = "THRASHOLD_CONFIG"
"""Names the settings file; all other variables stand for what a file may hold."""


@click.command()
@click.option(
    "--engine",
    "engines",
    metavar="[NAME=]URL",
    multiple=True,
    help="An engine's metrics, as http://HOST:PORT; NAME tells it from those of other sidecars. Repeatable.",
)
@click.option(
    "--gateway",
    "gateways",
    metavar="[NAME=]URL",
    multiple=True,
    help="Stats of a gateway before the engines: Envoy's admin port, or LiteLLM's /metrics/. Repeatable.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    envvar=CONFIG_VARIABLE,
    show_envvar=True,
    help="Settings in YAML.",
)
@click.option("--listen", metavar="HOST:PORT", help=f"Where to serve.  [default: {DEFAULT_LISTEN}]")
@click.option(
    "--web-config",
    metavar="FILE",
    type=click.Path(),
    help="TLS and basic auth, as Prometheus's exporters have them.",
)
@click.option(
    "--recorder", metavar="FILE", type=click.Path(), help="Record every signal, each second, in FILE."
)
@click.option(
    "--gpus", "gpus_nvml", metavar="auto|always|never", help="Read this machine's GPUs.  [default: auto]"
)
@click.option("--dcgm", "gpus_dcgm", metavar="URL", help="A dcgm-exporter to read GPUs from.")
@click.option(
    "--check", is_flag=True, help="Read each source once, say what it gives and what is missing, and end."
)
@click.option("--once", is_flag=True, help="Print one cycle and end; exit code 1 where no engine answered.")
def exporter(  # noqa: PLR0913, PLR0917 - one each for click's options
    engines: tuple[str, ...],
    gateways: tuple[str, ...],
    config_file: Path | None,
    listen: str | None,
    web_config: str | None,
    recorder: str | None,
    gpus_nvml: str | None,
    gpus_dcgm: str | None,
    check: bool,  # noqa: FBT001 - click calls by name
    once: bool,  # noqa: FBT001
) -> None:
    """Watch engines and serve their signals, once a second.

    A flag goes before the environment (THRASHOLD_LISTEN, THRASHOLD_ENGINES and
    THRASHOLD_GATEWAYS with commas between, THRASHOLD_WEB_CONFIG, THRASHOLD_RECORDER_PATH,
    THRASHOLD_INTERVAL_SECONDS), the environment before the settings file. All that a file can hold: docs/settings.md.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    for name, known in misspelt_variables(
        SidecarSettings, os.environ, also=(CONFIG_VARIABLE, *TRIAGE_VARIABLES)
    ):
        logger.warning("%s is no setting; did you mean %s?", name, known)
    flags = {"engines": engines, "gateways": gateways, "listen": listen, "web_config": web_config}
    flags |= {"recorder": recorder, "gpus.nvml": gpus_nvml, "gpus.dcgm": gpus_dcgm}
    try:
        loaded = load_with_places(SidecarSettings, file=config_file, environ=os.environ, flags=flags)
        loaded.check_files()
        settings, facts = loaded.settings, _facts(loaded)
        web = read_web_config(settings.web_config) if settings.web_config else WebConfig()
        tls = tls_context(web.tls_server_config) if web.tls_server_config else None
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
    if not settings.engines:
        raise UsageFailure(_no_engine(config_file, is_empty=loaded.file_is_empty))
    if check:
        from exporter.check_command import checked  # noqa: PLC0415 -- who serves does without

        text, code = checked(lambda: _live_cycle(settings, facts).sources, facts)
        _print(text.encode())
        leave(code)
    elif once:
        if recorder:
            raise UsageFailure(
                "--once ends after one cycle and records nothing: leave out --recorder or --once"
            )
        if settings.recorder:
            logger.info("--once records nothing: %s is left as it is", settings.recorder.path)
        _print_once(settings, facts)
    else:
        _serve(settings, facts, web, tls)


def _facts(loaded: Loaded[SidecarSettings]) -> dict[str, EngineFacts]:
    facts = {}
    for place, engine in enumerate(loaded.settings.engines):
        try:
            facts[engine.name] = engine_facts(engine)
        except RefusedError as error:
            raise loaded.refusal(error, ("engines", place)) from error
    return facts


def _no_engine(file: Path | None, *, is_empty: bool) -> str:
    if file is None:
        ways = "give --engine URL, set THRASHOLD_ENGINES, or list engines in a --config FILE"
        return f"no engine to read: {ways}"
    problem = "is empty" if is_empty else "lists no engines"
    return f"no engine to read: {file} {problem}; list them there, give --engine URL or set THRASHOLD_ENGINES"


def _live_cycle(settings: SidecarSettings, facts: Mapping[str, EngineFacts]) -> LiveCycle[State]:
    clock = anchored_clock()
    behind = Behind(
        {gateway.name: gateway.engines for gateway in settings.gateways},
        tuple(engine.name for engine in settings.engines),
    )
    told = CycleSettings(facts, installed_version(), behind)
    return LiveCycle(configured_sources(settings, clock), step, initial(told), clock, Board())


def _print_once(settings: SidecarSettings, facts: Mapping[str, EngineFacts]) -> None:
    # What a source would log of its read stands below in one line; a bug of ours is logged all the same.
    with logging_from(logging.ERROR):
        cycle = _live_cycle(settings, facts)

        async def once() -> None:
            await read_all_once(cycle.sources)
            cycle.run_once()

        run_loop(once())
    newest = cycle.board.newest
    _print(newest.rendering.body(PLAIN))
    for status in newest.statuses:
        if not status.answering:
            click.echo(f"{status.name}: {status.last_error or 'did not answer'}", err=True)
    engines = [status for status in newest.statuses if status.kind == ENGINE]
    leave(0 if any(status.answering for status in engines) else 1)


def _print(page: bytes) -> None:
    """Print ``page``. A reader who has enough of it (``| head -1``) ends nothing and is no failure."""
    try:
        click.echo(page, nl=False)
    except OSError as error:
        # What is left in the buffer would be tried once more at the end, and complained of.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise click.ClickException(f"can't write to standard output: {error.strerror}") from error


def _serve(
    settings: SidecarSettings, facts: Mapping[str, EngineFacts], web: WebConfig, tls: ssl.SSLContext | None
) -> None:
    passwords = Passwords(web.basic_auth_users) if web.basic_auth_users else None
    host, port = parse_address(settings.listen)
    try:
        listener = listening_socket(host, port)
    except OSError as error:
        raise click.ClickException(_cant_listen(settings.listen, error)) from error
    cycle = _live_cycle(settings, facts)
    page = RecorderPage(settings.recorder.path if settings.recorder else None, cycle.clock)
    pages = application(cycle.board, passwords, [Route(RECORDER_API, page, methods=["GET"])])
    server = make_server(pages, tls=tls, headers=web.http_server_config.headers)
    cycle.keeper = recorder = _started_recorder(settings.recorder)
    names = ", ".join(engine.name for engine in settings.engines)
    logger.info("listening on %s, reading %s", _shown(listener, secure=tls is not None), names)
    warn_if_open(listener, web)
    beside = [WebReload(settings.web_config, web, tls, passwords).run()] if settings.web_config else []
    run_loop(serve(cycle, server, listener, settings.interval_seconds, beside))
    if recorder and not recorder.close():
        logger.warning("the disk is too slow: what was still to be written to %s is lost", recorder.path)
    logger.info("ended")
    leave(0)


def _started_recorder(settings: RecorderSettings | None) -> Recorder | None:
    if settings is None:
        return None
    # SQLite takes memory and time to load; who records nothing does without
    from exporter.recorder import Recorder  # noqa: PLC0415
    from exporter.recorder_file import RecordingError  # noqa: PLC0415
    from exporter.recorder_writer import Retention  # noqa: PLC0415

    recorder = Recorder(settings.path, Retention(settings.keep_hours * 3600, settings.max_bytes))
    try:
        recorder.start()
    except RecordingError as error:
        raise UsageFailure(str(error)) from error
    logger.info("recording into %s", recorder.path)
    return recorder


_LISTEN_REMEDIES = {
    errno.EADDRINUSE: "give another --listen HOST:PORT, or end what listens there",
    errno.EADDRNOTAVAIL: "give --listen an address of this machine, or none (as in :9807) for all of them",
    errno.EACCES: "ports below 1024 need rights; give --listen a port from 1024 on",
}


def _cant_listen(address: str, error: OSError) -> str:
    # The library's own text adds the address once more; a name that can't be resolved has no errno above 0.
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
    remedy = _LISTEN_REMEDIES.get(error.errno or 0, "")
    if isinstance(error, socket.gaierror):
        remedy = "check how the host of --listen is spelled"
    return f"can't listen on {address}: {reason}" + (f"; {remedy}" if remedy else "")


def _shown(listener: socket.socket, *, secure: bool) -> str:
    host, port = listener.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def warn_if_open(listener: socket.socket, web: WebConfig) -> None:
    """Log it where others than this machine may read, and nobody is asked who they are."""
    host = str(listener.getsockname()[0]).partition("%")[0]
    tls = web.tls_server_config
    asks = bool(web.basic_auth_users) or (
        tls is not None and tls.client_auth_type == "RequireAndVerifyClientCert"
    )
    if not asks and not ipaddress.ip_address(host).is_loopback:
        logger.warning(
            "OPEN TO THE NETWORK: %s is not loopback and nobody is asked who they are;"
            " set basic_auth_users or client certificates in a --web-config FILE",
            host,
        )
