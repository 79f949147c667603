"""A load from sources to a published commit.

    sources -> rows by type -> delta -> [publish]

The input is read once. If another process changes the schema meanwhile the write machine asks again
and the input is read anew against the new schema, as far as it can be read twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from omnigraph.errors import ConflictError, ErrorKind
from omnigraph.load.rows import LoadedRows
from omnigraph.manifest.repository import Repository
from omnigraph.schema.catalog import Catalog
from omnigraph.write.delta import GraphDelta, TableDelta, WriteMode
from omnigraph.write.publish import Receipt, WriteRequest, publish
from omnigraph.write.txn import WriteTxn

ReadInput = Callable[[Catalog], Mapping[str, LoadedRows]]


def load_rows(
    repository: Repository,
    read: ReadInput,
    *,
    mode: WriteMode,
    branch: str,
    actor: str | None,
    message: str | None,
    repeatable: bool,
) -> tuple[Receipt, Mapping[str, LoadedRows]]:
    """Publish everything that ``read`` gives as one commit."""
    parsed: dict[str, tuple[Mapping[str, LoadedRows], GraphDelta]] = {}

    def prepare(txn: WriteTxn) -> GraphDelta:
        digest = txn.schema.hash
        if digest not in parsed:
            if parsed and not repeatable:
                raise ConflictError(
                    "the schema changed while the input was being loaded",
                    kind=ErrorKind.READ_SET_CONFLICT,
                    hint="repeat the load: a stream cannot be read twice",
                )
            rows = read(txn.schema.catalog)
            # Parsing leaves freed blocks with the allocator; the checks to come need the room.
            pa.default_memory_pool().release_unused()
            parsed.clear()
            parsed[digest] = (rows, _delta(rows, mode))
        return parsed[digest][1]

    receipt = publish(
        repository,
        WriteRequest(
            kind="load",
            branch=branch,
            prepare=prepare,
            actor=actor,
            message=message,
            on_newest=mode is WriteMode.OVERWRITE,
        ),
    )
    (rows, _), *_ = parsed.values()
    return receipt, rows


def _delta(rows: Mapping[str, LoadedRows], mode: WriteMode) -> GraphDelta:
    return GraphDelta(
        tables={
            key: TableDelta(
                type=loaded.type,
                mode=mode,
                rows=loaded.rows,
                origins=loaded.origins,
                ids_fresh=loaded.ids_fresh,
            )
            for key, loaded in rows.items()
        }
    )
