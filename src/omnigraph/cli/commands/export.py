"""`omnigraph export`: a graph as JSONL."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click

from omnigraph.cli.interrupts import answered
from omnigraph.cli.meter import SilentMeter, Unit
from omnigraph.cli.options import (
    WORDS,
    branch_option,
    common_options,
    examples,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import Writer, cannot_write, is_terminal
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.graph import SnapshotView

STDOUT = ("-", "/dev/stdout")
"""Ours is written as it is: opened by its name it would lose what stands in it."""


@click.command(
    "export",
    epilog=examples(
        "omnigraph export ./fleet > fleet.jsonl",
        "omnigraph export ./fleet --type Vessel --type CallsAt --output part.jsonl",
    ),
)
@target_options
@branch_option
@click.option(
    "--type",
    "types",
    type=WORDS,
    multiple=True,
    metavar="NAME",
    help="Only this node or edge type. May be repeated.",
)
@click.option(
    "--output",
    type=WORDS,
    metavar="FILE",
    help="Write to a file, which appears only when it is complete.  [default: stdout]",
)
@common_options
@click.pass_obj
def export_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    types: tuple[str, ...],
    output: str | None,
) -> None:
    """Write a graph as JSONL, nodes first.

    One moment of the graph is written, whatever others publish meanwhile. The text loads back
    exactly: omnigraph init, then omnigraph load --mode overwrite.
    """
    place = target(uri, store)
    path = None if output is None or output in STDOUT else Path(output)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        view = graph.snapshot(branch)
        total = _total(view, types)
        said = settings.output
        # A bar between the lines of data on the same terminal helps nobody.
        mixed = path is None and is_terminal(sys.stdout)
        meter = SilentMeter() if mixed else said.meter("exporting", total, Unit.ENTITIES)
        with _stdout() if path is None else _file(path) as out, meter:
            lines = view.export(out, types=types, progress=meter.advance_to)
        answered()
        said.exported(lines, path)


def _total(view: SnapshotView, types: tuple[str, ...]) -> int:
    names = types or tuple(t.name for t in view.catalog.types())
    return sum(view.count(name) for name in dict.fromkeys(names))


@contextmanager
def _stdout() -> Generator[BinaryIO]:
    if cast("TextIO | None", sys.stdout) is None:
        raise UsageError("stdout is closed", hint="export to a file with --output")
    writer = Writer(cast(BinaryIO, sys.stdout.buffer), "the output")
    yield cast(BinaryIO, writer)
    writer.flush()


@contextmanager
def _file(path: Path) -> Generator[BinaryIO]:
    """A file that is there with all of its content, or not at all."""
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"cannot write {path}: it is a directory")
    if mode is not None and not stat.S_ISREG(mode):
        # A device or a pipe must never be replaced by a file. Its name is opened as it is given:
        # a pipe such as /dev/fd/63 has none that it could be resolved to.
        with _opened(path, path) as stream:
            writer = Writer(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
        return
    # A link keeps pointing where it pointed.
    place = path.resolve()
    written = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    with _opened(written, path) as stream:
        try:
            if mode is not None:
                with _failing_as(path):
                    os.fchmod(stream.fileno(), stat.S_IMODE(mode))
            writer = Writer(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
            with _failing_as(path):
                os.fsync(stream.fileno())
                written.replace(place)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def _mode(path: Path) -> int | None:
    """Kind and permissions of what is there."""
    with _failing_as(path):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            return None


def _opened(written: Path, path: Path) -> BinaryIO:
    with _failing_as(path):
        return written.open("wb")


@contextmanager
def _failing_as(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise cannot_write(str(path), e) from e
