"""`omnigraph version`."""

from __future__ import annotations

import click

from omnigraph.cli.options import common_options, examples, json_option
from omnigraph.cli.settings import Settings

_PARTS = ("pylance", "pyarrow")


@click.command("version", epilog=examples("omnigraph version", "omnigraph version --json"))
@json_option
@common_options
@click.pass_obj
def version_command(settings: Settings) -> None:
    """Show the version and its formats of graphs; with --json also what it runs on."""
    import platform

    from omnigraph.manifest.format import FORMAT, formats_read
    from omnigraph.version import __version__

    settings.output.version(
        {
            "version": __version__,
            "format_written": FORMAT,
            "formats_read": list(formats_read()),
            "python": platform.python_version(),
            **{name: _installed(name) for name in _PARTS},
        }
    )


def _installed(package: str) -> str:
    # Asked of the package's metadata: importing it would take longer than everything else here.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
