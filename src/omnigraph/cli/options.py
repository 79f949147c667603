"""Options that several commands share, and the rules between them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.types import StringParamType

from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import write_text
from omnigraph.errors import UsageError

Command = TypeVar("Command", bound=Callable[..., Any])

HELP_NAMES = {"help_option_names": ["-h", "--help"]}
STORE_VARIABLE = "OMNIGRAPH_STORE"
ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"


class Words(StringParamType):
    """Text that can be stored: arguments may hold any bytes, a graph only holds UTF-8."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, or a usage error."""
        text = super().convert(value, param, ctx)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("is not valid UTF-8.", param, ctx)
        return text


WORDS = Words()
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTkmgt]?)(?:i?[Bb])?")
_UNITS = ("", "K", "M", "G", "T")
"""Each 1024 times the one before."""


class Family(click.Group):
    """Commands about one thing; whoever leaves the command out is told the ``usual`` one."""

    def __init__(self, *args: Any, usual: str, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self._usual = usual

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Which command the words mean."""
        name = args[0]
        is_known = name in self.commands or name.startswith("-")
        if is_known or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = get_close_matches(name, self.commands, n=1)
        words = [near[0], *args[1:]] if near else [self._usual, *args]
        meant = f"{ctx.command_path} {shlex.join(words)}"
        raise UsageError(f"no such command '{name}'", hint=f"did you mean: {meant}")


def examples(*lines: str) -> str:
    """An epilog that click does not rewrap."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def target_options(command: Command) -> Command:
    """The graph: as an argument, an option or from the environment. See ``target``."""
    command = click.option(
        "--store",
        type=WORDS,
        metavar="URI",
        envvar=STORE_VARIABLE,
        show_envvar=True,
        help="The graph, instead of the argument.",
    )(command)
    return click.argument("uri", type=WORDS, required=False)(command)


def target(uri: str | None, store: str | None) -> str:
    """Which graph is meant; the environment is asked last."""
    said = said_store()
    if uri is not None and said is not None and uri.rstrip("/") != said.rstrip("/"):
        raise UsageError(f"two graphs are named: {uri} and --store {said}", hint="give one of them")
    found = uri if uri is not None else store
    if found is None:
        raise UsageError(
            "no graph is named",
            hint=f"give its folder or s3://bucket/prefix as an argument, "
            f"with --store, or in {STORE_VARIABLE}",
        )
    return found


def word_and_target(word: str | None, uri: str | None, store: str | None) -> tuple[str | None, str]:
    """A word that may be left out, and the graph behind it.

    One word is the graph, unless the graph is named elsewhere: by --store; or by the environment,
    when the word is neither a folder nor an address.
    """
    if word is None or uri is not None or store is None:
        return (word, target(uri, store)) if uri is not None else (None, target(word, store))
    if said_store() is None and ("://" in word or Path(word).exists()):
        return None, target(word, store)
    return word, target(None, store)


def said_store() -> str | None:
    """The graph of --store, if that stands on the command line itself."""
    context = click.get_current_context()
    if context.get_parameter_source("store") is not ParameterSource.COMMANDLINE:
        return None
    return context.params["store"]


def common_options(command: Command) -> Command:
    """Options of every command."""
    command = click.help_option(*HELP_NAMES["help_option_names"], callback=_show_help)(command)
    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_set_quiet,
        help="Say nothing but what was asked for, and errors.",
    )(command)


def json_option(command: Command) -> Command:
    """A command that can answer programs."""
    return click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_set_json,
        help="Answer with one JSON document on stdout; errors too.",
    )(command)


def branch_option(command: Command) -> Command:
    """Which branch."""
    return click.option(
        "--branch",
        type=WORDS,
        default="main",
        show_default=True,
        metavar="NAME",
        help="The branch.",
    )(command)


def commit_option(command: Command) -> Command:
    """Which state of the past."""
    return click.option(
        "--commit",
        type=WORDS,
        metavar="ID",
        callback=not_empty,
        help="Read the state after this commit, of any branch if --branch is not given; the "
        "beginning of its id is enough.",
    )(command)


def limit_options(command: Command) -> Command:
    """What a query may use."""
    command = click.option(
        "--memory",
        "memory_bytes",
        type=WORDS,
        callback=_bytes,
        metavar="SIZE",
        help="Stop before making more rows than fit into this, e.g. 500M or 2G.  [default: 4G]",
    )(command)
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop after so long.  [default: none]",
    )(command)


def message_option(command: Command) -> Command:
    """Why it is done."""
    return click.option(
        "--message", type=WORDS, metavar="TEXT", help="Why; recorded in the commit."
    )(command)


def actor_option(command: Command) -> Command:
    """Who does it."""
    return click.option(
        "--as",
        "actor",
        type=WORDS,
        metavar="ACTOR",
        envvar=ACTOR_VARIABLE,
        show_envvar=True,
        callback=not_empty,
        help="Who makes the commit; recorded in it.",
    )(command)


def if_commit_option(command: Command) -> Command:
    """Only if nobody came in between; the command gets the id as the graph writes it."""
    return click.option(
        "--if-commit",
        type=WORDS,
        metavar="ID",
        callback=_commit_id,
        help="Only if this commit is still the newest of the branch; else nothing is changed and "
        "the exit code is 4.",
    )(command)


def durability_option(command: Command) -> Command:
    """What an acknowledged write survives."""
    return click.option(
        "--durability",
        type=click.Choice(["process", "fsync"]),
        default="process",
        show_default=True,
        help="What the commit survives: a crash of the process, or also of the machine (fsync).",
    )(command)


def _set_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    # Said before or after the command's name, it holds.
    ctx.ensure_object(Settings).quiet |= value


def _set_json(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    settings = ctx.ensure_object(Settings)
    settings.json_said |= value
    if not isinstance(ctx.command, click.Group):
        # Everything was read: this ends the guess from the bare words.
        settings.json = settings.json_said


def _show_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        write_text(ctx.get_help() + "\n")
        ctx.exit()


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A callback for options that mean nothing when they are empty."""
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty.", ctx, param)
    return value


def _commit_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    # Ids are written in upper case; whoever typed one need not.
    return None if value is None else value.strip().upper()


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None or not float(found[1]):
        raise click.BadParameter(f"'{value}' is no size; write 500M or 2G.", ctx, param)
    return int(float(found[1]) * 1024 ** _UNITS.index(found[2].upper()))
