"""What a user may set on the linter: one YAML file. All of it has a default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from alerts.lint.facts.lookup import EXPORTERS
from alerts.lint.facts.metric import Release, release
from exporter.settings import RefusedError

PROMETHEUS = "prometheus"
OLDEST_PROMETHEUS = "2.42"
"""Debian's, and the first that knows ``keep_firing_for``."""
_Label = Annotated[str, Meta(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left alone, and why."""

    check: Annotated[str, Meta(description="The check, by its name.")]
    reason: Annotated[str, Meta(min_length=1, description="Why.")]
    file: Annotated[
        str, Meta(description="In files whose path ends so; a pattern with `*`. Empty: in all.")
    ] = ""
    name: Annotated[
        str,
        Meta(description="Of the alert, the recorded series or the panel; a pattern with `*`. Empty: all."),
    ] = ""


@dataclass(frozen=True, slots=True)
class LintSettings:
    """``thrashold alerts lint --config FILE``. Raises RefusedError."""

    scrape_interval_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="How often Prometheus scrapes: a rate needs a window of four.")
    ] = 15.0
    cluster_labels: Annotated[
        tuple[_Label, ...],
        Meta(
            min_length=1, description="Labels that tell clusters apart: joins and absences have to keep them."
        ),
    ] = ("cluster",)
    several_clusters: Annotated[
        bool | None,
        Meta(
            description="Whether one Prometheus sees several clusters. Unless set: where a file names a label of"
            " `cluster_labels`."
        ),
    ] = None
    releases: Annotated[
        dict[str, str],
        Meta(
            description="What is in use: `vllm: 0.10.2`, `sglang`, `dcgm` and others, of which the newest is taken"
            " unless set; `prometheus`: the oldest that has to read the rules (2.42)."
        ),
    ] = field(default_factory=dict)
    allow: Annotated[tuple[Allowance, ...], Meta(description="What is left alone, each with a reason.")] = ()

    def __post_init__(self) -> None:
        keys = [*(each.key for each in EXPORTERS), PROMETHEUS]
        for key, text in self.releases.items():
            if key not in keys:
                raise RefusedError(
                    ("releases", key), f"nothing is known of {key}: there are {', '.join(keys)}"
                )
            try:
                release(text)
            except ValueError as error:
                raise RefusedError(
                    ("releases", key), f"{text!r} is no release: write it as '0.11.2'"
                ) from error

    @property
    def in_use(self) -> dict[str, Release]:
        """The releases that are set, as numbers."""
        return {key: release(text) for key, text in self.releases.items()}

    @property
    def oldest_prometheus(self) -> Release:
        """Which Prometheus has to read the rules."""
        return release(self.releases.get(PROMETHEUS, OLDEST_PROMETHEUS))
