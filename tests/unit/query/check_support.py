"""The schema that checker tests share, and short ways to a typed query or to codes."""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import QueryError
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.schema.compile import compile_schema

GOLDEN = Path(__file__).parents[2] / "golden" / "query" / "check"
SCHEMA = (GOLDEN / "ok_bindings" / "schema.pg").read_text()
CATALOG = compile_schema(SCHEMA)
WORKED = compile_schema(
    (Path(__file__).parents[2] / "golden/schema/ok_worked_example/in.pg").read_text()
)


def one(text: str, catalog=CATALOG) -> typed.Query:
    (query,) = compile_queries(text, catalog)
    return query


def read(clauses: str, returned: str = "$v.name", tail: str = "", params: str = "") -> typed.Read:
    body = one(read_text(clauses, returned, tail, params)).body
    assert isinstance(body, typed.Read)
    return body


def read_text(clauses: str, returned: str = "$v.name", tail: str = "", params: str = "") -> str:
    return f"query q({params}) {{ match {{ {clauses} }} return {{ {returned} }} {tail} }}"


def change(statements: str, params: str = "") -> typed.Mutation:
    body = one(f"query q({params}) {{ {statements} }}").body
    assert isinstance(body, typed.Mutation)
    return body


def filters(condition: str, params: str = "") -> tuple[typed.Expr, ...]:
    return read(f"$v: Vessel {condition}", params=params).pattern.filters


def diagnostics(text: str, catalog=CATALOG):
    try:
        compile_queries(text, catalog)
    except QueryError as error:
        return error.diagnostics
    return ()


def codes(text: str) -> list[str]:
    return [d.code for d in diagnostics(text)]


def match_codes(clauses: str, *args: str, **kwargs: str) -> list[str]:
    return codes(read_text(f"$v: Vessel {clauses}", *args, **kwargs))


def change_codes(statements: str, params: str = "") -> list[str]:
    return codes(f"query q({params}) {{ {statements} }}")
