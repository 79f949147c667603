"""The public surface is what ``__all__`` says, and every error kind has a class that can carry it."""

from __future__ import annotations

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
