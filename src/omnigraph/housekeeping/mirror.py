"""Main's tables for every Lance program, brought up to date now and then.

    publishes on main -> every 32nd commit, close, repair -> [mirror] -> `tables/T.lance`

How a version gets there is in ``storage/mirror.py``. Here is which: those that main shows and that
were not mirrored yet, from any process. One small object notes what is there, so that tables
that did not change are not read; if it is wrong, a table is read in vain, or again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, TablePin
from omnigraph.storage.mirror import FOLDER, MirrorHead, MirrorState, mirror_path
from omnigraph.storage.tables import Table

RECORD = f"{FOLDER}/_shown.json"
AS_OF, MADE_AT = "as of", "made at"
"""Beside names of types, of which none has a space."""
THREADS = 8


def type_name(table_key: str) -> str:
    """What a mirror is called: no two types of a graph have the same name."""
    return table_key.partition(":")[2]


def mirror_main(repository: Repository, *, all_tables: bool = False) -> dict[str, MirrorHead]:
    """Mirror the tables of main that need it; what a plain reader finds of them, by type.

    ``all_tables`` looks at every one, whatever was noted down. Nothing is changed where another
    program has been.
    """
    with repository.mirror.turn:
        noted = _noted(repository)
        pins = _pins(repository)
        names = [
            name
            for name in sorted(pins.keys() | noted.shown.keys())
            if all_tables or name not in pins or noted.shown.get(name) != pins[name].name.manifest
        ]
        heads = dict(zip(names, _each(repository, names), strict=True))
        _note(repository, noted, heads)
    return heads


def shown_now(repository: Repository, name: str) -> Table | None:
    """The table that main shows now under a name, from any process."""
    return repository.table_if(_pins(repository).get(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorAge:
    """How far the tables that other programs open are behind main."""

    behind: tuple[str, ...]
    """Types whose newest state is not there yet."""
    as_of_us: int | None
    """When they were last brought up to date, if that is known."""
    made_at: str | None = None
    """Where the graph was then, if it was moved or copied since: that is what they refer to."""


def mirror_age(repository: Repository) -> MirrorAge:
    """How old the mirrors are; from what was noted down."""
    noted, pins = _noted(repository), _pins(repository)
    behind = [n for n, pin in pins.items() if noted.shown.get(n) != pin.name.manifest]
    return MirrorAge(behind=tuple(sorted(behind)), as_of_us=noted.as_of_us, made_at=noted.elsewhere)


def moved_from(repository: Repository) -> str | None:
    """Where the graph was when its mirrors were made, if that is another place."""
    return _noted(repository).elsewhere


def _pins(repository: Repository) -> dict[str, TablePin]:
    pins = repository.head(MAIN).snapshot.pins
    return {type_name(key): pin for key, pin in pins.items()}


def _each(repository: Repository, names: list[str]) -> list[MirrorHead]:
    def make(name: str) -> MirrorHead:
        return repository.mirror.make(mirror_path(name), lambda: shown_now(repository, name))

    if len(names) <= 1:
        return [make(name) for name in names]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph-mirror") as pool:
        return list(pool.map(make, names))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    shown: Mapping[str, str]
    """The manifest that the mirror of each type showed last; empty if that was elsewhere."""
    as_of_us: int | None = None
    elsewhere: str | None = None
    """Where the graph was, if mirrors refer to another place."""


def _noted(repository: Repository) -> _Noted:
    """What was noted down, as far as it can be read."""
    content = repository.objects.get(RECORD)
    try:
        found: Any = json.loads(content) if content is not None else {}
    except ValueError:
        found = {}
    if not isinstance(found, dict):
        return _Noted(shown={})
    as_of = found.get(AS_OF)
    # A name becomes a path: what no type can be called is not looked for.
    shown = {k: v for k, v in found.items() if k.isidentifier()}
    # Lance knows no relative base paths: where the graph was moved to, no mirror is of any use.
    made_at = found.get(MADE_AT)
    here = made_at is None or repository.location.is_at(str(made_at))
    elsewhere = None if here else str(made_at)
    if elsewhere is not None:
        shown = dict.fromkeys(shown, "")
    as_of_us = as_of if isinstance(as_of, int) else None
    return _Noted(shown=shown, as_of_us=as_of_us, elsewhere=elsewhere)


def _root(repository: Repository) -> str:
    """The place of a graph as its mirrors spell it."""
    return repository.location.table_uri("").rstrip("/")


def _note(repository: Repository, noted: _Noted, heads: dict[str, MirrorHead]) -> None:
    """What was mirrored, not what main shows: another write may have been published meanwhile."""
    notes: dict[str, str | int] = dict(noted.shown)
    for name, head in heads.items():
        notes.pop(name, None)
        if head.state is MirrorState.CURRENT and head.shown is not None:
            notes[name] = head.shown.manifest
    if notes != noted.shown:
        notes[AS_OF] = repository.clock.now_us()
        # Those that could not be made anew stay noted as being elsewhere.
        unsure = noted.elsewhere is not None and "" in notes.values()
        made_at = noted.elsewhere if unsure and noted.elsewhere else _root(repository)
        notes[MADE_AT] = made_at
        content = json.dumps(notes, separators=(",", ":"), sort_keys=True)
        repository.objects.put(RECORD, content.encode())
        main = repository.branch(MAIN)
        main.store.note_mirrors(made_at, main.head)
