"""Statements that change the graph: ``insert``, ``upsert``, ``update``, ``delete``.

AST -> [mutations] <-> assignments, target place -> typed mutation
"""

from __future__ import annotations

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.assignments import check_assignments
from omnigraph.query.check.context import Context
from omnigraph.query.check.target_place import TargetPlace
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import EdgeType, GraphType, Property


def check_mutation(mutation: ast.Mutation, ctx: Context) -> typed.Mutation:
    """All statements. Only meaningful when nothing was reported."""
    _check_not_mixed(mutation, ctx)
    found = [_statement(s, ctx) for s in mutation.statements]
    return typed.Mutation(statements=tuple(s for s in found if s is not None))


def _check_not_mixed(mutation: ast.Mutation, ctx: Context) -> None:
    deletes = [isinstance(s, ast.Delete) for s in mutation.statements]
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
        case ast.Insert():
            return _insert(statement, target, ctx)
        case ast.Update():
            assignments = check_assignments(statement, target, ctx)
            where = TargetPlace(ctx, target).condition(statement.where)
            if where is None:
                return None
            return typed.Update(
                kind=target.kind, type_name=target.name, assignments=assignments, where=where
            )
        case ast.Delete():
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


def _insert(statement: ast.Insert, target: GraphType, ctx: Context) -> typed.Insert:
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
    statement: ast.Insert, target: GraphType, written: set[str], ctx: Context
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
    statement: ast.Insert, target: GraphType, missing: list[Property], ctx: Context
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
