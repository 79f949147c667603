"""The `omnigraph` command.

Commands import the library inside their functions: `--help`, `version` and a wrong option answer
without loading Lance and Arrow.
"""

from __future__ import annotations

import click

from omnigraph.cli.answers import Release, Said
from omnigraph.cli.boundary import App
from omnigraph.cli.command import HELP_NAMES, command, common_options, examples, json_option
from omnigraph.cli.commands.branches import branch_group, tag_group
from omnigraph.cli.commands.changes import changes_group, diff_command
from omnigraph.cli.commands.commit import commit_group
from omnigraph.cli.commands.commit import short_log_command as log_command
from omnigraph.cli.commands.completion import completion_group
from omnigraph.cli.commands.fmt import fmt_command
from omnigraph.cli.commands.graph import export_command, init_command, snapshot_command
from omnigraph.cli.commands.importing import import_command
from omnigraph.cli.commands.load import load_command
from omnigraph.cli.commands.merge import merge_command
from omnigraph.cli.commands.queries import (
    explain_command,
    lint_command,
    mutate_command,
    query_command,
)
from omnigraph.cli.commands.schema import schema_group
from omnigraph.cli.commands.shell import shell_command
from omnigraph.cli.commands.upkeep import (
    check_command,
    cleanup_command,
    index_group,
    optimize_command,
    recovery_group,
    repair_command,
    status_command,
)
from omnigraph.cli.interrupts import own
from omnigraph.cli.settings import Settings

_PARTS = ("pylance", "pyarrow")


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from omnigraph.version import __version__

        shown = Said(words=f"omnigraph {__version__}\n", facts={"version": __version__})
        ctx.ensure_object(Settings).output.show(shown)
        ctx.exit()


@click.group(
    "omnigraph",
    cls=App,
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph init ./fleet --schema fleet.pg",
        "omnigraph load ./fleet --data vessels.jsonl --mode append",
        "omnigraph query ./fleet -e 'match { $v: Vessel } return { $v.name }'",
        "omnigraph log ./fleet --since yesterday",
        "omnigraph diff HEAD~1 ./fleet",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@json_option
@common_options
def app() -> None:
    """Omnigraph: a typed, versioned property graph on Lance.

    A graph is a folder or an s3:// prefix. Name it as an argument, with --store, or once in the
    variable OMNIGRAPH_STORE or in omnigraph.toml; in the folder of a graph it need not be named.

    A state of it is a branch (main), a tag, a commit, or what lies before one: main~1, HEAD~2,
    main@12, main@yesterday, main@2026-11-15T10:00Z.
    """


@command("version", "omnigraph version", "omnigraph version --json", on_graph=False)
def version_command(settings: Settings) -> None:
    """Show the version and its formats of graphs; with --json also what it runs on."""
    import platform

    from omnigraph.manifest.format import FORMAT, formats_read
    from omnigraph.version import __version__

    settings.show(
        Release(
            version=__version__,
            format_written=FORMAT,
            formats_read=formats_read(),
            runs_on={
                "python": platform.python_version(),
                **{name: _installed(name) for name in _PARTS},
            },
        )
    )


def _installed(package: str) -> str:
    # Asked of the package's metadata: importing it would take longer than everything else here.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


GROUPS: dict[str, tuple[click.Command, ...]] = {
    "Start": (init_command, load_command, import_command, shell_command),
    "Ask and change": (query_command, mutate_command, explain_command, export_command),
    "Look": (snapshot_command, status_command, log_command, diff_command, changes_group),
    "Branches and history": (branch_group, merge_command, tag_group, commit_group),
    "Schemas and query files": (schema_group, lint_command, fmt_command),
    "Upkeep": (
        optimize_command,
        index_group,
        check_command,
        cleanup_command,
        repair_command,
        recovery_group,
    ),
    "This program": (version_command, completion_group),
}
"""The commands as the help shows them, in the order of use."""
for _title, _commands in GROUPS.items():
    app.add_section(_title, _commands)


def main() -> None:
    """Run the command line as this process; the installed script comes here through ``entry``."""
    own()
    app.main()


if __name__ == "__main__":
    main()
