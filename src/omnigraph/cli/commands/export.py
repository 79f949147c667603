"""`omnigraph export`: a graph as JSONL."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click

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

STDOUT = "-"


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
    path = None if output in (None, STDOUT) else Path(output)

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
    # A link keeps pointing where it pointed; a device or a pipe must never be replaced by a file.
    place = path.resolve()
    if place.is_dir():
        raise UsageError(f"cannot write {path}: it is a directory")
    replace = place.is_file() or not place.exists()
    written = place.with_name(f".{place.name}.{os.getpid()}.tmp") if replace else place
    try:
        stream = written.open("wb")
    except OSError as e:
        raise cannot_write(str(path), e) from e
    try:
        with stream:
            writer = Writer(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
            if replace:
                _sync(stream, path)
        if replace:
            written.replace(place)
    except BaseException:
        if replace:
            written.unlink(missing_ok=True)
        raise


def _sync(stream: BinaryIO, path: Path) -> None:
    try:
        os.fsync(stream.fileno())
    except OSError as e:
        raise cannot_write(str(path), e) from e
