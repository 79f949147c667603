"""Random match clauses: bindings, traversals, blocks (needs the dev dependencies).

    random_conditions -> [random_patterns] -> random_queries

Texts are well-typed by construction: every clause is written from the list of variables in sight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.schema.catalog import EdgeType, GraphType, NodeType, Scalar
from support.random_conditions import Scope, condition
from support.random_writer import (
    EDGE_NAMES,
    LOCAL_NAMES,
    NODE_NAMES,
    Field,
    Var,
    Writer,
    inner,
    literal,
)

TOP_NODES_MAX = 4
BLOCK_NODES_MAX = 2
DEPTH_MAX = 2

_BOUNDS_FROM_ONE = ("{1,1}", "{1,2}", "{1,3}", "{1,5}")
_BOUNDS = (*_BOUNDS_FROM_ONE, "{2,2}", "{2,3}", "{3,4}")


class RandomClauses:
    """The clauses of one block while they are written, and the variables they introduced."""

    def __init__(self, w: Writer, outer: Scope, *, local: bool, depth: int, nodes_max: int) -> None:
        self.w = w
        self.outer = inner(outer)
        self.own: list[Var] = []
        self.lines: list[str] = []
        self._local = local
        self._depth = depth
        self._nodes_left = nodes_max
        # Names of this block and of those inside. Clauses have no order, so a name of an inner
        # block that this one introduced later would be its variable in both places.
        self._taken: set[str] = set()

    @property
    def scope(self) -> list[Var]:
        """Everything in sight, own variables first: they are the ones to talk about."""
        return [*self.own, *self.outer]

    # ------------------------------------------------------------ bindings

    def bind(self, var_type: NodeType | None = None) -> None:
        """``$v: T { … }`` for a new variable."""
        chosen = var_type or self.w.pick(list(self.w.world.catalog.nodes.values()))
        var = self._new_node(chosen)
        self.lines.append(f"${var.name}: {chosen.name}{self._inline(var)}")

    def anonymous(self) -> None:
        """Clauses whose variables nobody can name; they only multiply rows."""
        w = self.w
        self._nodes_left -= 1
        if w.chance(50):
            chosen = w.pick(list(w.world.catalog.nodes.values()))
            self.lines.append(f"$_: {chosen.name}{self._inline(Var(name='_', type=chosen))}")
        else:
            edge = w.pick(list(w.world.catalog.edges.values()))
            self.lines.append(f"$_ {self._over(edge)} $_")

    def bind_again(self) -> None:
        """``$v: T { … }`` for a variable that is there already: only its matches count."""
        nodes = [v for v in self.scope if v.is_node and v.reachable and not v.nullable]
        if nodes:
            var = self.w.pick(nodes)
            self.lines.append(f"${var.name}: {var.type.name}{self._inline(var)}")

    def _inline(self, var: Var) -> str:
        w = self.w
        if not w.chance(15):
            return ""
        usable = w.fields([var], lambda f: f.is_scalar or f.is_list)
        chosen = {f.name: f for f in (w.pick(usable) for _ in range(w.number(1, 2)))}
        return " { " + ", ".join(f"{n}: {self._match(f)}" for n, f in chosen.items()) + " }"

    def _match(self, field: Field) -> str:
        if field.type.scalar is Scalar.DATETIME and not field.is_list and self.w.chance(30):
            return "now()"
        return self.w.constant(field)

    # ------------------------------------------------------------ traversals

    def traverse(self) -> bool:
        """A traversal from a variable in sight; False if no edge leads anywhere from here."""
        w = self.w
        nodes = [v for v in self.scope if v.is_node and v.reachable]
        ways = [
            (edge, var)
            for edge in w.world.catalog.edges.values()
            for var in nodes
            if var.type.name in (edge.source, edge.target)
        ]
        if not ways:
            return False
        edge, near = w.pick(ways)
        far_type = edge.target if near.type.name == edge.source else edge.source
        far = self._far_end(near, far_type, nodes)
        ends = (f"${near.name}", far)
        if w.chance(35):
            ends = (far, f"${near.name}")
        self.lines.append(f"{ends[0]} {self._over(edge)} {ends[1]}")
        return True

    def traverse_new(self) -> None:
        """A traversal between two new variables."""
        edge = self.w.pick(list(self.w.world.catalog.edges.values()))
        left = self._new_node(self.w.world.catalog.nodes[edge.source])
        right = self._new_node(self.w.world.catalog.nodes[edge.target])
        self.lines.append(f"${left.name} {self._over(edge)} ${right.name}")

    def _far_end(self, near: Var, far_type: str, nodes: Scope) -> str:
        w = self.w
        there = [v for v in nodes if v.type.name == far_type and v.name != near.name]
        if near.type.name == far_type and w.chance(6):
            return f"${near.name}"
        if there and w.chance(20):
            return f"${w.pick(there).name}"
        if self._nodes_left > 0 and not w.chance(15):
            return f"${self._new_node(w.world.catalog.nodes[far_type]).name}"
        if self._nodes_left > 0 or not there:
            self._nodes_left -= 1
            return "$_"
        return f"${w.pick(there).name}"

    def _over(self, edge: EdgeType) -> str:
        """The middle of a traversal: bound edge, word, direction, bounds."""
        w = self.w
        word = edge.name[0].lower() + edge.name[1:]
        if w.chance(10):
            word = word.lower()
        if edge.source == edge.target and w.chance(25):
            word = f"<{word}>"
        if w.chance(25):
            return f"${self._new_edge(edge)}:{word}"
        # An edge between two types has no second hop: there a bound above 1 finds nothing.
        bounds = _BOUNDS if edge.source == edge.target or w.chance(10) else _BOUNDS_FROM_ONE
        return word + (w.pick(bounds) if w.chance(30) else "")

    # ------------------------------------------------------------ filters and blocks

    def filter(self) -> None:
        """A condition, anywhere among the clauses."""
        text = condition(self.w, self.scope, self.inner_block)
        where = len(self.lines)
        # Anywhere, but what an optional block brings is known only behind it.
        if self.w.chance(20) and not any(v.nullable for v in self.own):
            where = self.w.number(0, len(self.lines))
        self.lines.insert(where, text)

    def block(self, word: str) -> None:
        """``not { … }`` or ``optional { … }``."""
        if self._depth >= DEPTH_MAX:
            return
        local = self._local or word == "not"
        body = self._block_body(self.scope, local=local)
        if body is None:
            return
        self.lines.append(f"{word} {{ {'  '.join(body.lines)} }}")
        if word == "optional":
            self.own += [replace(v, nullable=True, reachable=False) for v in body.own]

    def inner_block(self, scope: Scope) -> str | None:
        """The block of an ``exists`` or ``count``."""
        if self._depth >= DEPTH_MAX:
            return None
        body = self._block_body(scope, local=True)
        return None if body is None else "{ " + "  ".join(body.lines) + " }"

    def _block_body(self, scope: Scope, *, local: bool) -> RandomClauses | None:
        body = RandomClauses(
            self.w, scope, local=local, depth=self._depth + 1, nodes_max=BLOCK_NODES_MAX
        )
        if not body.correlate():
            return None
        body.extend(self.w.pick([0, 0, 1, 2]))
        self._taken |= body._taken
        return body

    def correlate(self) -> bool:
        """Begin with something that mentions a variable from outside."""
        w = self.w
        if not w.chance(25) and self.traverse():
            return True
        nodes = [v for v in self.outer if v.is_node]
        if not nodes:
            return False
        other = w.pick(nodes)
        self.bind(other.type if isinstance(other.type, NodeType) else None)
        mine = self.own[-1]
        alike = [p.name for p in mine.type.properties if _comparable(mine.type, p.name)]
        column = w.pick([*alike, "id"])
        op = w.pick(["=", "!=", "<", ">="])
        self.lines.append(f"${mine.name}.{column} {op} ${other.name}.{column}")
        return True

    def extend(self, count: int) -> None:
        """Add that many clauses of any kind."""
        for _ in range(count):
            kind = self.w.number(0, 99)
            if kind < 32:
                self.filter()
            elif kind < 68:
                self.traverse()
            elif kind < 76:
                self.bind_again()
            elif kind < 84:
                self.block("not")
            elif kind < 93:
                self.block("optional")
            elif self._nodes_left >= 2 and kind < 94:
                self.anonymous()
            elif self._nodes_left >= 2 and kind < 97:
                self.traverse_new()
            elif self._nodes_left >= 1:
                self.bind()

    # ------------------------------------------------------------ variables

    def _new_node(self, node_type: NodeType) -> Var:
        self._nodes_left -= 1
        var = Var(name=self._name(NODE_NAMES), type=node_type)
        self.own.append(var)
        return var

    def _new_edge(self, edge: EdgeType) -> str:
        if self.w.chance(10):
            return "_"
        name = self._name(EDGE_NAMES)
        self.own.append(Var(name=name, type=edge))
        return name

    def _name(self, names: Sequence[str]) -> str:
        if not self._local:
            return self.w.fresh(names)
        seen = {v.name for v in self.scope} | self._taken
        name = next(n for n in LOCAL_NAMES if n not in seen)
        self._taken.add(name)
        return name


def _comparable(graph_type: GraphType, name: str) -> bool:
    declared = graph_type.by_name[name].type
    return not declared.is_list and declared.scalar is not Scalar.VECTOR


def match_clauses(w: Writer) -> RandomClauses:
    """The clauses of ``match``."""
    clauses = RandomClauses(w, (), local=False, depth=0, nodes_max=TOP_NODES_MAX)
    if w.chance(20):
        clauses.traverse_new()
    else:
        clauses.bind()
    clauses.extend(w.pick([0, 1, 2, 3, 1, 2, 4]))
    return clauses


def vector_text(w: Writer, values: tuple[float, ...]) -> str:
    """A vector as a literal or a parameter."""
    if w.chance(50):
        return w.declare(f"Vector({len(values)})", list(values))
    return literal(values)
