"""Blocks: ``match``, ``optional``, ``not``, ``exists``, ``count``, all by one procedure.

    AST clauses -> [patterns] <-> traversals, expressions -> typed pattern

The order of bindings, traversals, filters and negations means nothing. Only ``optional`` has a
place: what it brings is seen behind it, and cannot be required there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.comparisons import (
    check_enum,
    conversion_hint,
    element_test,
    incomparable,
    single_type,
)
from omnigraph.query.check.constants import compatible, fitted
from omnigraph.query.check.context import Bound, Context, Scope
from omnigraph.query.check.expressions import conjuncts
from omnigraph.query.check.places import BlockCheck, MatchPlace, given_value
from omnigraph.query.check.traversals import TraversalStep, resolve
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import NodeType, Scalar

BlockKind = Literal["optional", "not", "exists", "count"]
Required = ast.Binding | ast.Traversal


def check_match(read: ast.ReadBody, ctx: Context) -> tuple[typed.Pattern, MatchPlace]:
    """The pattern of a read, and the place in which its results are written."""
    scope, reports = Scope(ctx), ctx.reports
    ctx.reserve(n.text for n in _bound_names(read.clauses))
    pattern = _Block(read.clauses, scope, ctx).check()
    if not pattern.nodes and ctx.reports == reports:
        ctx.report(
            QueryCode.NOTHING_BOUND,
            read.clauses[0].span if read.clauses else read.span,
            "this match binds no variable",
            hint="name what is looked for: `$v: SomeType`",
        )
    return pattern, MatchPlace(ctx, scope, _check_inner(ctx))


def _check_inner(ctx: Context) -> BlockCheck:
    def check(expr: ast.ExistsExpr | ast.CountExpr, outer: Scope) -> typed.Pattern:
        kind: BlockKind = "exists" if isinstance(expr, ast.ExistsExpr) else "count"
        return check_block(expr, kind, outer, ctx)[0]

    return check


def check_block(
    block: ast.ExistsExpr | ast.CountExpr | ast.Negation | ast.OptionalBlock,
    kind: BlockKind,
    outer: Scope,
    ctx: Context,
) -> tuple[typed.Pattern, Scope]:
    """An inner block, which must have something to do with the rows around it."""
    scope = Scope(ctx, outer, local=kind != "optional")
    reports = ctx.reports
    pattern = _Block(block.clauses, scope, ctx).check()
    # Whether a name that means nothing was meant to be an outer variable cannot be known.
    if not scope.mentioned and ctx.reports == reports:
        ctx.report(
            QueryCode.BLOCK_WITHOUT_OUTER,
            block.span,
            f"this `{kind}` block mentions no variable from around it",
            hint="without one it is the same for every row",
        )
    return pattern, scope


class _Block:
    """One block while it is being checked."""

    def __init__(self, clauses: tuple[ast.Clause, ...], scope: Scope, ctx: Context) -> None:
        self._clauses = clauses
        self._scope = scope
        self._ctx = ctx
        self._place = MatchPlace(ctx, scope, _check_inner(ctx))
        self._introduced: list[Bound] = []
        """Nodes, in the order of their first mention."""
        self._bindings: dict[int, Bound | None] = {}
        """By identity of the clause: `$_` is another variable each time."""
        self._steps: list[TraversalStep] = []

    def check(self) -> typed.Pattern:
        self._look_for_optionals()
        for clause in self._clauses:
            if isinstance(clause, ast.Binding):
                self._bindings[id(clause)] = self._binding(clause)
            elif isinstance(clause, ast.Traversal):
                self._steps.append(self._step(clause))
        hops = resolve(self._steps, self._ctx)
        optionals: list[typed.Pattern] = []
        filters: list[typed.Expr] = []
        negations: list[typed.Pattern] = []
        # In the order of the text: an optional block is seen by what stands behind it.
        for clause in self._clauses:
            if isinstance(clause, ast.OptionalBlock):
                optionals.append(self._optional(clause))
            elif isinstance(clause, ast.Negation):
                negations.append(check_block(clause, "not", self._scope, self._ctx)[0])
            else:
                filters += self._filters(clause)
        return typed.Pattern(
            nodes=tuple(
                typed.NodeVar(name=b.name, type_name=b.type.name, anonymous=b.anonymous)
                for b in self._introduced
                if b.type is not None
            ),
            hops=hops,
            filters=tuple(filters),
            optionals=tuple(optionals),
            negations=tuple(negations),
            outer=tuple(sorted(self._scope.mentioned)),
        )

    # -------------------------------------------------------- variables

    def _look_for_optionals(self) -> None:
        """A required clause cannot rest on a variable that an earlier optional block brings."""
        required: set[str] = set()
        optional: set[str] = set()
        for clause in self._clauses:
            if isinstance(clause, ast.OptionalBlock):
                optional.update(
                    n.text
                    for n in _bound_names(clause.clauses)
                    if n.text not in required and not self._scope.sees(n.text)
                )
            elif isinstance(clause, Required):
                for name in _names_of(clause):
                    if name.text in optional:
                        self._required_optional(name)
                        optional.discard(name.text)
                    required.add(name.text)
        self._scope.coming = optional - required

    def _required_optional(self, name: ast.Name) -> None:
        self._ctx.report(
            QueryCode.OPTIONAL_VARIABLE_REQUIRED,
            name.span,
            f"`${name.text}` comes from an `optional` block and cannot be required here",
            hint="move this clause into the block, or in front of it to require it always",
        )

    def _node(self, name: ast.Name) -> Bound | None:
        """The node variable of this name, new if it was not mentioned yet."""
        if name.text in self._ctx.params:
            return self._parameter_name(name)
        bound = None if name.text == "_" else self._scope.find(name.text)
        if bound is None:
            bound = self._scope.add(name.text, "node")
            self._introduced.append(bound)
        elif bound.kind == "edge":
            message = f"`${name.text}` is an edge and cannot be a node as well"
            return self._ctx.report(QueryCode.EDGE_VARIABLE_TAKEN, name.span, message)
        return bound

    def _edge(self, name: ast.Name | None) -> Bound | None:
        if name is None or name.text == "_":
            return None
        if name.text in self._ctx.params:
            return self._parameter_name(name)
        if self._scope.sees(name.text):
            message = f"`${name.text}` is taken; an edge variable needs a new name"
            return self._ctx.report(QueryCode.EDGE_VARIABLE_TAKEN, name.span, message)
        return self._scope.add(name.text, "edge")

    def _parameter_name(self, name: ast.Name) -> None:
        self._ctx.used.add(name.text)
        self._ctx.report(
            QueryCode.VARIABLE_IS_PARAMETER,
            name.span,
            f"`${name.text}` is a parameter already",
            hint="rename the variable or the parameter",
        )

    # -------------------------------------------------------- clauses

    def _binding(self, clause: ast.Binding) -> Bound | None:
        found = self._node_type(clause.type_name)
        bound = self._node(clause.variable)
        if bound is None:
            return None
        if not bound.settled:
            bound.settle(found)
        elif bound.type is None:
            bound.type = found
        elif found is not None and bound.type is not found:
            return self._ctx.report(
                QueryCode.VARIABLE_RETYPED,
                clause.span,
                f"`${clause.variable.text}` is a {bound.type.name} already, not a {found.name}",
            )
        return bound

    def _node_type(self, name: ast.Name) -> NodeType | None:
        catalog = self._ctx.catalog
        found = catalog.nodes.get(name.text)
        if found is None:
            hint = did_you_mean(name.text, catalog.nodes)
            if name.text in catalog.interfaces:
                hint = "an interface cannot be matched; name a node type that implements it"
            elif catalog.edge(name.text) is not None:
                word = name.text[0].lower() + name.text[1:]
                hint = f"it is an edge; write `$a {word} $b`"
            message = f"unknown node type `{name.text}`"
            self._ctx.report(QueryCode.UNKNOWN_NODE_TYPE, name.span, message, hint=hint)
        return found

    def _step(self, clause: ast.Traversal) -> TraversalStep:
        left, right = self._node(clause.source), self._node(clause.target)
        return TraversalStep(
            clause=clause, left=left, right=right, edge=self._edge(clause.edge_variable)
        )

    def _optional(self, clause: ast.OptionalBlock) -> typed.Pattern:
        pattern, inner = check_block(clause, "optional", self._scope, self._ctx)
        for name, bound in inner.own.items():
            self._scope.own[name] = bound.as_optional()
            self._scope.coming.discard(name)
        return pattern

    def _filters(
        self, clause: ast.Binding | ast.Traversal | ast.FilterClause
    ) -> Iterator[typed.Expr]:
        if isinstance(clause, ast.FilterClause):
            found = self._place.condition(clause.condition)
            if found is not None:
                yield from conjuncts((found,))
        elif isinstance(clause, ast.Binding):
            bound = self._bindings[id(clause)]
            if bound is not None and bound.optional and bound.type is not None:
                # A binding asks for a node; a variable that may be null has to have one.
                whole = typed.ObjectType(type_name=bound.type.name, nullable=True)
                yield typed.Not(
                    operand=typed.IsNull(operand=typed.Entity(variable=bound.name, type=whole))
                )
            tests = [self._inline(match, bound) for match in clause.matches]
            yield from (test for test in tests if test is not None)

    def _inline(self, match: ast.PropertyMatch, bound: Bound | None) -> typed.Expr | None:
        """``p: value`` inside a binding: equality, or membership when ``p`` is a list."""
        ctx, word = self._ctx, match.property
        value = given_value(match.value, ctx)
        if bound is None or bound.type is None:
            return None
        found = ctx.column(bound.type, word.text, word.span, nullable=bound.optional)
        if found is None or value is None:
            return None
        column, of = found
        if of.scalar is Scalar.BLOB:
            message = f"{bound.type.name}.{word.text} is a Blob and cannot be compared"
            return ctx.report(QueryCode.BLOB_READ, match.span, message)
        prop = typed.Prop(variable=bound.name, column=column, type=of)
        if of.is_list:
            return element_test(of, prop, value, match.value, ctx)
        name = ast.NameRef(name=word.text, span=word.span)
        other = single_type(value, match.value, ctx)
        if single_type(prop, name, ctx) is None or other is None:
            return None
        if not compatible(of.scalar, other.scalar):
            hint = conversion_hint(match.value, of.scalar)
            return incomparable(match.span, word.span, of, other, ctx, hint=hint)
        if not check_enum(value, of, match.value, ctx):
            return None
        return typed.Compare(op="=", left=prop, right=fitted(value, of))


def _names_of(clause: ast.Binding | ast.Traversal) -> Iterator[ast.Name]:
    if isinstance(clause, ast.Binding):
        found: tuple[ast.Name | None, ...] = (clause.variable,)
    else:
        found = (clause.source, clause.edge_variable, clause.target)
    return (n for n in found if n is not None and n.text != "_")


def _bound_names(clauses: tuple[ast.Clause, ...]) -> Iterator[ast.Name]:
    """Names that an optional block introduces, its own optional blocks included."""
    for clause in clauses:
        if isinstance(clause, Required):
            yield from _names_of(clause)
        elif isinstance(clause, ast.OptionalBlock):
            yield from _bound_names(clause.clauses)
