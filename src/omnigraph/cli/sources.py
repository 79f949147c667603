"""What a command reads: texts of files, a schema, a query with its parameters, a state of a graph.

    command line -> [sources] -> texts, Asked, a view -> graph

Nothing is looked up in a graph here. Texts and parameters are read completely before one is opened,
so that a wrong option or file is reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from omnigraph.cli.command import said_store, target, target_options
from omnigraph.cli.options import (
    all_of,
    branch_option,
    commit_option,
    not_empty,
    text_argument,
    text_option,
)
from omnigraph.cli.settings import Settings
from omnigraph.errors import QueryError, UsageError
from omnigraph.text_file import TextKind, decoded, read_file

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.view import SnapshotView
    from omnigraph.query.ast import ParamType

Result = TypeVar("Result")

STDIN = "-"
STDIN_NAME = "<stdin>"
INLINE_NAME = "query"
"""What findings call a text that was given with -e."""
_QUERY_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")
_AS_WRITTEN = frozenset({"String", "Date", "DateTime", "Blob"})
"""Parameters of these types take what stands behind the equals sign as it is."""


# ---------------------------------------------------------------- texts


def read_text(name: str, kind: TextKind, settings: Settings) -> tuple[str, str]:
    """The text, and what findings in it call their place."""
    content, place = read_bytes(name, kind, settings)
    return decoded(content, place, kind), place


def read_bytes(name: str, kind: TextKind, settings: Settings) -> tuple[bytes, str]:
    """The same as it stands in the file."""
    if name == STDIN:
        return settings.stdin(f"give the path of a {kind.suffix} file").read(), STDIN_NAME
    return read_file(Path(name), kind), name


def schema_source(file: str, settings: Settings) -> str | Path:
    """The path of a file, or a text from stdin that is plainly no path."""
    if file != STDIN:
        return Path(file)
    from omnigraph.schema.compile import compile_schema

    text, name = read_text(STDIN, TextKind.SCHEMA, settings)
    # Only here findings can name the place they are at.
    compile_schema(text, source_name=name)
    return text if "\n" in text else text + "\n"


# ---------------------------------------------------------------- a state


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAsked:
    """A state as it was asked for."""

    branch: str | None
    """None: main, or for a commit whichever branch has it."""
    commit: str | None
    at: str | None

    @property
    def pinned(self) -> bool:
        """Whether one state was asked for, and not what a branch shows now."""
        return self.commit is not None or self.at is not None

    @property
    def said(self) -> bool:
        """Whether any of the options was given."""
        return self.pinned or self.branch is not None

    def view(self, graph: Graph) -> SnapshotView:
        """The state itself."""
        if self.at is not None:
            return graph.at(self.at)
        return graph.snapshot(self.branch, commit=self.commit)


def state_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--branch, --commit and --at; the command gets them as one ``state``."""

    @wraps(command)
    def run(*args: Any, **given: Any) -> Any:
        return command(*args, state=_state(given), **given)

    at = text_option(
        "--at",
        metavar="TARGET",
        callback=not_empty,
        help="Read this state: a branch, a tag, a commit, a version (main@12) or a moment "
        "(main@2026-11-15T10:00Z).",
    )
    return branch_option(commit_option(at(run)))


def _state(given: dict[str, Any]) -> StateAsked:
    """Take our options out of those of the command."""
    context = click.get_current_context()
    said = context.get_parameter_source("branch") is ParameterSource.COMMANDLINE
    branch, commit, at = given.pop("branch"), given.pop("commit"), given.pop("at")
    if at is not None and (said or commit is not None):
        other = "--commit" if commit is not None else "--branch"
        raise UsageError(f"--at and {other} both name a state", hint="give one of them")
    return StateAsked(branch=branch if said else None, commit=commit, at=at)


# ---------------------------------------------------------------- a query


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as it was asked for, completely read."""

    text: str
    source: str
    """What findings call its place."""
    name: str | None
    params: Mapping[str, Any]

    def ask(self, run: Callable[..., Result], **options: Any) -> Result:
        """Give it to a method that runs queries; findings name the file the text came from."""
        try:
            return run(self.text, self.params, name=self.name, **options)
        except QueryError as e:
            raise QueryError(self.source, e.diagnostics) from e


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The graph, the query and its parameters; the command gets the query as ``asked``."""

    @wraps(command)
    def run(settings: Settings, **given: Any) -> Any:
        return command(settings, asked=_asked(settings, given), **given)

    return target_options(_query_options(run))


