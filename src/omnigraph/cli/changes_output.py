"""Printing the change feed: text for people, JSON lines for programs.

    ChangePage, ChangeBlock -> [changes_output] -> stdout

A block is a line of JSON, or a line about its commit and the changes below it. What follows the
blocks of a page, a cursor or a page token, is a line of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

from omnigraph.branch.feed.blocks import ChangeBlock
from omnigraph.branch.feed.reader import ChangePage
from omnigraph.branch.feed.schema import SchemaStep
from omnigraph.cli.streams import encodes, is_terminal, one_line, printable, stdout_writer

if TYPE_CHECKING:
    from omnigraph.cli.diff_text import Line, Look

_SIGNS = (("insert", "+", "green"), ("update", "~", "blue"), ("delete", "-", "red"))


class FeedPrinter:
    """Writes blocks as they come; nothing waits for the end."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def blocks(self, blocks: Iterable[ChangeBlock]) -> None:
        """What commits changed."""
        if self._as_json:
            self._write(f"{block.to_json()}\n" for block in blocks)
        else:
            self._write(_block_texts(blocks))

    def ending(self, page: ChangePage) -> None:
        """Where it goes on after a page of a poll."""
        if self._as_json:
            self.record(page.ending())
        elif page.next_page_token is not None:
            self.text(f"next page: {page.next_page_token}")
        else:
            rest = "caught up" if page.caught_up else "there is more"
            self.text(f"{rest}; cursor: {page.cursor}")

    def text(self, line: str) -> None:
        """A line for people."""
        self._write([f"{line}\n"])

    def record(self, document: dict[str, Any]) -> None:
        """A line of JSON that is not a block."""
        self._write([orjson.dumps(document).decode() + "\n"])

    def _write(self, texts: Iterable[str]) -> None:
        encoding = "utf-8"
        if not self._as_json:
            encoding = getattr(sys.stdout, "encoding", None) or encoding
        elif is_terminal(sys.stdout):
            # Nobody parses it there, and what the data holds must not steer it.
            texts = map(printable, texts)
        with stdout_writer("changes are printed to stdout") as writer:
            for text in texts:
                writer.write(text.encode(encoding, "backslashreplace"))


def _block_texts(blocks: Iterable[ChangeBlock]) -> Iterator[str]:
    # rich takes long to import; programs do not need it.
    from rich.text import Text

    from omnigraph.cli.diff_text import Look
    from omnigraph.cli.rich_output import console, rendered

    on = console(sys.stdout)
    plain = not encodes("→…", sys.stdout)
    look = Look(
        width=on.width if is_terminal(sys.stdout) else None,
        arrow="->" if plain else "→",
        ellipsis="..." if plain else "…",
    )
    for block in blocks:
        lines = list(_block_lines(block, look))
        if on.color_system is not None:
            yield rendered(Text("\n").join(Text.assemble(*line) for line in lines), sys.stdout)
        else:
            yield "".join("".join(t for t, _ in line).rstrip() + "\n" for line in lines)


def _block_lines(block: ChangeBlock, look: Look) -> Iterator[Line]:
    from omnigraph.cli.diff_text import change_lines
    from omnigraph.cli.text import ID_STYLE, QUIET_STYLE, when_text

    cause = block.cause
    head: Line = [
        ("commit ", ""),
        (cause.commit_id, ID_STYLE),
        (f" on {one_line(cause.branch)}", ""),
        (f"  {when_text(cause.authored_at_us)}", QUIET_STYLE),
    ]
    if cause.actor:
        head.append((f"  {one_line(cause.actor)}", "cyan"))
    ops = [change.op for change in block.changes]
    head += [(f"  {sign}{ops.count(op):,}", style) for op, sign, style in _SIGNS if op in ops]
    if block.continued or block.next_page_token is not None:
        head.append(("  (more on the next page)", QUIET_STYLE))
    yield head
    for step in block.schema.steps if block.schema is not None else ():
        yield [("  schema: ", ""), (one_line(_step_text(step, look.arrow)), "")]
    for change in block.changes:
        for line in change_lines(change, look):
            yield [("  ", ""), *line]


def _step_text(step: SchemaStep, arrow: str) -> str:
    """A step of a schema change in a few words."""
    words = step.op.replace("_", " ")
    subject = step.type_name
    if step.property_name is not None:
        subject = f"{subject}.{step.property_name}"
    ends = [end for end in (step.before, step.after) if end is not None]
    return f"{words} {subject}" + (f" ({f' {arrow} '.join(ends)})" if ends else "")
