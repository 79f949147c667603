"""What can stand at the cursor of an unfinished query.

    text before the cursor, catalog -> scan -> [complete] -> candidates

A pure function: the prompt only shows what comes out of it. It helps and never forbids, so where
several things are possible all of them are offered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

from omnigraph.cli.options import RowFormat
from omnigraph.cli.shell.scan import BlockKind, CursorScan, scan
from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, PropertyType, Scalar

COMMANDS = {
    ":help": "what the shell understands",
    ":schema": "the schema, or one type of it",
    ":types": "types and how many entities they have",
    ":branch": "the branch; with a name: go there",
    ":params": "parameters of the next queries, as JSON",
    ":format": "how rows are shown",
    ":explain": "how a query is run; without one: the last",
    ":timing": "show times, or not",
    ":commits": "the newest commits",
    ":quit": "leave",
}
"""Commands of the shell, each with what it does."""
FORMATS = tuple(str(f) for f in RowFormat if f is not RowFormat.ARROW)
"""How the shell can show rows."""
AGGREGATES = ("count", "sum", "avg", "min", "max")
SCORES = ("bm25", "nearest", "rrf")
TEXT_TESTS = ("search", "match_text", "fuzzy")
STATEMENTS = ("insert", "upsert", "update", "delete")
OPERATORS = ("contains", "starts_with", "in", "is", "not", "and", "or")
PARAMETER_TYPES = tuple(str(s) for s in Scalar)
_PROPERTY_BLOCKS = (BlockKind.INLINE, BlockKind.INSERT, BlockKind.SET)
_VALUE_KINDS = (TokenKind.STRING, TokenKind.INT, TokenKind.FLOAT)
_AFTER_BLOCK = {
    BlockKind.CLAUSES: ("return",),
    BlockKind.RETURN: ("order", "limit", "offset"),
    BlockKind.ORDER: ("limit", "offset"),
    BlockKind.SET: ("where",),
    BlockKind.INSERT: STATEMENTS,
}
_AFTER_OPERAND = {"update": "set", "delete": "where", "limit": "offset", "offset": "limit"}
"""What follows these words and the type or number behind them."""
_BEFORE_VALUE = frozenset({"=", "!=", "<", "<=", ">", ">=", "contains", "starts_with", "in"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A text that can replace the unfinished word."""

    text: str
    note: str = ""
    """What it is."""


def complete(text: str, catalog: Catalog) -> tuple[int, list[Candidate]]:
    """Candidates for the word before the cursor, and how long that word is."""
    if text.lstrip().startswith(":"):
        return _command(text.lstrip(), catalog)
    found = scan(text, catalog)
    if found.hidden:
        return 0, []
    return _fitting(_candidates(found, catalog), found.word)


def _fitting(offered: Iterable[Candidate], word: str) -> tuple[int, list[Candidate]]:
    """The candidates that begin like the word, each once, and how long the word is."""
    fitting = {c.text: c for c in offered if c.text.lower().startswith(word.lower())}
    fitting.pop(word, None)  # Offering exactly what stands there already is no help.
    return len(word), list(fitting.values())


def edge_word(edge: EdgeType) -> str:
    """An edge as a traversal writes it."""
    return edge.name[0].lower() + edge.name[1:]


# ---------------------------------------------------------------- commands


def _command(text: str, catalog: Catalog) -> tuple[int, list[Candidate]]:
    name, space, rest = text.partition(" ")
    if not space:
        return _fitting((Candidate(text=c, note=n) for c, n in COMMANDS.items()), name)
    if name == ":explain":
        return complete(rest, catalog)
    words: Iterable[str] = ()
    if name == ":schema":
        words = [t.name for t in catalog.types()]
    elif name == ":format":
        words = FORMATS
    return _fitting(_words(words), rest.lstrip())


# ---------------------------------------------------------------- queries


