"""Hypothesis strategies: random query ASTs, their tokens, and texts with white space and comments.

`files` draws an AST, `tokens_of` writes it down, `laid_out` puts anything that may stand between two
tokens between them.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random

from hypothesis import strategies as st

from omnigraph.lang.source import Span
from omnigraph.query import ast

NOWHERE = Span(start=0, end=0)
KEYWORDS = [
    *("match", "return", "order", "limit", "offset", "query", "insert", "upsert", "update"),
    *("delete", "set", "where", "as", "asc", "desc", "distinct", "optional", "exists", "count"),
    *("contains", "starts_with", "from", "to"),
]
PLAIN = [*"abcxyz", "name", "_under", "callsAt", "a1"]
OPS = ("=", "!=", "<", "<=", ">", ">=", "contains", "starts_with")
NAMES = [*PLAIN, *KEYWORDS, "true", "null", "and", "or", "not", "in", "is", "date"]
"""Where only a name can stand every word is one."""
EDGE_WORDS = [*PLAIN, *KEYWORDS, "true", "date"]
REFERENCES = [*PLAIN, *(k for k in KEYWORDS if k not in ("distinct", "asc", "desc")), "date"]
"""Bare words in expressions; the literals and connectives are none."""
FUNCTIONS = [*PLAIN, "count", "search", "exists", "limit", "not_null"]
VARIABLES = ["a", "b", "v1", "limit", "_", "not"]
TYPES = ["Vessel", "Port", "A", "T_2"]
CHARACTERS = "ab \t\n\r\"\\'/*{}()$é—\U0001f600\0//"


def name(text):
    return ast.Name(text=text, span=NOWHERE)


def make(kind, **values):
    return kind(**values, span=NOWHERE)


# ---------------------------------------------------------------- ASTs


class Maker:
    """Makes random nodes out of a source of randomness. Deep trees become ever less likely."""

    def __init__(self, random, size):
        self.random = random
        self.size = size
        """Nodes that may still be made; after that there are leaves only."""

    def one(self, words):
        return self.random.choice(words)

    def some(self, what, least, most):
        return tuple(what() for _ in range(self.random.randint(least, most)))

    def maybe(self, what):
        return what() if self.random.random() < 0.4 else None

    def yes(self):
        return self.random.random() < 0.5

    def text(self):
        return "".join(self.some(lambda: self.one(CHARACTERS), 0, 6))

    # -- expressions

    def expression(self, *, blocks=False, bare_words=False):
        self.size -= 1

        def inner():
            return self.expression(blocks=blocks, bare_words=bare_words)

        leaves = [self.literal, self.literal, self.variable, self.property_ref]
        if bare_words:
            leaves.append(lambda: make(ast.NameRef, name=self.one(REFERENCES)))
        if self.size <= 0 or self.random.random() < 0.35:
            return self.one(leaves)()
        composed = [
            lambda: make(ast.CompareExpr, op=self.one(OPS), left=inner(), right=inner()),
            lambda: make(ast.IsNullExpr, operand=inner(), negated=self.yes()),
            lambda: make(ast.In, operand=inner(), values=inner(), negated=self.yes()),
            lambda: make(ast.NotExpr, operand=inner()),
            lambda: make(ast.AndExpr, operands=self.some(inner, 2, 3)),
            lambda: make(ast.OrExpr, operands=self.some(inner, 2, 3)),
            lambda: make(ast.ListLiteral, items=self.some(inner, 0, 3)),
            lambda: self.call(self.some(inner, 0, 3)),
        ]
        if blocks:
            composed.append(lambda: make(ast.ExistsExpr, clauses=self.clauses()))
            composed.append(lambda: make(ast.CountExpr, clauses=self.clauses()))
        return self.one(composed)()

    def call(self, args):
        distinct = bool(args) and self.yes()
        function = name(self.one(FUNCTIONS))
        return make(ast.Call, function=function, args=args, distinct=distinct)

    def literal(self):
        return self.one(
            [
                lambda: make(ast.NullLiteral),
                lambda: make(ast.BoolLiteral, value=self.yes()),
                lambda: make(ast.IntLiteral, value=self.integer()),
                lambda: make(ast.FloatLiteral, value=self.float()),
                lambda: make(ast.StringLiteral, value=self.text()),
                lambda: make(ast.DateLiteral, text=self.text()),
                lambda: make(ast.DateTimeLiteral, text=self.text()),
            ]
        )()

    def integer(self):
        return self.random.randint(-1, 1) * self.random.randint(0, 10 ** self.one([1, 4, 25]))

    def float(self):
        return self.random.uniform(-1, 1) * 10 ** self.one([-300, -9, 0, 0, 3, 300])

    def variable(self):
        return make(ast.Variable, name=self.one(VARIABLES))

    def property_ref(self):
        variable, name_ = name(self.one(VARIABLES)), name(self.one(NAMES))
        return make(ast.PropertyRef, variable=variable, property=name_)

    # -- clauses

    def clauses(self):
        return self.some(self.clause, 1, 4)

    def clause(self):
        kinds = [self.binding, self.traversal, self.filter]
        if self.size > 0:
            kinds += [
                lambda: make(ast.Negation, clauses=self.clauses()),
                lambda: make(ast.OptionalBlock, clauses=self.clauses()),
            ]
        self.size -= 2
        return self.one(kinds)()

    def filter(self):
        return make(ast.FilterClause, condition=self.expression(blocks=True))

    def binding(self):
        variable, type_name = name(self.one(VARIABLES)), name(self.one(TYPES))
        matches = self.some(self.match, 0, 3)
        return make(ast.Binding, variable=variable, type_name=type_name, matches=matches)

    def match(self):
        return make(ast.PropertyMatch, property=name(self.one(NAMES)), value=self.expression())

    def traversal(self):
        high = self.maybe(lambda: self.random.randint(0, 99))
        bounds = make(ast.HopBounds, low=self.random.randint(0, 9), high=high)
        return make(
            ast.Traversal,
            source=name(self.one(VARIABLES)),
            edge_variable=self.maybe(lambda: name(self.one(VARIABLES))),
            word=name(self.one(EDGE_WORDS)),
            undirected=self.yes(),
            bounds=self.maybe(lambda: bounds),
            target=name(self.one(VARIABLES)),
        )

    # -- bodies

    def body(self):
        if self.yes():
            return self.read()
        return make(ast.MutationBody, statements=self.some(self.statement, 1, 3))

    def read(self):
        return make(
            ast.ReadBody,
            clauses=self.clauses(),
            projections=self.some(self.projection, 1, 3),
            distinct=self.yes(),
            order=self.some(self.ordering, 0, 2),
            limit=self.maybe(self.count),
            offset=self.maybe(self.count),
        )

    def projection(self):
        value = self.expression(blocks=True, bare_words=True)
        alias = self.maybe(lambda: name(self.one(NAMES)))
        return make(ast.Projection, value=value, alias=alias)

    def ordering(self):
        direction = self.maybe(lambda: name(self.one(["asc", "desc"])))
        return make(ast.Ordering, key=self.expression(bare_words=True), direction=direction)

    def count(self):
        number = make(ast.IntLiteral, value=self.random.randint(0, 10**20))
        return number if self.yes() else self.variable()

    def statement(self):
        target = name(self.one(TYPES))
        assignments = self.some(self.match, 1, 3)
        where = self.expression(bare_words=True)
        return self.one(
            [
                make(
                    ast.InsertStatement,
                    upsert=self.yes(),
                    type_name=target,
                    assignments=assignments,
                ),
                make(ast.UpdateStatement, type_name=target, assignments=assignments, where=where),
                make(ast.DeleteStatement, type_name=target, where=where),
            ]
        )

    # -- queries

    def file(self):
        if self.random.random() < 0.2:
            body = self.body()
            bare = make(ast.QueryDecl, name=None, params=(), annotations=(), body=body)
            return ast.QueryFile(queries=(bare,))
        return ast.QueryFile(queries=self.some(self.query, 1, 3))

    def query(self):
        words = [w for w in ("description", "instruction") if self.yes()]
        notes = [make(ast.QueryAnnotation, name=name(w), value=self.text()) for w in words]
        return make(
            ast.QueryDecl,
            name=name(self.one(NAMES)),
            params=self.some(self.param, 0, 3),
            annotations=tuple(notes),
            body=self.body(),
        )

    def param(self):
        is_list = self.yes()
        size = None if is_list else self.maybe(lambda: self.random.randint(0, 999))
        base = "Vector" if size is not None else self.one(["String", "I64", "date", "X"])
        kind = make(
            ast.ParamType,
            base=name(base),
            is_list=is_list,
            vector_size=size,
            nullable=self.yes(),
        )
        return make(ast.ParamDefinition, name=name(self.one(VARIABLES)), type=kind)


seeds = st.integers(0, 2**32).map(Random)
"""Drawing one number and no more: a tree takes hundreds of choices, each slow to draw."""
files = st.builds(Maker, seeds, st.integers(1, 60)).map(Maker.file)


# ---------------------------------------------------------------- tokens

TESTS = (ast.CompareExpr, ast.In, ast.IsNullExpr)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def tokens_of(node):
    """The tokens of a node, each as it is written."""
    match node:
        case ast.QueryFile():
            return [t for q in node.queries for t in tokens_of(q)]
        case ast.QueryDecl(name=None):
            return tokens_of(node.body)
        case ast.QueryDecl():
            head = ["query", node.name.text, "(", *_listed(node.params), ")"]
            for note in node.annotations:
                head += ["@", note.name.text, "(", quoted(note.value), ")"]
            return [*head, "{", *tokens_of(node.body), "}"]
        case ast.ParamDefinition():
            return [f"${node.name.text}", ":", *tokens_of(node.type)]
        case ast.ParamType():
            size = [] if node.vector_size is None else ["(", str(node.vector_size), ")"]
            word = ["[", node.base.text, "]"] if node.is_list else [node.base.text, *size]
            return [*word, *(["?"] if node.nullable else [])]
        case ast.ReadBody() | ast.MutationBody():
            return _body(node)
        case ast.InsertStatement() | ast.UpdateStatement() | ast.DeleteStatement():
            return _statement(node)
        case ast.Projection():
            return [*tokens_of(node.value), *(["as", node.alias.text] if node.alias else [])]
        case ast.Ordering():
            return [*tokens_of(node.key), *([node.direction.text] if node.direction else [])]
        case ast.PropertyMatch():
            return [node.property.text, ":", *tokens_of(node.value)]
        case (
            ast.Binding()
            | ast.Traversal()
            | ast.Negation()
            | ast.OptionalBlock()
            | ast.FilterClause()
        ):
            return _clause(node)
        case _:
            return _expression(node)


def _listed(nodes):
    out = []
    for node in nodes:
        out += [*([","] if out else []), *tokens_of(node)]
    return out


def _block(nodes):
    return ["{", *(t for n in nodes for t in tokens_of(n)), "}"]


def _body(node):
    if isinstance(node, ast.MutationBody):
        return [t for s in node.statements for t in tokens_of(s)]
    out = ["match", *_block(node.clauses), "return", *(["distinct"] if node.distinct else [])]
    out += ["{", *_listed(node.projections), "}"]
    if node.order:
        out += ["order", "{", *_listed(node.order), "}"]
    for word in ("limit", "offset"):
        if getattr(node, word) is not None:
            out += [word, *tokens_of(getattr(node, word))]
    return out


def _statement(node):
    where = ["where", *tokens_of(node.where)] if not isinstance(node, ast.InsertStatement) else []
    if isinstance(node, ast.DeleteStatement):
        return ["delete", node.type_name.text, *where]
    values = ["{", *_listed(node.assignments), "}"]
    if isinstance(node, ast.UpdateStatement):
        return ["update", node.type_name.text, "set", *values, *where]
    return ["upsert" if node.upsert else "insert", node.type_name.text, *values]


def _clause(node):
    match node:
        case ast.Binding():
            inline = ["{", *_listed(node.matches), "}"] if node.matches else []
            return [f"${node.variable.text}", ":", node.type_name.text, *inline]
        case ast.Traversal():
            edge = [f"${node.edge_variable.text}", ":"] if node.edge_variable else []
            word = ["<", node.word.text, ">"] if node.undirected else [node.word.text]
            high = (
                [] if node.bounds is None or node.bounds.high is None else [str(node.bounds.high)]
            )
            hops = ["{", str(node.bounds.low), ",", *high, "}"] if node.bounds else []
            return [f"${node.source.text}", *edge, *word, *hops, f"${node.target.text}"]
        case ast.Negation():
            return ["not", *_block(node.clauses)]
        case ast.OptionalBlock():
            return ["optional", *_block(node.clauses)]
        case _:
            written = tokens_of(node.condition)
            # A condition that starts like another clause, or like a subtraction, needs parentheses.
            clear = written[0].isidentifier() and written[0] != "not"
            return written if clear else ["(", *written, ")"]


def _expression(node):
    match node:
        case ast.NullLiteral():
            return ["null"]
        case ast.BoolLiteral():
            return ["true" if node.value else "false"]
        case ast.IntLiteral():
            return [*(["-"] if node.value < 0 else []), str(abs(node.value))]
        case ast.FloatLiteral():
            digits = f"{Decimal(repr(abs(node.value))):f}"
            minus = ["-"] if str(node.value).startswith("-") else []
            return [*minus, digits if "." in digits else f"{digits}.0"]
        case ast.StringLiteral():
            return [quoted(node.value)]
        case ast.DateLiteral():
            return ["date", "(", quoted(node.text), ")"]
        case ast.DateTimeLiteral():
            return ["datetime", "(", quoted(node.text), ")"]
        case ast.ListLiteral():
            return ["[", *_listed(node.items), "]"]
        case ast.Variable():
            return [f"${node.name}"]
        case ast.PropertyRef():
            return [f"${node.variable.text}", ".", node.property.text]
        case ast.NameRef():
            return [node.name]
        case ast.Call():
            word = ["distinct"] if node.distinct else []
            return [node.function.text, "(", *word, *_listed(node.args), ")"]
        case ast.ExistsExpr():
            return ["exists", *_block(node.clauses)]
        case ast.CountExpr():
            return ["count", *_block(node.clauses)]
        case _:
            return _condition(node)


def _condition(node):
    match node:
        case ast.CompareExpr():
            return [*_inside(node.left), node.op, *_inside(node.right)]
        case ast.IsNullExpr():
            return [*_inside(node.operand), "is", *(["not"] if node.negated else []), "null"]
        case ast.In():
            negated = ["not"] if node.negated else []
            return [*_inside(node.operand), *negated, "in", *_inside(node.values)]
        case ast.NotExpr():
            return ["not", *_inside(node.operand, *TESTS, ast.NotExpr)]
        case ast.AndExpr() | ast.OrExpr():
            word = "and" if isinstance(node, ast.AndExpr) else "or"
            free = (*TESTS, ast.NotExpr) if word == "and" else (*TESTS, ast.NotExpr, ast.AndExpr)
            out = []
            for operand in node.operands:
                out += [*([word] if out else []), *_inside(operand, *free)]
            return out
        case _:
            raise TypeError(node)


def _inside(node, *free):
    """A part of an expression, in parentheses unless it binds as strongly as it has to."""
    loose = isinstance(node, (*TESTS, ast.NotExpr, ast.AndExpr, ast.OrExpr)) and not isinstance(
        node, free
    )
    return ["(", *tokens_of(node), ")"] if loose else tokens_of(node)


# ---------------------------------------------------------------- texts

GAPS = [" ", " ", " ", "\n", "\n    ", "\n\n\n", "\t", "\r\n"]


@st.composite
def laid_out(draw, tokens, *, comments=True):
    """These tokens with random white space and numbered comments between them."""
    out, number = [], 0
    random = draw(seeds)
    rate = draw(st.sampled_from([0, 0.05, 0.3])) if comments else 0
    for token in [*tokens, ""]:
        out.append(random.choice(GAPS))
        while random.random() < rate:
            number += 1
            far = " " * random.randint(0, 30)
            shapes = ["/* {} */", "// {}\n", f"/* {{}}\n\n{far}x */", "/*{}*/", "//{}  \r\n"]
            out += [random.choice(shapes).format(number), random.choice(GAPS)]
        out.append(token)
    return "".join(out)


@st.composite
def query_texts(draw, *, comments=True):
    """The text of a random query file."""
    return draw(laid_out(tokens_of(draw(files)), comments=comments))
