"""`omnigraph completion`: words that the shell completes with Tab."""

from __future__ import annotations

import os
from pathlib import Path

import click

from omnigraph.cli.answers import CompletionInstalled
from omnigraph.cli.command import command, family
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import whole_file, write_text
from omnigraph.errors import StorageError, UsageError

_PROGRAM = "omnigraph"
_VARIABLE = "_OMNIGRAPH_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@family(
    "completion",
    "omnigraph completion install",
    "omnigraph completion show zsh",
    usual="show",
)
def completion_group() -> None:
    """Let the shell complete commands and options with Tab."""


_shell_argument = click.argument(
    "shell", type=click.Choice(_SHELLS), required=False, metavar="[bash|zsh|fish]"
)


@command(
    "install",
    "omnigraph completion install",
    "omnigraph completion install fish",
    into=completion_group,
    on_graph=False,
)
@_shell_argument
def install_command(settings: Settings, shell: str | None) -> None:
    """Put the completion script where the shell looks for it.

    Without a name it is for the shell of the variable SHELL. It goes into the home folder: for bash
    to ~/.local/share/bash-completion/completions, for zsh to ~/.zfunc, for fish to
    ~/.config/fish/completions. Nothing else is changed. New shells use it.
    """
    name = _shell(shell)
    script = _script(name)
    path, then = _place(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise StorageError(f"cannot create {path.parent}: {e.strerror or e}") from e
    with whole_file(path) as out:
        out.write(script.encode())
    settings.show(CompletionInstalled(shell=name, path=str(path), next_step=then))


@command(
    "show",
    "omnigraph completion show bash",
    "source <(omnigraph completion show bash)",
    into=completion_group,
    on_graph=False,
    with_json=False,
)
@_shell_argument
def show_command(settings: Settings, shell: str | None) -> None:
    """Print the completion script."""
    write_text(_script(_shell(shell)))


def _shell(said: str | None) -> str:
    name = said or Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise UsageError(
            f"no completion for the shell '{name}'" if name else "no shell is named",
            hint=f"name one of them: {', '.join(_SHELLS)}",
        )
    return name


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    root = click.get_current_context().find_root().command
    if made is None:
        raise UsageError(f"no completion for the shell '{shell}'")
    completion = made(root, {}, _PROGRAM, _VARIABLE)
    # Not ``source()``: it asks which bash is installed, and the script may be for another machine.
    return completion.source_template % completion.source_vars() + "\n"


def _place(shell: str) -> tuple[Path, str]:
    home = Path.home()
    match shell:
        case "bash":
            data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
            path = data / "bash-completion" / "completions" / _PROGRAM
            return path, "open a new shell; it needs the package bash-completion"
        case "fish":
            config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
            path = config / "fish" / "completions" / f"{_PROGRAM}.fish"
            return path, "open a new shell"
        case _:
            path = home / ".zfunc" / f"_{_PROGRAM}"
            return path, "in ~/.zshrc, before compinit: fpath+=(~/.zfunc); then open a new shell"
