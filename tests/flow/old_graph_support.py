"""What the graph of format 1 contains, and what tests do to it."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import omnigraph

EXPECTED = Path(__file__).parents[1] / "fixtures" / "format-v1" / "expected"
FACTS: dict[str, Any] = json.loads((EXPECTED / "states.json").read_text(encoding="utf-8"))
STATES: dict[str, str] = FACTS["states"]
"""Texts of ``Graph.at`` to the files that say what they show."""
PAST = [state for state in STATES if "@" in state or state == "v1.0"]
"""Those that stay what they are whatever is written."""
NEW: dict[str, Any] = {
    "type": "Vessel",
    "data": {"imo": 50, "name": "New", "active": True, "rating": 2},
}


def shown(graph: omnigraph.Graph, state: str) -> bytes:
    """A state as JSONL."""
    out = io.BytesIO()
    graph.at(state).export(out)
    return out.getvalue()


def expected(state: str) -> bytes:
    """What a state showed when it was written."""
    return (EXPECTED / STATES[state]).read_bytes()


def stamp(graph: omnigraph.Graph, state: str = "main") -> int:
    """The format that a state is stamped with."""
    return graph.at(state).to_dict()["internal_schema_version"]


def imos(graph: omnigraph.Graph, state: str = "main") -> set[int]:
    """The vessels of a state."""
    return set(graph.at(state).rows("Vessel").to_arrow()["imo"].to_pylist())


def listing(root: Path) -> dict[str, tuple[int, str]]:
    """Everything below a folder: when it was changed, and what it is."""
    return {
        p.relative_to(root).as_posix(): (
            p.stat().st_mtime_ns,
            hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "folder",
        )
        for p in sorted(root.rglob("*"))
    }
