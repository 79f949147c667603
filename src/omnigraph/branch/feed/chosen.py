"""Which changes a reader wants: kinds, types and operations.

    words -> [chosen] -> numbers of types, operations -> digest in cursors

Types are meant by their numbers, so a filter goes on meaning the same types when they are renamed,
and two spellings of one filter are one filter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omnigraph.branch.delta import Op
from omnigraph.branch.diff import KINDS, OPS
from omnigraph.errors import NotFoundError, UsageError
from omnigraph.schema.catalog import Catalog, GraphType, type_named

DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Some of the changes, in normal form; what is empty does not matter."""

    kinds: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    """Numbers of types."""
    ops: tuple[Op, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.kinds or self.types or self.ops)

    @property
    def digest(self) -> str:
        """What cursors carry to recognise it."""
        if self.is_everything:
            return ""
        words = [self.kinds, self.types, [int(op) for op in self.ops]]
        content = json.dumps(words, separators=(",", ":")).encode()
        return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]

    def wants(self, graph_type: GraphType) -> bool:
        """Whether changes of this type count."""
        kind_counts = not self.kinds or graph_type.kind in self.kinds
        return kind_counts and (not self.types or graph_type.id in self.types)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A filter as a user wrote it, with names of types."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    @staticmethod
    def of(kinds: Sequence[str], types: Sequence[str], ops: Sequence[str]) -> Wish:
        """Checked as far as that goes without a schema."""
        return Wish(kinds=_words("kind", kinds, KINDS), types=_words("type", types), ops=_ops(ops))

    def on(self, *schemas: Callable[[], Catalog]) -> ChangeFilter:
        """The filter, with types by their names in the first of the schemas that knows them."""
        numbers = {self._number(name, schemas) for name in self.types}
        return ChangeFilter(
            kinds=() if len(self.kinds) == len(KINDS) else self.kinds,
            types=tuple(sorted(numbers)),
            ops=() if len(self.ops) == len(OPS) else tuple(op for op in Op if op.word in self.ops),
        )

    @staticmethod
    def _number(name: str, schemas: Iterable[Callable[[], Catalog]]) -> int:
        missing: NotFoundError | None = None
        for schema in schemas:
            try:
                return type_named(schema(), name).id
            except NotFoundError as error:
                missing = missing or error
        if missing is None:
            raise UsageError("types are named, and there is no schema")
        raise missing


def _ops(ops: Sequence[str]) -> tuple[str, ...]:
    return _words("op", ops, OPS)


def _words(what: str, given: object, known: Sequence[str] | None = None) -> tuple[str, ...]:
    """Each word once; in the order of the known ones."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError("kinds, types and ops are lists of names", hint=f'say ["{given}"]')
    words: list[object] = list(given)
    for word in words:
        if known is not None and word not in known:
            raise UsageError(f"not a {what}: {word!r}", hint=f"it is one of {', '.join(known)}")
        if not isinstance(word, str):
            raise UsageError(f"a {what} is named by a text, not by {word!r}")
    found = {str(word): None for word in words}
    return tuple(found) if known is None else tuple(k for k in known if k in found)
