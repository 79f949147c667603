"""Every code a schema diagnostic can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. S0 = characters and syntax, S1 = names,
S2 = types, S3 = annotations and constraints. Each has a case under ``tests/golden/schema``.
"""

from __future__ import annotations

from enum import StrEnum

from omnigraph.errors import SchemaError
from omnigraph.lang.source import Source, TextFindings


class SchemaCode(StrEnum):
    """Stable code of a finding."""

    ILLEGAL_CHARACTER = "S001"
    UNTERMINATED_STRING = "S002"
    UNTERMINATED_COMMENT = "S003"
    UNSUPPORTED_ESCAPE = "S004"
    LONG_NUMBER = "S005"
    UNEXPECTED_TOKEN = "S010"
    TYPE_NAME_CASE = "S011"
    PROPERTY_NAME_CASE = "S012"
    UNKNOWN_DECLARATION = "S013"
    CARD_MISPLACED = "S014"
    CONSTRAINT_IN_INTERFACE = "S015"
    HEADER_ORDER = "S016"
    BODY_NOT_CLOSED = "S017"
    EMPTY_SCHEMA = "S018"

    DUPLICATE_INTERFACE = "S101"
    DUPLICATE_NODE = "S102"
    DUPLICATE_EDGE = "S103"
    EDGE_CASE_COLLISION = "S104"
    DUPLICATE_PROPERTY = "S105"
    UNKNOWN_ENDPOINT = "S106"
    UNKNOWN_INTERFACE = "S107"
    REPEATED_INTERFACE = "S108"
    RESERVED_NAME = "S109"
    RESERVED_EDGE_NAME = "S110"
    ID_PROPERTY = "S111"
    UNKNOWN_PROPERTY = "S112"

    UNKNOWN_TYPE = "S201"
    LIST_ELEMENT = "S202"
    VECTOR_SIZE = "S203"
    DUPLICATE_ENUM_VALUE = "S204"
    INTERFACE_TYPE_MISMATCH = "S205"
    INTERFACES_DISAGREE = "S206"

    REPEATED_ANNOTATION = "S301"
    ANNOTATION_MISPLACED = "S302"
    ANNOTATION_ARGUMENT = "S303"
    ANNOTATION_MISSPELLED = "S304"
    TYPE_NOT_CONSTRAINABLE = "S305"
    NULLABLE_KEY = "S306"
    SECOND_KEY = "S307"
    CONSTRAINT_ARGUMENTS = "S308"
    CONSTRAINT_ON_EDGE = "S309"
    EDGE_KEY_ENDPOINTS = "S310"
    ENDPOINT_OUTSIDE_KEY = "S311"
    REPEATED_MEMBER = "S312"
    RANGE_TYPE = "S313"
    RANGE_EMPTY = "S314"
    RANGE_BOUND = "S315"
    CHECK_TYPE = "S316"
    CHECK_PATTERN = "S317"
    CARD_BOUNDS = "S318"
    EMBED_TARGET = "S319"
    EMBED_SOURCE = "S320"


