"""Runs every static rule over a parsed schema.

    AST -> [check] -> build -> catalog

Rules only add findings; they neither stop nor change anything, so one run shows everything. After a
run without findings ``build`` cannot fail.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.schema import ast
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.resolve import (
    edge_groups,
    expand,
    node_groups,
    property_groups,
    property_type,
)
from omnigraph.schema.rules import bounds, groups, names, types
from omnigraph.schema.rules.annotations import (
    Place,
    check_annotations,
    check_backfill,
    check_embed,
)


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
        types.check_interface_types(node, interfaces, findings)
        _check_node(node, interfaces, findings)
    for edge in schema.edges:
        _check_edge(edge, findings)


def _check_interface(interface: ast.InterfaceDecl, findings: SchemaFindings) -> None:
    _check_properties(interface, "interface property", findings)
    own_groups = property_groups(interface.properties)
    known = _types(interface.properties)
    groups.check_members(interface.name, own_groups, known, findings, on_edge=False)
    groups.check_single_key(interface.name, own_groups, findings, on_edge=False)
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
    groups.check_group_arguments(node, findings)
    groups.check_members(node.name, own_groups, known, findings, on_edge=False)
    groups.check_single_key(node.name, own_groups, findings, on_edge=False)
    groups.check_inherited_key(expanded, findings)
    bounds.check_value_constraints(node, known, findings)
    check_embed(node.properties, expanded.properties, findings)
    names.check_id_of_node(expanded, findings)


def _check_edge(edge: ast.EdgeDecl, findings: SchemaFindings) -> None:
    _check_properties(edge, "edge property", findings)
    check_annotations(edge.annotations, "edge type", findings)
    known = _types(edge.properties)
    own_groups = edge_groups(edge)
    groups.check_group_arguments(edge, findings)
    groups.check_members(edge.name, own_groups, known, findings, on_edge=True)
    groups.check_single_key(edge.name, own_groups, findings, on_edge=True)
    bounds.check_value_constraints(edge, known, findings)
    if edge.card is not None:
        bounds.check_card(edge.card, findings)


def _check_properties(owner: ast.Declaration, place: Place, findings: SchemaFindings) -> None:
    names.check_properties(owner, findings)
    check_backfill(owner.properties, findings)
    for p in owner.properties:
        types.check_type(p.type, findings)
        check_annotations(p.annotations, place, findings)


def _types(properties: Iterable[ast.PropertyDecl]) -> groups.Types:
    return {p.name.text: property_type(p.type) for p in properties}
