"""Rule packs of others as they are written down in ``peers/``: what they alert on, and what couldn't be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from alerts.alert import Severity
from alerts.causes import Cause
from tests.evaluation.evaluating import EVALUATION_SECONDS

FOLDER = Path(__file__).with_name("peers")
_SEVERITIES = {"critical": Severity.PAGE, "warning": Severity.WARNING}
_KEYS = frozenset({"name", "title", "source", "about", "taken_as", "not_expressed", "rules", "cannot_see"})
_RULE_KEYS = frozenset({"alert", "expr", "mended", "for", "severity", "names"})


class PeerError(ValueError):
    """A file of a peer that can't be used: which, where, and what would do."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A pack. ``rules``: as Prometheus takes them; ``names``: by alert, the causes that it tells.

    ``taken_as``: what was taken for what the drill hasn't; ``not_expressed``: alerts left out, each with the reason;
    ``cannot_see``: faults in whose signals no rule of it looks, each with the reason. ``mended``: its metric names are
    put right, which its authors didn't.
    """

    name: str
    title: str
    source: str
    about: str
    rules: tuple[Mapping[str, Any], ...]
    names: Mapping[str, frozenset[Cause]]
    taken_as: tuple[str, ...]
    not_expressed: tuple[tuple[str, str], ...]
    cannot_see: Mapping[Cause, str]
    mended: bool = False


def peers(folder: Path = FOLDER) -> tuple[Peer, ...]:
    """All of them, each as it was written and, where that has dead names, mended. Raises PeerError and OSError."""
    return tuple(peer for path in sorted(folder.glob("*.yml")) for peer in read(path))


def read(path: Path) -> tuple[Peer, ...]:
    """One file. Raises PeerError and OSError."""
    told = yaml.safe_load(path.read_text(encoding="utf-8"))
    _only(told, _KEYS, path.name)
    for rule in told["rules"]:
        _only(rule, _RULE_KEYS, f"{path.name}: {rule.get('alert')}")
        if rule["severity"] not in _SEVERITIES:
            raise PeerError(
                f"{path.name}: {rule['alert']}: severity {rule['severity']!r}: critical or warning"
            )
    try:
        found = [_peer(told, mended=False)]
        if any("mended" in rule for rule in told["rules"]):
            found.append(_peer(told, mended=True))
    except (KeyError, ValueError) as error:
        raise PeerError(f"{path.name}: {error}") from error
    return tuple(found)


def _only(told: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = sorted(set(told) - known)
    if unknown:
        raise PeerError(f"{where}: {', '.join(unknown)}: there are {', '.join(sorted(known))}")


def _peer(told: Mapping[str, Any], *, mended: bool) -> Peer:
    return Peer(
        told["name"] + ("-mended" if mended else ""),
        told["title"] + (", mended" if mended else ""),
        told["source"],
        told["about"],
        tuple(_rule(rule, mended=mended) for rule in told["rules"]),
        {rule["alert"]: frozenset(map(Cause, rule.get("names", ()))) for rule in told["rules"]},
        tuple(told["taken_as"]),
        tuple((each["alert"], each["why"]) for each in told["not_expressed"]),
        {Cause(name): why for name, why in told["cannot_see"].items()},
        mended,
    )


def _rule(rule: Mapping[str, Any], *, mended: bool) -> dict[str, Any]:
    return {
        "alert": rule["alert"],
        "expr": rule.get("mended", rule["expr"]) if mended else rule["expr"],
        "for": rule["for"],
        "labels": {"severity": _SEVERITIES[rule["severity"]].value},
        "interval": f"{EVALUATION_SECONDS:.0f}s",
    }


def rule_file(rules: Sequence[Mapping[str, Any]]) -> str:
    """Of rules as Prometheus reads them from a file."""
    plain = [{key: value for key, value in rule.items() if key != "interval"} for rule in rules]
    return yaml.safe_dump({"groups": [{"name": "peer", "rules": plain}]}, sort_keys=False)