_query_options = all_of(
    text_argument("name", required=False),
    text_option("-e", "text", metavar="TEXT", help="The query itself, as an argument."),
    text_option(
        "--query",
        "file",
        metavar="FILE",
        help="A .gq file of queries, or - for stdin; NAME says which one.",
    ),
    text_option("--params", metavar="JSON", help='Parameters as one object: {"name": value}.'),
    text_option("--params-file", metavar="FILE", help="The same in a file, or - for stdin."),
    text_option(
        "--param",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="One parameter. Text and dates as they are, everything else as in JSON. "
        "May be repeated.",
    ),
)


def _asked(settings: Settings, given: dict[str, Any]) -> Asked:
    """Take our options out of those of the command, and read what they name."""
    text, file = given.pop("text"), given.pop("file")
    settings.place, name = _place_and_name(
        given.pop("uri"), given.pop("name"), given.pop("store"), in_file=file is not None
    )
    params, params_file = given.pop("params"), given.pop("params_file")
    if params is not None and params_file is not None:
        raise UsageError("--params and --params-file are both given", hint="give one of them")
    if file == STDIN and params_file == STDIN:
        raise UsageError("stdin is named twice", hint="read one of them from a file")
    if text is not None and file is not None:
        raise UsageError("two queries are given: -e and --query", hint="give one of them")
    if file is not None:
        text, source = read_text(file, TextKind.QUERY, settings)
    elif text is not None:
        source = INLINE_NAME
    else:
        raise UsageError("no query is given", hint="write it behind -e, or name a file: --query")
    if params_file is not None:
        params, _ = read_text(params_file, TextKind.PARAMETERS, settings)
    values = _parameters(params, pair_values(given.pop("pairs"), text, name))
    return Asked(text=text, source=source, name=name, params=values)


def _parameters(written: str | None, pairs: dict[str, Any]) -> dict[str, Any]:
    if written is None:
        return pairs
    from omnigraph.query.params import parse_params

    found = parse_params(written)
    for name in pairs:
        if name in found:
            raise UsageError(f"the parameter '{name}' is given twice")
    return found | pairs


def _place_and_name(
    uri: str | None, name: str | None, store: str | None, *, in_file: bool
) -> tuple[str, str | None]:
    """The graph and the query's name out of up to two words.

    One word is the graph, unless the graph is named elsewhere: by --store; or by the environment,
    when the word can be the name of a query in a file and is no folder.
    """
    alone = uri is not None and name is None
    if alone and store is not None:
        looks_named = in_file and _QUERY_NAME.fullmatch(uri or "") and not Path(uri or "").exists()
        if said_store() is not None or looks_named:
            return target(None, store), uri
    return target(uri, store), name


# ---------------------------------------------------------------- parameters one by one


def pair_values(pairs: Sequence[str], text: str, query_name: str | None) -> dict[str, Any]:
    """Values of ``name=value`` in the form that the types of the declared parameters ask for."""
    if not pairs:
        return {}
    declared = _declared(text, query_name)
    found: dict[str, Any] = {}
    for pair in pairs:
        word, equals, value = pair.partition("=")
        name = word.strip().removeprefix("$")
        if not equals or not name:
            raise UsageError(f"'{pair}' is no parameter", hint="write --param name=value")
        if name in found:
            raise UsageError(f"the parameter '{name}' is given twice")
        found[name] = _value(value, declared.get(name))
    return found


def _declared(text: str, query_name: str | None) -> dict[str, ParamType]:
    from omnigraph.lang.source import Source
    from omnigraph.query.parse import parse_queries

    try:
        file = parse_queries(Source(name=INLINE_NAME, text=text))
    except QueryError:
        return {}  # Errors in the text are reported when it is run.
    for query in file.queries:
        if query_name is None or (query.name is not None and query.name.text == query_name):
            return {p.name.text: p.type for p in query.params}
    return {}


def _value(value: str, of: ParamType | None) -> Any:
    """A value that is no JSON stays text: binding reports what its type would have needed."""
    single = of is not None and not of.is_list and of.vector_size is None
    if of is None or (single and of.base.text in _AS_WRITTEN):
        return value
    from omnigraph.schema.strict_json import LineRefused, parse_line

    try:
        return parse_line(value.encode())
    except LineRefused:
        return value
