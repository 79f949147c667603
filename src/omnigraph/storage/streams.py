"""Large objects written and read as streams: exports, and rows on their way from other processes.

An object appears when its stream is closed and not before. If the work inside fails nothing
appears, on a folder and in a bucket alike.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import obstore
import pyarrow as pa

from omnigraph.storage.faults import translated
from omnigraph.storage.location import Location
from omnigraph.storage.objects import Objects

PARTS = "_parts"
"""Below it lie the rows of DataFrames that wait for being loaded."""


class _Sink(io.RawIOBase):
    """What obstore writes to, as a Python stream: its own answers ``closed`` differently."""

    def __init__(self, writer: Any, doing: str) -> None:
        super().__init__()
        self._writer = writer
        self._doing = doing
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, content: Any) -> int:
        view = memoryview(content).cast("B")
        with translated(self._doing):
            self._writer.write(view)
        self._written += view.nbytes
        return view.nbytes


@contextmanager
def open_output(location: Location, name: str) -> Generator[BinaryIO]:
    """A stream into a new object below a root."""
    doing = f"writing {name} in {location.uri}"
    with translated(doing):
        writer = obstore.open_writer(location.connect(create=True), name)
    try:
        yield cast("BinaryIO", _Sink(writer, doing))
    except BaseException as error:
        # Leaving with an error is what takes back the parts that were written.
        writer.__exit__(type(error), error, error.__traceback__)
        raise
    with translated(doing):
        writer.close()


def open_input(location: Location, name: str) -> pa.NativeFile:
    """An object that is there, for random access; from a bucket it is read at once."""
    with translated(f"reading {name} in {location.uri}"):
        if location.local_path is not None:
            return pa.memory_map(str(location.local_path / name))
        content = obstore.get(location.connect(), name).bytes()
        return pa.BufferReader(pa.py_buffer(content))


def move(location: Location, source: str, target: str) -> None:
    """Give an object another name; in a bucket the bytes are copied by the store."""
    with translated(f"moving {source} to {target} in {location.uri}"):
        obstore.rename(location.connect(), source, target)


def remove_below(location: Location, prefix: str) -> None:
    """Remove all objects below a prefix; on a folder the folders too."""
    if location.local_path is not None:
        with translated(f"removing {prefix} in {location.uri}"), suppress(FileNotFoundError):
            shutil.rmtree(location.local_path / prefix)
        return
    objects = Objects(location)
    names = list(objects.names(prefix))
    if names:
        objects.delete(names)
