"""What every command shares: its place in the tree, its examples, --json, --quiet, and its graph.

    @command("show", "omnigraph branch show june ./fleet", into=branch_group)
    @text_argument("name", metavar="NAME")
    def show_command(settings: Settings, name: str) -> None:

A command gets the settings first and then its own options. Which graph is meant has been decided
before it runs: ``settings.graph()`` opens it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from omnigraph.cli.answers import Said
from omnigraph.cli.options import all_of, text_argument, text_option
from omnigraph.cli.profile import (
    PROFILE_VARIABLE,
    STORE_VARIABLE,
    apply_profile,
    graph_here,
    is_graph,
)
from omnigraph.cli.settings import Settings
from omnigraph.errors import UsageError

Function = Callable[..., Any]

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


def command(
    name: str,
    *lines: str,
    into: click.Group | None = None,
    on_graph: bool = True,
    with_json: bool = True,
) -> Callable[[Function], click.Command]:
    """A command with its examples.

    ``on_graph``: the graph is an argument behind the command's own. Else the command asks for it in
    a way of its own, or needs none.
    """

    def decorate(function: Function) -> click.Command:
        @wraps(function)
        def run(**given: Any) -> None:
            settings: Settings = click.get_current_context().obj
            if on_graph:
                settings.place = target(given.pop("uri"), given.pop("store"))
            function(settings, **given)

        own = _taken_params(run)
        arguments = [p for p in own if isinstance(p, click.Argument)] if on_graph else []
        params = [
            *arguments,
            *(_params(target_options) if on_graph else ()),
            *(p for p in own if p not in arguments),
            *(_params(json_option) if with_json else ()),
            *_params(common_options),
        ]
        make = click.command if into is None else into.command
        return make(name, params=params, epilog=examples(*lines))(run)

    return decorate


def family(name: str, *lines: str, usual: str) -> Callable[[Function], click.Group]:
    """Commands about one thing, with examples; ``usual`` is meant if none is named."""

    def decorate(function: Function) -> click.Group:
        group = click.group(
            name, cls=Family, usual=usual, context_settings=HELP_NAMES, epilog=examples(*lines)
        )
        return group(json_option(common_options(function)))

    return decorate


class Family(click.Group):
    """Commands about one thing. An unknown name is answered with a hint to the ``usual`` one."""

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


def _params(option: Callable[[Function], Function]) -> list[click.Parameter]:
    """What an option is made of, as if a command had it."""

    def nothing() -> None:
        pass

    return _taken_params(option(nothing))


def _taken_params(function: Function) -> list[click.Parameter]:
    """The parameters that decorators have left at a function, first one first."""
    return function.__dict__.pop("__click_params__", [])[::-1]


# ---------------------------------------------------------------- options of every command


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
        shown = Said(words=ctx.get_help() + "\n", facts={"command": ctx.command_path})
        ctx.ensure_object(Settings).output.show(shown)
        ctx.exit()


common_options = all_of(
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_set_quiet,
        help="Say nothing but what was asked for, and errors.",
    ),
    click.help_option(*HELP_NAMES["help_option_names"], callback=_show_help),
)
json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_set_json,
    help="Answer with one JSON document on stdout; errors too.",
)


# ---------------------------------------------------------------- the graph


target_options = all_of(
    text_argument("uri", required=False),
    text_option(
        "--store",
        metavar="URI",
        envvar=STORE_VARIABLE,
        show_envvar=True,
        default=graph_here,
        help="The graph, instead of the argument.  [default: the folder, if it is a graph]",
    ),
    text_option(
        "--profile",
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=apply_profile,
        help="Take store, actor and endpoint from this profile of omnigraph.toml.",
    ),
)
"""The graph: as an argument, an option or from the environment. See ``target``."""


def target(uri: str | None, store: str | None) -> str:
    """Which graph is meant: the argument, --store, the environment, the folder we are in."""
    said = said_store()
    if uri is not None and said is not None and uri.rstrip("/") != said.rstrip("/"):
        raise UsageError(f"two graphs are named: {uri} and --store {said}", hint="give one of them")
    found = uri if uri is not None else store
    if found is None:
        raise UsageError(
            "no graph is named",
            hint=f"give its folder or s3://bucket/prefix as an argument, "
            f"with --store, or in {STORE_VARIABLE}; or go into its folder",
        )
    return found


def word_and_target(word: str | None, uri: str | None, store: str | None) -> tuple[str | None, str]:
    """A word that may be left out, and the graph behind it.

    One word is the graph, unless the graph is named elsewhere: by --store; or by the environment
    or the folder we are in, when the word is neither a folder nor an address.
    """
    if word is None or uri is not None or store is None:
        return (word, target(uri, store)) if uri is not None else (None, target(word, store))
    if said_store() is None and ("://" in word or Path(word).exists()):
        return None, target(word, store)
    return word, target(None, store)


def words_and_target(words: Sequence[str | None], store: str | None) -> tuple[list[str], str]:
    """Words of which the last may be the graph: all of them that fit, or one that is a graph."""
    given = [word for word in words if word is not None]
    said = said_store() is not None
    is_place = bool(given) and ("://" in given[-1] or is_graph(Path(given[-1])))
    if store is None:  # A state may have a slash in its name; a graph that is missing, too.
        is_place = is_place or (bool(given) and given[-1].startswith((".", "/", "~/")))
    if len(given) == len(words) or (is_place and not said):
        return given[:-1], target(given[-1], store)
    return given, target(None, store)


def said_store() -> str | None:
    """The graph of --store, if that stands on the command line itself."""
    context = click.get_current_context()
    if context.get_parameter_source("store") is not ParameterSource.COMMANDLINE:
        return None
    return context.params["store"]
