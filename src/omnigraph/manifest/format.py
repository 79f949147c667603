"""The stamp: which format of a graph this release reads and which one it writes.

Every version of every manifest carries the stamp of the format that it was written in. A release
writes one format and reads all from the oldest that it still knows. What a newer release wrote is
refused, because it is not known what it means; what an older one wrote is read as it is, and
becomes the newest format with the first write (``write/migration.py``, ADR 0018).

    1   the first one
    2   tables of main are mirrored to ``tables/`` for plain Lance, and the lineage to
        ``_graph_commits.lance``; the rows of a manifest are those of format 1
    3   one version of a manifest may make several commits, each with its own state: rows
        ``step_version``, and ``back`` of a commit

The numbers are read from this module when they are needed, so that a test can be an older
release for a while (``support.releases``).
"""

from __future__ import annotations

from omnigraph.errors import CorruptionError, ErrorKind, FormatError

FORMAT: int = 3
"""What this release writes, and the newest that it reads."""
OLDEST: int = 1
"""The oldest that it reads."""


def formats_read() -> tuple[int, ...]:
    """Every format that this release reads, in order."""
    return tuple(range(OLDEST, FORMAT + 1))


def read_stamp(stamp: str | None, where: str) -> int:
    """The format that a stamp names. Raises ``FormatError`` for one that is not read here."""
    if stamp is None:
        raise CorruptionError(f"{where} has no omnigraph format stamp", hint="is this a graph?")
    if not (stamp.isascii() and stamp.isdecimal()):
        raise CorruptionError(f"{where} has a damaged format stamp: {stamp!r}")
    number = int(stamp)
    if number > FORMAT:
        raise FormatError(
            f"{where} has format {number}, this omnigraph reads {_span()}",
            kind=ErrorKind.FORMAT_NEWER,
            hint="upgrade omnigraph first",
            details={"format": number, "format_supported": FORMAT},
        )
    if number < OLDEST:
        raise FormatError(
            f"{where} has the older format {number}, this omnigraph reads {_span()}",
            kind=ErrorKind.FORMAT_OLDER,
            hint="write to it with a release between the two, or export it with the one that wrote "
            "it, then init and load",
            details={"format": number, "format_supported": OLDEST},
        )
    return number


def _span() -> str:
    return f"format {FORMAT}" if OLDEST == FORMAT else f"formats {OLDEST} to {FORMAT}"
