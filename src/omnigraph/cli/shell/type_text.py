"""One type of a schema as `.pg` text, for looking at it."""

from __future__ import annotations

from omnigraph.cli.streams import one_line
from omnigraph.schema.catalog import EdgeType, GraphType, NodeType


def type_text(of: GraphType) -> str:
    """Its head and its properties; rules over several members are left out."""
    lines = [f"// {one_line(of.description)}"] if of.description else []
    lines.append(f"{_head(of)} {{")
    for prop in of.properties:
        marks = [
            mark
            for mark, groups in (("@key", (of.key,)), ("@unique", of.unique))
            if (prop.name,) in groups
        ]
        if (prop.name,) in of.indexes and prop.name not in of.key:
            marks.append("@index")
        about = f"  // {one_line(prop.description)}" if prop.description else ""
        lines.append(f"  {' '.join([f'{prop.name}: {prop.type}', *marks])}{about}")
    if len(of.key) > 1:
        lines.append(f"  @key({', '.join(of.key)})")
    return "\n".join([*lines, "}"]) + "\n"


def _head(of: GraphType) -> str:
    if isinstance(of, EdgeType):
        return f"edge {of.name}: {of.source} -> {of.target}"
    named = of.implements if isinstance(of, NodeType) else ()
    return f"node {of.name}" + (f" implements {', '.join(named)}" if named else "")
