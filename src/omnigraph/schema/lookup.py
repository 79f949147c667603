"""A type by the name that was given, or an error that helps."""

from __future__ import annotations

from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema.catalog import Catalog, GraphType


def type_named(catalog: Catalog, name: str) -> GraphType:
    """The node type of this name, else the edge type (in any case). Raises ``NotFoundError``."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a type is named by a text, not by {name!r}")
    found = catalog.nodes.get(name) or catalog.edge(name)
    if found is None:
        raise type_not_found(catalog, name)
    return found


def type_not_found(catalog: Catalog, name: str) -> NotFoundError:
    """There is no such type."""
    known = [t.name for t in catalog.types()]
    return NotFoundError(
        f"no type '{name}' in this graph",
        kind=ErrorKind.TYPE_NOT_FOUND,
        hint=did_you_mean(name, known) or f"it has {', '.join(known) or 'no types'}",
        details={"type_name": name},
    )
