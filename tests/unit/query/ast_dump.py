"""A query AST as indented text, and as plain tuples: both without places."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from omnigraph.lang.source import Span
from omnigraph.query import ast


def dump(node, indent=0):
    """One line per node: its class and its plain fields; what is absent or false is left out."""
    pad = "  " * indent
    line, below = [type(node).__name__], []
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Span) or value is None or value is False or value == ():
            continue
        if isinstance(value, ast.Name):
            line.append(f"{field.name}={value.text}")
        elif isinstance(value, tuple):
            below.append(f"{pad}  {field.name}:\n")
            below += [dump(part, indent + 2) for part in value]
        elif is_dataclass(value):
            below.append(f"{pad}  {field.name}:\n")
            below.append(dump(value, indent + 2))
        else:
            line.append(f"{field.name}={value!r}")
    return f"{pad}{' '.join(line)}\n{''.join(below)}"


def bare(node):
    """A node without places, to compare."""
    if isinstance(node, tuple):
        return tuple(bare(part) for part in node)
    if not is_dataclass(node):
        return node
    values = [(f.name, getattr(node, f.name)) for f in fields(node)]
    return (type(node).__name__, *((n, bare(v)) for n, v in values if not isinstance(v, Span)))
