"""The whole way of one query through the checker, as a table of contents.

AST -> declare -> patterns -> outputs -> typed query
               -> mutations ----------->
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.context import Context
from omnigraph.query.check.mutations import check_mutation
from omnigraph.query.check.outputs import check_read
from omnigraph.query.codes import QueryCode, QueryFindings
from omnigraph.schema.catalog import Catalog, PropertyType, Scalar
from omnigraph.schema.words import BASE_TYPES, TYPE_ALIASES, VECTOR_SIZE_MAX


def check_query(
    query: ast.QueryDecl, catalog: Catalog, findings: QueryFindings
) -> typed.Query | None:
    """The query as it runs on this schema, or None after reporting everything wrong with it."""
    ctx = Context(catalog, findings)
    params = declare_params(query.params, ctx)
    notes = {a.name.text: a.value for a in query.annotations}
    if isinstance(query.body, ast.ReadBody):
        body = check_read(query.body, ctx)
    else:
        body = check_mutation(query.body, ctx)
    if ctx.reports:
        return None
    return typed.Query(
        name=query.name.text if query.name else None,
        params=params,
        body=body,
        description=notes.get("description"),
        instruction=notes.get("instruction"),
        warnings=tuple(
            findings.source.diagnostic(
                code=str(QueryCode.UNUSED_PARAMETER),
                message=f"parameter `${param.name.text}` is never used",
                span=param.name.span,
            )
            for param in unused(query.params, ctx)
        ),
    )


# -- declare ---------------------------------------------------------------------------------------
# The head of a query: its parameters.
#
# AST -> [declare] -> context -> patterns, outputs | mutations


_SCALARS = {str(s): s for s in Scalar if s is not Scalar.VECTOR}
_NO_LIST = (Scalar.BLOB, Scalar.VECTOR)


def declare_params(
    params: Iterable[ast.ParamDefinition], ctx: Context
) -> tuple[typed.ParamDecl, ...]:
    """Enter all parameters into the context."""
    declared: list[typed.ParamDecl] = []
    for param in params:
        name = param.name.text
        found = _param_type(param.type, ctx)
        if name == "_":
            message = "a parameter needs a name; `$_` has none"
            ctx.report(QueryCode.ANONYMOUS_VALUE, param.name.span, message)
        elif name in ctx.params:
            message = f"parameter `${name}` is declared twice"
            ctx.report(QueryCode.DUPLICATE_PARAMETER, param.name.span, message)
        else:
            ctx.params[name] = found
            if found is not None:
                declared.append(typed.ParamDecl(name=name, type=found))
    return tuple(declared)


def _param_type(written: ast.ParamType, ctx: Context) -> PropertyType | None:
    word = written.base.text
    scalar = Scalar.VECTOR if word == "Vector" else _SCALARS.get(word)
    if scalar is None or (written.vector_size is not None and scalar is not Scalar.VECTOR):
        alias = TYPE_ALIASES.get(word.lower())
        return ctx.report(
            QueryCode.UNKNOWN_PARAMETER_TYPE,
            written.span,
            f"unknown type {ctx.quote(written.span)}",
            expected=f"{', '.join(BASE_TYPES)}, Vector(n), or one of them in brackets",
            hint=f"write {alias}" if alias else did_you_mean(word, BASE_TYPES),
        )
    if written.is_list and scalar in _NO_LIST:
        return ctx.report(QueryCode.LIST_ELEMENT, written.span, f"there are no lists of {scalar}")
    if scalar is Scalar.VECTOR:
        size = written.vector_size
        if size is None or not 1 <= size <= VECTOR_SIZE_MAX:
            return ctx.report(
                QueryCode.VECTOR_SIZE,
                written.span,
                f"{ctx.quote(written.span)} has no valid size",
                expected=f"Vector(n) with n from 1 to {VECTOR_SIZE_MAX}",
            )
    return PropertyType(
        scalar=scalar,
        is_list=written.is_list,
        nullable=written.nullable,
        vector_size=written.vector_size,
    )


def unused(params: Iterable[ast.ParamDefinition], ctx: Context) -> list[ast.ParamDefinition]:
    """Parameters that were declared and never read."""
    return [p for p in params if p.name.text not in ctx.used]
