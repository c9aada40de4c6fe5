"""What all commands of the drill that play a scenario are asked, and how they say that it can't be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from drill.scenarios.catalogue import scenario_by_name
from drill.scenarios.scenario import Scenario
from drill.scenarios.scene import Scene
from drill.scenarios.setting import MOST_ENGINES, Setting, SettingError, Size
from drill.serving.config import EngineConfigError, Generation
from drill.serving.models import MODELS
from drill.workload.trace_files import TraceError
from exporter.hardware import GPUS
from exporter.usage import UsageFailure


@dataclass(frozen=True, slots=True)
class Asked:
    """A scenario, what else goes wrong, and in which setting."""

    scenario: Scenario
    others: tuple[Scenario, ...]
    setting: Setting

    def scene(self) -> Scene:
        """The scene of all that. Raises SettingError, EngineConfigError and TraceError."""
        return self.scenario.scene(self.setting, self.others)


_OPTIONS = (
    click.argument("scenario"),
    click.option(
        "--size",
        type=click.Choice([each.value for each in Size]),
        default=Size.SMALL.value,
        show_default=True,
        help="How large a run.",
    ),
    click.option(
        "--with", "others", metavar="SCENARIO", multiple=True, help="What else goes wrong. Repeatable."
    ),
    click.option("--model", metavar="NAME", help=f"Another model: {', '.join(MODELS)}."),
    click.option("--gpu", metavar="NAME", help=f"Another GPU: {', '.join(GPUS)}."),
    click.option(
        "--generation", type=click.Choice([each.value for each in Generation]), help="vLLM's engine."
    ),
    click.option("--engines", type=int, help=f"How many engines, at most {MOST_ENGINES}."),
    click.option(
        "--ramp",
        "ramp_seconds",
        type=float,
        default=0.0,
        help="Seconds over which load rises that else rises at once. Where no load rises it changes nothing.",
    ),
    click.option(
        "--load",
        "load_ratio",
        type=float,
        default=1.0,
        metavar="RATIO",
        help="How much of its own load a scenario gets whose matter that is, as overload: 0.3 it can bear.",
    ),
    click.option(
        "--seed",
        type=int,
        default=1,
        show_default=True,
        help="Of all chance: the same gives the same run.",
    ),
)


def scene_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take them; ``asked`` makes sense of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asked(  # noqa: PLR0913 - one each for click's options
    *,
    scenario: str,
    size: str,
    others: tuple[str, ...],
    model: str | None,
    gpu: str | None,
    generation: str | None,
    engines: int | None,
    ramp_seconds: float,
    load_ratio: float,
    seed: int,
) -> Asked:
    """What the options come to. Raises SettingError."""
    return Asked(
        scenario_by_name(scenario),
        tuple(scenario_by_name(name) for name in others),
        Setting(
            Size(size),
            seed,
            model,
            gpu,
            None if generation is None else Generation(generation),
            engines,
            ramp_seconds,
            load_ratio=load_ratio,
        ),
    )


@contextlib.contextmanager
def refused_in_words() -> Iterator[None]:
    """What can't be played is the caller's to change: UsageFailure."""
    try:
        yield
    except (SettingError, EngineConfigError, TraceError) as error:
        raise UsageFailure(str(error)) from error


Chosen = Any
"""An option as click gives it."""