EXPLANATIONS: dict[SchemaCode, str] = {
    SchemaCode.ILLEGAL_CHARACTER: "a character that no token starts with",
    SchemaCode.UNTERMINATED_STRING: "a string without its closing quote",
    SchemaCode.UNTERMINATED_COMMENT: "a /* comment without its */",
    SchemaCode.UNSUPPORTED_ESCAPE: "a backslash sequence that strings do not know",
    SchemaCode.LONG_NUMBER: "a number with absurdly many digits",
    SchemaCode.UNEXPECTED_TOKEN: "something else has to stand here",
    SchemaCode.TYPE_NAME_CASE: "names of types start with an upper-case letter",
    SchemaCode.PROPERTY_NAME_CASE: (
        "names of properties start with a lower-case letter or underscore"
    ),
    SchemaCode.UNKNOWN_DECLARATION: "a schema consists of interface, node and edge declarations",
    SchemaCode.CARD_MISPLACED: "@card stands directly behind the endpoints of an edge",
    SchemaCode.CONSTRAINT_IN_INTERFACE: "an interface body holds properties only",
    SchemaCode.HEADER_ORDER: "annotations of a node stand before `implements`",
    SchemaCode.BODY_NOT_CLOSED: "a body without its closing brace",
    SchemaCode.EMPTY_SCHEMA: "a schema needs at least one type",
    SchemaCode.DUPLICATE_INTERFACE: "two interfaces have the same name",
    SchemaCode.DUPLICATE_NODE: "two node types have the same name",
    SchemaCode.DUPLICATE_EDGE: "two edge types have the same name",
    SchemaCode.EDGE_CASE_COLLISION: "two edge names differ only in upper and lower case",
    SchemaCode.DUPLICATE_PROPERTY: "two properties of a type have the same name",
    SchemaCode.UNKNOWN_ENDPOINT: "an edge starts or ends at a node type that is not declared",
    SchemaCode.UNKNOWN_INTERFACE: "a node implements an interface that is not declared",
    SchemaCode.REPEATED_INTERFACE: "a node names the same interface twice",
    SchemaCode.RESERVED_NAME: "a property has a name that storage or search uses",
    SchemaCode.RESERVED_EDGE_NAME: "an edge property is called id, src, dst, from or to",
    SchemaCode.ID_PROPERTY: (
        "a property called id is anything but `id: String @key`, the only key member"
    ),
    SchemaCode.UNKNOWN_PROPERTY: "a constraint names a property that the type does not have",
    SchemaCode.UNKNOWN_TYPE: "a property has a type that does not exist",
    SchemaCode.LIST_ELEMENT: "lists hold plain scalars only",
    SchemaCode.VECTOR_SIZE: "a vector has between 1 and 2147483647 elements",
    SchemaCode.DUPLICATE_ENUM_VALUE: "an enum lists a value twice",
    SchemaCode.INTERFACE_TYPE_MISMATCH: "a node declares an interface's property with another type",
    SchemaCode.INTERFACES_DISAGREE: (
        "two interfaces of a node bring different properties of one name"
    ),
    SchemaCode.REPEATED_ANNOTATION: "an annotation that may stand once stands twice",
    SchemaCode.ANNOTATION_MISPLACED: "an annotation stands where it has no meaning",
    SchemaCode.ANNOTATION_ARGUMENT: "an annotation has the wrong arguments",
    SchemaCode.ANNOTATION_MISSPELLED: (
        "an annotation is one typing error away from one with a meaning"
    ),
    SchemaCode.TYPE_NOT_CONSTRAINABLE: (
        "a list, vector or blob cannot be a member of this constraint"
    ),
    SchemaCode.NULLABLE_KEY: "a key member may not be nullable",
    SchemaCode.SECOND_KEY: "a type has at most one key",
    SchemaCode.CONSTRAINT_ARGUMENTS: "a constraint has arguments of the wrong kind or number",
    SchemaCode.CONSTRAINT_ON_EDGE: "@range and @check are for nodes only",
    SchemaCode.EDGE_KEY_ENDPOINTS: "an edge key starts with @src, @dst",
    SchemaCode.ENDPOINT_OUTSIDE_KEY: "@src and @dst are for edge keys only",
    SchemaCode.REPEATED_MEMBER: "a constraint names a member twice",
    SchemaCode.RANGE_TYPE: "@range needs a property that is a single number",
    SchemaCode.RANGE_EMPTY: "@range allows no value: its lower bound exceeds its upper bound",
    SchemaCode.RANGE_BOUND: "a bound of @range is no value of the property's type",
    SchemaCode.CHECK_TYPE: "@check needs a property that is a single string",
    SchemaCode.CHECK_PATTERN: "the pattern of @check is no valid regular expression",
    SchemaCode.CARD_BOUNDS: "@card allows no number of edges, or one that cannot be counted",
    SchemaCode.EMBED_TARGET: "@embed stands on a vector",
    SchemaCode.EMBED_SOURCE: "@embed names a string property of the same type",
}


# -- findings --------------------------------------------------------------------------------------
# Collects everything that is wrong with one schema text, to be reported together.


class SchemaFindings(TextFindings):
    """A growing list of diagnostics for one schema text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, SchemaError)


# -- codes -----------------------------------------------------------------------------------------
# Every code of a finding about hints: they can only be judged against an accepted schema.
#
# Codes are stable: append, never renumber or reuse. Each has a case under ``tests/golden/migrate``.


class HintCode(StrEnum):
    """Stable code of a finding."""

    RENAME_UNKNOWN = "M101"
    RENAME_OTHER_KIND = "M102"
    RENAME_TAKEN = "M103"
    RENAME_IN_NEW_TYPE = "M104"
    RENAME_USELESS = "M105"
    BACKFILL_UNKNOWN = "M201"
    BACKFILL_TYPE = "M202"
    BACKFILL_USELESS = "M203"


HINT_EXPLANATIONS: dict[HintCode, str] = {
    HintCode.RENAME_UNKNOWN: "`@rename_from` names nothing that the graph has",
    HintCode.RENAME_OTHER_KIND: "`@rename_from` on a node names an edge type, or the other way",
    HintCode.RENAME_TAKEN: "`@rename_from` names what another declaration goes on with",
    HintCode.RENAME_IN_NEW_TYPE: "a property of a new type cannot come from another type",
    HintCode.RENAME_USELESS: "`@rename_from` has served: the graph has this name (a warning)",
    HintCode.BACKFILL_UNKNOWN: "`@backfill` names a property that the graph's type does not have",
    HintCode.BACKFILL_TYPE: "`@backfill` copies a property of a type that does not fit",
    HintCode.BACKFILL_USELESS: "`@backfill` has served: no row lacks a value (a warning)",
}
