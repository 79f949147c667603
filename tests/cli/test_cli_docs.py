"""Every command is documented, and the reference in docs/ is what the commands say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from omnigraph.cli.main import app
from omnigraph.cli.reference import reference

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _commands(child, f"{path} {name}")


WITHOUT_GRAPH = (
    "omnigraph version",
    "omnigraph schema check",
    "omnigraph schema infer",
    "omnigraph fmt",
    "omnigraph completion install",
    "omnigraph completion show",
)
WITHOUT_JSON = ("omnigraph shell", "omnigraph completion show")
"""A conversation, and a script for a shell."""
COMMANDS = list(_commands(app, "omnigraph"))


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_commands_and_options_are_explained_with_an_example(
    path: str, command: click.Command
) -> None:
    assert command.help
    assert f"{path} " in f"{command.epilog} ".replace("\n", " ")
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, f"{path} {param.opts}"


def test_every_command_takes_quiet_and_every_answer_json() -> None:
    for path, command in COMMANDS:
        names = {name for p in command.params for name in p.opts}
        assert "--quiet" in names, path
        assert ("--json" in names) != (path in WITHOUT_JSON), path
        if not isinstance(command, click.Group):
            assert "--store" in names or path in WITHOUT_GRAPH, path


def test_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m omnigraph.cli.reference > docs/reference/cli.md"
    )
