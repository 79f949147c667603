"""Options that several commands share, and the kinds of values that options take."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.types import StringParamType

from omnigraph.cli.profile import ACTOR_VARIABLE
from omnigraph.cli.settings import Settings
from omnigraph.errors import UsageError

Function = TypeVar("Function", bound=Callable[..., Any])


# ---------------------------------------------------------------- kinds of values


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


if TYPE_CHECKING:
    from omnigraph.choices import DurabilityWord

    _Seconds = click.ParamType[float]
else:  # A type with a parameter since click 8.4.
    _Seconds = click.ParamType


class TimeSpan(_Seconds):
    """A length of time, in seconds: ``30d``, ``12h``, ``90m``, ``45s``."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number with a unit."""
        if isinstance(value, (int, float)):
            return float(value)
        found = _SPAN.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"'{value}' is no length of time; write 30d, 12h or 90m.", param, ctx)
        return float(found[1]) * _SECONDS[found[2].lower()]


WORDS = Words()
SPAN = TimeSpan()
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([KMGTkmgt]?)(?:i?[Bb])?")
_UNITS = ("", "K", "M", "G", "T")
"""Each 1024 times the one before."""


class RowFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    ARROW = "arrow"


def not_empty(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A callback for options that mean nothing when they are empty."""
    if value is not None and not value.strip():
        raise click.BadParameter("must not be empty.", ctx, param)
    return value


def _commit_id(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    # Ids are written in upper case; they need not be typed so.
    return None if value is None else value.strip().upper()


def _named_commit(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value.strip():
        raise UsageError("the commit id is empty", hint="'omnigraph commit list' shows the commits")
    return value


def _bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None or not float(found[1]):
        raise click.BadParameter(f"'{value}' is no size; write 500M or 2G.", ctx, param)
    return int(float(found[1]) * 1024 ** _UNITS.index(found[2].upper()))


# ---------------------------------------------------------------- options


def all_of(*options: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Several options as one, in their order."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


text_argument = partial(click.argument, type=WORDS)
text_option = partial(click.option, type=WORDS)


def commit_argument(metavar: str) -> Callable[[Function], Function]:
    """One commit by its id or the beginning of it, and the branch that has it."""
    return all_of(
        text_argument("commit_id", metavar=metavar, callback=_named_commit),
        text_option(
            "--branch",
            metavar="NAME",
            help="Look on this branch only.  [default: main, then all others]",
        ),
    )


def engine_option(*names: str, help: str) -> Callable[[Function], Function]:
    """What does the work; the first of the names is the default."""
    return click.option(
        "--engine", type=click.Choice(names), default=names[0], show_default=True, help=help
    )


branch_option = text_option(
    "--branch", default="main", show_default=True, metavar="NAME", help="The branch."
)
commit_option = text_option(
    "--commit",
    metavar="ID",
    callback=not_empty,
    help="Read the state after this commit, of any branch if --branch is not given; the "
    "beginning of its id is enough.",
)
types_option = text_option(
    "--type",
    "types",
    multiple=True,
    metavar="NAME",
    help="Only this node or edge type. May be repeated.",
)
kinds_option = click.option(
    "--kind",
    "kinds",
    type=click.Choice(["node", "edge"]),
    multiple=True,
    help="Only nodes or only edges.",
)
ops_option = click.option(
    "--op",
    "ops",
    type=click.Choice(["insert", "update", "delete"]),
    multiple=True,
    help="Only entities that were inserted, updated or deleted. May be repeated.",
)
limit_options = all_of(
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Stop after so long.  [default: none]",
    ),
    text_option(
        "--memory",
        "memory_bytes",
        callback=_bytes,
        metavar="SIZE",
        help="Stop before making more rows than fit into this, e.g. 500M or 2G.  [default: 4G]",
    ),
)
"""What a query may use."""
message_option = text_option("--message", metavar="TEXT", help="Why; recorded in the commit.")
actor_option = text_option(
    "--as",
    "actor",
    metavar="ACTOR",
    envvar=ACTOR_VARIABLE,
    show_envvar=True,
    callback=not_empty,
    help="The author of the commit; recorded in it.",
)
if_commit_option = text_option(
    "--if-commit",
    metavar="ID",
    callback=_commit_id,
    help="Only if this commit is still the newest of the branch; else nothing is changed and "
    "the exit code is 4.",
)
"""The command gets the id as the graph writes it."""


def _set_durability(ctx: click.Context, param: click.Parameter, value: DurabilityWord) -> None:
    ctx.ensure_object(Settings).durability = value


durability_option = click.option(
    "--durability",
    type=click.Choice(["process", "fsync"]),
    default="process",
    show_default=True,
    expose_value=False,
    callback=_set_durability,
    help="What the commit survives: a crash of the process, or also of the machine (fsync).",
)
"""``settings.graph()`` opens the graph with it."""
commit_options = all_of(message_option, actor_option, durability_option)
"""About the commit that is made."""


yes_option = click.option(
    "--yes",
    is_flag=True,
    help="Do not ask if the folder is not empty; required without a terminal.",
)
"""For commands that create a graph."""


# ---------------------------------------------------------------- formats of rows


def _set_format(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == RowFormat.JSON:
        # Errors are JSON then, too, whichever way it was asked for.
        settings = ctx.ensure_object(Settings)
        settings.json = settings.json_said = True
    return value


format_option = click.option(
    "--format",
    "form",
    type=click.Choice([str(f) for f in RowFormat]),
    callback=_set_format,
    help="table: for reading. kv: a block a row. csv: RFC 4180 with a header. jsonl: a line "
    "about the result, then a line a row. json: one document, the same as --json. "
    "arrow: an Arrow IPC stream.  [default: table]",
)
"""In which form the rows come. See ``chosen_format``."""


def chosen_format(form: str | None, settings: Settings) -> RowFormat:
    """What --format and --json ask for together."""
    if settings.json:
        if form not in (None, RowFormat.JSON):
            raise UsageError(f"--json and --format {form} contradict each other", hint="give one")
        return RowFormat.JSON
    return RowFormat(form or RowFormat.TABLE)
