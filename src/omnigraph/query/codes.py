"""Every code that a query without a meaning on its schema can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. Q1 = names, Q2 = types and comparisons, Q3 =
match structure, Q4 = return, aggregates, order and limit, Q5 = search, Q6 = mutations; L =
warnings, which keep nothing from running. Q0, the codes of texts that cannot be read, stand in
``omnigraph.query.parse.codes``. Each has a case under ``tests/golden/query/check``.
"""

from __future__ import annotations

from enum import StrEnum

from omnigraph.errors import QueryError
from omnigraph.lang.source import Source, TextFindings


class QueryCode(StrEnum):
    """Stable code of a finding."""

    UNKNOWN_NODE_TYPE = "Q101"
    UNKNOWN_EDGE = "Q102"
    UNKNOWN_PROPERTY = "Q103"
    UNKNOWN_VARIABLE = "Q104"
    UNKNOWN_FUNCTION = "Q105"
    NOT_A_PARAMETER = "Q106"
    DUPLICATE_QUERY = "Q107"
    DUPLICATE_PARAMETER = "Q108"
    VARIABLE_IS_PARAMETER = "Q109"
    ANONYMOUS_VALUE = "Q110"
    VARIABLE_RETYPED = "Q111"
    EDGE_VARIABLE_TAKEN = "Q112"
    BARE_NAME = "Q113"
    PARAMETER_HAS_NO_PROPERTIES = "Q114"

    UNKNOWN_PARAMETER_TYPE = "Q201"
    LIST_ELEMENT = "Q202"
    VECTOR_SIZE = "Q203"
    INCOMPARABLE = "Q204"
    LIST_COMPARED = "Q205"
    VECTOR_COMPARED = "Q206"
    BLOB_READ = "Q207"
    CONTAINS_TYPE = "Q208"
    STARTS_WITH_TYPE = "Q209"
    IN_VALUES = "Q210"
    NULL_VALUE = "Q211"
    ENUM_VALUE = "Q212"
    DATE_TEXT = "Q213"
    DATETIME_TEXT = "Q214"
    LIST_ITEMS = "Q215"
    CONDITION_TYPE = "Q216"
    NODE_VALUE = "Q217"
    NUMBER_RANGE = "Q218"
    FUNCTION_ARGUMENTS = "Q219"
    NOT_CONSTANT = "Q220"
    VECTOR_LENGTH = "Q221"

    HOP_BOUNDS = "Q301"
    UNDIRECTED_ENDPOINTS = "Q302"
    ENDPOINT_TYPE = "Q303"
    BOUND_EDGE_HOPS = "Q304"
    EDGE_VALUE = "Q305"
    BLOCK_WITHOUT_OUTER = "Q306"
    OPTIONAL_VARIABLE_REQUIRED = "Q307"
    NOTHING_BOUND = "Q308"

    DUPLICATE_OUTPUT = "Q401"
    ALIAS_NEEDED = "Q402"
    AGGREGATE_MISPLACED = "Q403"
    AGGREGATE_TYPE = "Q404"
    NOT_GROUPED = "Q405"
    UNKNOWN_OUTPUT = "Q406"
    ORDER_NOT_OUTPUT = "Q407"
    ORDER_TYPE = "Q408"
    ORDER_CONSTANT = "Q409"
    ROW_COUNT = "Q410"

    TEXT_FIELD = "Q501"
    TEXT_QUERY = "Q502"
    NOT_INDEXED = "Q503"
    FUZZY_EDITS = "Q504"
    NEAREST_FIELD = "Q505"
    NEAREST_QUERY = "Q506"
    RRF_ARMS = "Q507"
    RRF_CONSTANT = "Q508"
    SCORE_MISPLACED = "Q509"
    SCORE_NOT_ORDERED = "Q510"
    SCORE_NEEDS_LIMIT = "Q511"
    SCORE_DIRECTION = "Q512"
    SCORE_GROUPED = "Q513"
    SCORE_OPTIONAL = "Q514"

    UNKNOWN_TARGET = "Q601"
    DUPLICATE_ASSIGNMENT = "Q602"
    MISSING_PROPERTY = "Q603"
    MISSING_ENDPOINT = "Q604"
    ASSIGNED_TYPE = "Q605"
    ASSIGNED_NULL = "Q606"
    KEY_UPDATED = "Q607"
    ENDPOINT_UPDATED = "Q608"
    ID_ASSIGNED = "Q609"
    UPSERT_WITHOUT_KEY = "Q610"
    MISSING_KEY = "Q611"
    MIXED_MUTATION = "Q612"
    WHERE_EXPRESSION = "Q613"

    NEVER_UPDATED = "L201"
    NO_PARAMETERS = "L202"
    UNUSED_PARAMETER = "L203"


