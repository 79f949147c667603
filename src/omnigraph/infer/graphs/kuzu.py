"""The folder of Kuzu's ``EXPORT DATABASE … (format="csv")``, read entity by entity.

    schema.cypher, copy.cypher -> tables of nodes and of relationships -> rows of their files

Kuzu writes texts of a list without quotes: one with a comma in it cannot be told from two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from omnigraph.errors import InputError
from omnigraph.infer.graphs.entities import Entities
from omnigraph.infer.graphs.readers import value_of

SCHEMA, COPY = "schema.cypher", "copy.cypher"
_TOKEN = re.compile(r"`[^`]*`|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z0-9_.]+|\S")
_OPEN, _CLOSE = ("(", "["), (")", "]")
_ESCAPES = {"\\t": "\t", "\\n": "\n", '\\"': '"', "\\'": "'", "\\\\": "\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes:
    """A table of nodes: words for the types of its columns."""

    columns: Mapping[str, str]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """A table of relationships, which may join several pairs of tables."""

    columns: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file of rows, as ``COPY`` names it."""

    table: str
    path: Path
    columns: tuple[str, ...]
    options: Mapping[str, str]


def from_kuzu(folder: Path) -> Entities:
    """The graph of an export as CSV."""
    try:
        schema, copies = (folder / SCHEMA).read_text(), (folder / COPY).read_text()
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
    nodes, links = _declared(schema)
    files = [_copied(folder, words) for words in _statements(copies) if _is(words, "COPY")]
    found = Entities(str(folder))
    for file in files:
        if (table := nodes.get(file.table)) is not None:
            _add_nodes(found, file, table)
    for file in files:
        if (joined := links.get(file.table)) is not None:
            _add_links(found, file, joined)
    return found


def _add_nodes(found: Entities, file: _File, table: _Nodes) -> None:
    columns = file.columns or tuple(table.columns)
    for line, row in _rows(file, len(columns)):
        texts = dict(zip(columns, row, strict=True))
        cells = _cells(texts, table.columns, f"{file.path}:{line}")
        del cells[table.key]
        found.node(file.table, (file.table, texts[table.key] or ""), cells)


def _add_links(found: Entities, file: _File, table: _Links) -> None:
    source, target = table.pairs[0]
    source, target = file.options.get("from", source), file.options.get("to", target)
    columns = [c for c in file.columns or table.columns if c in table.columns]
    for line, row in _rows(file, len(columns) + 2):
        texts = dict(zip(columns, row[2:], strict=True))
        cells = _cells(texts, table.columns, f"{file.path}:{line}")
        found.edge(file.table, (source, row[0] or ""), (target, row[1] or ""), cells)


# -- statements ------------------------------------------------------------------------------------


def _statements(text: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in _TOKEN.findall(text):
        if word == ";":
            yield words
            words = []
        else:
            words.append(word)


def _declared(text: str) -> tuple[dict[str, _Nodes], dict[str, _Links]]:
    nodes: dict[str, _Nodes] = {}
    links: dict[str, _Links] = {}
    for words in _statements(text):
        kind = next((k for k in ("NODE", "REL") if _is(words, "CREATE", k, "TABLE")), None)
        if kind is None or "(" not in words:
            continue
        start = words.index("(")
        name, parts = _plain(words[start - 1]), _parts(words[start + 1 : -1])
        columns = {_plain(p[0]): _type(p[1:]) for p in parts if not _is_rule(p)}
        if kind == "NODE":
            nodes[name] = _Nodes(columns=columns, key=_key(parts, columns))
        else:
            pairs = tuple((_plain(p[1]), _plain(p[3])) for p in parts if _is(p, "FROM"))
            links[name] = _Links(columns=columns, pairs=pairs)
    return nodes, links


def _copied(folder: Path, words: Sequence[str]) -> _File:
    place = next(i for i, word in enumerate(words) if word.upper() == "FROM")
    name = _plain(words[place + 1])
    if not name.lower().endswith(".csv"):
        raise InputError(
            f"{folder}: {name} is no CSV file", hint='EXPORT DATABASE … (format="csv") writes them'
        )
    options = (part for part in _parts(words[place + 3 : -1]) if len(part) == 3)
    return _File(
        table=_plain(words[1]),
        path=folder / Path(name).name,
        columns=tuple(_plain(part[0]) for part in _parts(words[3 : place - 1])),
        options={part[0].lower(): _plain(part[2]) for part in options},
    )


def _parts(words: Sequence[str]) -> list[list[str]]:
    """What commas divide, those within brackets aside."""
    parts, depth = [list[str]()], 0
    for word in words:
        depth += (word in _OPEN) - (word in _CLOSE)
        if word == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return [part for part in parts if part]


def _is(words: Sequence[str], *start: str) -> bool:
    return [word.upper() for word in words[: len(start)]] == list(start)


def _is_rule(part: Sequence[str]) -> bool:
    """FROM … TO …, PRIMARY KEY (…), MANY_MANY: not a column."""
    return len(part) < 2 or _is(part, "FROM") or _is(part, "PRIMARY", "KEY")


def _key(parts: Sequence[Sequence[str]], columns: Mapping[str, str]) -> str:
    for part in parts:
        if _is(part, "PRIMARY", "KEY"):
            return _plain(part[3])
        if _is(part[-2:], "PRIMARY", "KEY"):
            return _plain(part[0])
    return next(iter(columns))


def _type(words: Sequence[str]) -> str:
    ends = (i for i, w in enumerate(words) if w.upper() in ("PRIMARY", "DEFAULT"))
    return "".join(words[: next(ends, len(words))]).lower()


def _plain(word: str) -> str:
    """A name or a text without its quotes."""
    if word[:1] == "`":
        return word[1:-1]
    if word[:1] in "\"'":
        return re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), word[1:-1])
    return word


# -- rows ------------------------------------------------------------------------------------------


def _rows(file: _File, count: int) -> Iterator[tuple[int, list[str | None]]]:
    """Rows as texts; nothing where Kuzu wrote nothing, which is not what it writes for ``''``."""
    try:
        content = file.path.read_bytes()
    except OSError as error:
        raise InputError(f"{file.path}: {error.strerror or error}") from None
    names = [str(number) for number in range(count)]
    headed = file.options.get("header", "false").lower() == "true"
    if not content.strip():
        return
    try:
        table = pcsv.read_csv(
            pa.BufferReader(content),
            read_options=pcsv.ReadOptions(column_names=names, skip_rows_after_names=int(headed)),
            parse_options=pcsv.ParseOptions(
                delimiter=file.options.get("delim", ","),
                quote_char=file.options.get("quote", '"'),
                newlines_in_values=True,
                ignore_empty_lines=count > 1,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file.path}: cannot be read: {reason}") from None
    columns = [column.to_pylist() for column in table.columns]
    for number, row in enumerate(zip(*columns, strict=True), 1 + headed):
        yield number, list(row)


def _cells(texts: Mapping[str, str | None], kinds: Mapping[str, str], place: str) -> dict[str, Any]:
    return {
        name: _value(text, kinds.get(name, "string"), place)
        for name, text in texts.items()
        if text is not None
    }


def _value(text: str, kind: str, place: str) -> Any:
    """A value; what has no type of its own here (STRUCT, MAP, INTERVAL …) stays a text."""
    if kind == "string":
        return text
    if kind.endswith("[]") and not kind.removesuffix("[]").isidentifier():
        return text
    try:
        if kind == "date":
            return date.fromisoformat(text)
        if kind.startswith("timestamp"):
            return datetime.fromisoformat(text)
    except ValueError:
        return text
    return value_of(text, kind, place)
