"""What cleanups have recorded: which states they keep, and whose files they spare.

    cleanup: [record] -> a version of every branch that names it -> files are deleted
    write:   loses the race against that version -> reads the [record] -> knows what may be gone

A record is one object, numbered, created only if it is not there, never changed. It says which
versions of which manifests keep their tables; versions that are made later always do. A cleanup
keeps nothing that an earlier one gave up, so the newest record is enough to know whether a state is
still whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from omnigraph.errors import CorruptionError
from omnigraph.manifest.snapshot import ManifestPlace
from omnigraph.storage.objects import Objects

PREFIX = "_cleanup"
GRACE_S = 3600.0
"""What was written or shown within an hour is not touched, whatever the policy says."""

Ranges = tuple[tuple[int, int | None], ...]
"""Versions from and to, both included; None for all that follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """What one cleanup keeps."""

    number: int
    at_us: int
    kept: Mapping[str, Ranges]
    """By manifest dataset; one that is not named was made later, or is gone altogether."""
    spared: frozenset[str]
    """Operations that were running: their files are not touched."""
    purges: tuple[str, ...] = ()
    """What was dropped for good, if this is a purge and no cleanup of everything."""
    left: tuple[str, ...] = ()
    """Where what was dropped can still be read."""

    def keeps(self, place: ManifestPlace) -> bool | None:
        """Whether a state keeps its tables; None if this record does not know the dataset."""
        ranges = self.kept.get(place.path)
        if ranges is None:
            return None
        return any(
            first <= place.version and (last is None or place.version <= last)
            for first, last in ranges
        )


def ranges_of(versions: Iterable[int], *, open_from: int | None = None) -> Ranges:
    """Versions as ranges; from ``open_from`` on all that there are and that will be."""
    found: list[tuple[int, int | None]] = []
    for version in sorted(set(versions)):
        if open_from is not None and version >= open_from:
            break
        if found and found[-1][1] == version - 1:
            found[-1] = (found[-1][0], version)
        else:
            found.append((version, version))
    if open_from is not None:
        found.append((open_from, None))
    return tuple(found)


class Sweeps:
    """The records of one graph; each is read once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[int, SweepRecord | None] = {}
        self._lock = Lock()

    def record(self, number: int) -> SweepRecord | None:
        """A record by number; None if it is gone, as those of old cleanups are."""
        with self._lock:
            if number in self._known:
                return self._known[number]
        content = self._objects.get(record_object(number))
        found = _decode(content, number) if content is not None else None
        with self._lock:
            self._known[number] = found
        return found

    def spared(self, operation_id: str, before: int, now: int) -> bool:
        """Whether all cleanups after ``before`` up to ``now`` left an operation's files alone."""
        records = [self.record(number) for number in range(before + 1, now + 1)]
        return all(record is not None and operation_id in record.spared for record in records)

    def newest_number(self) -> int:
        """How many cleanups there were; one listing."""
        return max(numbers(self._objects), default=0)

    def create(self, record: SweepRecord) -> bool:
        """Write a record; False if its number is taken."""
        return self._objects.create(record_object(record.number), _encode(record))


def record_object(number: int) -> str:
    """The object of a record."""
    return f"{PREFIX}/{number:012d}.json"


def numbers(objects: Objects) -> list[int]:
    """The numbers of the records that are there."""
    names = (name.rpartition("/")[2].removesuffix(".json") for name in objects.names(PREFIX))
    return [int(name) for name in names if name.isdigit()]


def _encode(record: SweepRecord) -> bytes:
    body: dict[str, Any] = {
        "number": record.number,
        "at": record.at_us,
        "kept": {path: [list(pair) for pair in pairs] for path, pairs in record.kept.items()},
        "spared": sorted(record.spared),
    }
    if record.purges:
        body |= {"purges": list(record.purges), "left": list(record.left)}
    return json.dumps(body, separators=(",", ":")).encode()


def _decode(content: bytes, number: int) -> SweepRecord:
    try:
        body: dict[str, Any] = json.loads(content)
        return SweepRecord(
            number=body["number"],
            at_us=body["at"],
            kept={
                path: tuple((first, last) for first, last in pairs)
                for path, pairs in body["kept"].items()
            },
            spared=frozenset(body["spared"]),
            purges=tuple(body.get("purges", ())),
            left=tuple(body.get("left", ())),
        )
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptionError(
            f"the record of cleanup {number} cannot be read: {e}",
            hint="the next cleanup writes a new one; until then old states cannot be adopted",
        ) from e
