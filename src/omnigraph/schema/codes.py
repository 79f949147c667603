"""Every code a schema diagnostic can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. S0 = characters and syntax, S1 = names,
S2 = types, S3 = annotations and constraints. Each has a case under ``tests/golden/schema``.
"""

from __future__ import annotations

from omnigraph.errors import SchemaError
from omnigraph.lang.source import ExplainedCode, Source, TextFindings


class SchemaCode(ExplainedCode):
    """Stable code of a finding."""

    ILLEGAL_CHARACTER = "S001", "a character that no token starts with"
    UNTERMINATED_STRING = "S002", "a string without its closing quote"
    UNTERMINATED_COMMENT = "S003", "a /* comment without its */"
    UNSUPPORTED_ESCAPE = "S004", "a backslash sequence that strings do not know"
    LONG_NUMBER = "S005", "a number with absurdly many digits"
    UNEXPECTED_TOKEN = "S010", "something else has to stand here"
    TYPE_NAME_CASE = "S011", "names of types start with an upper-case letter"
    PROPERTY_NAME_CASE = "S012", "names of properties start with a lower-case letter or underscore"
    UNKNOWN_DECLARATION = "S013", "a schema consists of interface, node and edge declarations"
    CARD_MISPLACED = "S014", "@card stands directly behind the endpoints of an edge"
    CONSTRAINT_IN_INTERFACE = "S015", "an interface body holds properties only"
    HEADER_ORDER = "S016", "annotations of a node stand before `implements`"
    BODY_NOT_CLOSED = "S017", "a body without its closing brace"
    EMPTY_SCHEMA = "S018", "a schema needs at least one type"

    DUPLICATE_INTERFACE = "S101", "two interfaces have the same name"
    DUPLICATE_NODE = "S102", "two node types have the same name"
    DUPLICATE_EDGE = "S103", "two edge types have the same name"
    EDGE_CASE_COLLISION = "S104", "two edge names differ only in upper and lower case"
    DUPLICATE_PROPERTY = "S105", "two properties of a type have the same name"
    UNKNOWN_ENDPOINT = "S106", "an edge starts or ends at a node type that is not declared"
    UNKNOWN_INTERFACE = "S107", "a node implements an interface that is not declared"
    REPEATED_INTERFACE = "S108", "a node names the same interface twice"
    RESERVED_NAME = "S109", "a property has a name that storage or search uses"
    RESERVED_EDGE_NAME = "S110", "an edge property is called id, src, dst, from or to"
    ID_PROPERTY = "S111", "a property called id is not `id: String @key` as the only key member"
    UNKNOWN_PROPERTY = "S112", "a constraint names a property that the type does not have"

    UNKNOWN_TYPE = "S201", "a property has a type that does not exist"
    LIST_ELEMENT = "S202", "lists hold plain scalars only"
    VECTOR_SIZE = "S203", "a vector has between 1 and 2147483647 elements"
    DUPLICATE_ENUM_VALUE = "S204", "an enum lists a value twice"
    INTERFACE_TYPE_MISMATCH = "S205", "a node declares an interface's property with another type"
    INTERFACES_DISAGREE = "S206", "two interfaces of a node bring different properties of one name"

    REPEATED_ANNOTATION = "S301", "an annotation that may stand once stands twice"
    ANNOTATION_MISPLACED = "S302", "an annotation stands where it has no meaning"
    ANNOTATION_ARGUMENT = "S303", "an annotation has the wrong arguments"
    ANNOTATION_MISSPELLED = "S304", "an annotation is one typing error away from one with a meaning"
    TYPE_NOT_CONSTRAINABLE = "S305", "a list, vector or blob cannot be a member of this constraint"
    NULLABLE_KEY = "S306", "a key member may not be nullable"
    SECOND_KEY = "S307", "a type has at most one key"
    CONSTRAINT_ARGUMENTS = "S308", "a constraint has arguments of the wrong kind or number"
    CONSTRAINT_ON_EDGE = "S309", "@range and @check are for nodes only"
    EDGE_KEY_ENDPOINTS = "S310", "an edge key starts with @src, @dst"
    ENDPOINT_OUTSIDE_KEY = "S311", "@src and @dst are for edge keys only"
    REPEATED_MEMBER = "S312", "a constraint names a member twice"
    RANGE_TYPE = "S313", "@range needs a property that is a single number"
    RANGE_EMPTY = "S314", "@range allows no value: its lower bound exceeds its upper bound"
    RANGE_BOUND = "S315", "a bound of @range is no value of the property's type"
    CHECK_TYPE = "S316", "@check needs a property that is a single string"
    CHECK_PATTERN = "S317", "the pattern of @check is no valid regular expression"
    CARD_BOUNDS = "S318", "@card allows no number of edges, or one that cannot be counted"
    EMBED_TARGET = "S319", "@embed stands on a vector"
    EMBED_SOURCE = "S320", "@embed names a string property of the same type"
    ANNOTATION_FOREIGN = "S321", "an annotation asks for what it does not do here"


# -- findings --------------------------------------------------------------------------------------
# Collects everything that is wrong with one schema text, to be reported together.


class SchemaFindings(TextFindings):
    """A growing list of diagnostics for one schema text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, SchemaError)


# -- codes -----------------------------------------------------------------------------------------
# Every code of a finding about hints: they can only be checked against an accepted schema.
#
# Codes are stable: append, never renumber or reuse. Each has a case under ``tests/golden/migrate``.


class HintCode(ExplainedCode):
    """Stable code of a finding."""

    RENAME_UNKNOWN = "M101", "`@rename_from` names nothing that the graph has"
    RENAME_OTHER_KIND = "M102", "`@rename_from` on a node names an edge type, or the other way"
    RENAME_TAKEN = "M103", "`@rename_from` names what another declaration goes on with"
    RENAME_IN_NEW_TYPE = "M104", "a property of a new type cannot come from another type"
    RENAME_USELESS = "M105", "`@rename_from` has served: the graph has this name (a warning)"
    BACKFILL_UNKNOWN = "M201", "`@backfill` names a property that the graph's type does not have"
    BACKFILL_TYPE = "M202", "`@backfill` copies a property of a type that does not fit"
    BACKFILL_USELESS = "M203", "`@backfill` has served: no row lacks a value (a warning)"
