"""What changed, as people and programs read it: a diff of two states, and the feed of commits.

    from  main@4  01JZ8Y6N2D3V5K7M9P1R3T5V7X
    to    june@2  01JZ8YB1K4T9W3H6Q8Z2C5E7G0

      Vessel   +1 ~1
      CallsAt  -1

    ~ Vessel 100
        name  "Alba" → "Alba II"
        flag  "dk" → null
    + Vessel 300
        name  "Carl"
    - CallsAt 01JZ8Y6N2F  100 → AAR
        on    "2026-01-02"

All of it is written as it is made; a diff may be larger than memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from omnigraph.branch.changes import ChangePiece, EntityChange, Image
from omnigraph.branch.diff import Diff
from omnigraph.branch.feed.blocks import ChangeBlock
from omnigraph.branch.feed.schema_changes import SchemaStep
from omnigraph.cli.answers import Stream
from omnigraph.cli.lines import (
    DELETED,
    ID_STYLE,
    INSERTED,
    NAME_STYLE,
    QUIET_STYLE,
    UPDATED,
    Line,
    TextLook,
    columns,
    type_lines,
    when_text,
)
from omnigraph.cli.streams import one_line
from omnigraph.manifest.snapshot import Snapshot, TableChange
from omnigraph.schema.json_text import content
from omnigraph.show.text import cell_count, cut

ROWS_MAX = 1_000
"""So many entities are shown on a terminal unless another number is asked for."""
_SIGNS = {"insert": ("+", INSERTED), "update": ("~", UPDATED), "delete": ("-", DELETED)}
_VALUE_MIN = 12
"""No value is cut shorter than this, however narrow the terminal."""
_INDENT = " " * 4
_ENDS = {"src": "from", "dst": "to"}


# ---------------------------------------------------------------- a diff


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

    def pieces(self, diff: Diff) -> Iterator[tuple[ChangePiece, int]]:
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


class DiffShown(Stream):
    """The counts, then the entities with what is in them or what changed."""

    instead = "diffs are printed to stdout"

    def __init__(self, diff: Diff, wanted: Wanted, *, stat: bool) -> None:
        self._diff = diff
        self._wanted = wanted
        self._stat = stat
        """Only the counts."""
        self._left_out: list[str] = []

    def chunks(self) -> Iterator[bytes | memoryview]:
        """A line that says what is compared and how much changed, then a line an entity."""
        yield orjson.dumps({"kind": "metadata"} | self._wanted.head(self._diff)) + b"\n"
        for piece, take in () if self._stat else self._wanted.pieces(self._diff):
            yield content(piece.lines().slice(0, take))

    def lines(self, look: TextLook) -> Iterator[Line]:
        """The same for people; a terminal shows the first thousand."""
        counts = self._wanted.counts(self._diff)
        total = sum(c.total for c in counts.values())
        yield from _head(self._diff.before, self._diff.after, counts)
        if self._stat or not total:
            return
        yield []
        shown = self._wanted.limit
        if shown is None and look.width is not None:
            shown = ROWS_MAX
        for change in self._changes(shown):
            yield from change_lines(change, look)
        if shown is not None and shown < total:
            self._left_out.append(f"{shown:,} of {total:,} changes are shown: --limit shows more")

    def notes(self, look: TextLook) -> Iterator[str]:
        """How many are not shown."""
        return iter([] if look.quiet else self._left_out)

    def _changes(self, limit: int | None) -> Iterator[EntityChange]:
        for piece, take in replace(self._wanted, limit=limit).pieces(self._diff):
            for number, change in enumerate(piece.changes()):
                if number == take:
                    break
                yield change


def _head(before: Snapshot, after: Snapshot, counts: Mapping[str, TableChange]) -> Iterator[Line]:
    """Which states are compared, and how many entities of each type changed."""
    yield from columns(
        [
            [
                (f"{label:<4}", QUIET_STYLE),
                one_line(f"{state.branch}@{state.version}"),
                (state.head.id, ID_STYLE),
            ]
            for label, state in (("from", before), ("to", after))
        ]
    )
    yield []
    if counts:
        yield from type_lines(counts)
    else:
        yield ["No changes."]


def change_lines(change: EntityChange, look: TextLook) -> Iterator[Line]:
    """An entity, and what is or was in it, or what changed."""
    sign, style = _SIGNS[change.op]
    head: Line = [(f"{sign} ", style), (one_line(change.type_name), NAME_STYLE), " "]
    head.append((one_line(change.id), style))
    image = change.after or change.before
    if image is not None and image.endpoints is not None:
        source, target = map(one_line, image.endpoints)
        head.append((f"  {source} {look.arrow} {target}", QUIET_STYLE))
    yield head
    if change.op == "update":
        yield from _updated(change, look)
    elif image is not None:
        yield from _listed(image, style, look)


def _listed(image: Image, style: str, look: TextLook) -> Iterator[Line]:
    """All properties of an image."""
    width = max(map(cell_count, image.properties), default=0)
    for name, value in image.properties.items():
        label = _label(name, width)
        shown = _shown(value, look, cell_count(label), shares=1)
        yield [(label, QUIET_STYLE), (shown, style)]


def _updated(change: EntityChange, look: TextLook) -> Iterator[Line]:
    """The properties that changed, before and after."""
    ends = _ENDS if change.kind == "edge" else {}
    names = [ends.get(name, name) for name in change.properties]
    width = max(map(cell_count, names), default=0)
    for column, name in zip(change.properties, names, strict=True):
        label = _label(name, width)
        taken = cell_count(label) + len(look.arrow) + 2
        was, now = (
            _shown(_value(image, column), look, taken, shares=2)
            for image in (change.before, change.after)
        )
        arrow = (f" {look.arrow} ", QUIET_STYLE)
        yield [(label, QUIET_STYLE), (was, DELETED), arrow, (now, INSERTED)]


def _value(image: Image | None, column: str) -> Any:
    if image is None:
        return None
    if image.endpoints is not None and column in _ENDS:
        return image.endpoints[column == "dst"]
    return image.properties.get(column)


def _label(name: str, width: int) -> str:
    return f"{_INDENT}{one_line(name)}{' ' * (width - cell_count(name))}  "


def _shown(value: Any, look: TextLook, taken: int, *, shares: int) -> str:
    """A value as JSON, cut to its share of the line."""
    text = one_line(json.dumps(value, ensure_ascii=False))
    if look.width is None:
        return text
    return cut(text, max(_VALUE_MIN, (look.width - taken) // shares), look.ellipsis)


# ---------------------------------------------------------------- the feed


class FeedPart(Stream):
    """What commits changed, and what follows it: a cursor or a page token."""

    instead = "changes are printed to stdout"

    def __init__(
        self,
        blocks: Sequence[ChangeBlock] = (),
        *,
        record: dict[str, Any] | None = None,
        last_line: str | None = None,
    ) -> None:
        self._blocks = blocks
        self._record = record
        """The end for programs."""
        self._last_line = last_line
        """The end for people."""

    def chunks(self) -> Iterator[bytes]:
        """A line a block, and a line for the end."""
        for block in self._blocks:
            yield f"{block.to_json()}\n".encode()
        if self._record is not None:
            yield orjson.dumps(self._record) + b"\n"

    def lines(self, look: TextLook) -> Iterator[Line]:
        """Of each block a line about its commit, and the changes below it."""
        for block in self._blocks:
            yield from _block(block, look)
        if self._last_line is not None:
            yield [self._last_line]


def _block(block: ChangeBlock, look: TextLook) -> Iterator[Line]:
    cause = block.cause
    head: Line = [
        "commit ",
        (cause.commit_id, ID_STYLE),
        f" on {one_line(cause.branch)}",
        (f"  {when_text(cause.authored_at_us)}", QUIET_STYLE),
    ]
    if cause.actor:
        head.append((f"  {one_line(cause.actor)}", NAME_STYLE))
    ops = [change.op for change in block.changes]
    for op, (sign, style) in _SIGNS.items():
        if op in ops:
            head.append((f"  {sign}{ops.count(op):,}", style))
    if block.continued or block.next_page_token is not None:
        head.append(("  (more on the next page)", QUIET_STYLE))
    yield head
    for step in block.schema.steps if block.schema is not None else ():
        yield ["  schema: ", one_line(_step_text(step, look.arrow))]
    for change in block.changes:
        for line in change_lines(change, look):
            yield ["  ", *line]


def _step_text(step: SchemaStep, arrow: str) -> str:
    """A step of a schema change in a few words."""
    words = step.op.replace("_", " ")
    subject = step.type_name
    if step.property_name is not None:
        subject = f"{subject}.{step.property_name}"
    ends = [end for end in (step.before, step.after) if end is not None]
    return f"{words} {subject}" + (f" ({f' {arrow} '.join(ends)})" if ends else "")
