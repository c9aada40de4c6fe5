"""The one command line. Each part's sub-commands are loaded only when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import click


@dataclass(frozen=True, slots=True)
class Part:
    """A sub-command: the module and attribute it lives in, and its line in the overview."""

    module: str
    attribute: str
    summary: str


PARTS = {
    "alerts": Part("alerts.command", "alerts", "List, explain and render alerts; find faults in your own."),
    "analyze": Part("analysis.analyze_command", "analyze", "Say what happened in a history, as a report."),
    "anomalies": Part(
        "analysis.anomalies_command", "anomalies", "Say what was unusual in a history, and when."
    ),
    "backtest": Part("analysis.backtest_command", "backtest", "Say when alerts would have fired on history."),
    "dashboards": Part("dashboards.command", "dashboards", "Render and check Grafana's boards."),
    "desk": Part("analysis.desk.command", "desk", "Hear Alertmanager, and have an incident's report ready."),
    "drill": Part("drill.command", "drill", "Let a simulated fleet fail, with known truth."),
    "exporter": Part("exporter.command", "exporter", "Watch engines and serve their signals, once a second."),
    "plan": Part("analysis.plan_command", "plan_command", "Say what of a model fits on a GPU."),
    "probe": Part("exporter.probe_command", "probe", "Put the probe where an engine finds it."),
    "recorder": Part(
        "exporter.recorder_command", "recorder", "Work with what the flight recorder has recorded."
    ),
    "render": Part("deploy.render_command", "render", "Write what Kubernetes needs."),
    "stack": Part("deploy.stack_command", "stack", "Run all of it here, with a drill or your engines."),
    "triage": Part(
        "alerts.triage.command", "triage", "Say what is wrong with a live engine, and what to do."
    ),
}
"""A part that needs an extra stands here all the same: what is missing is said when it is called."""


class LazyGroup(click.Group):
    """A group that knows its sub-commands by name and imports only the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Name all sub-commands."""
        return sorted(PARTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the sub-command ``cmd_name``, or give None where there is none of that name."""
        part = PARTS.get(cmd_name)
        if part is None:
            return None
        command = getattr(import_module(part.module), part.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{part.module}.{part.attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the summaries, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, PARTS[name].summary) for name in self.list_commands(ctx)])


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted and not ctx.resilient_parsing:
        from exporter.version import installed_version  # noqa: PLC0415 - --help needs click alone

        click.echo(f"thrashold {installed_version()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version.",
)
def main() -> None:
    """Watch the KV cache of LLM serving fleets and warn before a fleet thrashes."""


if __name__ == "__main__":
    main(prog_name="thrashold")
