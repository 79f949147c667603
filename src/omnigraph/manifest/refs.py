"""Which branches and tags exist: small objects that are created once and never changed.

``main`` is the dataset ``__manifest``. A *life* of any other branch is a ref object that names its
manifest dataset and its fork point:

    _refs/branches/<quoted name>/1.json    the first life of the name
    _refs/branches/<quoted name>/1.dead    it ended
    _refs/branches/<quoted name>/2.json    the name was used again

Both are created with put-if-absent and never replaced, so no process can take away what another
one has just made, and nothing of an old life is mistaken for a new one. The number of a life is
never given twice. Of a name that was used often a cleanup leaves the first ref, so that this number
stays taken, and the last life, which says how far the name got (``superseded``); what takes a later
number looks once more whether it is the last one. A tag is one object that names a commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.snapshot import ManifestPlace
from omnigraph.storage.objects import Objects

BRANCHES, TAGS = "_refs/branches", "_refs/tags"
NAME_LENGTH_MAX = 200
LOOKS_MAX = 8
_QUOTED_LENGTH_MAX = 240
"""Names of files have at most 255 bytes on every file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRef:
    """One life of one branch."""

    name: str
    life: int
    """Counts how often the name was used, from 1."""
    incarnation: str
    parent: str
    """The branch it started from, as it was called then."""
    fork_commit: str
    """The commit it started from."""
    created_at_us: int
    actor: str | None = None

    @property
    def manifest_path(self) -> str:
        """The branch's manifest dataset, relative to the root."""
        return branch_path(self.incarnation)

    @property
    def object_name(self) -> str:
        """The ref object."""
        return f"{_folder(self.name)}/{self.life}.json"

    @property
    def death_name(self) -> str:
        """The object whose presence says that this life is over."""
        return f"{_folder(self.name)}/{self.life}.dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for a commit, which keeps it from being reclaimed."""

    name: str
    commit_id: str
    place: ManifestPlace
    created_at_us: int
    actor: str | None = None
    message: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``tag list --json`` shows it."""
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "created_at": self.created_at_us,
            "actor_id": self.actor,
            "message": self.message,
        }


def branch_path(incarnation: str) -> str:
    """The manifest dataset of one life of a branch."""
    return f"_branches/{incarnation}"


def check_branch_name(branch: str) -> str:
    """A usable branch name, trimmed."""
    return _checked(branch, "branch")


def check_tag_name(tag: str) -> str:
    """A usable tag name, trimmed."""
    return _checked(tag, "tag")


def branch_names(objects: Objects) -> list[str]:
    """Names of all living branches but main, sorted. One listing, whatever their number."""
    return sorted(name for name, over in all_lives(objects).items() if not over[max(over)])


def first_life(objects: Objects, name: str) -> BranchRef | None:
    """The first life of a name, whether it is over or not: one request.

    Nearly every name is used once, and a life that is over says so in its manifest.
    """
    return branch_ref(objects, name, 1)


def find_branch(objects: Objects, name: str) -> BranchRef | None:
    """The living branch of a name. One listing of its few lives, and its ref."""
    for _ in range(LOOKS_MAX):
        life, dead = newest_life(objects, name)
        if not life or dead:
            return None
        # It may have ended since it was listed, and a cleanup was fast.
        if (ref := branch_ref(objects, name, life)) is not None:
            return ref
    raise CorruptionError(
        f"the ref of branch '{name}' is missing", hint="restore it from a copy of the graph"
    )


def branch_ref(objects: Objects, name: str, life: int) -> BranchRef | None:
    """One life of a name; None if nothing of it is left."""
    content = objects.get(f"{_folder(name)}/{life}.json")
    return _decode_branch(content, name, life) if content is not None else None


def all_lives(objects: Objects) -> dict[str, dict[int, bool]]:
    """Every name with its lives as far as they are left, and whether each is over: one listing."""
    found: dict[str, dict[int, bool]] = {}
    for folder, life, dead in _lives(objects.names(BRANCHES)):
        lives = found.setdefault(unquote(folder), {})
        lives[life] = dead or lives.get(life, False)
    return found


def superseded(names: Iterable[str]) -> Iterator[str]:
    """Objects of lives that are no longer needed.

    A life is over as soon as there is a later one. The last number has to be known, and the first
    one has to stay taken: a create tries that one without looking.
    """
    lives: dict[str, list[tuple[int, bool, str]]] = {}
    for name in names:
        for folder, life, dead in _lives(iter([name])):
            lives.setdefault(folder, []).append((life, dead, name))
    for found in lives.values():
        last = max(life for life, _, _ in found)
        ended = (last, True) in ((life, dead) for life, dead, _ in found)
        for life, dead, name in found:
            is_first = life == 1 and not dead
            over = life < last or (ended and not dead)
            if over and not is_first:
                yield name


def newest_life(objects: Objects, name: str) -> tuple[int, bool]:
    """How often a name was used, and whether the last of those lives is over."""
    found = [(life, dead) for _, life, dead in _lives(objects.names(_folder(name)))]
    newest = max((life for life, _ in found), default=0)
    return newest, (newest, True) in found


def create_branch_ref(objects: Objects, ref: BranchRef) -> bool:
    """Make a branch exist; False if another process was first."""
    return objects.create(ref.object_name, _encode_branch(ref))


def end_branch_ref(objects: Objects, ref: BranchRef, *, swept: bool = True) -> str:
    """Say that a life is over, and return the object that says so.

    It may have been over before: a branch that got its old name back has a later life of it, which
    a process that opened it by the first one does not know of. Then that one ends. A cleanup takes
    the word away that the first one is over; where there was none (``swept``) no look is needed.
    """
    if not objects.create(ref.death_name, b"{}") or swept:
        later = find_branch(objects, ref.name)
        if later is not None and later.incarnation == ref.incarnation:
            objects.create(later.death_name, b"{}")
            return later.death_name
    return ref.death_name


def branch_not_found(name: str, where: str) -> NotFoundError:
    """There is no such branch."""
    return NotFoundError(
        f"no branch '{name}' in {where}",
        kind=ErrorKind.BRANCH_NOT_FOUND,
        hint="'omnigraph branch list' shows the branches",
        details={"branch": name},
    )


def tag_names(objects: Objects) -> list[str]:
    """Names of all tags, sorted."""
    names = [n.removeprefix(f"{TAGS}/") for n in objects.names(TAGS)]
    return sorted(unquote(n.removesuffix(".json")) for n in names if n.endswith(".json"))


def find_tag(objects: Objects, name: str) -> Tag | None:
    """A tag by name: one request."""
    content = objects.get(tag_object(name))
    return _decode_tag(content, name) if content is not None else None


def create_tag_ref(objects: Objects, tag: Tag) -> bool:
    """Make a tag exist; False if there is one of this name."""
    return objects.create(tag_object(tag.name), _encode_tag(tag))


def tag_object(name: str) -> str:
    """The object of a tag."""
    return f"{TAGS}/{quote(name, safe='')}.json"


def _folder(branch: str) -> str:
    # One flat folder per name, so no name is a prefix of another.
    return f"{BRANCHES}/{quote(branch, safe='')}"


def _lives(names: Iterator[str]) -> Iterator[tuple[str, int, bool]]:
    """Quoted name, number of the life, and whether the object says that it is over."""
    for name in names:
        folder, _, file = name.removeprefix(f"{BRANCHES}/").rpartition("/")
        number, _, suffix = file.partition(".")
        if folder and number.isdigit() and suffix in ("json", "dead"):
            yield folder, int(number), suffix == "dead"


def _checked(name: object, what: str) -> str:
    if not isinstance(name, str):
        raise UsageError(f"a {what} is named by a text, not by {name!r}")
    trimmed = name.strip()
    if (
        not trimmed
        or len(trimmed) > NAME_LENGTH_MAX
        or any(ord(c) < 32 or "\ud800" <= c <= "\udfff" for c in trimmed)
        or len(quote(trimmed, safe="")) > _QUOTED_LENGTH_MAX
        or trimmed in (".", "..")
    ):
        raise UsageError(
            f"not a {what} name: {name!r}",
            hint=f"use 1 to {NAME_LENGTH_MAX} printable characters, fewer if they are not ASCII",
        )
    return trimmed


def _encode_branch(ref: BranchRef) -> bytes:
    return _json(
        name=ref.name,
        incarnation=ref.incarnation,
        parent=ref.parent,
        fork_commit=ref.fork_commit,
        at=ref.created_at_us,
        actor=ref.actor,
    )


def _decode_branch(content: bytes, name: str, life: int) -> BranchRef:
    try:
        fields = json.loads(content)
        return BranchRef(
            name=name,  # Where it lies says whose it is, whichever release put it there.
            life=life,
            incarnation=fields["incarnation"],
            parent=fields["parent"],
            fork_commit=fields["fork_commit"],
            created_at_us=fields["at"],
            actor=fields.get("actor"),
        )
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptionError(f"the ref of branch '{name}' cannot be read: {e}") from e


def _encode_tag(tag: Tag) -> bytes:
    return _json(
        name=tag.name,
        commit=tag.commit_id,
        place=tag.place.fields,
        at=tag.created_at_us,
        actor=tag.actor,
        message=tag.message,
    )


def _decode_tag(content: bytes, name: str) -> Tag:
    try:
        fields = json.loads(content)
        return Tag(
            name=fields["name"],
            commit_id=fields["commit"],
            place=ManifestPlace.of(fields["place"]),
            created_at_us=fields["at"],
            actor=fields.get("actor"),
            message=fields.get("message"),
        )
    except (ValueError, KeyError, TypeError) as e:
        raise CorruptionError(f"the tag '{name}' cannot be read: {e}") from e


def _json(**fields: Any) -> bytes:
    present = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(present, separators=(",", ":"), ensure_ascii=False).encode()
