"""Entity ids of keyed types, computed from key columns.

    rows of a keyed type -> [identity] -> the ``id`` column

The text of one value: a string is itself; integers are decimal; booleans ``true`` and ``false``; a
date is its days and an instant its milliseconds since 1970; a float is the shortest decimal that
reads back as the same value of its width, as Python prints it but without a trailing ``.0`` (so
``5``, ``0.1``, ``1e+16``), and both zeros are ``0``. One member: that text is the id. Several, and
always on edges: a JSON array of the texts without spaces, non-ASCII characters left as they are.
Stored ids depend on every detail of this; changing one breaks existing graphs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.hashes import bounds_of
from omnigraph.errors import InputError, InternalError
from omnigraph.schema.catalog import EdgeType, GraphType

_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
"""What JSON must escape inside a string; everything else stands for itself."""
_BLOCK_BYTES = 1 << 18
"""Bytes that are looked at together: small enough to stay in the cache."""


def is_keyed(graph_type: GraphType) -> bool:
    """Whether the id follows from other values of the row."""
    return bool(graph_type.key) or (isinstance(graph_type, EdgeType) and graph_type.keyed)


def canonical_ids(graph_type: GraphType, rows: pa.Table) -> pa.StringArray:
    """The id of each row; null where a key member is null.

    Raises ``InputError`` if a key member is an infinite or undefined number.
    """
    composite = len(graph_type.key) > 1
    columns = list(graph_type.key)
    if isinstance(graph_type, EdgeType) and graph_type.keyed:
        columns = ["src", "dst", *columns]
        composite = True
    if not columns:
        raise InternalError(f"{graph_type.table_key} has no key to derive ids from")
    texts = [_column_text(graph_type, rows, name) for name in columns]
    return _json_arrays(texts) if composite else texts[0]


def canonical_text(values: pa.Array) -> pa.StringArray:
    """The canonical text of each value; null stays null.

    Raises ``InputError`` on infinite or undefined numbers.
    """
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("ms", tz=kind.tz)).cast(pa.int64())
    elif pa.types.is_floating(kind):
        return _float_text(values)
    return values.cast(pa.string())


def _column_text(graph_type: GraphType, rows: pa.Table, name: str) -> pa.StringArray:
    try:
        return canonical_text(_one_array(rows.column(name)))
    except InputError as error:
        raise InputError(f"{graph_type.name}.{name}: {error.message}") from error


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        # Arrow keeps chunks apart when their text exceeds what 32-bit offsets can address.
        raise InputError("more than 2 GiB of text in one batch of keys")
    return combined


def _float_text(values: pa.Array) -> pa.StringArray:
    if not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise InputError("a key cannot be an infinite or undefined number")
    # Arrow prints exponents in another way than Python; and each distinct value is printed once.
    encoded = values.dictionary_encode()
    texts = [_one_float(v) for v in encoded.dictionary.to_numpy(zero_copy_only=False)]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _one_float(value: np.floating[Any]) -> str:
    # numpy finds the shortest digits for either width. Read as a 64-bit float they print as the
    # same digits, in Python's layout, which neither numpy's version nor its print options change.
    digits = np.format_float_scientific(value, unique=True)
    text = repr(float(digits)).removesuffix(".0")
    return "0" if text == "-0" else text


def _json_arrays(texts: Sequence[pa.StringArray]) -> pa.StringArray:
    parts: list[pa.StringArray | pa.StringScalar] = []
    for text in texts:
        parts += [pa.scalar('","' if parts else '["'), text]
    joined = pc.binary_join_element_wise(
        *parts, pa.scalar('"]'), pa.scalar(""), null_handling="emit_null"
    )
    if not any(map(_has_byte_to_escape, texts)):
        return joined
    escape = _rows_to_escape(texts)
    # Only rows with a quote, a backslash or a control character are worth a Python loop.
    members = zip(*(t.filter(escape).to_pylist() for t in texts), strict=True)
    escaped = [
        None
        if any(m is None for m in row)
        else json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        for row in members
    ]
    return pc.replace_with_mask(joined, escape, pa.array(escaped, pa.string()))


def _has_byte_to_escape(texts: pa.StringArray) -> bool:
    """Whether any row may need it: in UTF-8 these characters are bytes of their own."""
    bounds, content = bounds_of(texts), texts.buffers()[2]
    octets = np.frombuffer(content or b"", np.uint8)[int(bounds[0]) : int(bounds[-1])]
    blocks = (octets[n : n + _BLOCK_BYTES] for n in range(0, len(octets), _BLOCK_BYTES))
    return any(bool(((b < 0x20) | (b == ord('"')) | (b == ord("\\"))).any()) for b in blocks)


def _rows_to_escape(texts: Sequence[pa.StringArray]) -> pa.BooleanArray:
    found: pa.BooleanArray | None = None
    for text in texts:
        one = pc.fill_null(pc.match_substring_regex(text, _NEEDS_ESCAPE), False)
        found = one if found is None else pc.or_(found, one)
    if found is None:
        raise InternalError("an id of no members")
    return found
