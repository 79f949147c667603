"""Rules about ``@key``, ``@unique`` and ``@index``: their members and their number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.resolve import ExpandedNode, Group, as_name, member_names, node_groups
from omnigraph.schema.words import ENDPOINTS, GROUPS

Types = Mapping[str, PropertyType | None]
"""Types of a declaration's properties by name; None for one that does not exist."""


def check_group_arguments(owner: ast.NodeDecl | ast.EdgeDecl, findings: SchemaFindings) -> None:
    """Members are names; ``@src`` and ``@dst`` open the key of an edge and stand nowhere else."""
    for c in owner.constraints:
        if c.word.text not in GROUPS:
            continue
        on_edge = isinstance(owner, ast.EdgeDecl)
        arguments = c.arguments
        if on_edge and c.word.text == "key":
            arguments = _check_edge_key(c, findings)
        for a in arguments:
            if isinstance(a, ast.EndpointRef):
                hint = f"write `{a.name}`" if on_edge else "only edges have endpoints"
                message = f"`@{a.name}` may only open the key of an edge"
                findings.add(SchemaCode.ENDPOINT_OUTSIDE_KEY, a.span, message, hint=hint)
            elif as_name(a) is None:
                message = f"`@{c.word}` takes names of properties"
                hint = f"write `@{c.word}(name)`, or `@{c.word}` alone behind a property"
                findings.add(SchemaCode.CONSTRAINT_ARGUMENTS, a.span, message, hint=hint)


def _check_edge_key(
    key: ast.ConstraintDecl, findings: SchemaFindings
) -> Sequence[ast.ConstraintArgument]:
    opening = [a.name.text if isinstance(a, ast.EndpointRef) else "" for a in key.arguments[:2]]
    if opening == list(ENDPOINTS):
        for name in member_names(key):
            if name.text in ENDPOINTS:
                message = f"`{name}` is a member of this `@key` twice"
                findings.add(SchemaCode.REPEATED_MEMBER, name.span, message)
        return key.arguments[2:]
    further = [n.text for n in member_names(key) if n.text not in ENDPOINTS]
    findings.add(
        SchemaCode.EDGE_KEY_ENDPOINTS,
        key.span,
        "the key of an edge does not start with its endpoints",
        hint=f"write `@key({', '.join(['@src', '@dst', *dict.fromkeys(further)])})`",
    )
    return [a for a in key.arguments if not isinstance(a, ast.EndpointRef)]


def check_members(
    owner: ast.Name,
    groups: Iterable[Group],
    types: Types,
    findings: SchemaFindings,
    *,
    on_edge: bool,
) -> None:
    """Members exist, stand once, and are of a kind that the constraint can be kept on."""
    for group in groups:
        # Where endpoints stand in a key is the business of `check_group_arguments`.
        endpoints = ENDPOINTS if on_edge else ()
        seen: set[str] = set()
        for member in group.members:
            if member.text in seen:
                message = f"`{member}` is a member of this `@{group.word}` twice"
                findings.add(SchemaCode.REPEATED_MEMBER, member.span, message)
            seen.add(member.text)
            if member.text in types:
                _check_member(group, member, types[member.text], findings)
            elif member.text not in endpoints:
                report_unknown(owner, member, (*types, *endpoints), findings)


def _check_member(
    group: Group, member: ast.Name, found: PropertyType | None, findings: SchemaFindings
) -> None:
    if found is None:
        return
    # Where the constraint is a body line the member is underlined, else the annotation.
    span = member.span if group.span.start < member.span.start else group.span
    vector = found.scalar is Scalar.VECTOR and group.word != "index"
    if found.is_list or found.scalar is Scalar.BLOB or vector:
        message = f"`@{group.word}` is not possible on `{member}` of type `{found}`"
        findings.add(SchemaCode.TYPE_NOT_CONSTRAINABLE, span, message)
    if group.word == "key" and found.nullable:
        message = f"key member `{member}` may not be nullable"
        findings.add(SchemaCode.NULLABLE_KEY, span, message, hint="remove the `?` of its type")


def report_unknown(
    owner: ast.Name, member: ast.Name, known: Iterable[str], findings: SchemaFindings
) -> None:
    """A constraint names a property that is not there."""
    message = f"`{owner}` has no property `{member}`"
    hint = did_you_mean(member.text, known)
    findings.add(SchemaCode.UNKNOWN_PROPERTY, member.span, message, hint=hint)


def check_single_key(
    owner: ast.Name, groups: Iterable[Group], findings: SchemaFindings, *, on_edge: bool
) -> None:
    """At most one key among the groups a declaration writes itself."""
    keys = [g for g in groups if g.word == "key"]
    for second in keys[1:]:
        members = list(dict.fromkeys(n for k in keys for n in k.names))
        several = f"for one key of several members write `@key({', '.join(members)})` in the body"
        findings.add(
            SchemaCode.SECOND_KEY,
            second.span,
            f"`{owner}` has a second key",
            hint=several if len(members) > 1 and not on_edge else "remove one of them",
        )


def check_inherited_key(node: ExpandedNode, findings: SchemaFindings) -> None:
    """A key from an interface must not meet another key in the node."""
    own = [g for g in node_groups(node.decl) if g.word == "key"]
    inherited = [g for g in node.inherited_groups if g.word == "key"]
    if inherited and len(own) + len(inherited) > 1:
        names = [n for g in (*own, *inherited) for n in g.names]
        findings.add(
            SchemaCode.SECOND_KEY,
            node.decl.name.span,
            f"`{node.decl.name}` gets more than one key: {', '.join(names)}",
            hint="declare an inherited key property in the node, without `@key`, to leave it out",
        )
