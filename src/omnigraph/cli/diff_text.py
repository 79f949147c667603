"""A diff as lines for people: how much changed, then every entity.

    Diff -> [diff_text] -> lines of styled parts -> diff_output

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

Nothing is printed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size

from omnigraph.branch.changes import EntityChange, Image
from omnigraph.cli.streams import one_line
from omnigraph.manifest.snapshot import Snapshot, TableChange

Part = tuple[str, str]
"""Text and style."""
Line = list[Part]

INSERTED, UPDATED, DELETED = "green", "blue", "red"
_QUIET = "bright_black"
_SIGNS = {"insert": ("+", INSERTED), "update": ("~", UPDATED), "delete": ("-", DELETED)}
_VALUE_MIN = 12
"""No value is cut shorter than this, however narrow the terminal."""
_INDENT = " " * 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What suits the place where it is read."""

    width: int | None = None
    """Cells of a line on a terminal; None is a pipe, where nothing is cut."""
    arrow: str = "→"
    ellipsis: str = "…"


def head_lines(
    before: Snapshot, after: Snapshot, counts: Mapping[str, TableChange]
) -> Iterator[Line]:
    """Which states are compared, and how many entities of each type changed."""
    names = [one_line(f"{s.branch}@{s.version}") for s in (before, after)]
    width = max(map(cell_len, names))
    for label, name, state in zip(("from", "to"), names, (before, after), strict=True):
        gap = " " * (width - cell_len(name))
        yield [(f"{label:<6}", _QUIET), (f"{name}{gap}  ", ""), (state.head.id, "yellow")]
    yield []
    if not counts:
        yield [("No changes.", "")]
        return
    types = [key.partition(":")[2] for key in counts]
    width = max(map(cell_len, types))
    for name, change in zip(types, counts.values(), strict=True):
        gap = " " * (width - cell_len(name))
        yield [(f"  {name}", "cyan"), (f"{gap} ", ""), *_counted(change)]


def change_lines(change: EntityChange, look: Look) -> Iterator[Line]:
    """An entity, and what is or was in it, or what changed."""
    sign, style = _SIGNS[change.op]
    head = [(f"{sign} ", style), (one_line(change.type_name), "cyan"), (" ", "")]
    head.append((one_line(change.id), style))
    image = change.after or change.before
    if image is not None and image.endpoints is not None:
        source, target = map(one_line, image.endpoints)
        head.append((f"  {source} {look.arrow} {target}", _QUIET))
    yield head
    if change.op == "update":
        yield from _updated(change, look)
    elif image is not None:
        yield from _listed(image, style, look)


def _counted(change: TableChange) -> Iterator[Part]:
    signs = (("+", INSERTED), ("~", UPDATED), ("-", DELETED))
    counts = (change.inserted, change.updated, change.deleted)
    for (sign, style), count in zip(signs, counts, strict=True):
        if count:
            yield (f" {sign}{count:,}", style)


def _listed(image: Image, style: str, look: Look) -> Iterator[Line]:
    """All properties of an image."""
    width = max(map(cell_len, image.properties), default=0)
    for name, value in image.properties.items():
        label = _label(name, width)
        yield [(label, _QUIET), (_shown(value, look, cell_len(label), shares=1), style)]


def _updated(change: EntityChange, look: Look) -> Iterator[Line]:
    """The properties that changed, before and after."""
    names = [_ENDS.get(name, name) for name in change.properties]
    width = max(map(cell_len, names), default=0)
    for column, name in zip(change.properties, names, strict=True):
        label = _label(name, width)
        values = [_value(image, column) for image in (change.before, change.after)]
        was, now = (
            _shown(v, look, cell_len(label) + len(look.arrow) + 2, shares=2) for v in values
        )
        yield [(label, _QUIET), (was, DELETED), (f" {look.arrow} ", _QUIET), (now, INSERTED)]


_ENDS = {"src": "from", "dst": "to"}


def _value(image: Image | None, column: str) -> Any:
    if image is None:
        return None
    if image.endpoints is not None and column in _ENDS:
        return image.endpoints[column == "dst"]
    return image.properties.get(column)


def _label(name: str, width: int) -> str:
    return f"{_INDENT}{one_line(name)}{' ' * (width - cell_len(name))}  "


def _shown(value: Any, look: Look, taken: int, *, shares: int) -> str:
    """A value as JSON, cut to its share of the line."""
    text = one_line(json.dumps(value, ensure_ascii=False))
    if look.width is None:
        return text
    room = max(_VALUE_MIN, (look.width - taken) // shares)
    if cell_len(text) <= room:
        return text
    return set_cell_size(text, room - len(look.ellipsis)) + look.ellipsis
