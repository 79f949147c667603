"""The hint: where a cold reader starts to look, and mostly all that it needs.

    head -> [hint] -> _head.json -> version, rows

It may lag, be missing or be damaged, and then costs requests, never an answer. Beside the number
of a version it has the rows of that version, which never change: a reader that finds that the
version is there, and none after it, need not read it.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa

PACKED_BYTES_MAX = 6 << 10
"""The hint goes with every write: what is larger is read from the version. Fifty commits and some
dozens of tables fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A version of a manifest that was committed."""

    version: int
    rows: pa.Table | None = None
    mirrors: str | None = None
    """Where the graph was when its mirrors were made."""

    def encode(self) -> bytes:
        """As it is stored."""
        fields: dict[str, int | str] = {"version": self.version}
        content = _packed(self.rows) if self.rows is not None else b""
        if 0 < len(content) <= PACKED_BYTES_MAX:
            fields |= {"rows": b85encode(content).decode(), "sha256": _sum(content)}
        if self.mirrors is not None:
            fields["mirrors"] = self.mirrors
        return json.dumps(fields, separators=(",", ":")).encode()

    @staticmethod
    def decode(content: bytes) -> Hint | None:
        """What was stored; None if that says nothing. Damaged rows are left out."""
        try:
            fields = json.loads(content)
            version = fields["version"]
        except (ValueError, KeyError, TypeError):
            return None  # A damaged hint is no hint: the listing is the authority.
        if not isinstance(version, int) or not 0 < version < 1 << 63:
            return None
        mirrors = fields.get("mirrors")
        return Hint(
            version=version,
            rows=_rows(fields.get("rows"), fields.get("sha256")),
            mirrors=mirrors if isinstance(mirrors, str) else None,
        )


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    # As a whole: Arrow's own compression takes each of the many small columns by itself.
    return zlib.compress(sink.getvalue())


def _rows(packed: object, digest: object) -> pa.Table | None:
    if not isinstance(packed, str):
        return None
    try:
        content = b85decode(packed)
        if _sum(content) != digest:
            return None
        return pa.ipc.open_stream(zlib.decompress(content)).read_all()
    except (ValueError, zlib.error, pa.ArrowException):
        return None


def _sum(content: bytes) -> str:
    return sha256(content).hexdigest()
