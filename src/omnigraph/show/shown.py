"""Values that notebooks show as a list of facts or as lines of text.

value -> [facts, or its text] -> html -> notebook
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from omnigraph.show import html


class Shown(ABC):
    """A value with a title and facts."""

    __slots__ = ()

    @abstractmethod
    def _facts(self) -> tuple[str, Mapping[str, Any]]: ...

    def _repr_html_(self) -> str:
        return html.facts(*self._facts())


class ShownAsText:
    """A value whose ``str`` is lines for people."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html.words(str(self))
