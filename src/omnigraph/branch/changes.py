"""One changed entity as a value, and many of them as JSON lines.

    piece of a delta -> images -> [changes] -> lines, objects, Arrow batches

Text is made column by column, and values are spelled as an export spells them. Objects are read
back from that text, so that there is one spelling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.branch.delta import Op, RowDelta, Side, differs
from omnigraph.branch.pace import Pace
from omnigraph.branch.types import ComparedTypes
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.json_text import TEXT, join, json_text, members
from omnigraph.schema.same_values import Mask
from omnigraph.storage.layout import Positions

ARROW_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("type_id", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("changed", pa.list_(pa.field("item", pa.string(), nullable=False))),
        pa.field("before", TEXT),
        pa.field("after", TEXT),
    ]
)
"""Changes of any types in one table: images are JSON objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An entity on one side."""

    properties: dict[str, Any]
    """What an export writes beside the id; a property that is null is not there."""
    endpoints: tuple[str, str] | None = None
    """From and to, of an edge."""

    def to_dict(self) -> dict[str, Any]:
        """As ``diff --json`` shows it."""
        if self.endpoints is None:
            return {"properties": self.properties}
        source, target = self.endpoints
        return {"properties": self.properties, "endpoints": {"from": source, "to": target}}


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityChange:
    """One entity that is not the same on both sides."""

    kind: str
    """``node`` or ``edge``."""
    type_id: int
    type_name: str
    id: str
    op: str
    """``insert``, ``update`` or ``delete``."""
    before: Image | None
    after: Image | None
    properties: tuple[str, ...]
    """Of an update: what changed, by the newer names; ``src`` and ``dst`` for the endpoints."""

    def to_dict(self) -> dict[str, Any]:
        """As ``diff --json`` shows it."""
        shown: dict[str, Any] = {
            "kind": self.kind,
            "type": {"id": type_number(self.type_id), "name": self.type_name},
            "id": self.id,
            "op": self.op,
        }
        if self.op == Op.UPDATE.word:
            shown["changed"] = list(self.properties)
        for side, image in (("before", self.before), ("after", self.after)):
            if image is not None:
                shown[side] = image.to_dict()
        return shown


def type_number(type_id: int) -> str:
    """The stable number of a type for outside use: opaque, and safe in any JSON reader."""
    return f"{type_id:016x}"


@dataclass(frozen=True, kw_only=True)
class ChangePiece:
    """A few entities of one type with their images."""

    types: ComparedTypes
    ids: pa.StringArray
    ops: np.ndarray[Any, np.dtype[np.int8]]
    sides: tuple[tuple[Positions, pa.Table], tuple[Positions, pa.Table]]
    """Before and after: which of the entities have an image, and these images."""
    changed: tuple[tuple[str, Mask], ...]
    """Per column where it changed; only updates count."""

    @property
    def nbytes(self) -> int:
        return sum(images.nbytes for _, images in self.sides)

    def lines(self) -> pa.LargeStringArray:
        """Each entity as a line of JSON."""
        name, number = self.types.newest.name, type_number(self.types.newest.id)
        of_type = f'"kind":"{self.types.kind}","type":{{"id":"{number}","name":{json.dumps(name)}}}'
        changed = join(',"changed":[', self._changed_text(), "]")
        return join(
            f'{{{of_type},"id":',
            json_text(self.ids),
            ',"op":"',
            self._words().cast(TEXT),
            '"',
            pc.if_else(pa.array(self.ops == Op.UPDATE), changed, pa.scalar("", TEXT)),
            _optional(',"before":', self._images("before")),
            _optional(',"after":', self._images("after")),
            "}\n",
        )

    def changes(self) -> Iterator[EntityChange]:
        """Each entity as an object."""
        for line in self.lines().to_pylist():
            yield parse_change(line)

    def batch(self) -> pa.RecordBatch:
        """The entities as rows of ``ARROW_SCHEMA``."""
        newest, rows = self.types.newest, len(self.ids)
        names = np.array([name for name, _ in self.changed], object)
        masks = np.array([mask for _, mask in self.changed], np.bool_).reshape(-1, rows)
        columns = [
            pa.repeat(self.types.kind, rows),
            pa.repeat(type_number(newest.id), rows),
            pa.repeat(newest.name, rows),
            self.ids.cast(pa.string()),
            self._words(),
            pa.array(
                [
                    names[masks[:, i]].tolist() if op == Op.UPDATE else None
                    for i, op in enumerate(self.ops)
                ],
                ARROW_SCHEMA.field("changed").type,
            ),
            self._images("before"),
            self._images("after"),
        ]
        return pa.record_batch(columns, schema=ARROW_SCHEMA)

    def _words(self) -> pa.StringArray:
        words = pa.array(["", *(op.word for op in Op)])
        return words.take(pa.array(self.ops))

    def _changed_text(self) -> pa.Array:
        fragments = [
            pc.if_else(pa.array(mask), pa.scalar(f",{json.dumps(name)}", TEXT), pa.scalar("", TEXT))
            for name, mask in self.changed
        ]
        if not fragments:
            return pa.repeat(pa.scalar("", TEXT), len(self.ids))
        # Every name stands after a comma, the first one too.
        return pc.binary_replace_slice(join(*fragments), 0, 1, "")

    def _images(self, side: Side) -> pa.Array:
        """The images of one side as JSON, null where there is none."""
        graph_type = self.types.before if side == "before" else self.types.after
        rows, images = self.sides[side == "after"]
        if graph_type is None or not len(rows):
            return pa.nulls(len(self.ids), TEXT)
        text = _image_text(graph_type, images)
        if len(rows) == len(self.ids):
            return text
        places = np.full(len(self.ids), -1, np.int64)
        places[rows] = np.arange(len(rows))
        return text.take(pa.array(places, mask=places < 0))


def pieces(delta: RowDelta, *, rows_max: int | None = None) -> Iterator[ChangePiece]:
    """A delta with its images, a few megabytes at a time, in order."""
    blobs = any(column.is_blob for column in delta.types.columns)
    pace = Pace(len(delta), blobs=blobs, **({} if rows_max is None else {"rows_max": rows_max}))
    for chosen in pace:
        piece = _piece(delta, chosen)
        pace.weighed(piece.nbytes)
        yield piece


def parse_change(line: str) -> EntityChange:
    """A change from its line."""
    # The quick reader takes -0, a float to us, for the integer 0.
    made = json.loads(line, parse_int=_integer) if "-0" in line else orjson.loads(line)
    return EntityChange(
        kind=made["kind"],
        type_id=int(made["type"]["id"], 16),
        type_name=made["type"]["name"],
        id=made["id"],
        op=made["op"],
        before=_image(made.get("before")),
        after=_image(made.get("after")),
        properties=tuple(made.get("changed", ())),
    )


def _piece(delta: RowDelta, chosen: slice) -> ChangePiece:
    ops = delta.ops[chosen]
    positions = delta.before[chosen], delta.after[chosen]
    rows = [np.flatnonzero(p >= 0) for p in positions]
    sides = [
        (here, delta.images(side, chosen.start + here) if len(here) else pa.table({}))
        for side, here in zip(("before", "after"), rows, strict=True)
    ]
    both = np.flatnonzero(ops == Op.UPDATE)
    changed: list[tuple[str, Mask]] = []
    if len(both):
        pairs = [
            images.take(pa.array(np.searchsorted(here, both))) if len(here) > len(both) else images
            for here, images in sides
        ]
        for column in delta.types.columns:
            mask = np.zeros(len(ops), np.bool_)
            mask[both] = differs(column, *pairs)
            changed.append((column.name, mask))
    return ChangePiece(
        types=delta.types,
        ids=delta.ids[chosen],
        ops=ops,
        sides=(sides[0], sides[1]),
        changed=tuple(changed),
    )


def _image_text(graph_type: GraphType, images: pa.Table) -> pa.Array:
    batch = images.combine_chunks().to_batches()[0]
    fragments = members(graph_type, batch)
    # Every member stands after a comma, the first one too; an entity may have none.
    named = join(*fragments) if any(isinstance(f, pa.Array) for f in fragments) else None
    opened = (
        pc.binary_replace_slice(named, 0, 1, '{"properties":{')
        if named is not None
        else pa.repeat(pa.scalar('{"properties":{', TEXT), batch.num_rows)
    )
    if not isinstance(graph_type, EdgeType):
        return join(opened, "}}")
    source, target = json_text(batch.column("src")), json_text(batch.column("dst"))
    return join(opened, '},"endpoints":{"from":', source, ',"to":', target, "}}")


def _optional(label: str, text: pa.Array) -> pa.Array:
    return pc.fill_null(join(label, text), "")


def _image(made: dict[str, Any] | None) -> Image | None:
    if made is None:
        return None
    ends = made.get("endpoints")
    return Image(
        properties=made["properties"], endpoints=(ends["from"], ends["to"]) if ends else None
    )


def _integer(digits: str) -> int | float:
    return -0.0 if digits == "-0" else int(digits)
