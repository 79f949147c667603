"""The conditions of a block as a set: split at ``and``, each once, in an order of their own.

    filters as written -> [conditions] -> build, rules

So the order of clauses in a text has no say in its plan. First comes what costs little and leaves
few rows; what is alike in that is ordered by what it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from omnigraph.query.typed import (
    And,
    Compare,
    CountOf,
    Exists,
    Expr,
    Hop,
    InList,
    Not,
    Or,
    Pattern,
    walk,
)

EQUAL_PART = 0.05
"""Guess: the part of rows that an equality leaves."""
OTHER_PART = 0.3

_COUNTED = re.compile(r"#\d+")
"""Behind names that stand for several variables, which are counted as they appear in a text."""


def conjuncts(filters: Iterable[Expr]) -> tuple[Expr, ...]:
    """Conditions that are all true where the filters are."""
    found = tuple(dict.fromkeys(part for condition in filters for part in _split(condition)))
    if len(found) < 2:
        return found
    return tuple(sorted(found, key=lambda c: (has_block(c), part_left(c), key_of(c))))


def _split(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, And):
        for operand in condition.operands:
            yield from _split(operand)
    else:
        yield condition


def has_block(expr: Expr) -> bool:
    """Whether a block stands somewhere in the expression."""
    return any(isinstance(e, (Exists, CountOf)) for e in walk(expr))


def part_left(condition: Expr) -> float:
    """Guess: the part of rows for which a condition is true."""
    match condition:
        case Compare(op="=") | InList():
            return EQUAL_PART
        case Or(operands=operands):
            return min(1.0, sum(map(part_left, operands)))
        case And(operands=operands):
            return min(map(part_left, operands))
        case Not(operand=operand):
            return 1.0 - part_left(operand)
        case _:
            return OTHER_PART


def key_of(expr: Expr) -> str:
    """A text that tells expressions apart, whatever order their parts were written in."""
    return _COUNTED.sub("", _key(expr))


def _key(expr: Expr) -> str:
    match expr:
        case And(operands=operands) | Or(operands=operands):
            return f"{type(expr).__name__}({', '.join(sorted(map(_key, operands)))})"
        case Not(operand=operand):
            return f"Not({_key(operand)})"
        case Compare(op=op, left=left, right=right):
            return f"({_key(left)} {op} {_key(right)})"
        case Exists(block=block) | CountOf(block=block):
            return f"{type(expr).__name__}{block_key(block)}"
        case _:
            return repr(expr)


def block_key(block: Pattern) -> str:
    """The same for a block."""
    parts = [f"{node.name}: {node.type_name}" for node in block.nodes]
    parts += [hop_key(hop) for hop in block.hops]
    parts += [_key(condition) for condition in conjuncts(block.filters)]
    parts += ["optional" + block_key(inner) for inner in block.optionals]
    parts += ["not" + block_key(inner) for inner in block.negations]
    return _COUNTED.sub("", f"{{{'; '.join(sorted(parts))}}}")


def hop_key(hop: Hop) -> str:
    """The same for a traversal."""
    hops = f"{hop.edge} {hop.direction} {hop.low} {hop.high} {hop.variable}"
    return _COUNTED.sub("", f"{hops} {hop.left} {hop.right}")
