"""The files of a load as the command line names them, with their types and columns.

    --data FILE, --data TYPE=FILE, --map PROPERTY=COLUMN -> [data files] -> what graph.load takes

A name before an equals sign is a type if it begins like one, with a capital letter, and no file has
the whole text as its name: `year=2026/calls.jsonl` stays a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.sources import STDIN
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.input.streams import GivenStream

_TYPED = re.compile(r"([A-Z][A-Za-z0-9_]*)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFiles:
    """Files in the order given, each with the type that stands before it."""

    files: tuple[tuple[str | None, str], ...]

    @staticmethod
    def of(given: Sequence[str], type_name: str | None, *, mixed: bool = False) -> DataFiles:
        """Split types from files; with ``--type`` everything is a file.

        ``mixed`` if files with and without a type go together.
        """
        split = [(None, text) if type_name is not None else _split(text) for text in given]
        named = {name for name, _ in split}
        if None in named and len(named) > 1 and not mixed:
            plain = next(text for name, text in split if name is None)
            raise UsageError(
                f"some --data name their type, and '{plain}' does not",
                hint="write --data TYPE=FILE for each of them, or load JSONL by itself",
            )
        return DataFiles(files=tuple(split))

    @property
    def paths(self) -> list[str]:
        """Without their types."""
        return [path for _, path in self.files]

    def named(self) -> Any:
        """What a schema is inferred from: files by the type that they are to be, the others as a
        list."""
        plain = [path for name, path in self.files if name is None]
        found: dict[str | None, Any] = {None: plain} if plain else {}
        for name, path in self.files:
            if name is not None and name in found:
                raise UsageError("two files would be one type", hint="name one of them: TYPE=FILE")
            if name is not None:
                found[name] = path
        return plain if found.keys() == {None} else found

    def source(self, stdin: Callable[[], GivenStream]) -> Any:
        """What ``graph.load`` takes."""
        found: dict[str | None, list[str | GivenStream]] = {}
        for name, path in self.files:
            found.setdefault(name, []).append(stdin() if path == STDIN else path)
        return found.get(None, found)

    def mapping(self, given: Sequence[str], type_name: str | None) -> Mapping[str, Any] | None:
        """What ``graph.load`` takes as ``mapping``: of one type, or by type."""
        if not given:
            return None
        names = dict.fromkeys(name for name, _ in self.files if name is not None)
        only = type_name or (next(iter(names)) if len(names) == 1 else None)
        found: dict[str, dict[str, str]] = {}
        for text in given:
            prop, equals, column = text.partition("=")
            if not equals or not prop or not column:
                raise UsageError(f"'{text}' is not PROPERTY=COLUMN", hint="--map code=iata")
            owner, dot, name = prop.rpartition(".")
            owner = owner if dot else (only or "")
            if not owner or (owner != only and owner not in names):
                raise UsageError(
                    f"'{text}' does not say which type is meant",
                    hint="write TYPE.PROPERTY=COLUMN, with a type that --data or --type names",
                )
            if name in found.setdefault(owner, {}):
                raise UsageError(f"--map names {owner}.{name} twice")
            found[owner][name] = column
        return found[type_name] if type_name is not None else found


def _split(text: str) -> tuple[str | None, str]:
    typed = _TYPED.fullmatch(text)
    if typed is None or _exists(text):
        return None, text
    return typed[1], typed[2]


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False
