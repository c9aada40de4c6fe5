"""The version of what is installed."""

from __future__ import annotations


def installed_version() -> str:
    """The installed package's version, or ``unknown`` in a checkout that is not installed."""
    from importlib import metadata  # noqa: PLC0415 - slow to load, and most commands never ask

    try:
        return metadata.version("thrashold")
    except metadata.PackageNotFoundError:
        return "unknown"
