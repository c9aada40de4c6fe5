"""Whom to look at: the engine of a URL or of a name in the sidecar's settings, its gateways, and the sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from exporter.derive.phenomenon import EngineFacts
from exporter.engine_settings import EngineSettings
from exporter.facts import engine_facts
from exporter.gateway_settings import GatewaySettings
from exporter.settings import RefusedError, SettingsError, load_with_places
from exporter.sidecar_settings import DEFAULT_LISTEN, SidecarSettings, parse_address

NO_SIDECAR = "none"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Where the sidecar's page is. ``asked_for``: by a flag, so that one that doesn't answer is a finding."""

    url: str
    asked_for: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """``name`` is what the sidecar calls the engine, where that is told; else the page has to tell."""

    engine: EngineSettings
    facts: EngineFacts
    gateways: tuple[GatewaySettings, ...]
    sidecar: Sidecar | None
    name: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flags:
    """Of the command line; None and empty: not given."""

    gateways: tuple[str, ...] = ()
    sidecar: str | None = None
    name: str | None = None


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
    return Asked(engine, facts, before, _sidecar(settings, flags.sidecar), called, others)


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


def _sidecar(settings: SidecarSettings, url: str | None) -> Sidecar | None:
    if url == NO_SIDECAR:
        return None
    if url is not None:
        try:
            return Sidecar(EngineSettings(url).url, asked_for=True)
        except RefusedError as error:
            raise SettingsError(f"--sidecar: {error}") from error
    host, port = parse_address(settings.listen or DEFAULT_LISTEN)
    if port == 0:
        return None
    scheme = "https" if settings.web_config and _speaks_tls(settings.web_config) else "http"
    shown = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 -- looked up
    return Sidecar(f"{scheme}://{shown}:{port}/metrics", asked_for=False)


def _speaks_tls(web_config: Path) -> bool:
    """Whether a sidecar with this web config does. Raises SettingsError where it can't be read."""
    from exporter.web_config import read_web_config  # noqa: PLC0415 - the server's side, seldom needed

    return read_web_config(web_config).tls_server_config is not None
