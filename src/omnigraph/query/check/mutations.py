"""Statements that change the graph: ``insert``, ``upsert``, ``update``, ``delete``.

AST -> [mutations] <-> assignments, target place -> typed mutation
"""

from __future__ import annotations

import math

from omnigraph.lang.source import Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import search
from omnigraph.query.check.comparisons import conversion_hint, unknown_enum_value
from omnigraph.query.check.constants import LISTS, SINGLE, compatible, exactly
from omnigraph.query.check.context import EDGE_COLUMNS, ID_TYPE, Context
from omnigraph.query.check.places import Given, TargetPlace, assigned_value
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import EdgeType, GraphType, Property, PropertyType, Scalar
from omnigraph.schema.property_values import ValueRefused, decode_blob, nearest_f32


def check_mutation(mutation: ast.MutationBody, ctx: Context) -> typed.Mutation:
    """All statements. Only meaningful when nothing was reported."""
    _check_not_mixed(mutation, ctx)
    found = [_statement(s, ctx) for s in mutation.statements]
    return typed.Mutation(statements=tuple(s for s in found if s is not None))


def _check_not_mixed(mutation: ast.MutationBody, ctx: Context) -> None:
    deletes = [isinstance(s, ast.DeleteStatement) for s in mutation.statements]
    if any(deletes) and not all(deletes):
        other = mutation.statements[deletes.index(not deletes[0])]
        ctx.report(
            QueryCode.MIXED_MUTATION,
            other.span,
            "a query cannot delete and also insert or update",
            hint="write two queries",
        )


def _statement(statement: ast.Statement, ctx: Context) -> typed.Statement | None:
    target = _target(statement.type_name, ctx)
    if target is None:
        return None
    match statement:
        case ast.InsertStatement():
            return _insert(statement, target, ctx)
        case ast.UpdateStatement():
            assignments = check_assignments(statement, target, ctx)
            where = TargetPlace(ctx, target).condition(statement.where)
            if where is None:
                return None
            return typed.Update(
                kind=target.kind, type_name=target.name, assignments=assignments, where=where
            )
        case ast.DeleteStatement():
            where = TargetPlace(ctx, target).condition(statement.where)
            if where is None:
                return None
            return typed.Delete(kind=target.kind, type_name=target.name, where=where)


def _target(name: ast.Name, ctx: Context) -> GraphType | None:
    catalog = ctx.catalog
    # A name that is both is the node type, as everywhere.
    found = catalog.nodes.get(name.text) or catalog.edge(name.text)
    if found is None:
        hint = did_you_mean(name.text, [*catalog.nodes, *catalog.edges])
        if name.text in catalog.interfaces:
            hint = "an interface has no entities; name a node type that implements it"
        ctx.report(QueryCode.UNKNOWN_TARGET, name.span, f"unknown type `{name.text}`", hint=hint)
    return found


def _insert(statement: ast.InsertStatement, target: GraphType, ctx: Context) -> typed.Insert:
    keyed = bool(target.key) or (isinstance(target, EdgeType) and target.keyed)
    if statement.upsert and not keyed:
        ctx.report(
            QueryCode.UPSERT_WITHOUT_KEY,
            statement.type_name.span,
            f"`{target.name}` has no key to find an entity by",
            hint="use `insert`, or declare a @key in the schema",
        )
    assignments = check_assignments(statement, target, ctx)
    # What was written counts, also when its value was refused: that is reported already.
    written = {a.property.text for a in statement.assignments}
    _check_endpoints(statement, target, written, ctx)
    missing = [p for p in target.properties if p.name not in written]
    key = [p.name for p in missing if p.name in target.key]
    if key:
        ctx.report(
            QueryCode.MISSING_KEY,
            statement.type_name.span,
            f"{_listed(key)} of the key of `{target.name}` {_is(key)} not assigned",
        )
    if not statement.upsert:
        _check_required(statement, target, [p for p in missing if p.name not in key], ctx)
    return typed.Insert(
        kind=target.kind,
        type_name=target.name,
        assignments=assignments,
        upsert=statement.upsert,
    )


