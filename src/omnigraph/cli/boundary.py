"""The edge of the program: every way a command can end becomes a message and an exit code.

    shell -> main -> [App.main] -> command -> library

Errors raised on purpose show their message and hint. Anything else is a bug of ours and says so,
without a traceback unless OMNIGRAPH_TRACEBACK=1 asks for it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, cast

import click
from click.exceptions import Exit, NoArgsIsHelpError

from omnigraph.cli.failure import BROKEN_PIPE, EXIT_CODES, INTERRUPTED, OK, USAGE, CommandLineError
from omnigraph.cli.interrupts import answered
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import finish, silence, write_error
from omnigraph.errors import (
    ErrorKind,
    InternalError,
    OmnigraphError,
    UsageError,
    WriteInterrupted,
)

TRACEBACK_VARIABLE = "OMNIGRAPH_TRACEBACK"


class App(click.Group):
    """The root command; the same edge for a process and for tests that call it."""

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.sections: dict[str, tuple[click.Command, ...]] = {}

    def add_section(self, title: str, commands: Sequence[click.Command]) -> None:
        """Commands that the help shows together."""
        self.sections[title] = tuple(commands)
        for command in commands:
            self.add_command(command)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they were added, which is the order of use."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, section by section, in columns that line up."""
        widest = max(map(len, self.commands))
        room = formatter.width - widest - 8
        for title, commands in self.sections.items():
            rows = [(f"{c.name:{widest}}", c.get_short_help_str(room)) for c in commands]
            with formatter.section(title):
                formatter.write_dl(rows)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the command line; that can print the help."""
        with _ends_of_our_own():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _ends_of_our_own():
            return super().invoke(ctx)

    def main(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run and exit."""
        words = list(sys.argv[1:] if args is None else args)
        # A guess until the option is read: an unreadable command line gets its answer too.
        settings = Settings(json="--json" in words)
        code = self._run(words, prog_name or "omnigraph", settings, extra)
        finish()
        answered()
        sys.exit(code)

    def _run(
        self, words: list[str], prog_name: str, settings: Settings, extra: dict[str, Any]
    ) -> int:
        extra = extra | {"obj": settings, "standalone_mode": False}
        run = cast("Callable[..., int | None]", super().main)
        try:
            # Without standalone mode click returns the code of an explicit exit.
            code = run(words, prog_name, **extra)
            return OK if code is None else code
        except OmnigraphError as e:
            return report(e, settings)
        except NoArgsIsHelpError as e:
            if settings.json:
                hint = f"'{e.ctx.command_path} --help' lists what there is"
                return report(UsageError("no command is named", hint=hint), settings)
            write_error(e.format_message() + "\n")
            return USAGE
        except click.ClickException as e:
            return report(_from_click(e), settings)
        except (KeyboardInterrupt, click.Abort) as e:
            interrupt = e.__cause__ if isinstance(e, click.Abort) else e
            return report_interrupt(settings, interrupt)
        except Exception as e:
            return report(bug(e), settings)


def report(error: OmnigraphError, settings: Settings) -> int:
    """Show an error, and what was published in spite of it; returns the exit code."""
    if error.kind is ErrorKind.INTERNAL and not error.hint:
        error.hint = (
            "this is a bug in omnigraph, please report it; "
            f"{TRACEBACK_VARIABLE}=1 shows where it happened"
        )
    if settings.published is not None:
        first, *rest = error.message.split("\n")
        first = f"{first}; {_was_published(settings.published)}"
        error.message = "\n".join([first, *rest])
        error.details["published_commit_id"] = settings.published
    with _stdout_may_fail():
        settings.output.failure(error)
    if os.environ.get(TRACEBACK_VARIABLE) == "1":
        write_error("".join(traceback.format_exception(error)))
    return EXIT_CODES[error.kind]


def report_interrupt(settings: Settings, interrupt: BaseException | None = None) -> int:
    """Show that the command was interrupted, and what was published before."""
    published, hint = settings.published_so_far(), None
    if isinstance(interrupt, WriteInterrupted) and interrupt.published is not False:
        published = interrupt.commit_id if interrupt.published else None
        hint = str(interrupt)
    elif published is not None:
        hint = _was_published(published)
    elif settings.creating:
        hint = "a graph is created completely or not at all"
    elif settings.writing:
        hint = "nothing was published"
    with _stdout_may_fail():
        settings.output.interrupted(hint, published)
    return INTERRUPTED


def _was_published(commit_id: str) -> str:
    return f"commit {commit_id} was published"


@contextmanager
def _stdout_may_fail() -> Generator[None]:
    """No reader is left, or nothing can be written: stderr and the exit code say what is left."""
    try:
        yield
    except (BrokenPipeError, OmnigraphError):
        silence(sys.stdout)


def _from_click(error: click.ClickException) -> OmnigraphError:
    """Click's own findings about the command line, in our shape."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    # Click lists the choices of a missing option on lines of their own.
    is_missing = isinstance(error, click.MissingParameter)
    message = " ".join(error.format_message().split()) if is_missing else error.format_message()
    if context is None:
        return CommandLineError(message)
    return CommandLineError(
        message,
        hint=f"{context.get_usage().replace('Usage:', 'usage:')}\n"
        f"'{context.command_path} --help' explains it",
    )


def bug(error: Exception) -> OmnigraphError:
    """An exception that was not raised on purpose, as an error of ours."""
    message = f"internal error: {type(error).__name__}: {error}"
    found = InternalError(message, details={"exception": type(error).__name__})
    found.__cause__ = error
    return found


@contextmanager
def _ends_of_our_own() -> Generator[None]:
    """Ends that click must not see: it would answer them in its own way.

    `export | head` is no failure; click would exit with the code of one. After an interrupt click
    writes to stderr, which may fail.
    """
    try:
        yield
    except BrokenPipeError:
        silence(sys.stdout)
        raise Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt as e:
        raise click.Abort from e
