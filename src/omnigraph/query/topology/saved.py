"""Numbers of ids and sorted edges as files, and back.

    vertices, edges -> [saved] -> array files

Every file speaks of some data files of one table, which never change. Numbers mean something only
together with the dictionary that gave them: a dictionary has a name, what is saved in its numbers
says which one it needs, and a process uses it only if it took its own numbers from that one, or
from one that was made by extending it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.topology.array_files import ArrayFile, ArrayFiles, NewFile
from omnigraph.query.topology.id_table import IdTable
from omnigraph.storage.layout import Fragment, Layout, LiveRows

KEPT_MAX = 2
"""Files of one kind that are kept for one table: branches, a little history."""
VERTICES, ENDS = "vertices", "ends"
SavedEnds = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dictionary:
    """A saved numbering of ids."""

    name: str
    """A digest of the ids: the same name means the same numbers."""
    count: int
    extends: tuple[tuple[str, int], ...] = ()
    """Older ones whose numbers it has: their names and sizes."""

    def understands(self, name: str, count: int) -> bool:
        """Whether numbers of that dictionary, below the count, are numbers of this one."""
        return any(name == n and count <= c for n, c in ((self.name, self.count), *self.extends))

    @staticmethod
    def of(ids: pa.StringArray, before: Dictionary | None) -> Dictionary:
        """That of these ids, the first of which are those of another."""
        digest = blake2b(digest_size=16)
        for buffer in _text_buffers(ids):
            digest.update(buffer.data)
        extends = () if before is None else ((before.name, before.count), *before.extends)
        return Dictionary(name=digest.hexdigest(), count=len(ids), extends=extends)


Ends = tuple[Dictionary, Dictionary]
"""Where the numbers of the sources and of the targets come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedVertices:
    """A dictionary as it lies on disk."""

    dictionary: Dictionary
    table: IdTable
    layout: Layout
    """Data files whose rows have numbers that follow each other."""
    starts: tuple[int, ...]
    """The number of the first row of each."""


class TopologyFiles:
    """The files about the tables of one graph."""

    def __init__(self, files: ArrayFiles, graph: str) -> None:
        self._files = files
        self._graph = graph

    def load_vertices(self, table_path: str, layout: Layout) -> SavedVertices | None:
        """The newest dictionary that knows a data file of this version."""
        present = {f.files for f in layout.fragments}
        for file in self.saved(table_path, VERTICES):
            found = _vertices(file)
            if any(f.files in present for f in found.layout.fragments):
                return found
        return None

    def save_vertices(
        self,
        table_path: str,
        table: IdTable,
        numbered: Mapping[Fragment, tuple[int, LiveRows | None]],
        before: Dictionary | None,
    ) -> SavedVertices | None:
        """Write a dictionary; what is returned is mapped from its file."""
        layout = Layout(list(numbered), lambda f: surely(numbered[f][1]))
        offsets, octets = _text_buffers(table.ids)
        arrays = {
            "offsets": offsets,
            "octets": octets,
            "hashes": table.hashes,
            "slots": table.slots,
        }
        new = self.create(
            table_path, VERTICES, {n: (a.dtype, len(a)) for n, a in arrays.items()}, layout
        )
        if new is None:
            return None
        for name, array in arrays.items():
            new.arrays[name][:] = array
        dictionary = Dictionary.of(table.ids, before)
        meta = {
            "name": dictionary.name,
            "extends": dictionary.extends,
            "crowded": sorted(table.crowded.values()),
            "starts": [start for start, _ in numbered.values()],
        }
        return _vertices(self.publish(new, table_path, layout, meta))

    def saved(self, table_path: str, kind: str) -> Iterator[ArrayFile]:
        """What is saved of one kind about a table, the newest first."""
        for name in self._files.newest(self._prefix(table_path, kind)):
            file = self._files.open(name)
            if file is None or file.meta.get("table") != self._name(table_path):
                self._files.drop(name)
            else:
                yield file

    def create(
        self, table_path: str, kind: str, shapes: Mapping[str, tuple[Any, int]], layout: Layout
    ) -> NewFile | None:
        """Arrays to fill, about the files of a layout."""
        prefix = self._prefix(table_path, kind)
        for old in list(self._files.newest(prefix))[KEPT_MAX - 1 :]:
            self._files.drop(old)
        live = sum(f.live_rows for f in layout.fragments if f.deletion is not None)
        return self._files.create(prefix, {**shapes, "live": (np.int64, live)})

    def publish(
        self, new: NewFile, table_path: str, layout: Layout, meta: Mapping[str, Any]
    ) -> ArrayFile:
        """Let others have what was filled."""
        live = [o for f in layout.fragments if (o := layout.offsets(f)) is not None]
        if live:
            new.arrays["live"][:] = np.concatenate(live)
        fragments = [
            [f.id, f.files, f.deletion, f.physical_rows, f.live_rows] for f in layout.fragments
        ]
        described = {"table": self._name(table_path), "fragments": fragments, **meta}
        new.publish(described)
        return ArrayFile(meta=described, arrays=new.arrays)

    def _name(self, table_path: str) -> str:
        return f"{self._graph} {table_path}"

    def _prefix(self, table_path: str, kind: str) -> str:
        return f"{sha256(self._name(table_path).encode()).hexdigest()[:20]}-{kind}-"


