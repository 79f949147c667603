"""`omnigraph version`."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import click

from omnigraph.cli.options import common_options, examples, json_option
from omnigraph.cli.settings import Settings

_PARTS = ("pylance", "pyarrow")


@click.command("version", epilog=examples("omnigraph version", "omnigraph version --json"))
@json_option
@common_options
@click.pass_obj
def version_command(settings: Settings) -> None:
    """Show the version; with --json also what it runs on."""
    from omnigraph.version import __version__

    parts = {name: _installed(name) for name in _PARTS}
    settings.output.version({"version": __version__, "python": platform.python_version(), **parts})


def _installed(package: str) -> str:
    # Asked of the package's metadata: importing it would take longer than everything else here.
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
