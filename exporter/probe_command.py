"""``thrashold probe``: puts the probe where an engine's Python finds it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from exporter.version import installed_version

MODULE = "thrashold_probe"
SOURCE = Path(__file__).parent / "probe" / f"{MODULE}.py"


@click.group()
def probe() -> None:
    """Work with the probe that runs inside an engine (docs/probe.md)."""


@probe.command()
@click.argument("folder", type=click.Path(path_type=Path))
def install(folder: Path) -> None:
    """Put the probe into FOLDER, made where it is not there yet.

    FOLDER is one that the engine's Python looks into: its site-packages, or one that PYTHONPATH names for it, such
    as a volume that both containers have. The engine needs no package manager and no network for it.
    """
    try:
        install_into(folder)
    except OSError as error:
        raise click.ClickException(f"can't write to {folder}: {error.strerror or error}") from error
    click.echo(
        f"the probe is in {folder}; start the engine with that on its PYTHONPATH, unless it is there already,\n"
        "and with THRASHOLD_PROBE_SOCKET set to the path that the sidecar's settings give as engines[].probe"
    )


def install_into(folder: Path) -> None:
    """Copy the file, and beside it what tells Python that it is a plugin of vLLM. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{MODULE}-*.dist-info"):
        shutil.rmtree(old)
    version = installed_version()
    info = folder / f"{MODULE}-{version}.dist-info"
    info.mkdir()
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: thrashold-probe\nVersion: {version}\n",
        "INSTALLER": "thrashold\n",
        "entry_points.txt": f"[vllm.general_plugins]\n{MODULE} = {MODULE}:register\n",
    }
    for name, text in files.items():
        (info / name).write_text(text, encoding="utf-8")
    shutil.copyfile(SOURCE, folder / SOURCE.name)
    written = [SOURCE.name, *(f"{info.name}/{name}" for name in (*files, "RECORD"))]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in written), encoding="utf-8")