def layout_of(file: ArrayFile) -> Layout:
    """The data files that a file speaks of."""
    fragments: list[Fragment] = []
    live: dict[int, LiveRows] = {}
    at = 0
    for number, files, deletion, physical_rows, live_rows in file.meta["fragments"]:
        fragments.append(
            Fragment(
                id=number,
                files=tuple(files),
                deletion=deletion,
                physical_rows=physical_rows,
                live_rows=live_rows,
            )
        )
        if deletion is not None:
            live[number] = LiveRows(physical_rows, offsets=file.arrays["live"][at : at + live_rows])
            at += live_rows
    return Layout(fragments, lambda fragment: live[fragment.id])


def names_of(ends: Ends) -> Sequence[tuple[str, int]]:
    """What a file in these numbers says about them."""
    return [(d.name, d.count) for d in ends]


def understood(file: ArrayFile, ends: tuple[Dictionary | None, Dictionary | None]) -> bool:
    """Whether a file is written in numbers of these dictionaries."""
    needed = file.meta["ends"]
    return all(d is not None and d.understands(*n) for d, n in zip(ends, needed, strict=True))


def _vertices(file: ArrayFile) -> SavedVertices:
    arrays, meta = file.arrays, file.meta
    count = len(arrays["hashes"])
    ids = pa.StringArray.from_buffers(
        count, pa.py_buffer(arrays["offsets"]), pa.py_buffer(arrays["octets"])
    )
    crowded = {ids[number].as_py(): number for number in meta["crowded"]}
    return SavedVertices(
        dictionary=Dictionary(
            name=meta["name"], count=count, extends=tuple((n, c) for n, c in meta["extends"])
        ),
        table=IdTable(ids=ids, hashes=arrays["hashes"], slots=arrays["slots"], crowded=crowded),
        layout=layout_of(file),
        starts=tuple(meta["starts"]),
    )


def _text_buffers(ids: pa.StringArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    if ids.offset or not len(ids):
        ids = pa.concat_arrays([ids, pa.array([""], pa.string())])[:-1]
    _, offsets, octets = ids.buffers()
    places = np.frombuffer(offsets, np.int32)[: len(ids) + 1]
    content = np.frombuffer(octets, np.uint8) if octets is not None else np.empty(0, np.uint8)
    return places, content[: int(places[-1])]


def surely(live: LiveRows | None) -> LiveRows:
    """The live rows of a file that has deletions."""
    if live is None:
        raise LookupError("a file without deletions has no list of live rows")
    return live
