"""Create a graph: schema objects first, then the one commit that makes it exist.

Costs the same for one type and for two hundred: a declared type gets its dataset with its first
rows. Two processes that create the same graph: exactly one wins. A crash before the manifest leaves
schema objects that nothing refers to, and ``init`` can simply be run again.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.clock import Clock
from omnigraph.errors import AlreadyExistsError, OmnigraphError, WriteInterrupted
from omnigraph.failpoints import FailPoint, hit
from omnigraph.ids import IdSource
from omnigraph.interrupts import InterruptGate
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Durability, Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, GraphCommit, ManifestPlace, Snapshot
from omnigraph.manifest.store import ManifestStore, StagedHead
from omnigraph.schema.compile import compile_schema
from omnigraph.storage.location import Location
from omnigraph.write.plan import check_lineage_text


def initialise(
    location: Location,
    schema_text: str,
    *,
    schema_name: str,
    actor: str | None,
    durability: Durability,
    clock: Clock | None,
    ids: IdSource | None,
) -> Repository:
    """Make a graph with this schema and return it open."""
    # Everything is checked before anything is touched.
    check_lineage_text(actor, None)
    catalog = compile_schema(schema_text, source_name=schema_name)
    schema = AcceptedSchema.of(catalog, schema_text)
    repository = Repository(location, durability=durability, clock=clock, ids=ids, create=True)
    store = repository.manifest(MAIN_PATH)
    if store.hinted():
        raise _exists(location)
    repository.accept(schema)
    staged = store.stage_first(_genesis(repository, schema, actor))
    if staged is None:
        raise _exists(location)
    repository.sync(store.files_of(staged))
    hit(FailPoint.INIT_BEFORE_MANIFEST)
    try:
        with InterruptGate() as gate:
            gate.hold()
            _create(repository, store, staged)
    except KeyboardInterrupt as e:
        # It waited for the answer, unless it was the second one.
        commit_id = staged.snapshot.head.id
        raise WriteInterrupted(
            commit_id, published=bool(repository.branches.published) or None
        ) from e
    return repository


def _create(repository: Repository, store: ManifestStore, staged: StagedHead) -> None:
    head = store.create(staged)
    if head is None:
        raise _exists(repository.location)
    repository.branches.published = head.snapshot.head.id
    hit(FailPoint.INIT_AFTER_MANIFEST)
    repository.sync([store.manifest_name(1)])
    repository.sync_root()
    with suppress(OmnigraphError):  # The graph exists; without a hint it is found by listing.
        store.write_hint(head)
    repository.branches.keep(Branch(MAIN, store, head, clock=repository.clock))


def _genesis(repository: Repository, schema: AcceptedSchema, actor: str | None) -> Snapshot:
    commit = GraphCommit(
        id=repository.ids.ulid(),
        parent_id=None,
        merged_parent_id=None,
        branch=MAIN,
        place=ManifestPlace(path=MAIN_PATH, version=1),
        kind="init",
        actor=actor,
        message=None,
        created_at_us=repository.clock.now_us(),
        changes={},
    )
    return Snapshot(
        graph_id=repository.ids.ulid(),
        branch=MAIN,
        version=1,
        schema_hash=schema.hash,
        pins={},
        commits=(commit,),
        format=graph_format.FORMAT,
    )


def _exists(location: Location) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"there is a graph at {location.uri} already",
        hint="choose another place, or load into the graph that is there",
        details={"uri": location.uri},
    )