def _check_endpoints(
    statement: ast.InsertStatement, target: GraphType, written: set[str], ctx: Context
) -> None:
    if target.kind != "edge":
        return
    missing = [
        word for word, other in (("from", "src"), ("to", "dst")) if not written & {word, other}
    ]
    if missing:
        ctx.report(
            QueryCode.MISSING_ENDPOINT,
            statement.type_name.span,
            f"an edge `{target.name}` needs {_listed(missing)}: the id of a node",
        )


def _check_required(
    statement: ast.InsertStatement, target: GraphType, missing: list[Property], ctx: Context
) -> None:
    required = [p for p in missing if not p.type.nullable]
    if not required:
        return
    names = [p.name for p in required]
    hint = None
    if any(p.embed is not None for p in required):
        hint = "nothing computes an @embed vector on insert: assign it, or make it nullable"
    ctx.report(
        QueryCode.MISSING_PROPERTY,
        statement.type_name.span,
        f"{_listed(names)} of `{target.name}` may not be null and {_is(names)} not assigned",
        hint=hint,
    )


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{n}`" for n in names)


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


# -- assignments -----------------------------------------------------------------------------------
# ``p: value`` in inserts and updates: which column, and is it a value of its type.
#
#     mutations -> [assignments] -> typed assignments
#
# Numbers are converted here when that is exact, so that a query which cannot work is refused before
# it runs. Parameters are only compared by type: their values are checked when they are there.


def check_assignments(
    statement: ast.InsertStatement | ast.UpdateStatement, target: GraphType, ctx: Context
) -> tuple[typed.Assignment, ...]:
    """All assignments of a statement that are in order."""
    found: list[typed.Assignment] = []
    seen: set[str] = set()
    for match in statement.assignments:
        column = _column(match.property, statement, target, ctx)
        if column is None:
            assigned_value_of(match, None, ctx)
            continue
        name, of = column
        if name in seen:
            message = f"`{match.property.text}` is assigned twice"
            ctx.report(QueryCode.DUPLICATE_ASSIGNMENT, match.property.span, message)
        seen.add(name)
        value = assigned_value_of(match, of, ctx)
        if value is not None:
            found.append(typed.Assignment(column=name, value=value))
    return tuple(found)


def _column(
    name: ast.Name,
    statement: ast.InsertStatement | ast.UpdateStatement,
    target: GraphType,
    ctx: Context,
) -> tuple[str, PropertyType] | None:
    """The stored column that may be assigned under this name."""
    word = name.text
    update = isinstance(statement, ast.UpdateStatement)
    if word == "id" and word not in target.by_name:
        if target.kind == "node" and not target.key and not update:
            return "id", ID_TYPE
        return _refuse_id(name, target, ctx, update=update)
    found = ctx.column(target, word, name.span)
    if found is None:
        return None
    if update and target.kind == "edge" and word in EDGE_COLUMNS:
        message = f"the ends of an edge stay; `{word}` cannot be updated"
        hint = "delete the edge and insert another one"
        return ctx.report(QueryCode.ENDPOINT_UPDATED, name.span, message, hint=hint)
    if update and word in target.key:
        message = f"`{word}` is part of the key of `{target.name}` and cannot be updated"
        return ctx.report(QueryCode.KEY_UPDATED, name.span, message)
    return found


def _refuse_id(name: ast.Name, target: GraphType, ctx: Context, *, update: bool) -> None:
    keyed = bool(target.key) or (isinstance(target, EdgeType) and target.keyed)
    if update:
        why = "an id never changes"
    elif keyed:
        why = "it follows from the key"
    else:
        why = "edges get their id when they are written"
    message = f"the id of a `{target.name}` cannot be assigned: {why}"
    ctx.report(QueryCode.ID_ASSIGNED, name.span, message)


# ---------------------------------------------------------------- values


def assigned_value_of(
    match: ast.PropertyMatch, of: PropertyType | None, ctx: Context
) -> Given | None:
    """The value as one of the column's type; ``of`` None only looks for mistakes in it."""
    written = match.value
    if isinstance(written, ast.NullLiteral):
        return None if of is None else _null(match, of, ctx)
    if isinstance(written, ast.ListLiteral) and of is not None and of.vector_size is not None:
        return search.vector_literal(written, of.vector_size, ctx, QueryCode.ASSIGNED_TYPE)
    value = assigned_value(written, ctx, of.scalar if of is not None and of.is_list else None)
    if value is None or of is None:
        return None
    if isinstance(value, typed.Const):
        return _constant(value, of, match, ctx)
    if _takes(of, value.type):
        return value
    return _refuse(match, value.type, of, ctx)


def _null(match: ast.PropertyMatch, of: PropertyType, ctx: Context) -> typed.Const | None:
    if of.nullable:
        return typed.Const(value=None, type=of)
    message = f"`{match.property.text}` may not be null"
    return ctx.report(QueryCode.ASSIGNED_NULL, match.value.span, message)


def _takes(of: PropertyType, given: PropertyType) -> bool:
    """Whether a parameter of this type may hold values for the column."""
    if of.is_list != given.is_list or of.vector_size != given.vector_size:
        return False
    if of.scalar is Scalar.BLOB and given.scalar is Scalar.STRING:
        return True
    return compatible(of.scalar, given.scalar)


def _refuse(match: ast.PropertyMatch, given: PropertyType, of: PropertyType, ctx: Context) -> None:
    written = match.value
    ctx.report(
        QueryCode.ASSIGNED_TYPE,
        written.span,
        f"{ctx.quote(written.span)} is {str(given).removesuffix('?')}"
        f" and cannot be assigned to `{match.property.text}`",
        expected=str(of),
        hint=None if of.is_list else conversion_hint(written, of.scalar),
    )


def _constant(
    const: typed.Const, of: PropertyType, match: ast.PropertyMatch, ctx: Context
) -> typed.Const | None:
    written = match.value
    if of.scalar is Scalar.BLOB and const.type.scalar is Scalar.STRING and not const.type.is_list:
        return _blob(const, of, written, ctx)
    if const.type.is_list and of.is_list and not const.value:
        return typed.Const(value=(), type=LISTS[of.scalar])
    if not _takes(of, const.type):
        return _refuse(match, const.type, of, ctx)
    if of.enum_values is not None and const.value not in of.enum_values:
        return unknown_enum_value(const.value, of.enum_values, written.span, ctx)
    if not of.scalar.is_numeric:
        return const
    if of.is_list:
        return _numbers(const, of, written, ctx)
    number = _number(const.value, of, written.span, ctx)
    return None if number is None else typed.Const(value=number, type=SINGLE[of.scalar])


def _numbers(
    const: typed.Const, of: PropertyType, written: ast.Expr, ctx: Context
) -> typed.Const | None:
    spans = [i.span for i in written.items] if isinstance(written, ast.ListLiteral) else []
    found = [_number(v, of, s, ctx) for v, s in zip(const.value, spans, strict=True)]
    if any(n is None for n in found):
        return None
    return typed.Const(value=tuple(found), type=LISTS[of.scalar])


def _number(value: float, of: PropertyType, span: Span, ctx: Context) -> int | float | None:
    """The number in the column's type. Decimal digits may be rounded, whole numbers may not."""
    if isinstance(value, float) and of.scalar is Scalar.F32:
        single = nearest_f32(value)
        found = single if math.isfinite(single) else None
    else:
        found = exactly(value, of.scalar)
    if found is None:
        message = f"{ctx.quote(span)} is not a value of {of.scalar}"
        ctx.report(QueryCode.ASSIGNED_TYPE, span, message, expected=str(of))
    return found


def _blob(
    const: typed.Const, of: PropertyType, written: ast.Expr, ctx: Context
) -> typed.Const | None:
    try:
        return typed.Const(value=decode_blob(const.value), type=SINGLE[of.scalar])
    except ValueRefused as refused:
        return ctx.report(
            QueryCode.ASSIGNED_TYPE, written.span, str(refused), expected='`"base64:…"`'
        )
