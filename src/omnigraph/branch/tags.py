"""Tags: names for commits, which keep them from being reclaimed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.errors import AlreadyExistsError, ErrorKind, NotFoundError
from omnigraph.manifest.refs import (
    TagRef,
    check_tag_name,
    create_tag_ref,
    find_tag,
    tag_names,
    tag_object,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.targets import tag_not_found
from omnigraph.write.fence import check_still_kept
from omnigraph.write.plan import check_lineage_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag as people see it."""

    name: str
    commit_id: str
    created_at_us: int
    actor: str | None
    message: str | None

    def to_dict(self) -> dict[str, Any]:
        """As ``tag list --json`` shows it."""
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "created_at": self.created_at_us,
            "actor_id": self.actor,
            "message": self.message,
        }


def list_tags(repository: Repository) -> list[Tag]:
    """All tags by name; one request each."""
    reads = [
        repository.background.pool.submit(find_tag, repository.objects, name)
        for name in tag_names(repository.objects)
    ]
    return [_tag(ref) for read in reads if (ref := read.result()) is not None]


def show_tag(repository: Repository, name: str) -> Tag:
    """One tag."""
    name = check_tag_name(name)
    ref = find_tag(repository.objects, name)
    if ref is None:
        raise tag_not_found(name, repository.location.uri)
    return _tag(ref)


def create_tag(
    repository: Repository,
    name: str,
    snapshot: Snapshot,
    *,
    actor: str | None = None,
    message: str | None = None,
) -> Tag:
    """Name the commit that made a snapshot. Raises ``AlreadyExistsError`` if the name is taken."""
    name = check_tag_name(name)
    check_lineage_text(actor, message)
    ref = TagRef(
        name=name,
        commit_id=snapshot.head.id,
        place=snapshot.head.place,
        created_at_us=repository.clock.now_us(),
        actor=actor,
        message=message,
    )
    # If this very tag is there, it was made and only the answer got lost.
    if not create_tag_ref(repository.objects, ref) and find_tag(repository.objects, name) != ref:
        raise AlreadyExistsError(
            f"there is a tag '{name}' already",
            kind=ErrorKind.TAG_EXISTS,
            hint="choose another name, or delete that one first",
            details={"tag": name},
        )
    try:
        check_still_kept(repository, snapshot)
    except NotFoundError:
        repository.objects.delete([tag_object(name)])
        raise
    repository.sync([tag_object(name)])
    return _tag(ref)


def delete_tag(repository: Repository, name: str) -> Tag:
    """Take a name away. The commit stays as long as a branch or another tag leads to it."""
    tag = show_tag(repository, name)
    repository.objects.delete([tag_object(tag.name)])
    return tag


def _tag(ref: TagRef) -> Tag:
    return Tag(
        name=ref.name,
        commit_id=ref.commit_id,
        created_at_us=ref.created_at_us,
        actor=ref.actor,
        message=ref.message,
    )
