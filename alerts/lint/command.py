"""``thrashold alerts lint``: faults of rule files and boards."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

import click

from alerts.lint.settings import LintSettings
from exporter.settings import RefusedError, SettingsError, load_with_places
from exporter.usage import UsageFailure

PARSER = "promql_parser"
OUR_PACK = "thrashold.rules.yml"
_FAULTY, _UNREADABLE = 1, 2


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]...")
@click.option(
    "--config",
    "config_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Settings of the linter in YAML: what is in use, what is left alone and why.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--list", "only_list", is_flag=True, help="Name all checks, and exit.")
@click.pass_context
def lint(
    ctx: click.Context,
    paths: tuple[Path, ...],
    config_file: Path | None,
    as_json: bool,  # noqa: FBT001 - click calls by name
    only_list: bool,  # noqa: FBT001
) -> None:
    """Find faults in rule files of Prometheus and boards of Grafana: names that are gone, rules that never fire.

    A PATH is a file, or a folder to look through. Without one the pack that is shipped is looked at.
    Exit code 0: nothing was found, 1: something was, 2: something can't be read, or there
    is nothing to look at.
    """
    if find_spec(PARSER) is None:
        raise click.ClickException("the linter needs promql-parser: pip install 'thrashold[lint]'")
    # what needs the extra is loaded where it is used
    from alerts.lint import report, run  # noqa: PLC0415
    from alerts.lint.catalogue import CHECKS  # noqa: PLC0415
    from alerts.pack_settings import PackSettings  # noqa: PLC0415
    from alerts.render import rule_file  # noqa: PLC0415

    if only_list:
        wide = max(map(len, CHECKS))
        for check in CHECKS.values():
            click.echo(f"{check.severity.value:7}  {check.name:{wide}}  {check.summary}")
        return
    try:
        settings = _settings(config_file, CHECKS)
    except SettingsError as error:
        raise UsageFailure(str(error)) from error
    found = (
        run.lint(paths, settings) if paths else run.lint_text(OUR_PACK, rule_file(PackSettings()), settings)
    )
    if as_json:
        click.echo(report.for_programs(found))
    else:
        for line in report.for_people(found):
            click.echo(line)
    if not found.files and not found.troubles:
        # else a folder that has moved passes for ever
        raise UsageFailure(f"no rule file and no board in {', '.join(map(str, paths))}")
    ctx.exit(_UNREADABLE if found.troubles else _FAULTY if found.problems else 0)


def _settings(file: Path | None, checks: Collection[str]) -> LintSettings:
    """Raises SettingsError, also of an allowance for a check that there isn't."""
    loaded = load_with_places(LintSettings, file=file, environ=os.environ, prefix="THRASHOLD_LINT_")
    for number, allowance in enumerate(loaded.settings.allow):
        if allowance.check not in checks:
            near = difflib.get_close_matches(allowance.check, checks, 1)
            hint = f"did you mean {near[0]}?" if near else "`thrashold alerts lint --list` names them all"
            problem = f"there is no check {allowance.check}: {hint}"
            raise loaded.refusal(RefusedError(("allow", number, "check"), problem))
    return loaded.settings
