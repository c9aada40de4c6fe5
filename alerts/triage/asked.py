"""Whom to look at: the engine of a URL or of a name in the sidecar's settings, its gateways, and the sidecar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from exporter.connection_settings import BasicAuthSettings
from exporter.derive.phenomenon import EngineFacts
from exporter.engine_settings import EngineSettings
from exporter.facts import engine_facts
from exporter.gateway_settings import GatewaySettings
from exporter.settings import RefusedError, SettingsError, load_with_places
from exporter.sidecar_settings import DEFAULT_LISTEN, SidecarSettings, parse_address
from exporter.sources.endpoint import shown

if TYPE_CHECKING:
    from exporter.web_config import WebConfig

NO_SIDECAR = "none"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Where the sidecar's page is. ``asked_for``: by a flag, so that one that doesn't answer is a finding."""

    url: str
    asked_for: bool
    login: BasicAuthSettings | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """``name`` is what the sidecar calls the engine, where that is told; else the page has to tell.

    ``words``: of the command line, as another look at the same needs them; nothing that may be secret is in them.
    """

    engine: EngineSettings
    facts: EngineFacts
    gateways: tuple[GatewaySettings, ...]
    sidecar: Sidecar | None
    name: str = ""
    others: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flags:
    """Of the command line; None and empty: not given.

    A password comes in a file alone: what stands on a command line or in the environment, others can see.
    """

    gateways: tuple[str, ...] = ()
    sidecar: str | None = None
    name: str | None = None
    sidecar_user: str | None = None
    sidecar_password_file: Path | None = None
    thresholds: Path | None = None


def asked(target: str, flags: Flags, config: Path | None, environ: Mapping[str, str]) -> Asked:
    """Of a command line. Raises SettingsError with one line."""
    loaded = load_with_places(
        SidecarSettings, file=config, environ=_of_sidecar(environ), flags={"gateways": flags.gateways}
    )
    loaded.check_files()
    settings = loaded.settings
    engine = _known(settings, target, flags.name)
    called = flags.name or (engine.name if engine else "")
    if engine is None:
        engine = _stranger(settings, target, config)
    try:
        facts = engine_facts(engine)
    except RefusedError as error:
        raise loaded.refusal(error, ("engines",)) from error
    before = tuple(
        each for each in settings.gateways if each.engines is None or not called or called in each.engines
    )
    others = tuple(each.name for each in settings.engines if each.name != called)
    words = (target if target == engine.name else shown(engine.url), *_words(flags, config))
    return Asked(engine, facts, before, _sidecar(settings, flags), called, others, words)


def _words(flags: Flags, config: Path | None) -> Iterator[str]:
    for gateway in flags.gateways:
        yield from ("--gateway", shown(gateway))
    single = {
        "--sidecar": None if flags.sidecar is None else shown(flags.sidecar),
        "--sidecar-user": flags.sidecar_user,
        "--sidecar-password-file": flags.sidecar_password_file,
        "--name": flags.name,
        "--config": config,
        "--thresholds": flags.thresholds,
    }
    for flag, value in single.items():
        if value is not None:
            yield from (flag, str(value))


def _of_sidecar(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that speak of what is read; those of the sidecar's own files are no business of ours."""
    wanted = ("THRASHOLD_ENGINES", "THRASHOLD_GATEWAYS", "THRASHOLD_LISTEN", "THRASHOLD_WEB_CONFIG")
    return {key: value for key, value in environ.items() if key in wanted}


def _known(settings: SidecarSettings, target: str, name: str | None) -> EngineSettings | None:
    """The engine of settings that has this name or stands at this URL."""
    for engine in settings.engines:
        if target in {engine.name, engine.url} or (name is not None and engine.name == name):
            return engine
    address = urlsplit(target).netloc if "://" in target else target
    found = [engine for engine in settings.engines if urlsplit(engine.url).netloc == address]
    return found[0] if len(found) == 1 else None


def _stranger(settings: SidecarSettings, target: str, config: Path | None) -> EngineSettings:
    """An engine that no setting speaks of: all that is known is its URL."""
    try:
        return EngineSettings(target)
    except RefusedError as error:
        names = ", ".join(each.name for each in settings.engines)
        if names and "://" not in target:
            where = f"in {config}" if config else "of THRASHOLD_ENGINES"
            raise SettingsError(f"URL: no engine {where} is called {target!r}: there are {names}") from error
        raise SettingsError(f"URL: {error}") from error


def _sidecar(settings: SidecarSettings, flags: Flags) -> Sidecar | None:
    if flags.sidecar == NO_SIDECAR:
        return None
    login = _login(settings, flags)
    if flags.sidecar is not None:
        try:
            return Sidecar(EngineSettings(flags.sidecar).url, asked_for=True, login=login)
        except RefusedError as error:
            raise SettingsError(f"--sidecar: {error}") from error
    host, port = parse_address(settings.listen or DEFAULT_LISTEN)
    if port == 0:
        return None
    web = _web_config(settings)
    scheme = "https" if web is not None and web.tls_server_config is not None else "http"
    reached = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 -- looked up
    return Sidecar(f"{scheme}://{reached}:{port}/metrics", asked_for=False, login=login)


def _web_config(settings: SidecarSettings) -> WebConfig | None:
    """Raises SettingsError where it can't be read."""
    if settings.web_config is None:
        return None
    from exporter.web_config import read_web_config  # noqa: PLC0415 - the server's side, seldom needed

    return read_web_config(settings.web_config)


def _login(settings: SidecarSettings, flags: Flags) -> BasicAuthSettings | None:
    """The only user whom the sidecar's web config lets in needn't be told."""
    file, user = flags.sidecar_password_file, flags.sidecar_user
    if file is None:
        if user is not None:
            raise SettingsError("--sidecar-user: has no use without --sidecar-password-file")
        return None
    if user is None:
        web = _web_config(settings)
        users = tuple(web.basic_auth_users) if web is not None else ()
        if len(users) != 1:
            raise SettingsError("--sidecar-password-file: say whose it is with --sidecar-user NAME")
        (user,) = users
    try:
        if not file.read_text(encoding="utf-8").strip():
            raise SettingsError(f"--sidecar-password-file: {file} is empty")
    except (OSError, UnicodeError) as error:
        problem = getattr(error, "strerror", None) or "it is not text"
        raise SettingsError(f"--sidecar-password-file: {file} can't be read: {problem}") from error
    return BasicAuthSettings(user, password_file=file)
