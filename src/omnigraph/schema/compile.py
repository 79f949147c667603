"""The whole way of a schema text, as a table of contents.

    .pg text -> tokens -> AST -> check -> catalog

Checks run only on a text that could be read completely: half a schema would yield findings about
names that stand in the other half.
"""

from __future__ import annotations

from omnigraph.lang.source import Source
from omnigraph.schema import ast
from omnigraph.schema.build import FreshNumbering, build
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import check
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.parser import parse


def compile_schema(text: str, *, source_name: str = "schema.pg") -> Catalog:
    """The catalog of a new graph with this schema. Raises ``SchemaError`` with all findings."""
    return build(parse_schema(text, source_name=source_name), FreshNumbering())


def parse_schema(text: str, *, source_name: str = "schema.pg") -> ast.SchemaDecl:
    """The AST of a schema that breaks no rule. Raises ``SchemaError`` with all findings."""
    findings = SchemaFindings(Source(name=source_name, text=text))
    schema, complete = parse(findings)
    if complete:
        check(schema, findings)
    findings.raise_if_any()
    return schema
