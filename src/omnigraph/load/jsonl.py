"""Reading JSONL: strict text in, one typed table per type out.

    sources -> blocks of lines -> (fast | exact, on two threads) -> [jsonl] -> LoadedRows per type

The conductor: it opens the sources, keeps a few blocks in work at a time, puts their results back
into input order and stops when there are enough problems. All or nothing: with one problem anywhere
no rows are returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from omnigraph.errors import ErrorKind, InputError, NotFoundError, OmnigraphError, UsageError
from omnigraph.ids import IdSource
from omnigraph.load.blocks import BlockResult, cut_blocks, read_block
from omnigraph.load.formats import refuse_foreign_format
from omnigraph.load.problems import PROBLEMS_MAX, Problem, input_error, one_line
from omnigraph.load.rows import LoadedRows, Part, finish
from omnigraph.load.shape import RecordShape
from omnigraph.schema.catalog import Catalog

_THREADS = 2
_BLOCKS_IN_WORK_MAX = _THREADS + 1
"""One more than threads: who becomes free finds work, and memory stays bounded."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonlSource:
    """One text to read."""

    name: str
    """As shown in messages."""
    open: Callable[[], BinaryIO]
    """Called once."""
    owned: bool = True
    """Whether the stream is closed after reading; one that the caller opened stays open."""
    size_bytes: int | None = None
    """For showing progress, when known."""


def file_source(path: str | Path) -> JsonlSource:
    """A file of the local file system. Errors come when it is read, not here."""
    if not str(path):
        raise UsageError("the file name is empty", hint="give the path of a JSONL file")
    file = Path(path)
    try:
        size = file.stat().st_size
    except (OSError, ValueError):
        size = None
    return JsonlSource(name=str(path), open=lambda: file.open("rb"), size_bytes=size)


def read_jsonl(
    sources: Sequence[JsonlSource],
    catalog: Catalog,
    ids: IdSource,
    *,
    progress: Progress | None = None,
) -> dict[str, LoadedRows]:
    """The rows of all sources by table key, in order of first mention.

    Raises InputError with every problem found (up to a bound), NotFoundError for a missing file.
    ``progress`` is told the number of bytes that were read and converted so far.
    """
    shape = RecordShape(catalog)
    parts: list[Part] = []
    problems: list[Problem] = []
    lines_before = [0] * len(sources)
    bytes_done = 0
    for source, size, result in _results(sources, catalog, shape):
        name, before = sources[source].name, lines_before[source]
        problems += [p.at(name, before) for p in result.problems]
        if len(problems) >= PROBLEMS_MAX:
            raise input_error(problems[:PROBLEMS_MAX], stopped=True)
        # Rows are of no use once there is a problem: do not collect them.
        if not problems:
            parts += [p.placed(source, before) for p in result.parts]
        lines_before[source] += result.line_count
        bytes_done += size
        if progress is not None:
            progress(bytes_done)
    if problems:
        raise input_error(problems)
    return finish(parts, [s.name for s in sources], ids)


def _results(
    sources: Sequence[JsonlSource], catalog: Catalog, shape: RecordShape
) -> Iterator[tuple[int, int, BlockResult]]:
    """Source number, size and content of every block, in input order."""
    in_work: deque[tuple[int, int, Future[BlockResult]]] = deque()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="omnigraph-jsonl") as pool:
        try:
            for source, text in _texts(sources):
                if len(in_work) >= _BLOCKS_IN_WORK_MAX:
                    number, size, future = in_work.popleft()
                    yield number, size, future.result()
                in_work.append((source, len(text), pool.submit(read_block, text, catalog, shape)))
            while in_work:
                number, size, future = in_work.popleft()
                yield number, size, future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _texts(sources: Sequence[JsonlSource]) -> Iterator[tuple[int, bytes]]:
    for number, source in enumerate(sources):
        try:
            with _opened(source) as stream:
                for place, text in enumerate(cut_blocks(stream)):
                    if place == 0:
                        refuse_foreign_format(source.name, text)
                    yield number, text
        except OSError as error:
            raise _unreadable(source.name, error) from error


def _opened(source: JsonlSource) -> AbstractContextManager[BinaryIO]:
    try:
        stream = source.open()
    except ValueError as error:  # the name holds a character that no file name can
        raise InputError(f"{one_line(source.name)}: cannot be read: {error}") from error
    return closing(stream) if source.owned else nullcontext(stream)


def _unreadable(name: str, error: OSError) -> OmnigraphError:
    name = one_line(name)
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"{name}: no such file", kind=ErrorKind.FILE_NOT_FOUND)
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name}: is a directory, not a JSONL file")
    return InputError(f"{name}: cannot be read: {error.strerror or error}")
