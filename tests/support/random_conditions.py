"""Random conditions on variables in sight (needs the dev dependencies).

    random_writer -> [random_conditions] -> random_queries

Blocks inside conditions (``exists``, ``count``) are written by whoever asks for the condition: they
need the clauses that stand in ``random_queries``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omnigraph.schema.catalog import NodeType, Scalar
from support.random_worlds import EXACT
from support.random_writer import Field, Var, Writer, literal

Scope = Sequence[Var]
WriteBlock = Callable[[Scope], str | None]
"""The clauses of a block in braces, or None where no block can stand."""

_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "!=", "<=", ">=")
"""Those that keep more rows come twice."""


def condition(w: Writer, scope: Scope, block: WriteBlock, depth: int = 0) -> str:
    """A condition, with ``and``, ``or`` and ``not`` in it as it comes."""
    if depth < 2 and w.chance(25):
        word = w.pick(["and", "or", "or"])
        parts = [_operand(w, scope, block, depth) for _ in range(w.number(2, 3))]
        return f" {word} ".join(parts)
    if depth < 3 and w.chance(20):
        return f"not {_operand(w, scope, block, depth)}"
    return _leaf(w, scope, block)


def _operand(w: Writer, scope: Scope, block: WriteBlock, depth: int) -> str:
    text = condition(w, scope, block, depth + 1)
    simple = " and " not in text and " or " not in text and not text.startswith("not ")
    return text if simple and w.chance(60) else f"({text})"


def _leaf(w: Writer, scope: Scope, block: WriteBlock) -> str:
    kinds = [
        _compare_constant, _compare_constant, _compare_fields, _null_test, _in_test, _list_contains,
        _text_contains, text_search, _same_node, _flag,
    ]  # fmt: skip
    kind = w.number(0, len(kinds) + 1)
    if kind >= len(kinds):
        inside = block(scope)
        if inside is not None:
            return f"exists {inside}" if kind == len(kinds) else _count_test(w, scope, inside)
        kind = 0
    text = kinds[kind](w, scope) or _null_test(w, scope)
    if w.chance(4):
        # What a test says is a value too.
        return f"({text}) {w.pick(['is not null', 'is null', '= true', '!= false'])}"
    if w.chance(2):
        return w.pick(["1 = 1", "true", "2.5 > 3", f"{w.parameter(1)} >= 1"])
    return text


def _count_test(w: Writer, scope: Scope, block: str) -> str:
    numbers = w.fields(scope, lambda f: f.is_scalar and f.category == "number")
    if numbers and w.chance(20):
        return f"count {block} {w.pick(_COMPARISONS)} {w.pick(numbers).text}"
    if w.chance(15):
        return f"count {block} {w.pick(['in', 'not in'])} [0, 2]"
    return f"count {block} {w.pick(_COMPARISONS)} {w.number(0, 3)}"


def _scalar(field: Field) -> bool:
    return field.is_scalar


def _compare_constant(w: Writer, scope: Scope) -> str:
    field = w.pick(w.fields(scope, _scalar))
    op = w.pick(_COMPARISONS)
    other = w.constant(field)
    if field.type.scalar is Scalar.DATETIME and w.chance(30):
        other = "now()"
    # A clause that begins with a minus would belong to the clause before it.
    if w.chance(20) and not other.startswith("-"):
        return f"{other} {op} {field.text}"
    return f"{field.text} {op} {other}"


def _compare_fields(w: Writer, scope: Scope) -> str:
    left = w.pick(w.fields(scope, _scalar))
    right = w.pick(w.fields(scope, lambda f: f.is_scalar and f.category == left.category))
    return f"{left.text} {w.pick(_COMPARISONS)} {right.text}"


def _null_test(w: Writer, scope: Scope) -> str:
    word = w.pick(["is not null", "is null"])
    nullable = [v for v in scope if v.nullable]
    if nullable and w.chance(50):
        return f"${w.pick(nullable).name} {word}"
    fields = w.fields(scope, lambda f: f.is_scalar or f.is_list)
    optional = [f for f in fields if f.type.nullable or f.var.nullable]
    if optional:
        return f"{w.pick(optional).text} {word}"
    return f"{w.pick(fields).text} is not null"


def _in_test(w: Writer, scope: Scope) -> str:
    field = w.pick(w.fields(scope, _scalar))
    word = w.pick(["in", "not in"])
    values = [w.pick(w.pool(field)) for _ in range(w.number(1, 3))]
    if any(isinstance(v, float) for v in values):
        # A list has one type, and it must hold all of its numbers.
        values = [v for v in values if abs(v) <= EXACT]
    if w.chance(30):
        return f"{field.text} {word} {w.list_parameter(values)}"
    items = [literal(v) for v in values]
    if w.chance(15):
        items = w.pick([[*items, "null"], []])
    return f"{field.text} {word} [{', '.join(items)}]"


def _list_contains(w: Writer, scope: Scope) -> str | None:
    lists = w.fields(scope, lambda f: f.is_list)
    if not lists:
        return None
    field = w.pick(lists)
    alike = w.fields(scope, lambda f: f.is_scalar and f.category == field.category)
    item = w.pick(alike).text if alike and w.chance(30) else w.constant(field)
    if w.chance(20) and not item.startswith("-"):
        return f"{item} in {field.text}"
    return f"{field.text} contains {item}"


def _text_contains(w: Writer, scope: Scope) -> str:
    strings = w.fields(scope, lambda f: f.is_scalar and f.type.scalar is Scalar.STRING)
    # An enum's constants must be members, so it is only ever compared as a whole.
    free = [f for f in strings if not f.type.is_enum]
    word = w.pick(["contains", "starts_with"])
    field = w.pick(free)
    if w.chance(20):
        return f'"abcé 100" {word} {field.text}'
    if w.chance(20):
        return f"{field.text} {word} {w.pick(free).text}"
    return f"{field.text} {word} {w.constant(field)}"


def text_search(w: Writer, scope: Scope) -> str | None:
    """``search``, ``match_text`` or ``fuzzy``; None if there is no text to search."""
    fields = searchable(w, scope)
    if not fields:
        return None
    field = w.pick(fields)
    function = w.pick(["search", "match_text", "fuzzy"])
    query = text_query(w)
    edits = f", {w.number(0, 2)}" if function == "fuzzy" and w.chance(50) else ""
    return f"{function}({field.text}, {query}{edits})"


def _same_node(w: Writer, scope: Scope) -> str | None:
    nodes = [v for v in scope if v.is_node]
    pairs = [(a, b) for a in nodes for b in nodes if a.type is b.type and a.name != b.name]
    if not pairs:
        return None
    left, right = w.pick(pairs)
    return f"${left.name} {w.pick(['=', '!='])} ${right.name}"


def _flag(w: Writer, scope: Scope) -> str | None:
    flags = w.fields(scope, lambda f: f.is_scalar and f.type.scalar is Scalar.BOOL)
    return w.pick(flags).text if flags else None


# ---------------------------------------------------------------- search


def searchable(w: Writer, scope: Scope) -> list[Field]:
    """Indexed text of nodes."""

    def wanted(field: Field) -> bool:
        indexed = (field.name,) in field.var.type.indexes
        free = field.type.scalar is Scalar.STRING and not field.type.is_enum
        return isinstance(field.var.type, NodeType) and indexed and free and field.is_scalar

    found = w.fields(scope, wanted)
    # A key can be searched too, but its words are seldom those that anybody looks for.
    telling = [f for f in found if f.name not in f.var.type.key]
    return telling if telling and not w.chance(10) else found


def text_query(w: Writer) -> str:
    """What to search for. Two words at most: sums of more depend on the order of addition."""
    words = [
        "ice",
        "Harbour",
        "ice pilot",
        "ICE breaker",
        "alba",
        "pilot harbour",
        "ice",
        "cafe",
        "",
    ]
    text = w.pick(words)
    return w.parameter(text, nullable=w.chance(20)) if w.chance(40) else literal(text)
