"""Tags: names for commits, which keep them from being reclaimed."""

from __future__ import annotations

from omnigraph.errors import AlreadyExistsError, ErrorKind, NotFoundError
from omnigraph.manifest.refs import (
    Tag,
    check_tag_name,
    create_tag_ref,
    find_tag,
    tag_names,
    tag_object,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.targets import check_new_name, tag_not_found
from omnigraph.write.fence import check_still_kept
from omnigraph.write.plan import check_lineage_text


def list_tags(repository: Repository) -> list[Tag]:
    """All tags by name; one request each."""
    reads = [
        repository.background.pool.submit(find_tag, repository.objects, name)
        for name in tag_names(repository.objects)
    ]
    return [tag for read in reads if (tag := read.result()) is not None]


def show_tag(repository: Repository, name: str) -> Tag:
    """One tag."""
    name = check_tag_name(name)
    tag = find_tag(repository.objects, name)
    if tag is None:
        raise tag_not_found(name, repository.location.uri)
    return tag


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
    check_new_name(name, "tag")
    check_lineage_text(actor, message)
    tag = Tag(
        name=name,
        commit_id=snapshot.head.id,
        place=snapshot.head.place,
        created_at_us=repository.clock.now_us(),
        actor=actor,
        message=message,
    )
    # If this very tag is there, it was made and only the answer got lost.
    if not create_tag_ref(repository.objects, tag) and find_tag(repository.objects, name) != tag:
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
    return tag


def delete_tag(repository: Repository, name: str) -> Tag:
    """Take a name away. The commit stays as long as a branch or another tag leads to it."""
    tag = show_tag(repository, name)
    repository.objects.delete([tag_object(tag.name)])
    return tag
