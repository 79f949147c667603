"""Rows of an input that are what is committed already: writing them would say nothing.

    rows of an input, committed rows of the same ids -> [unchanged] -> which rows are not written

Values are the same as a diff says it (``schema.same_values``): so a commit counts as updated what
a diff of it shows. Blobs lie apart from their rows and may be large: they are read only for rows
that agree in everything else.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import NO_POSITIONS, one_array
from omnigraph.rules.findings import Positions
from omnigraph.rules.table_delta import CommittedState
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType, Scalar
from omnigraph.schema.json_text import TEXT, json_text
from omnigraph.schema.same_values import same_mask

FINGERPRINT = "_fingerprint"


def blob_columns(graph_type: GraphType) -> tuple[str, ...]:
    """The columns that are not read with their rows."""
    return tuple(p.name for p in graph_type.properties if p.type.scalar is Scalar.BLOB)


def plain_columns(graph_type: GraphType) -> tuple[str, ...]:
    """All others, the id first."""
    blobs = blob_columns(graph_type)
    return tuple(name for name in table_schema(graph_type).names if name not in blobs)


def with_fingerprint(graph_type: GraphType, rows: pa.Table) -> pa.Table:
    """The rows with a column that is equal where all plain columns are.

    For rows that lie on different machines. Values are told apart by their JSON text, which says
    each of them exactly, and that by 128 bits of a cryptographic hash.
    """
    columns = [rows.column(name) for name in plain_columns(graph_type)]
    prints: list[bytes] = []
    for batch in pa.table(columns, names=plain_columns(graph_type)).to_batches():
        texts = [pc.fill_null(json_text(column), "null") for column in batch.columns]
        line = pc.binary_join_element_wise(*texts, pa.scalar(",", TEXT))
        prints += [blake2b(text.encode(), digest_size=16).digest() for text in line.to_pylist()]
    return rows.append_column(FINGERPRINT, pa.array(prints, pa.binary()))


def unchanged_rows(
    graph_type: GraphType, rows: pa.Table, before: pa.Table, committed: CommittedState
) -> Positions:
    """The places in ``rows``, whose ids are distinct, of those that are committed as they are.

    ``before`` has the plain columns of the committed rows with these ids.
    """
    places = _compared(rows, before, plain_columns(graph_type))
    blobs = blob_columns(graph_type)
    if blobs and len(places):
        alike = rows.take(pa.array(places))
        ids = one_array(alike.column("id"))
        stored = committed.rows_of(graph_type.table_key, ids, ("id", *blobs))
        places = places[_compared(alike, stored, ("id", *blobs))]
    return places


def _compared(rows: pa.Table, before: pa.Table, columns: tuple[str, ...]) -> Positions:
    if not before.num_rows or not rows.num_rows:
        return NO_POSITIONS
    ids = one_array(before.column("id"))
    found = one_array(pc.index_in(rows.column("id"), value_set=ids, skip_nulls=True))
    places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    theirs = found.drop_null()
    for name in columns:
        if name == "id" or not len(places):
            continue
        # A column at a time, and of it only what still agrees: most changes show early.
        now, was = rows.column(name).take(pa.array(places)), before.column(name).take(theirs)
        same = same_mask(was, now)
        if not same.all():
            places, theirs = places[same], theirs.filter(pa.array(same))
    return places
