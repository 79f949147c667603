"""Traversals as Cypher draws them, read only to say how they are written here.

    clauses -> [arrows] -> a hint

`$a -[:KNOWS]-> $b` has tokens of this language and none of its meanings. What it says is clear all
the same, so the message shows the very traversal in our words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.lang.source import Span

_ARROW = re.compile(
    r"""\s*(?P<arrow>
        (?P<back><)?-
        (?: \s* \[ (?P<label>[^\]\n]*) \] \s* - | \s* (?P<word>[A-Za-z_]\w*) \s* - | - )?
        (?P<forth>>)?
    )[ \t]*(?P<target>\$?[A-Za-z_]\w*|\()?""",
    re.VERBOSE,
)
_LABEL = re.compile(
    r"""\s* (?P<name>\$?\w+)? \s* (?: : \s* (?P<word>\w+) )? \s*
        (?P<star>\*)? \s* (?P<low>\d+)? \s* (?P<dots>\.\.)? \s* (?P<high>\d+)?""",
    re.VERBOSE,
)
GENERAL_HINT = "write `$a: Person` for a node and follow an edge by its word: `$a knows $b`"
_WORD = "knows"


@dataclass(frozen=True, slots=True, kw_only=True)
class CypherArrow:
    """An arrow behind a variable."""

    text: str
    span: Span
    label: str
    word: str | None
    directed: bool
    reversed: bool
    target: str | None
    """`(` for a node that is drawn as well."""

    def hint(self, source: str) -> str:
        """How to write the traversal from this variable."""
        if self.target in (None, "("):
            return GENERAL_HINT
        ends = (source, f"${self.target.removeprefix('$')}")
        first, second = reversed(ends) if self.reversed else ends
        if self.word is not None:
            return f"write `{first} {self._edge(self.word, '', '')} {second}`"
        found = _LABEL.match(self.label)
        if not self.label.strip() or found is None:
            return f"follow an edge by its word: `{first} {self._edge(_WORD, '', '')} {second}`"
        word, name = found["word"], found["name"] or ""
        if word is None:
            word, name = name or _WORD, ""
        hops = _hops(found) if found["star"] else ""
        name = "" if hops else name  # A variable stands for a single edge.
        return f"write `{first} {self._edge(word, name.removeprefix('$'), hops)} {second}`"

    def _edge(self, word: str, name: str, hops: str) -> str:
        word = word.lower() if word.isupper() else f"{word[0].lower()}{word[1:]}"
        word = word if self.directed else f"<{word}>"
        return f"{f'${name}:' if name else ''}{word}{hops}"


def _hops(found: re.Match[str]) -> str:
    low, high = found["low"], found["high"]
    if not found["dots"]:
        return f"{{{low},{low}}}" if low else "{1,3}"
    return f"{{{low or 1},{high or ''}}}"


def arrow_at(text: str, start: int) -> CypherArrow | None:
    """The arrow that stands there, if one does; `$a - $b` and `$n <-1` have none."""
    found = _ARROW.match(text, start)
    if found is None or found["arrow"] == "-":
        return None
    if found["arrow"] == "<-" and found["target"] is None:
        return None
    return CypherArrow(
        text=found["arrow"],
        span=Span(start=found.start("arrow"), end=found.end("arrow")),
        label=found["label"] or "",
        word=found["word"],
        directed=bool(found["back"]) != bool(found["forth"]),
        reversed=bool(found["back"]) and not found["forth"],
        target=found["target"],
    )
