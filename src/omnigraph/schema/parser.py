"""`.pg` text to AST by recursive descent.

    .pg text -> [parser] -> AST -> check -> catalog

A mistake ends the declaration it is in; reading goes on at the next word that starts one, so every
broken declaration is reported in one go. Keywords are contextual: a property may be called `node`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from omnigraph.lang.cursor import Cursor, ParseFailure, Token, TokenKind
from omnigraph.lang.lexer import CUTS_OFF, LexicalKind, holes, refuse_exponent, tokenize
from omnigraph.lang.suggest import did_you_mean, misspelling_of
from omnigraph.schema import ast
from omnigraph.schema.codes import SchemaCode, SchemaFindings
from omnigraph.schema.words import (
    ANNOTATIONS,
    BASE_TYPES,
    CONSTRAINTS,
    DECLARATIONS,
    FOREIGN_ANNOTATIONS,
    TYPE_SHAPES,
)

_NUMBERS = (TokenKind.INT, TokenKind.FLOAT)
_LEXICAL_CODES = {kind: SchemaCode[kind.name] for kind in LexicalKind}


def parse(findings: SchemaFindings, *, accepted: bool = False) -> tuple[ast.SchemaDecl, bool]:
    """The AST of the source in ``findings``, and whether all of the text could be read.

    What could not be read is in ``findings`` and missing in the AST. A text that a graph has
    ``accepted`` keeps annotations that are refused today.
    """
    tokens, problems = tokenize(findings.source)
    for p in problems:
        code = _LEXICAL_CODES[p.kind]
        findings.add(code, p.span, p.message, **p.help)
    cut_off = any(p.kind in CUTS_OFF for p in problems)
    parser = _Parser(Cursor(tokens), findings, cut_off=cut_off, holes=holes(tokens, problems))
    parser.accepted = accepted
    return parser.schema(), parser.complete and not problems


class _Parser:
    def __init__(
        self, cursor: Cursor, findings: SchemaFindings, *, cut_off: bool, holes: frozenset[int]
    ) -> None:
        self.cursor = cursor
        self.findings = findings
        self.cut_off = cut_off
        self.holes = holes
        self.complete = True
        self.accepted = False

    # -- declarations ----------------------------------------------------------------------------

    def schema(self) -> ast.SchemaDecl:
        found: list[ast.Declaration] = []
        while not self.cursor.at_end:
            try:
                found.append(self._declaration())
            except ParseFailure as failure:
                self.complete = False
                self._report(failure)
                self._skip_to_declaration()
        return ast.SchemaDecl(
            interfaces=tuple(d for d in found if isinstance(d, ast.InterfaceDecl)),
            nodes=tuple(d for d in found if isinstance(d, ast.NodeDecl)),
            edges=tuple(d for d in found if isinstance(d, ast.EdgeDecl)),
        )

    def _declaration(self) -> ast.Declaration:
        word = self.cursor.take()
        if word.is_word("interface"):
            return self._interface()
        if word.is_word("node"):
            return self._node()
        if word.is_word("edge"):
            return self._edge()
        raise ParseFailure(
            f"unexpected {word}",
            word.span,
            code=SchemaCode.UNKNOWN_DECLARATION,
            expected="`interface`, `node` or `edge`",
            hint=did_you_mean(word.text, DECLARATIONS),
        )

    def _interface(self) -> ast.InterfaceDecl:
        name = self._type_name()
        properties, _ = self._body(name, constraints_allowed=False)
        return ast.InterfaceDecl(name=name, properties=properties)

    def _node(self) -> ast.NodeDecl:
        name = self._type_name()
        annotations = self._annotations()
        self._refuse_constraint_in_header()
        implements: tuple[ast.Name, ...] = ()
        if self.cursor.accept_word("implements"):
            implements = self.cursor.separated(self._type_name)
            if self.cursor.at_punct("@"):
                hint = "move it between the name and `implements`"
                self.cursor.fail("`{`", code=SchemaCode.HEADER_ORDER, hint=hint)
        properties, constraints = self._body(name)
        return ast.NodeDecl(
            name=name,
            properties=properties,
            constraints=constraints,
            annotations=annotations,
            implements=implements,
        )

    def _edge(self) -> ast.EdgeDecl:
        name = self._type_name()
        self.cursor.expect_punct(":")
        source = self._type_name()
        self.cursor.expect_punct("->")
        target = self._type_name()
        card = self._card() if self._at_annotation("card") else None
        annotations = self._annotations()
        self._refuse_constraint_in_header()
        properties: tuple[ast.PropertyDecl, ...] = ()
        constraints: tuple[ast.ConstraintDecl, ...] = ()
        if self.cursor.at_punct("{"):
            properties, constraints = self._body(name)
        return ast.EdgeDecl(
            name=name,
            source=source,
            target=target,
            properties=properties,
            constraints=constraints,
            annotations=annotations,
            card=card,
        )

    def _card(self) -> ast.CardDecl:
        start = self.cursor.take()
        self.cursor.take()
        self.cursor.expect_punct("(")
        self._refuse_exponent()
        low = int(self.cursor.expect_kind(TokenKind.INT).text)
        self.cursor.expect_punct("..", hint="a cardinality is a range, for example `0..1` or `1..`")
        self._refuse_exponent()
        at_high = self.cursor.here.kind is TokenKind.INT
        high = int(self.cursor.take().text) if at_high else None
        end = self.cursor.expect_punct(")")
        return ast.CardDecl(low=low, high=high, span=start.span.to(end.span))

    def _body(
        self, owner: ast.Name, *, constraints_allowed: bool = True
    ) -> tuple[tuple[ast.PropertyDecl, ...], tuple[ast.ConstraintDecl, ...]]:
        self.cursor.expect_punct("{")
        properties: list[ast.PropertyDecl] = []
        constraints: list[ast.ConstraintDecl] = []
        while not self.cursor.accept_punct("}"):
            if self.cursor.at_end or self._at_declaration():
                self.cursor.fail(
                    f"`}}` that closes the body of {owner}", code=SchemaCode.BODY_NOT_CLOSED
                )
            elif not self.cursor.at_punct("@"):
                properties.append(self._property())
            elif self._refused_line():
                continue
            elif not constraints_allowed:
                hint = "constraints over several properties belong into the nodes"
                self.cursor.fail("a property", code=SchemaCode.CONSTRAINT_IN_INTERFACE, hint=hint)
            else:
                constraints.append(self._constraint())
        return tuple(properties), tuple(constraints)

    # -- properties and types --------------------------------------------------------------------

    def _property(self) -> ast.PropertyDecl:
        token = self.cursor.here
        if token.is_type_name:
            hint = f"write `{token.text[0].lower()}{token.text[1:]}`"
            expected = "a property name in lower case"
            self.cursor.fail(expected, code=SchemaCode.PROPERTY_NAME_CASE, hint=hint)
        if not token.is_identifier:
            comma = token.is_punct(",")
            hint = "properties are separated by white space only" if comma else None
            self.cursor.fail("a property, a constraint or `}`", hint=hint)
        name = self.cursor.take().name
        self.cursor.expect_punct(":")
        type_ref = self._type()
        return ast.PropertyDecl(name=name, type=type_ref, annotations=self._annotations())

    def _type(self) -> ast.TypeRef:
        start = self.cursor.here
        if self.cursor.accept_punct("["):
            base = self._list_element()
            self.cursor.expect_punct("]")
            return self._finish_type("list", start, base)
        if start.kind is not TokenKind.WORD:
            self.cursor.fail("a type")
        base = self.cursor.take().name
        if base.text == "enum" and self.cursor.accept_punct("("):
            values = self.cursor.separated(self._enum_value)
            self.cursor.expect_punct(")")
            return self._finish_type("enum", start, base, enum_values=values)
        if base.text == "Vector":
            self.cursor.expect_punct("(", hint="a vector has a size, for example `Vector(8)`")
            size = int(self.cursor.expect_kind(TokenKind.INT).text)
            self.cursor.expect_punct(")")
            return self._finish_type("vector", start, base, size=size)
        if self.cursor.at_punct("(") and base.text in BASE_TYPES:
            self.cursor.fail("an annotation or a property", hint=f"`{base}` has no arguments")
        arguments = self._unknown_arguments() if self.cursor.at_punct("(") else ""
        return self._finish_type("base", start, base, arguments=arguments)

    def _unknown_arguments(self) -> str:
        """The text of `(…)` behind a type that does not exist, so that a hint can repeat it."""
        start = self.cursor.take().span.start
        while not self.cursor.at_punct(")"):
            if self.cursor.at_end or self.cursor.at_punct("}") or self._at_declaration():
                self.cursor.fail("`)`")
            self.cursor.take()
        end = self.cursor.take().span.end
        return " ".join(self.findings.source.text[start:end].split())

    def _finish_type(
        self,
        form: Literal["base", "list", "enum", "vector"],
        start: Token,
        base: ast.Name,
        *,
        enum_values: tuple[ast.Name, ...] = (),
        size: int = 0,
        arguments: str = "",
    ) -> ast.TypeRef:
        nullable = self.cursor.accept_punct("?") is not None
        return ast.TypeRef(
            form=form,
            base=base,
            nullable=nullable,
            span=start.span.to(self.cursor.last_span),
            enum_values=enum_values,
            size=size,
            arguments=arguments,
        )

    def _list_element(self) -> ast.Name:
        token = self.cursor.here
        shaped = token.text.lower() in TYPE_SHAPES and self.cursor.peek().is_punct("(")
        if token.is_punct("[") or token.is_word("enum") or token.is_word("Vector") or shaped:
            self.cursor.fail("a scalar type", code=SchemaCode.LIST_ELEMENT)
        if token.kind is not TokenKind.WORD:
            self.cursor.fail("a scalar type")
        name = self.cursor.take().name
        if self.cursor.at_punct("?"):
            self.cursor.fail("`]`", hint=f"a list is nullable as a whole: `[{name}]?`")
        return name

    def _enum_value(self) -> ast.Name:
        word = self.cursor.accept_enum_word()
        if word is None:
            quoted = self.cursor.here.kind is TokenKind.STRING
            hint = "enum values are written without quotes" if quoted else None
            self.cursor.fail("an enum value", hint=hint)
        return word.name

    # -- annotations and constraints -------------------------------------------------------------

    def _annotations(self) -> tuple[ast.AnnotationDecl, ...]:
        found: list[ast.AnnotationDecl] = []
        while self.cursor.at_punct("@") and not self._at_constraint():
            if self._refused_line():
                continue
            found.append(self._annotation())
        return tuple(found)

    def _annotation(self) -> ast.AnnotationDecl:
        start = self.cursor.take()
        if self.cursor.at_word("card"):
            raise ParseFailure(
                "`@card` stands right behind the endpoints of an edge",
                start.span.to(self.cursor.here.span),
                code=SchemaCode.CARD_MISPLACED,
                hint="for example `edge E: A -> B @card(0..1)`",
            )
        if not self.cursor.here.is_identifier:
            self.cursor.fail("the name of an annotation in lower case")
        name = self.cursor.take().name
        value: ast.Value | None = None
        arguments: list[tuple[ast.Name, ast.Value]] = []
        if self.cursor.accept_punct("("):
            value = self._value()
            while self.cursor.accept_punct(","):
                if not self.cursor.here.is_identifier:
                    self.cursor.fail("`name = value`")
                key = self.cursor.take().name
                self.cursor.expect_punct("=", hint="only the first argument has no name")
                arguments.append((key, self._value(bare_word=False)))
            self.cursor.expect_punct(")")
        return ast.AnnotationDecl(
            name=name,
            span=start.span.to(self.cursor.last_span),
            value=value,
            arguments=tuple(arguments),
        )

    def _constraint(self) -> ast.ConstraintDecl:
        if not self._at_constraint():
            if self._at_annotation("card"):
                self._annotation()
            words = ", ".join(f"`@{w}(…)`" for w in CONSTRAINTS)
            hint = "annotations stand behind a property or in the header of a type"
            self.cursor.fail(f"a property or one of {words}", hint=hint)
        start = self.cursor.take()
        word = self.cursor.take().name
        self.cursor.expect_punct("(")
        arguments = self.cursor.separated(self._constraint_argument)
        end = self.cursor.expect_punct(")")
        return ast.ConstraintDecl(word=word, arguments=arguments, span=start.span.to(end.span))

    def _constraint_argument(self) -> ast.ConstraintArgument:
        start = self.cursor.here
        if start.is_punct("@"):
            self.cursor.take()
            if not (self.cursor.at_word("src") or self.cursor.at_word("dst")):
                self.cursor.fail("`src` or `dst`")
            name = self.cursor.take().name
            return ast.EndpointRef(name=name, span=start.span.to(name.span))
        self._refuse_exponent()
        ranged = start.kind in _NUMBERS and self.cursor.peek().is_punct("..")
        if ranged or start.is_punct("-") or start.is_punct(".."):
            return self._range(start)
        return self._value()

    def _range(self, start: Token) -> ast.RangeValue:
        low = None if self.cursor.at_punct("..") else self._signed_number()
        self.cursor.expect_punct("..")
        open_end = self.cursor.at_punct(")") or self.cursor.at_punct(",")
        high = None if open_end and low is not None else self._signed_number()
        return ast.RangeValue(low=low, high=high, span=start.span.to(self.cursor.last_span))

    def _signed_number(self) -> Fraction:
        sign = -1 if self.cursor.accept_punct("-") else 1
        return sign * Fraction(self._number().text)

    def _number(self) -> Token:
        self._refuse_exponent()
        if self.cursor.here.kind not in _NUMBERS:
            self.cursor.fail("a number")
        return self.cursor.take()

    def _refuse_exponent(self) -> None:
        refuse_exponent(self.findings.source, self.cursor.here)

    def _value(self, *, bare_word: bool = True) -> ast.Value:
        self._refuse_exponent()
        token = self.cursor.here
        if self.cursor.accept_punct("-"):
            number = self._number()
            span = token.span.to(number.span)
            return ast.Value(kind="number", text=f"-{number.text}", span=span)
        if token.kind is TokenKind.STRING:
            kind = "string"
        elif token.kind in _NUMBERS:
            kind = "number"
        elif token.is_word("true") or token.is_word("false"):
            kind = "bool"
        elif bare_word and token.kind is TokenKind.WORD:
            kind = "word"
        else:
            self.cursor.fail("a value or a name" if bare_word else "a value")
        self.cursor.take()
        return ast.Value(kind=kind, text=token.text, span=token.span)

    # -- names and look-ahead --------------------------------------------------------------------

    def _type_name(self) -> ast.Name:
        token = self.cursor.here
        if token.is_identifier:
            hint = f"write `{token.text[0].upper()}{token.text[1:]}`"
            expected = "a type name with an upper-case first letter"
            self.cursor.fail(expected, code=SchemaCode.TYPE_NAME_CASE, hint=hint)
        if not token.is_type_name:
            self.cursor.fail("a type name")
        return self.cursor.take().name

    def _at_declaration(self) -> bool:
        # `node` alone may be a property; followed by a capitalised word it cannot be one.
        return (
            self.cursor.here.kind is TokenKind.WORD
            and self.cursor.here.text in DECLARATIONS
            and self.cursor.peek().is_type_name
        )

    def _at_annotation(self, word: str) -> bool:
        return self.cursor.at_punct("@") and self.cursor.peek().is_word(word)

    def _at_constraint(self) -> bool:
        named = self.cursor.at_punct("@") and self.cursor.peek().text in CONSTRAINTS
        return named and self.cursor.peek(2).is_punct("(")

    def _refuse_constraint_in_header(self) -> None:
        if self._at_constraint():
            hint = "write constraints with members inside the body"
            self.cursor.fail("`{`", code=SchemaCode.ANNOTATION_MISPLACED, hint=hint)

    # -- mistakes --------------------------------------------------------------------------------

    def _refused_line(self) -> bool:
        """Report and skip `@uniqe …` and `@default …`, arguments and all, in whatever shape."""
        at, word = self.cursor.here, self.cursor.peek()
        if word.kind is not TokenKind.WORD or word.text in ANNOTATIONS or self.accepted:
            return False
        span = at.span.to(word.span)
        foreign = FOREIGN_ANNOTATIONS.get(word.text.lower().replace("_", ""))
        meant = misspelling_of(word.text, ANNOTATIONS)
        if foreign is not None:
            message = f"`@{word.text}` does nothing here"
            self.findings.add(SchemaCode.ANNOTATION_FOREIGN, span, message, hint=foreign)
        elif meant is not None:
            message = f"unknown annotation `@{word.text}`"
            hint = f"did you mean `@{meant}`?"
            self.findings.add(SchemaCode.ANNOTATION_MISSPELLED, span, message, hint=hint)
        else:
            return False
        self.cursor.take()
        self.cursor.take()
        depth = 0
        while self.cursor.at_punct("(") or (depth and not self.cursor.at_end):
            token = self.cursor.take()
            depth += token.is_punct("(") - token.is_punct(")")
        return True

    def _report(self, failure: ParseFailure) -> None:
        if self.cut_off and self.cursor.at_end:
            return  # The rest of the text is inside the string or comment already reported.
        code = SchemaCode(failure.code) if failure.code else SchemaCode.UNEXPECTED_TOKEN
        if failure.span.start in self.holes and code is not SchemaCode.BODY_NOT_CLOSED:
            return  # What is missing here is the illegal character already reported.
        self.findings.add(code, failure.span, failure.message, **failure.help)

    def _skip_to_declaration(self) -> None:
        # No token is skipped when the failure is at the start of the next declaration. The failed
        # one has consumed at least its first word, so this always makes progress.
        while not self.cursor.at_end and not self._at_declaration():
            self.cursor.take()
