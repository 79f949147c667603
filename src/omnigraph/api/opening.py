"""How a graph is created or opened: ``omnigraph.init`` and ``omnigraph.open``.

uri -> [opening] -> repository -> Graph
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.api.graph import Graph
from omnigraph.choices import DurabilityWord
from omnigraph.clock import Clock
from omnigraph.errors import NotFoundError, UsageError
from omnigraph.ids import IdSource
from omnigraph.logs import logger
from omnigraph.manifest.repository import Durability, Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.storage.location import locate
from omnigraph.text_file import schema_text

if TYPE_CHECKING:
    from omnigraph.query.search.embedding import Embedder

Uri = str | os.PathLike[str]
_log = logger("api")


def init(
    uri: Uri,
    schema: str | os.PathLike[str],
    *,
    actor: str | None = None,
    durability: DurabilityWord = "process",
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Graph:
    """Create a graph at ``uri`` and open it.

    ``schema`` is `.pg` text, or the path of a `.pg` file. Raises ``SchemaError`` with every finding
    in the text, ``AlreadyExistsError`` if there is a graph already. Costs at most 12 object-store
    requests, whatever the number of types.
    """
    from omnigraph.write.init import initialise

    text, name = schema_text(schema)
    repository = initialise(
        locate(uri),
        text,
        schema_name=name,
        actor=actor,
        durability=_durability(durability),
        clock=clock,
        ids=ids,
    )
    return Graph(repository)


def open(
    uri: Uri,
    *,
    durability: DurabilityWord = "process",
    embedder: Embedder | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
) -> Graph:
    """Open the graph at ``uri``. Raises ``NotFoundError`` if there is none.

    Opening writes nothing. It costs at most 6 object-store requests at any depth of history.
    ``embedder`` turns the text of a ``nearest`` search into a vector.
    """
    location = locate(uri)
    if location.local_path is not None:
        _check_folder(location.uri, location.local_path)
    repository = Repository(location, durability=_durability(durability), clock=clock, ids=ids)
    head = repository.branch(MAIN).head
    repository.schema(head.snapshot.schema_hash)
    _log.debug("opened %s at version %d", location.uri, head.snapshot.version)
    graph = Graph(repository, embedder)
    if repository.seems_moved and (before := graph.upkeep.moved_from()) is not None:
        _log.warning("%s", moved_text(location.uri, before))
    return graph


def moved_text(uri: str, before: str) -> str:
    """What a program that opens a moved or copied graph is told."""
    return (
        f"{uri} was moved or copied from {before}: other Lance programs find the tables of the old "
        "place until the next write, or omnigraph repair --confirm"
    )


def _check_folder(uri: str, path: Path) -> None:
    try:
        if path.is_dir():
            return
        why = "it is not a folder" if path.exists() else "no such folder"
    except OSError as e:  # A name that is too long, a folder that may not be entered.
        why = e.strerror or str(e)
    raise NotFoundError(
        f"no graph at {uri}: {why}", hint=f"create one: omnigraph init --schema FILE {uri}"
    )


def _durability(durability: str) -> Durability:
    try:
        return Durability(durability)
    except ValueError as e:
        raise UsageError(f"unknown durability '{durability}'", hint="use process or fsync") from e
