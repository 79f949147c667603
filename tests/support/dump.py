"""A typed query as text: stable, indented, complete. For golden tests and for looking.

    typed query -> [dump] -> text

Constants show their type, because that is what the checker decides; a property that may be null has
a question mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

from omnigraph.query import typed

_STEP = "  "


def dump(query: typed.Query) -> str:
    """The whole query; ends with a line break."""
    return "\n".join(_query(query)) + "\n"


def _query(query: typed.Query) -> Iterator[str]:
    params = ", ".join(f"${p.name}: {p.type}" for p in query.params)
    yield f"query {query.name or '(anonymous)'}({params})"
    for word in ("description", "instruction"):
        if (text := getattr(query, word)) is not None:
            yield f"{_STEP}{word} {_quoted(text)}"
    body = query.body
    if isinstance(body, typed.Read):
        yield from _indented(_read(body))
    else:
        for statement in body.statements:
            yield from _indented(_statement(statement))
    for warning in query.warnings:
        yield f"{_STEP}warning {warning.code} {warning.message}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_STEP + line for line in lines)


def _read(read: typed.Read) -> Iterator[str]:
    yield "match"
    yield from _indented(_pattern(read.pattern))
    yield "return distinct" if read.distinct else "return"
    for output in read.outputs:
        yield f"{_STEP}{_quoted(output.name)}: {_type(output.type)} = {expression(output.value)}"
    if read.order:
        yield "order"
        for key in read.order:
            yield f"{_STEP}{expression(key.value)} {'desc' if key.descending else 'asc'}"
    for word, count in (("limit", read.limit), ("offset", read.offset)):
        if count is not None:
            yield f"{word} {expression(count)}"


def _pattern(pattern: typed.Pattern) -> Iterator[str]:
    for node in pattern.nodes:
        yield f"node {node.name}: {node.type_name}{' anonymous' if node.anonymous else ''}"
    for hop in pattern.hops:
        arrow = {"out": "->", "in": "<-", "both": "<->"}[hop.direction]
        bounds = "" if (hop.low, hop.high) == (1, 1) else f" {{{hop.low},{hop.high}}}"
        named = "" if hop.variable is None else f" as {hop.variable}"
        yield f"hop {hop.left} {arrow} {hop.right}: {hop.edge}{bounds}{named}"
    for condition in pattern.filters:
        yield f"filter {expression(condition)}"
    for word, blocks in (("optional", pattern.optionals), ("not", pattern.negations)):
        for block in blocks:
            yield f"{word} [{', '.join(block.outer)}]"
            yield from _indented(_pattern(block))


def _statement(statement: typed.Statement) -> Iterator[str]:
    target = f"{statement.kind} {statement.type_name}"
    if isinstance(statement, typed.Delete):
        yield f"delete {target}"
    else:
        word = "update" if isinstance(statement, typed.Update) else "insert"
        if isinstance(statement, typed.Insert) and statement.upsert:
            word = "upsert"
        yield f"{word} {target}"
        for a in statement.assignments:
            yield f"{_STEP}set {a.column} = {expression(a.value)}"
    if not isinstance(statement, typed.Insert):
        yield f"{_STEP}where {expression(statement.where)}"


def _type(of: typed.ValueType) -> str:
    if isinstance(of, typed.ObjectType):
        return f"{of.type_name} object{'?' if of.nullable else ''}"
    return str(of)


def expression(expr: typed.Expr) -> str:
    """An expression on one line."""
    match expr:
        case typed.Const(value=value, type=of):
            return f"{_constant(value)}:{of}"
        case typed.Param(name=name, type=of):
            return f"${name}:{of}"
        case typed.Now():
            return "now()"
        case typed.Prop(variable=variable, column=column, type=of):
            owner = f"{variable}." if variable else ""
            return f"{owner}{column}{'?' if of.nullable else ''}"
        case typed.Entity(variable=variable, type=of):
            return f"{variable}{'?' if of.nullable else ''}"
        case typed.OutputRef(name=name):
            return f"output {_quoted(name)}"
        case typed.AggregateCall(function=function, operand=operand, distinct=distinct):
            return f"{function}({'distinct ' if distinct else ''}{expression(operand)})"
        case typed.Exists(block=block):
            return f"exists {_block(block)}"
        case typed.CountOf(block=block):
            return f"count {_block(block)}"
        case _:
            return _search(expr) or _test(expr)


def _test(expr: typed.Expr) -> str:
    match expr:
        case typed.Compare(op=op, left=left, right=right):
            return f"({expression(left)} {op} {expression(right)})"
        case typed.Contains(values=values, item=item):
            return f"({expression(values)} has {expression(item)})"
        case typed.InList(item=item, values=values):
            return f"({expression(item)} in {expression(values)})"
        case typed.TextTest(kind=kind, text=text, part=part):
            return f"({expression(text)} {kind} {expression(part)})"
        case typed.IsNull(operand=operand):
            return f"({expression(operand)} is null)"
        case typed.Not(operand=operand):
            return f"(not {expression(operand)})"
        case typed.And(operands=operands):
            return f"({' and '.join(map(expression, operands))})"
        case typed.Or(operands=operands):
            return f"({' or '.join(map(expression, operands))})"
        case _:
            return repr(expr)


def _search(expr: typed.Expr) -> str | None:
    match expr:
        case typed.TextMatch(kind=kind, variable=variable, column=column, query=query):
            edits = "" if expr.edits is None else f", {expression(expr.edits)}"
            return f"{kind}({variable}.{column}, {expression(query)}{edits})"
        case typed.Bm25(variable=variable, column=column, query=query):
            return f"bm25({variable}.{column}, {expression(query)})"
        case typed.Nearest(variable=variable, column=column, query=query):
            return f"nearest({variable}.{column}, {expression(query)})"
        case typed.Rrf(arms=(one, other), k=k):
            return f"rrf({expression(one)}, {expression(other)}, {expression(k)})"
        case _:
            return None


def _block(block: typed.Pattern) -> str:
    parts = "; ".join(line.strip() for line in _pattern(block))
    return f"[{', '.join(block.outer)}] {{ {parts} }}"


def _constant(value: Any) -> str:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return f"[{', '.join(map(_constant, items))}]"
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    return "null" if value is None else repr(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
