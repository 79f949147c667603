"""What the shell does with one input: run a query, a mutation, or a command of its own.

    reading -> [session] -> graph -> output

An error is reported and the session goes on. Nothing here knows a keyboard: the same session
serves the prompt and a pipe.
"""

from __future__ import annotations

import json

from omnigraph.api.graph import Graph
from omnigraph.cli.answers import CommitList, Explained, Remark, SchemaShown
from omnigraph.cli.boundary import bug, report, report_interrupt
from omnigraph.cli.options import RowFormat
from omnigraph.cli.rows import QueryRows
from omnigraph.cli.settings import Settings
from omnigraph.cli.shell.complete import COMMANDS, FORMATS
from omnigraph.cli.shell.reading import is_empty
from omnigraph.clock import Clock
from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query.ast import MutationBody
from omnigraph.query.params import parse_params
from omnigraph.query.parse import parse_queries
from omnigraph.schema.catalog import Catalog, type_named
from omnigraph.schema.format import render_type

COMMITS_SHOWN = 10
HELP = """\
A query, such as   match { $v: Vessel } return { $v.name } limit 3
A mutation, as     insert Port { code: "OSL", name: "Oslo" }

An input ends where it is complete, or with an empty line. Alt-Enter begins a new line in any case.
Tab completes, the arrows walk through earlier inputs, Ctrl-C drops an input, Ctrl-D leaves.
"""
_COLUMN = 10


class Session:
    """A conversation about one branch of a graph."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        clock: Clock,
        *,
        branch: str,
        actor: str | None = None,
        timing: bool = False,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._clock = clock
        self._branch = branch
        self._actor = actor
        self._timing = timing
        self._form = RowFormat.TABLE
        self._params = "{}"
        """As they were given: a number must not be rounded on the way."""
        self._last = ""
        self._catalog = graph.snapshot(branch).catalog
        self.done = False
        """The end was asked for."""
        self.failed = False
        """An input could not be carried out."""

    @property
    def branch(self) -> str:
        """Where queries read and mutations write."""
        return self._branch

    @property
    def catalog(self) -> Catalog:
        """The schema of the branch, for completion."""
        return self._catalog

    def run(self, text: str) -> None:
        """Carry out one input and show the answer. Raises nothing but what ends a program."""
        if is_empty(text):
            return
        self._settings.start_over()
        try:
            if text.lstrip().startswith(":"):
                self._command(text.strip())
            else:
                self._query(text)
        except OmnigraphError as error:
            self.failed = True
            report(error, self._settings)
        except BrokenPipeError:
            raise
        except Exception as error:
            self.failed = True
            report(bug(error), self._settings)

    def interrupted(self, interrupt: KeyboardInterrupt) -> None:
        """Ctrl-C came while an input was carried out."""
        self.failed = True
        report_interrupt(self._settings, interrupt)

    # -------------------------------------------------------- queries

    def _query(self, text: str) -> None:
        file = parse_queries(Source(name="query", text=text))
        declared = {p.name.text for q in file.queries for p in q.params}
        # Parameters stay for later queries; those that this one does not know are not for it.
        given = parse_params(self._params)
        params = {name: value for name, value in given.items() if name in declared}
        started_s = self._clock.monotonic_s()
        if any(isinstance(q.body, MutationBody) for q in file.queries):
            self._settings.writing = True
            changed = self._graph.mutate(text, params, branch=self._branch, actor=self._actor)
            self._settings.show(changed, changed.commit, elapsed_s=self._elapsed_s(started_s))
            return
        result = self._graph.query(text, params, branch=self._branch)
        self._last = text
        elapsed_s = self._elapsed_s(started_s)
        self._settings.show(QueryRows(result, self._form, pinned=False, elapsed_s=elapsed_s))

    def _elapsed_s(self, started_s: float) -> float | None:
        return self._clock.monotonic_s() - started_s if self._timing else None

    # -------------------------------------------------------- commands

    def _say(self, words: str) -> None:
        self._settings.show(Remark(words))

    def _command(self, text: str) -> None:
        """Every command has a method of its name: ``do_help`` is ``:help``."""
        name, _, rest = text.partition(" ")
        if name not in COMMANDS:
            hint = did_you_mean(name, COMMANDS) or "':help' shows what there is"
            raise UsageError(f"no such command '{name}'", hint=hint)
        getattr(self, f"do_{name.removeprefix(':')}")(rest.strip())

    def do_help(self, rest: str) -> None:
        lines = [f"{name:<{_COLUMN}} {what}" for name, what in COMMANDS.items()]
        self._say("\n".join([HELP, *lines]))

    def do_schema(self, rest: str) -> None:
        view = self._graph.snapshot(self._branch)
        if rest:
            self._say(render_type(type_named(view.catalog, rest)).rstrip())
        else:
            self._settings.show(SchemaShown(view=view))

    def do_types(self, rest: str) -> None:
        view = self._graph.snapshot(self._branch)
        self._settings.show(view, uri=self._graph.uri)

    def do_branch(self, rest: str) -> None:
        if rest:
            self._catalog = self._graph.snapshot(rest).catalog
            self._branch = rest
        self._say(self._branch)

    def do_params(self, rest: str) -> None:
        if rest:
            parse_params(rest)  # A wrong value fails here, and nothing changes.
            self._params = rest
        self._say(json.dumps(json.loads(self._params) or {}, ensure_ascii=False))

    def do_format(self, rest: str) -> None:
        if rest:
            if rest not in FORMATS:
                raise UsageError(f"no such format '{rest}'", hint=f"one of {', '.join(FORMATS)}")
            self._form = RowFormat(rest)
        self._say(str(self._form))

    def do_explain(self, rest: str) -> None:
        text = rest or self._last
        if not text:
            raise UsageError("there is no query to explain", hint=":explain match { … } return …")
        found = self._graph.explain(text, branch=self._branch)
        self._settings.show(Explained(explanation=found, branch=self._branch, commit=None))

    def do_timing(self, rest: str) -> None:
        self._timing = not self._timing
        self._say(f"times are {'shown' if self._timing else 'not shown'}")

    def do_commits(self, rest: str) -> None:
        found = self._graph.commits(branch=self._branch, limit=COMMITS_SHOWN)
        self._settings.show(CommitList(commits=found))

    def do_quit(self, rest: str) -> None:
        self.done = True
