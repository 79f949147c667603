"""Every code that a query without a meaning on its schema can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. Q1 = names, Q2 = types and comparisons, Q3 =
match structure, Q4 = return, aggregates, order and limit, Q5 = search, Q6 = mutations; L =
warnings, which keep nothing from running. Q0, the codes of texts that cannot be read, stand in
``omnigraph.query.parse.codes``. Each has a case under ``tests/golden/query/check``.
"""

from __future__ import annotations

from omnigraph.errors import QueryError
from omnigraph.lang.source import ExplainedCode, Source, TextFindings


class QueryCode(ExplainedCode):
    """Stable code of a finding."""

    UNKNOWN_NODE_TYPE = "Q101", "a binding names a node type that the schema does not have"
    UNKNOWN_EDGE = "Q102", "a traversal names an edge that the schema does not have"
    UNKNOWN_PROPERTY = "Q103", "the type has no such property"
    UNKNOWN_VARIABLE = "Q104", "neither a binding nor a parameter has this name"
    UNKNOWN_FUNCTION = "Q105", "there is no function of this name"
    NOT_A_PARAMETER = "Q106", "only a declared parameter can stand here, no other variable"
    DUPLICATE_QUERY = "Q107", "two queries of a file have the same name"
    DUPLICATE_PARAMETER = "Q108", "two parameters of a query have the same name"
    VARIABLE_IS_PARAMETER = "Q109", "a variable of the match has the name of a parameter"
    ANONYMOUS_VALUE = "Q110", "`$_` has no name to refer to"
    VARIABLE_RETYPED = "Q111", "a node variable is bound to two types"
    EDGE_VARIABLE_TAKEN = "Q112", "an edge variable needs a name that nothing else has"
    BARE_NAME = "Q113", "a bare word is no value here"
    PARAMETER_HAS_NO_PROPERTIES = "Q114", "a parameter is a value and has no properties"

    UNKNOWN_PARAMETER_TYPE = "Q201", "a parameter has a type that does not exist"
    LIST_ELEMENT = "Q202", "a parameter is a list of something that lists do not hold"
    VECTOR_SIZE = "Q203", "a vector parameter has between 1 and 2147483647 elements"
    INCOMPARABLE = "Q204", "values of these two types cannot be compared"
    LIST_COMPARED = "Q205", "a list is tested with `contains` and `in` only"
    VECTOR_COMPARED = "Q206", "a vector is no operand; it is ranked by `nearest`"
    BLOB_READ = "Q207", "a Blob cannot be read or compared"
    CONTAINS_TYPE = "Q208", "`contains` needs a list and an element, or two strings"
    STARTS_WITH_TYPE = "Q209", "`starts_with` needs two strings"
    IN_VALUES = "Q210", "`in` needs a list on its right"
    NULL_VALUE = "Q211", "null is no value to compare or return; `is null` tests for it"
    ENUM_VALUE = "Q212", "the enum has no such value"
    DATE_TEXT = "Q213", 'the text of date("…") is no day of the calendar'
    DATETIME_TEXT = "Q214", 'the text of datetime("…") is no instant'
    LIST_ITEMS = "Q215", "the items of a list do not go together"
    CONDITION_TYPE = "Q216", "a condition is not true or false"
    NODE_VALUE = "Q217", "a whole node stands where a single value is needed"
    NUMBER_RANGE = "Q218", "no type holds a number of this size"
    FUNCTION_ARGUMENTS = "Q219", "a function has a wrong number of arguments, or a stray `distinct`"
    NOT_CONSTANT = "Q220", "only a constant, a parameter or now() can stand here"
    VECTOR_LENGTH = "Q221", "a vector has another number of elements than its property"

    HOP_BOUNDS = "Q301", "bounds of a traversal are {low,high} with 1 <= low <= high"
    UNDIRECTED_ENDPOINTS = "Q302", "`<edge>` needs an edge between nodes of one type"
    ENDPOINT_TYPE = "Q303", "the edge neither starts nor ends at this variable's type"
    BOUND_EDGE_HOPS = "Q304", "an edge variable goes with a single hop only"
    EDGE_VALUE = "Q305", "an edge variable stands for its properties, not for itself"
    BLOCK_WITHOUT_OUTER = "Q306", "a block does not mention any variable from around it"
    OPTIONAL_VARIABLE_REQUIRED = "Q307", "a required clause uses a variable of an `optional` block"
    NOTHING_BOUND = "Q308", "a match binds no variable"

    DUPLICATE_OUTPUT = "Q401", "two result columns have the same name"
    ALIAS_NEEDED = "Q402", "a result column needs a name: `… as name`"
    AGGREGATE_MISPLACED = "Q403", "an aggregate stands only as a whole column of `return`"
    AGGREGATE_TYPE = "Q404", "the aggregate does not work on values of this type"
    NOT_GROUPED = "Q405", "beside an aggregate stand only `$v.p` and `$v`"
    UNKNOWN_OUTPUT = "Q406", "a bare word in `order` is not a result column"
    ORDER_NOT_OUTPUT = "Q407", "with aggregates or `distinct` order keys are result columns"
    ORDER_TYPE = "Q408", "values of this type have no order"
    ORDER_CONSTANT = "Q409", "an order key is the same in every row"
    ROW_COUNT = "Q410", "limit and offset are integers from 0 on, or integer parameters"

    TEXT_FIELD = "Q501", "text is searched in String properties of nodes"
    TEXT_QUERY = "Q502", "the text to search for is a string or a String parameter"
    NOT_INDEXED = "Q503", "text search needs a property with @index"
    FUZZY_EDITS = "Q504", "the edits of fuzzy() are an integer from 0 on, or an integer parameter"
    NEAREST_FIELD = "Q505", "nearest() ranks by a Vector property of a node"
    NEAREST_QUERY = "Q506", "nearest() compares with a vector, or with a text to embed"
    RRF_ARMS = "Q507", "rrf() fuses two rankings of one variable: bm25() or nearest()"
    RRF_CONSTANT = "Q508", "the k of rrf() is an integer from 1 on, or an integer parameter"
    SCORE_MISPLACED = "Q509", "a ranking stands only as the first order key"
    SCORE_NOT_ORDERED = "Q510", "a returned score is the first order key as well"
    SCORE_NEEDS_LIMIT = "Q511", "nearest() and rrf() need a limit"
    SCORE_DIRECTION = "Q512", "a ranking has its own direction: the best first"
    SCORE_GROUPED = "Q513", "a ranking does not go together with aggregates or `distinct`"
    SCORE_OPTIONAL = "Q514", "a ranking needs a variable that every row has"

    UNKNOWN_TARGET = "Q601", "a statement names a type that the schema does not have"
    DUPLICATE_ASSIGNMENT = "Q602", "a statement assigns a property twice"
    MISSING_PROPERTY = "Q603", "an insert leaves out a property that may not be null"
    MISSING_ENDPOINT = "Q604", "a new edge needs `from` and `to`"
    ASSIGNED_TYPE = "Q605", "the assigned value is no value of the property's type"
    ASSIGNED_NULL = "Q606", "null is assigned to a property that may not be null"
    KEY_UPDATED = "Q607", "an update assigns a member of the key"
    ENDPOINT_UPDATED = "Q608", "an update assigns an endpoint of an edge"
    ID_ASSIGNED = "Q609", "the id of this entity cannot be assigned"
    UPSERT_WITHOUT_KEY = "Q610", "upsert needs a type with a key"
    MISSING_KEY = "Q611", "insert and upsert assign every member of the key"
    MIXED_MUTATION = "Q612", "a query either deletes, or inserts and updates"
    WHERE_EXPRESSION = "Q613", "`where` tests properties of one entity only"

    NEVER_UPDATED = "L201", "a nullable property that no update sets"
    NO_PARAMETERS = "L202", "a mutation declares no parameters"
    UNUSED_PARAMETER = "L203", "a parameter is declared and never used"


# -- findings --------------------------------------------------------------------------------------
# Collects everything that is wrong with one query text, to be reported together.


class QueryFindings(TextFindings):
    """A growing list of diagnostics for one query text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, QueryError)
