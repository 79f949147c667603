"""The Python API in thirty lines: create, load, read, refuse, look back."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from rich import print as show

import omnigraph

SCHEMA = """
node Person { name: String @key  born: Date? }
node Book   { title: String @key  year: I32  @range(year, 1450..2100) }
edge Wrote: Person -> Book { @key(@src, @dst) }
"""

with TemporaryDirectory() as folder, omnigraph.init(f"{folder}/books", SCHEMA) as graph:
    result = graph.load(
        [
            {"type": "Person", "data": {"name": "Mary Shelley", "born": "1797-08-30"}},
            {"type": "Book", "data": {"title": "Frankenstein", "year": 1818}},
            {"edge": "Wrote", "from": "Mary Shelley", "to": "Frankenstein"},
        ],
        actor="librarian",
        message="The first shelf",
    )
    show(result.total_entities, "entities in commit", result.commit and result.commit.id)
    show(graph.snapshot().rows("Book").to_dicts())
    try:
        graph.load([{"edge": "Wrote", "from": "Mary Shelley", "to": "The Last Man"}])
    except omnigraph.ConstraintError as error:
        show("refused:", error.message)
    show([(c.kind, c.actor, c.message) for c in graph.commits()])
