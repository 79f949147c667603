"""The `omnigraph` command.

Commands import the library inside their functions: `--help`, `version` and a wrong option answer
without loading Lance and Arrow.
"""

from __future__ import annotations

import click

from omnigraph.cli.boundary import App
from omnigraph.cli.commands.branch import branch_group
from omnigraph.cli.commands.care import (
    check_command,
    cleanup_command,
    recovery_group,
    status_command,
)
from omnigraph.cli.commands.changes import changes_group
from omnigraph.cli.commands.commit import commit_group
from omnigraph.cli.commands.diff import diff_command
from omnigraph.cli.commands.explain import explain_command
from omnigraph.cli.commands.export import export_command
from omnigraph.cli.commands.fmt import fmt_command
from omnigraph.cli.commands.init import init_command
from omnigraph.cli.commands.lint import lint_command
from omnigraph.cli.commands.load import load_command
from omnigraph.cli.commands.merge import merge_command
from omnigraph.cli.commands.mutate import mutate_command
from omnigraph.cli.commands.optimize import index_group, optimize_command
from omnigraph.cli.commands.query import query_command
from omnigraph.cli.commands.repair import repair_command
from omnigraph.cli.commands.schema import schema_group
from omnigraph.cli.commands.shell import shell_command
from omnigraph.cli.commands.snapshot import snapshot_command
from omnigraph.cli.commands.tag import tag_group
from omnigraph.cli.commands.version import version_command
from omnigraph.cli.interrupts import own
from omnigraph.cli.options import HELP_NAMES, common_options, examples, json_option
from omnigraph.cli.streams import write_text


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from omnigraph.version import __version__

        write_text(f"omnigraph {__version__}\n")
        ctx.exit()


@click.group(
    "omnigraph",
    cls=App,
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph init ./fleet --schema fleet.pg",
        "omnigraph load ./fleet --data vessels.jsonl --mode append",
        "omnigraph query ./fleet -e 'match { $v: Vessel } return { $v.name }'",
        "omnigraph snapshot ./fleet",
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
    variable OMNIGRAPH_STORE.
    """


for _command in (
    init_command,
    load_command,
    query_command,
    mutate_command,
    shell_command,
    explain_command,
    export_command,
    snapshot_command,
    branch_group,
    merge_command,
    tag_group,
    commit_group,
    diff_command,
    changes_group,
    schema_group,
    optimize_command,
    index_group,
    status_command,
    check_command,
    cleanup_command,
    repair_command,
    recovery_group,
    lint_command,
    fmt_command,
    version_command,
):
    app.add_command(_command)


def main() -> None:
    """Run the command line as this process; the installed script comes here through ``entry``."""
    own()
    app.main()


if __name__ == "__main__":
    main()