def _candidates(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    last, before = found.back(1), found.back(2)
    if found.word.startswith("$"):
        yield from _variables(found)
    elif last is not None and last.is_punct("."):
        if before is not None and before.kind is TokenKind.VARIABLE:
            of = found.variables.get(before.text.removeprefix("$"))
            yield from _properties(of)
    elif last is not None and last.is_punct(":"):
        yield from _after_colon(found, catalog)
    elif found.block in (None, BlockKind.BODY):
        yield from _outside(found, catalog)
    elif found.block in _PROPERTY_BLOCKS:
        yield from _assigned(found, catalog)
    elif found.block is BlockKind.CLAUSES:
        yield from _clause(found, catalog)
    elif found.block in (BlockKind.RETURN, BlockKind.ORDER):
        yield from _column(found)
    elif found.block in (BlockKind.CALL, BlockKind.OTHER):
        yield from _inside(found, catalog)


def _variables(found: CursorScan) -> Iterator[Candidate]:
    for name in found.params:
        yield Candidate(text=f"${name}", note="parameter")
    for name in found.names:
        of = found.variables.get(name)
        yield Candidate(text=f"${name}", note=of.name if of is not None else "")


def _properties(of: GraphType | None, suffix: str = "") -> Iterator[Candidate]:
    if of is None:
        return
    for prop in of.properties:
        yield Candidate(text=prop.name + suffix, note=str(prop.type))
    if "id" not in of.by_name and not suffix:
        yield Candidate(text="id", note="String")
    if isinstance(of, EdgeType):
        for name in ("from", "to"):
            yield Candidate(text=name + suffix, note="String")


def _after_colon(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    named, origin = found.back(2), found.back(3)
    if found.block is BlockKind.PARAMS:
        yield from _words(PARAMETER_TYPES, "type")
    elif found.block in _PROPERTY_BLOCKS:
        of = _type_named(found.open[-1].word, catalog)
        prop = of.by_name.get(named.text) if of is not None and named is not None else None
        yield from _values(prop.type if prop else None)
    elif origin is not None and origin.kind is TokenKind.VARIABLE:
        yield from _edges(found, origin, catalog)
    else:
        yield from _words(catalog.nodes, "node")


def _outside(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    """Between the blocks of a query: the words that begin its parts."""
    last, before = found.back(1), found.back(2)
    target = _where_target(found.tokens)
    if target is not None and not _is(last, *STATEMENTS):
        yield from _condition(found, _type_named(target, catalog), catalog)
    elif last is None or found.closed is not None or last.is_punct("{"):
        yield from _parts(found)
    elif _is(last, *STATEMENTS):
        yield from _words(catalog.nodes, "node")
        yield from _words(catalog.edges, "edge")
    elif _is(before, *_AFTER_OPERAND):
        yield Candidate(text=_AFTER_OPERAND[before.text])
    elif _is(last, "return"):
        yield Candidate(text="distinct")


def _parts(found: CursorScan) -> Iterator[Candidate]:
    if found.closed is not None and found.closed.kind in _AFTER_BLOCK:
        yield from _words(_AFTER_BLOCK[found.closed.kind])
    else:
        yield from _words(("match", *STATEMENTS))
        if not found.open:
            yield Candidate(text="query")


def _clause(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    last, before = found.back(1), found.back(2)
    if last is not None and last.kind is TokenKind.VARIABLE:
        yield from _edges(found, last, catalog)
        yield Candidate(text="is")
    elif _is(last, "<") and before is not None and before.kind is TokenKind.VARIABLE:
        yield from _edges(found, before, catalog, undirected=True)
    else:
        yield from _condition(found, None, catalog)
        if not _awaits_value(last) and not _is(last, "is") and not _is(before, "is"):
            yield from _words(("optional", "not", "exists", "count"))


def _condition(
    found: CursorScan, target: GraphType | None, catalog: Catalog
) -> Iterator[Candidate]:
    """A test in a match, or in the ``where`` of a mutation on ``target``."""
    last = found.back(1)
    if _is(last, "is"):
        yield from _words(("null", "not"))
    elif _is(last, "not") and _is(found.back(2), "is"):
        yield Candidate(text="null")
    elif _awaits_value(last):
        yield from _values(_compared(found, target))
    else:
        if last is not None and _ends_operand(last):
            yield from _words(OPERATORS)
        yield from _properties(target)
        if target is None:
            yield from _calls(TEXT_TESTS)


def _column(found: CursorScan) -> Iterator[Candidate]:
    last = found.back(1)
    if last is not None and _ends_operand(last):
        yield from _words(("as",) if found.block is BlockKind.RETURN else ("asc", "desc"))
    if found.block is BlockKind.RETURN:
        yield from _calls((*AGGREGATES, *SCORES, *TEXT_TESTS, "now"))
        yield from _words(("exists", "count"))
    else:
        yield from _words(found.aliases, "column")
        yield from _calls((*SCORES, *AGGREGATES))


def _inside(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    """Between parentheses or in a list."""
    inner, last = found.open[-1], found.back(1)
    if inner.kind is BlockKind.CALL and inner.word in ("count", "sum", "avg") and _is(last, "("):
        yield Candidate(text="distinct")
    if inner.word == "rrf":
        yield from _calls(("bm25", "nearest"))
    if inner.kind is BlockKind.OTHER:
        target = _where_target(found.tokens)
        of = _type_named(target, catalog) if target is not None else None
        yield from _condition(found, of, catalog)


def _assigned(found: CursorScan, catalog: Catalog) -> Iterator[Candidate]:
    """Names of properties that are not there yet."""
    block = found.open[-1]
    of = _type_named(block.word, catalog)
    pairs = zip(found.tokens, found.tokens[1:], strict=False)
    # Reading back to the brace would be exact; names that stand elsewhere rarely repeat here.
    start = max(i for i, t in enumerate(found.tokens) if t.is_punct("{"))
    there = {a.text for a, b in list(pairs)[start:] if b.is_punct(":")}
    for candidate in _properties(of, ": "):
        name = candidate.text.removesuffix(": ")
        endpoint = name in ("from", "to") and block.kind is not BlockKind.INSERT
        if name not in there and not endpoint:
            yield candidate


# ---------------------------------------------------------------- pieces


def _edges(
    found: CursorScan, origin: Token, catalog: Catalog, *, undirected: bool = False
) -> Iterator[Candidate]:
    """Edges that start or end at a variable; all of them if its type is not known."""
    of = found.variables.get(origin.text.removeprefix("$"))
    for edge in catalog.edges.values():
        if of is not None and of.name not in (edge.source, edge.target):
            continue
        if undirected and edge.source != edge.target:
            continue
        yield Candidate(text=edge_word(edge), note=f"{edge.source} -> {edge.target}")


def _values(of: PropertyType | None) -> Iterator[Candidate]:
    if of is not None and of.enum_values is not None:
        for value in of.enum_values:
            yield Candidate(text=f'"{value}"', note="enum")
    elif of is None or of.scalar is Scalar.BOOL:
        yield from _words(("true", "false"))
    if of is None or of.scalar is Scalar.DATE:
        yield Candidate(text='date("')
    if of is None or of.scalar is Scalar.DATETIME:
        yield from (Candidate(text='datetime("'), Candidate(text="now()"))
    if of is not None and of.nullable:
        yield Candidate(text="null")


def _compared(found: CursorScan, target: GraphType | None) -> PropertyType | None:
    """The type of the property on the left of the operator that was just written."""
    name, dot, variable = found.back(2), found.back(3), found.back(4)
    of = target
    if _is(dot, ".") and variable is not None:
        of = found.variables.get(variable.text.removeprefix("$"))
    prop = of.by_name.get(name.text) if of is not None and name is not None else None
    # Comparing with null is an error, so it is not offered here.
    return (
        PropertyType(scalar=prop.type.scalar, enum_values=prop.type.enum_values)
        if prop is not None
        else None
    )


def _where_target(tokens: tuple[Token, ...]) -> str | None:
    """The type of the statement whose ``where`` the cursor is behind."""
    seen = False
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        if token.is_word("where"):
            seen = True
        elif _is(token, *STATEMENTS):
            return tokens[at + 1].text if seen and at + 1 < len(tokens) else None
        elif _is(token, "match", "return", "query"):
            return None
    return None


def _type_named(name: str, catalog: Catalog) -> GraphType | None:
    return catalog.nodes.get(name) or catalog.edge(name)


def _awaits_value(token: Token | None) -> bool:
    return token is not None and token.kind is not TokenKind.STRING and token.text in _BEFORE_VALUE


def _ends_operand(token: Token) -> bool:
    ends = token.kind in (*_VALUE_KINDS, TokenKind.VARIABLE) or token.text in (")", "]", "}")
    words = {"where", "and", "or", "not", "as", "return", "distinct"}
    return ends or (token.is_identifier and token.text not in words)


def _is(token: Token | None, *texts: str) -> TypeGuard[Token]:
    """Whether it is one of these words or signs, and no string that says so."""
    return token is not None and token.kind is not TokenKind.STRING and token.text in texts


def _words(texts: Iterable[str], note: str = "") -> Iterator[Candidate]:
    return (Candidate(text=t, note=note) for t in texts)


def _calls(names: Iterable[str]) -> Iterator[Candidate]:
    return (Candidate(text=f"{n}(", note="function") for n in names)
