"""A scan for an id or a whole key is a lookup."""

from __future__ import annotations

from omnigraph.query.plan.nodes import Plan, Scan, Seek
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Compare, Const, Expr, InList, Param, Prop
from omnigraph.schema.catalog import NodeType, Scalar


def seek_by_key(plan: Plan, planning: Planning) -> Plan:
    """Turn such scans into seeks."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Scan) or not step.filters:
            return step
        return sought(step, planning.catalog.nodes[step.type_name]) or step

    return bottom_up(plan, change)


def sought(scan: Scan, node: NodeType) -> Seek | None:
    """The seek that does what the scan does, if its filters name an id or a key."""
    for condition in scan.filters:
        ids = _ids(condition, node)
        if ids is not None:
            return _seek(scan, ids, (), [condition])
    equal = {c: (f, v) for f in scan.filters if (found := _equal(f, node)) for c, v in [found]}
    if node.key and all(name in equal for name in node.key):
        members = tuple(equal[name][1] for name in node.key)
        return _seek(scan, None, members, [equal[name][0] for name in node.key])
    return None


def _seek(scan: Scan, ids: Expr | None, key: tuple[Expr, ...], used: list[Expr]) -> Seek:
    return Seek(
        variable=scan.variable,
        type_name=scan.type_name,
        ids=ids,
        key=key,
        filters=tuple(f for f in scan.filters if f not in used),
    )


def _ids(condition: Expr, node: NodeType) -> Expr | None:
    """The value that the id has to equal, or the list it has to be in."""
    match condition:
        case Compare(op="=", left=Prop(column=column), right=(Const() | Param()) as value) if (
            _is_id(column, node)
        ):
            return value
        case Compare(op="=", left=(Const() | Param()) as value, right=Prop(column=column)) if (
            _is_id(column, node)
        ):
            return value
        case InList(item=Prop(column=column), values=(Const() | Param()) as values) if (
            _is_id(column, node) and values.type.scalar is Scalar.STRING
        ):
            return values
        case _:
            return None


def _is_id(column: str, node: NodeType) -> bool:
    """The column is the id, or the only member of a key whose text is the id."""
    if column == "id":
        return True
    return node.key == (column,) and node.by_name[column].type.scalar is Scalar.STRING


def _equal(condition: Expr, node: NodeType) -> tuple[str, Expr] | None:
    match condition:
        case Compare(op="=", left=Prop(column=column), right=(Const() | Param()) as value):
            pass
        case Compare(op="=", left=(Const() | Param()) as value, right=Prop(column=column)):
            pass
        case _:
            return None
    if column not in node.key or value.type.scalar is not node.by_name[column].type.scalar:
        return None
    return column, value
