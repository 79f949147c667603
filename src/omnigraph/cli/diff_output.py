"""Printing a diff: text for people, JSON lines for programs, or an Arrow file.

    Diff -> [diff_output] -> diff_text -> stdout | file

All of them are written as they are made; a diff may be larger than memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import orjson
import pyarrow as pa

from omnigraph.branch.changes import ARROW_SCHEMA, EntityChange, Piece
from omnigraph.branch.diff import Diff
from omnigraph.cli.files import whole_file
from omnigraph.cli.interrupts import answered
from omnigraph.cli.result_bytes import Sink
from omnigraph.cli.streams import Writer, is_terminal, printable, stdout_writer, write_error
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.json_text import content

if TYPE_CHECKING:
    from omnigraph.cli.diff_text import Line, Look

ROWS_MAX = 1_000
"""So many entities are shown on a terminal unless another number is asked for."""
_LINES_PER_WRITE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which changes, and how many of them."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    limit: int | None = None

    def counts(self, diff: Diff) -> dict[str, TableChange]:
        """How many there are, whatever the limit."""
        return dict(diff.count(self.kinds, self.types, self.ops))

    def head(self, diff: Diff) -> dict[str, Any]:
        """What is compared and how much changed, for programs."""
        return diff.to_dict(self.kinds, self.types, self.ops)

    def pieces(self, diff: Diff) -> Iterator[tuple[Piece, int]]:
        """The changes, and how many of each piece count."""
        left = self.limit
        for piece in diff.pieces(self.kinds, self.types, self.ops):
            take = len(piece.ids) if left is None else min(left, len(piece.ids))
            if take:
                yield piece, take
            if left is not None:
                left -= take
                if not left:
                    return


def print_json(diff: Diff, wanted: Wanted, *, stat: bool) -> None:
    """A line that says what is compared and how much changed, then a line an entity."""
    shown = is_terminal(sys.stdout)
    with stdout_writer("diffs are printed to stdout") as writer:
        writer.write(orjson.dumps({"kind": "metadata"} | wanted.head(diff)) + b"\n")
        for piece, take in () if stat else wanted.pieces(diff):
            lines = content(piece.lines().slice(0, take))
            # On a terminal nobody parses it, and what the data holds must not steer it.
            writer.write(printable(bytes(lines).decode()).encode() if shown else lines)
    answered()


def print_text(diff: Diff, wanted: Wanted, *, stat: bool, quiet: bool) -> None:
    """The counts, then the entities with what is in them or what changed."""
    # rich takes long to import; programs do not need it.
    from omnigraph.cli.diff_text import change_lines, head_lines

    counts = wanted.counts(diff)
    total = sum(c.total for c in counts.values())
    look, styled = _look()
    shown = wanted.limit
    if shown is None and look.width is not None:
        shown = ROWS_MAX
    some = Wanted(kinds=wanted.kinds, types=wanted.types, ops=wanted.ops, limit=shown)

    def lines() -> Iterator[Line]:
        yield from head_lines(diff.before, diff.after, counts)
        if stat or not total:
            return
        yield []
        for change in _changes(some, diff):
            yield from change_lines(change, look)

    _print_lines(lines(), styled=styled)
    if shown is not None and shown < total and not stat and not quiet:
        write_error(f"{shown:,} of {total:,} changes are shown: --limit shows more\n")
    answered()


def write_arrow(diff: Diff, wanted: Wanted, path: Path) -> int:
    """All changes as an Arrow IPC stream in a file, there with all of its content or not at all."""
    with whole_file(path) as out:
        written = _write_batches(diff, wanted, out)
    answered()
    return written


def _write_batches(diff: Diff, wanted: Wanted, out: BinaryIO) -> int:
    facts = {"from_commit_id": diff.before.head.id, "to_commit_id": diff.after.head.id}
    written = 0
    sink = pa.PythonFile(Sink(cast(Writer, out)), mode="w")
    with pa.ipc.new_stream(sink, ARROW_SCHEMA.with_metadata(facts)) as file:
        for piece, take in wanted.pieces(diff):
            batch = piece.batch().slice(0, take)
            file.write_batch(batch.replace_schema_metadata(facts))
            written += take
    return written


def _changes(wanted: Wanted, diff: Diff) -> Iterator[EntityChange]:
    for piece, take in wanted.pieces(diff):
        for number, change in enumerate(piece.changes()):
            if number == take:
                break
            yield change


def _look() -> tuple[Look, bool]:
    """What suits stdout, and whether that has colours."""
    from omnigraph.cli.diff_text import Look
    from omnigraph.cli.rich_output import console

    on = console(sys.stdout)
    plain = not _encodes("→…")
    look = Look(
        width=on.width if is_terminal(sys.stdout) else None,
        arrow="->" if plain else "→",
        ellipsis="..." if plain else "…",
    )
    return look, on.color_system is not None


def _print_lines(lines: Iterable[Line], *, styled: bool) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    rest = iter(lines)
    with stdout_writer("diffs are printed to stdout") as writer:
        while block := list(islice(rest, _LINES_PER_WRITE)):
            text = _styled(block) if styled else _plain(block)
            writer.write(text.encode(encoding, "backslashreplace"))


def _plain(lines: list[Line]) -> str:
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _styled(lines: list[Line]) -> str:
    from rich.text import Text

    from omnigraph.cli.rich_output import rendered

    joined = Text("\n").join(Text.assemble(*line) for line in lines)
    return rendered(joined, sys.stdout)


def _encodes(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
