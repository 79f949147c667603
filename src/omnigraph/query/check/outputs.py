"""``return``, ``order``, ``limit`` and ``offset``.

    typed pattern, AST -> [outputs] -> typed read

Aggregates and rankings are read here and nowhere else, because they are only legal as a whole
column or as a whole order key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.source import Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import search
from omnigraph.query.check.constants import single
from omnigraph.query.check.context import Context, as_nullable
from omnigraph.query.check.expressions import AGGREGATES, SCORES, arguments
from omnigraph.query.check.patterns import check_match
from omnigraph.query.check.places import MatchPlace, declared, literal_word
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import PropertyType, Scalar

_ROWS_MAX = 2**63 - 1
_SCORED = PropertyType(scalar=Scalar.F64)
_SCORE_TYPES = (typed.Bm25, typed.Nearest, typed.Rrf)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputColumn:
    """A result column on its way: the value is None when it was refused."""

    name: str | None
    value: typed.Expr | None
    at: ast.Projection


def check_read(read: ast.ReadBody, ctx: Context) -> typed.Read:
    """A whole read. Only meaningful when nothing was reported."""
    pattern, place = check_match(read, ctx)
    columns = [_column(p, place) for p in read.projections]
    _check_names(columns, ctx)
    aggregated = any(_is_call(p.value, AGGREGATES) for p in read.projections)
    if aggregated:
        _check_groups(columns, ctx)
    order = _Order(read, columns, aggregated, place).check()
    _check_scores(read, columns, order, aggregated, ctx)
    return typed.Read(
        pattern=pattern,
        outputs=tuple(_outputs(columns)),
        distinct=read.distinct,
        order=tuple(key for key in order if key is not None),
        limit=_row_count(read.limit, "limit", ctx),
        offset=_row_count(read.offset, "offset", ctx),
    )


def _is_call(expr: ast.Expr, names: dict[str, typed.AggregateFunction] | tuple[str, ...]) -> bool:
    return isinstance(expr, ast.Call) and expr.function.text in names


# ---------------------------------------------------------------- columns


def _column(projection: ast.Projection, place: MatchPlace) -> _OutputColumn:
    expr = projection.value
    if isinstance(expr, ast.Call) and expr.function.text in AGGREGATES:
        value = aggregate(expr, place)
    elif isinstance(expr, ast.Call) and expr.function.text in SCORES:
        value = search.score(expr, place)
    else:
        value = place.value(expr)
    name = projection.alias.text if projection.alias else output_name(expr)
    if name is None:
        place.ctx.report(
            QueryCode.ALIAS_NEEDED,
            expr.span,
            "this result column needs a name",
            hint=f"write `{place.ctx.quote(expr.span).strip('`')} as name`",
        )
    return _OutputColumn(name=name, value=value, at=projection)


def output_name(expr: ast.Expr) -> str | None:
    """The name of a result column without an alias; None when it needs one."""
    match expr:
        case ast.PropertyRef():
            return f"{expr.variable.text}.{expr.property.text}"
        case ast.Variable():
            return expr.name
        case ast.Call():
            return _call_name(expr)
        case _:
            return "literal" if isinstance(expr, ast.SingleLiteral | ast.ListLiteral) else None


def _call_name(expr: ast.Call) -> str | None:
    function = expr.function.text
    if function == "now" or function in SCORES:
        return function
    if function not in AGGREGATES or len(expr.args) != 1:
        return None
    operand = output_name(expr.args[0])
    distinct = "distinct " if expr.distinct else ""
    return None if operand is None else f"{function}({distinct}{operand})"


def _check_names(columns: list[_OutputColumn], ctx: Context) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name is not None and column.name in seen:
            span = column.at.alias.span if column.at.alias else column.at.span
            message = f"two result columns are called `{column.name}`"
            ctx.report(QueryCode.DUPLICATE_OUTPUT, span, message, hint="rename one: `… as name`")
        elif column.name is not None:
            seen.add(column.name)


def _check_groups(columns: list[_OutputColumn], ctx: Context) -> None:
    for column in columns:
        expr = column.at.value
        plain = isinstance(expr, ast.PropertyRef) or (
            isinstance(expr, ast.Variable) and expr.name not in ctx.params
        )
        if not plain and not _is_call(expr, AGGREGATES) and not _is_call(expr, SCORES):
            ctx.report(
                QueryCode.NOT_GROUPED,
                expr.span,
                f"{ctx.quote(expr.span)} stands beside an aggregate and cannot be grouped by",
                expected="`$v.p`, `$v` or an aggregate",
            )


def _outputs(columns: list[_OutputColumn]) -> Iterator[typed.Output]:
    for column in columns:
        if column.name is not None and column.value is not None:
            of = result_type(column.value)
            yield typed.Output(name=column.name, value=column.value, type=of)


def result_type(value: typed.Expr) -> typed.ValueType:
    """The type of a column; a test is nullable only if it can be unknown."""
    of = value.type
    if isinstance(value, _SCORE_TYPES):
        return _SCORED  # Rows without a score are not in the result.
    if isinstance(of, PropertyType) and of.scalar is Scalar.BOOL and of.nullable:
        return PropertyType(scalar=Scalar.BOOL, nullable=_may_be_null(value))
    return of


def _may_be_null(value: typed.Expr) -> bool:
    match value:
        case typed.Compare() | typed.Not() | typed.And() | typed.Or():
            return any(map(_may_be_null, typed.children(value)))
        case typed.IsNull() | typed.TextTest() | typed.Contains() | typed.Exists():
            return False
        case typed.InList(values=typed.Const(value=listed)):
            return _may_be_null(value.item) or None in listed
        case _:
            return value.type.nullable


# ---------------------------------------------------------------- order


class _Order:
    """The order keys of one read."""

    def __init__(
        self, read: ast.ReadBody, columns: list[_OutputColumn], aggregated: bool, place: MatchPlace
    ) -> None:
        self._read = read
        self._columns = columns
        self._aggregated = aggregated
        self._place = place
        self._ctx = place.ctx
        self._by_output = aggregated or read.distinct
        """Whether keys are result columns only: rows of bindings are gone by then."""

    def check(self) -> list[typed.OrderKey | None]:
        return [self._key(i, ordering) for i, ordering in enumerate(self._read.order)]

    def _key(self, index: int, ordering: ast.Ordering) -> typed.OrderKey | None:
        value = self._value(ordering.key)
        if value is None:
            return None
        if isinstance(value, _SCORE_TYPES):
            # Whatever word it has, it is the one for the best first.
            ranked = self._check_score(index, value, ordering)
            return typed.OrderKey(value=value, descending=False) if ranked else None
        if not self._check_type(value, ordering):
            return None
        descending = ordering.direction is not None and ordering.direction.text == "desc"
        return typed.OrderKey(value=value, descending=descending)

    def _value(self, expr: ast.Expr) -> typed.Expr | None:
        word = literal_word(expr)
        if word is not None and any(column.name == word for column in self._columns):
            expr = ast.NameRef(name=word, span=expr.span)
        if isinstance(expr, ast.NameRef):
            return self._named(expr)
        if isinstance(expr, ast.Call) and expr.function.text in SCORES:
            return search.score(expr, self._place)
        if isinstance(expr, ast.Call) and expr.function.text in AGGREGATES:
            if not self._aggregated:
                message = f"{self._ctx.quote(expr.span)} is not among the results"
                hint = "return it with a name, then order by the name"
                return self._ctx.report(
                    QueryCode.AGGREGATE_MISPLACED, expr.span, message, hint=hint
                )
            value = aggregate(expr, self._place)
        else:
            value = self._place.value(expr)
        if value is None or not self._by_output:
            return value
        return self._output_equal_to(value, expr)

    def _named(self, expr: ast.NameRef) -> typed.Expr | None:
        column = next((c for c in self._columns if c.name == expr.name), None)
        if column is None:
            known = [c.name for c in self._columns if c.name is not None]
            return self._ctx.report(
                QueryCode.UNKNOWN_OUTPUT,
                expr.span,
                f"`{expr.name}` is not a result column",
                hint=did_you_mean(expr.name, known) or f"write `$v.{expr.name}` for a property",
            )
        if column.value is None or not self._by_output or isinstance(column.value, _SCORE_TYPES):
            return column.value
        return typed.OutputRef(name=expr.name, type=result_type(column.value))

    def _output_equal_to(self, value: typed.Expr, expr: ast.Expr) -> typed.Expr | None:
        for column in self._columns:
            if column.name is not None and column.value == value:
                return typed.OutputRef(name=column.name, type=result_type(value))
        if all(c.value is not None for c in self._columns):
            why = "aggregates" if self._aggregated else "`distinct`"
            self._ctx.report(
                QueryCode.ORDER_NOT_OUTPUT,
                expr.span,
                f"{self._ctx.quote(expr.span)} is not among the results",
                hint=f"with {why} only result columns can be ordered by: return it too",
            )
        return None

    def _check_score(self, index: int, value: typed.Score, ordering: ast.Ordering) -> bool:
        ctx, ok = self._ctx, True
        if index > 0:
            message, at = "a ranking is the first order key or none", ordering.key.span
            ctx.report(QueryCode.SCORE_MISPLACED, at, message, hint="move it to the front")
            ok = False
        best, what = ("asc", "distance") if isinstance(value, typed.Nearest) else ("desc", "score")
        if ordering.direction is not None and ordering.direction.text != best:
            message = f"a ranking by {what} has no `{ordering.direction.text}`"
            hint = f"the best come first: write `{best}`, or leave the word out"
            ctx.report(QueryCode.SCORE_DIRECTION, ordering.direction.span, message, hint=hint)
            ok = False
        return ok

    def _check_type(self, value: typed.Expr, ordering: ast.Ordering) -> bool:
        of, ctx, at = value.type, self._ctx, ordering.key.span
        if isinstance(value, typed.Const | typed.Param | typed.Now):
            message = f"{ctx.quote(at)} is the same in every row"
            ctx.report(
                QueryCode.ORDER_CONSTANT, at, message, expected="a property or a result column"
            )
            return False
        if isinstance(of, typed.ObjectType) or of.is_list or of.scalar is Scalar.VECTOR:
            what = "a whole node" if isinstance(of, typed.ObjectType) else str(of)
            message = f"{ctx.quote(at)} is {what} and has no order"
            ctx.report(QueryCode.ORDER_TYPE, at, message, expected="a single value")
            return False
        return True


def _check_scores(
    read: ast.ReadBody,
    columns: list[_OutputColumn],
    order: list[typed.OrderKey | None],
    aggregated: bool,
    ctx: Context,
) -> None:
    """A ranking is the first order key; it may be returned if it is the same one."""
    first = order[0] if order else None
    ranked = first.value if first and isinstance(first.value, _SCORE_TYPES) else None
    if ranked is not None:
        at = read.order[0].key.span
        if isinstance(ranked, typed.Nearest | typed.Rrf) and read.limit is None:
            message = f"{ctx.quote(at)} needs a limit"
            ctx.report(QueryCode.SCORE_NEEDS_LIMIT, at, message, hint="add `limit 10`")
        _check_not_grouped(read, aggregated, at, ctx)
    for column in columns:
        if not isinstance(column.value, _SCORE_TYPES):
            continue
        if column.value != ranked and not (order and first is None):
            ctx.report(
                QueryCode.SCORE_NOT_ORDERED,
                column.at.value.span,
                "a score can be returned only if the rows are ordered by it",
                hint=f"add `order {{ {ctx.quote(column.at.value.span).strip('`')} }}`",
            )
        _check_not_grouped(read, aggregated, column.at.value.span, ctx)


def _check_not_grouped(read: ast.ReadBody, aggregated: bool, at: Span, ctx: Context) -> None:
    if aggregated or read.distinct:
        why = "aggregates" if aggregated else "`distinct`"
        message = f"{ctx.quote(at)} ranks rows and does not go together with {why}"
        ctx.report(QueryCode.SCORE_GROUPED, at, message)


# ---------------------------------------------------------------- limit, offset


def _row_count(expr: ast.Expr | None, word: str, ctx: Context) -> typed.Const | typed.Param | None:
    if expr is None:
        return None
    if isinstance(expr, ast.IntLiteral):
        if 0 <= expr.value <= _ROWS_MAX:
            return single(expr, ctx)
    elif isinstance(expr, ast.Variable):
        of = declared(expr, ctx)
        if of is None:
            return None
        if of.scalar.is_integer and not of.is_list and not of.nullable:
            return typed.Param(name=expr.name, type=of)
    return ctx.report(
        QueryCode.ROW_COUNT,
        expr.span,
        f"{ctx.quote(expr.span)} is no number of rows",
        expected=f"`{word}` and an integer from 0 to {_ROWS_MAX}, or a parameter such as `$n: I64`",
    )


# -- aggregates ------------------------------------------------------------------------------------
# ``count``, ``sum``, ``avg``, ``min`` and ``max`` as a whole result column.
#
# outputs -> [aggregates] -> typed aggregate


def aggregate(expr: ast.Call, place: MatchPlace) -> typed.AggregateCall | None:
    """One aggregate over one operand."""
    function = AGGREGATES[expr.function.text]
    if not arguments(expr, 1, 1, place.ctx):
        return None
    written = expr.args[0]
    operand = place.present(written) if function == "count" else place.value(written)
    if operand is None:
        return None
    of = _result(function, operand.type, distinct=expr.distinct)
    if of is None:
        return _refuse(function, operand.type, written, expr.distinct, place.ctx)
    return typed.AggregateCall(function=function, operand=operand, distinct=expr.distinct, type=of)


def _result(
    function: typed.AggregateFunction, of: typed.ValueType, *, distinct: bool
) -> PropertyType | None:
    """The type of the aggregate, or None when it does not work on such values."""
    if isinstance(of, typed.ObjectType):
        return typed.COUNT if function == "count" else None
    plain = not of.is_list and of.scalar is not Scalar.VECTOR
    if function == "count":
        return typed.COUNT if plain or not distinct else None
    if not plain:
        return None
    if function in ("sum", "avg"):
        return typed.FLOAT if of.scalar.is_numeric else None
    return as_nullable(of)


def _refuse(
    function: typed.AggregateFunction,
    of: typed.ValueType,
    written: ast.Expr,
    distinct: bool,
    ctx: Context,
) -> None:
    what = "a whole node" if isinstance(of, typed.ObjectType) else str(of)
    wanted = {"sum": "a number", "avg": "a number", "count": "a single value"}
    ctx.report(
        QueryCode.AGGREGATE_TYPE,
        written.span,
        f"`{function}` does not work on {ctx.quote(written.span)}, which is {what}",
        expected=wanted.get(function, "a number, text, Bool, Date or DateTime"),
        hint="`count` without `distinct` takes everything" if distinct else None,
    )
