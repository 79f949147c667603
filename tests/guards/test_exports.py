"""The public surface is what ``__all__`` says, and every error kind has a class that can carry it."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import omnigraph
from omnigraph import errors


def test_all_names_exist_and_are_documented() -> None:
    for name in omnigraph.__all__:
        value = getattr(omnigraph, name)
        if name != "__version__":
            assert value.__doc__, name


def test_every_error_class_is_exported() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type)
        and issubclass(value, errors.OmnigraphError)
        and name != "TextError"
    }
    assert classes <= set(omnigraph.__all__)


def test_what_upkeep_returns_is_exported() -> None:
    from omnigraph.api.upkeep import Recovery, Upkeep

    graph = omnigraph.Graph
    methods = [graph.optimize, graph.indexes, graph.build_indexes, graph.schema_plan]
    methods += [graph.schema_apply, graph.explain, graph.query]
    for owner in (Upkeep, Recovery):
        methods += [m for name, m in vars(owner).items() if not name.startswith("_")]
    # Methods import late, so their modules need not have these names. The public ones must do.
    public = {name: getattr(omnigraph, name) for name in omnigraph.__all__}
    for method in methods:
        for value in _classes(get_type_hints(method, localns=public)["return"]):
            assert public.get(value.__name__) is value, (method, value)


def _classes(annotation: Any) -> list[type]:
    """Our own classes in an annotation, also those inside a tuple."""
    inner = [c for part in get_args(annotation) for c in _classes(part)]
    own = isinstance(annotation, type) and annotation.__module__.startswith("omnigraph.")
    return [*inner, annotation] if own else inner