EXPLANATIONS: dict[QueryCode, str] = {
    QueryCode.UNKNOWN_NODE_TYPE: "a binding names a node type that the schema does not have",
    QueryCode.UNKNOWN_EDGE: "a traversal names an edge that the schema does not have",
    QueryCode.UNKNOWN_PROPERTY: "the type has no such property",
    QueryCode.UNKNOWN_VARIABLE: "neither a binding nor a parameter has this name",
    QueryCode.UNKNOWN_FUNCTION: "there is no function of this name",
    QueryCode.NOT_A_PARAMETER: "only a declared parameter can stand here, no other variable",
    QueryCode.DUPLICATE_QUERY: "two queries of a file have the same name",
    QueryCode.DUPLICATE_PARAMETER: "two parameters of a query have the same name",
    QueryCode.VARIABLE_IS_PARAMETER: "a variable of the match has the name of a parameter",
    QueryCode.ANONYMOUS_VALUE: "`$_` has no name to refer to",
    QueryCode.VARIABLE_RETYPED: "a node variable is bound to two types",
    QueryCode.EDGE_VARIABLE_TAKEN: "an edge variable needs a name that nothing else has",
    QueryCode.BARE_NAME: "a bare word is no value here",
    QueryCode.PARAMETER_HAS_NO_PROPERTIES: "a parameter is a value and has no properties",
    QueryCode.UNKNOWN_PARAMETER_TYPE: "a parameter has a type that does not exist",
    QueryCode.LIST_ELEMENT: "a parameter is a list of something that lists do not hold",
    QueryCode.VECTOR_SIZE: "a vector parameter has between 1 and 2147483647 elements",
    QueryCode.INCOMPARABLE: "values of these two types cannot be compared",
    QueryCode.LIST_COMPARED: "a list is tested with `contains` and `in` only",
    QueryCode.VECTOR_COMPARED: "a vector is no operand; it is ranked by `nearest`",
    QueryCode.BLOB_READ: "a Blob cannot be read or compared",
    QueryCode.CONTAINS_TYPE: "`contains` needs a list and an element, or two strings",
    QueryCode.STARTS_WITH_TYPE: "`starts_with` needs two strings",
    QueryCode.IN_VALUES: "`in` needs a list on its right",
    QueryCode.NULL_VALUE: "null is no value to compare or return; `is null` tests for it",
    QueryCode.ENUM_VALUE: "the enum has no such value",
    QueryCode.DATE_TEXT: 'the text of date("…") is no day of the calendar',
    QueryCode.DATETIME_TEXT: 'the text of datetime("…") is no instant',
    QueryCode.LIST_ITEMS: "the items of a list do not go together",
    QueryCode.CONDITION_TYPE: "a condition is not true or false",
    QueryCode.NODE_VALUE: "a whole node stands where a single value is needed",
    QueryCode.NUMBER_RANGE: "no type holds a number of this size",
    QueryCode.FUNCTION_ARGUMENTS: (
        "a function has the wrong number of arguments, or a stray `distinct`"
    ),
    QueryCode.NOT_CONSTANT: "only a constant, a parameter or now() can stand here",
    QueryCode.VECTOR_LENGTH: "a vector has another number of elements than its property",
    QueryCode.HOP_BOUNDS: "bounds of a traversal are {low,high} with 1 <= low <= high",
    QueryCode.UNDIRECTED_ENDPOINTS: "`<edge>` needs an edge between nodes of one type",
    QueryCode.ENDPOINT_TYPE: "the edge neither starts nor ends at this variable's type",
    QueryCode.BOUND_EDGE_HOPS: "an edge variable goes with a single hop only",
    QueryCode.EDGE_VALUE: "an edge variable stands for its properties, not for itself",
    QueryCode.BLOCK_WITHOUT_OUTER: "a block does not mention any variable from around it",
    QueryCode.OPTIONAL_VARIABLE_REQUIRED: (
        "a required clause uses a variable that `optional` introduces"
    ),
    QueryCode.NOTHING_BOUND: "a match binds no variable",
    QueryCode.DUPLICATE_OUTPUT: "two result columns have the same name",
    QueryCode.ALIAS_NEEDED: "a result column needs a name: `… as name`",
    QueryCode.AGGREGATE_MISPLACED: "an aggregate stands only as a whole column of `return`",
    QueryCode.AGGREGATE_TYPE: "the aggregate does not work on values of this type",
    QueryCode.NOT_GROUPED: "beside an aggregate stand only `$v.p` and `$v`",
    QueryCode.UNKNOWN_OUTPUT: "a bare word in `order` is not a result column",
    QueryCode.ORDER_NOT_OUTPUT: "with aggregates or `distinct` order keys are result columns",
    QueryCode.ORDER_TYPE: "values of this type have no order",
    QueryCode.ORDER_CONSTANT: "an order key is the same in every row",
    QueryCode.ROW_COUNT: "limit and offset are integers from 0 on, or integer parameters",
    QueryCode.TEXT_FIELD: "text is searched in String properties of nodes",
    QueryCode.TEXT_QUERY: "the text to search for is a string or a String parameter",
    QueryCode.NOT_INDEXED: "text search needs a property with @index",
    QueryCode.FUZZY_EDITS: "the edits of fuzzy() are an integer from 0 on, or an integer parameter",
    QueryCode.NEAREST_FIELD: "nearest() ranks by a Vector property of a node",
    QueryCode.NEAREST_QUERY: "nearest() compares with a vector, or with a text to embed",
    QueryCode.RRF_ARMS: "rrf() fuses two rankings of one variable: bm25() or nearest()",
    QueryCode.RRF_CONSTANT: "the k of rrf() is an integer from 1 on, or an integer parameter",
    QueryCode.SCORE_MISPLACED: "a ranking stands only as the first order key",
    QueryCode.SCORE_NOT_ORDERED: "a returned score is the first order key as well",
    QueryCode.SCORE_NEEDS_LIMIT: "nearest() and rrf() need a limit",
    QueryCode.SCORE_DIRECTION: "a ranking has its own direction: the best first",
    QueryCode.SCORE_GROUPED: "a ranking does not go together with aggregates or `distinct`",
    QueryCode.SCORE_OPTIONAL: "a ranking needs a variable that every row has",
    QueryCode.UNKNOWN_TARGET: "a statement names a type that the schema does not have",
    QueryCode.DUPLICATE_ASSIGNMENT: "a statement assigns a property twice",
    QueryCode.MISSING_PROPERTY: "an insert leaves out a property that may not be null",
    QueryCode.MISSING_ENDPOINT: "a new edge needs `from` and `to`",
    QueryCode.ASSIGNED_TYPE: "the assigned value is no value of the property's type",
    QueryCode.ASSIGNED_NULL: "null is assigned to a property that may not be null",
    QueryCode.KEY_UPDATED: "an update assigns a member of the key",
    QueryCode.ENDPOINT_UPDATED: "an update assigns an endpoint of an edge",
    QueryCode.ID_ASSIGNED: "the id of this entity cannot be assigned",
    QueryCode.UPSERT_WITHOUT_KEY: "upsert needs a type with a key",
    QueryCode.MISSING_KEY: "insert and upsert assign every member of the key",
    QueryCode.MIXED_MUTATION: "a query either deletes, or inserts and updates",
    QueryCode.WHERE_EXPRESSION: "`where` tests properties of one entity only",
    QueryCode.NEVER_UPDATED: "a nullable property that no update sets",
    QueryCode.NO_PARAMETERS: "a mutation declares no parameters",
    QueryCode.UNUSED_PARAMETER: "a parameter is declared and never used",
}


# -- findings --------------------------------------------------------------------------------------
# Collects everything that is wrong with one query text, to be reported together.


class QueryFindings(TextFindings):
    """A growing list of diagnostics for one query text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, QueryError)
