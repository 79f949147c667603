"""The whole way of a schema text, as a table of contents.

    .pg text -> tokens -> AST -> check -> catalog

Checks run only on a text that could be read completely: half a schema would yield findings about
names that stand in the other half.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.source import Source
from omnigraph.schema import ast
from omnigraph.schema.build import FreshNumbering, build
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.codes import SchemaFindings
from omnigraph.schema.parser import parse
from omnigraph.schema.resolve import (
    edge_groups,
    expand,
    node_groups,
    property_groups,
    property_type,
)
from omnigraph.schema.rules import constraints, names
from omnigraph.schema.rules.annotations import (
    Place,
    check_annotations,
    check_backfill,
    check_embed,
)


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


# -- check -----------------------------------------------------------------------------------------
# Runs every static rule over a parsed schema.
#
#     AST -> [check] -> build -> catalog
#
# Rules only add findings; they neither stop nor change anything, so one run shows everything. After
# a run without findings ``build`` cannot fail.


def check(schema: ast.SchemaDecl, findings: SchemaFindings) -> None:
    """Add everything that is wrong with the schema to the findings."""
    names.check_declares_something(schema, findings)
    names.check_declared_once(schema, findings)
    names.check_endpoints(schema, findings)
    interfaces = {i.name.text: i for i in reversed(schema.interfaces)}
    for interface in schema.interfaces:
        _check_interface(interface, findings)
    for node in schema.nodes:
        names.check_implements(node, schema.interfaces, findings)
        names.check_interface_types(node, interfaces, findings)
        _check_node(node, interfaces, findings)
    for edge in schema.edges:
        _check_edge(edge, findings)


def _check_interface(interface: ast.InterfaceDecl, findings: SchemaFindings) -> None:
    _check_properties(interface, "interface property", findings)
    own_groups = property_groups(interface.properties)
    known = _types(interface.properties)
    constraints.check_members(interface.name, own_groups, known, findings, on_edge=False)
    constraints.check_single_key(interface.name, own_groups, findings, on_edge=False)
    check_embed(interface.properties, interface.properties, findings)
    names.check_id_of_interface(interface, findings)


def _check_node(
    node: ast.NodeDecl, interfaces: dict[str, ast.InterfaceDecl], findings: SchemaFindings
) -> None:
    _check_properties(node, "node property", findings)
    check_annotations(node.annotations, "node type", findings)
    expanded = expand(node, interfaces)
    known = _types(expanded.properties)
    own_groups = node_groups(node)
    constraints.check_group_arguments(node, findings)
    constraints.check_members(node.name, own_groups, known, findings, on_edge=False)
    constraints.check_single_key(node.name, own_groups, findings, on_edge=False)
    constraints.check_inherited_key(expanded, findings)
    constraints.check_value_constraints(node, known, findings)
    check_embed(node.properties, expanded.properties, findings)
    names.check_id_of_node(expanded, findings)


def _check_edge(edge: ast.EdgeDecl, findings: SchemaFindings) -> None:
    _check_properties(edge, "edge property", findings)
    check_annotations(edge.annotations, "edge type", findings)
    known = _types(edge.properties)
    own_groups = edge_groups(edge)
    constraints.check_group_arguments(edge, findings)
    constraints.check_members(edge.name, own_groups, known, findings, on_edge=True)
    constraints.check_single_key(edge.name, own_groups, findings, on_edge=True)
    constraints.check_value_constraints(edge, known, findings)
    if edge.card is not None:
        constraints.check_card(edge.card, findings)


def _check_properties(owner: ast.Declaration, place: Place, findings: SchemaFindings) -> None:
    names.check_properties(owner, findings)
    check_backfill(owner.properties, findings)
    for p in owner.properties:
        names.check_type(p.type, findings)
        check_annotations(p.annotations, place, findings)


def _types(properties: Iterable[ast.PropertyDecl]) -> constraints.Types:
    return {p.name.text: property_type(p.type) for p in properties}
