"""What to look at: a branch, a tag, a commit, a version or a moment.

    "main@2026-11-15" -> [target] -> snapshot

| text                     | means                                                        |
|--------------------------|--------------------------------------------------------------|
| `main`                   | the newest state of a branch                                 |
| `v1.0`                   | the commit that a tag names                                  |
| `01JQ…`                  | a commit: its id, or the beginning of it                     |
| `main@12`                | version 12 of a branch's manifest                            |
| `main@2026-11-15T10:00Z` | what a branch showed at that moment (UTC if no zone is named)|
| `main@yesterday`         | the same in words (see ``spoken``)                           |
| `HEAD`                   | main                                                         |
| `main~2`, `HEAD~`        | so many commits before it on its own line; one without number|

A name that could be several of these is looked up in this order; `branch:x`, `tag:x` and `commit:x`
say which one is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.clock import Clock
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.kept import check_whole
from omnigraph.manifest.moments import left_behind, state_at
from omnigraph.manifest.refs import branch_names, check_tag_name, find_branch, find_tag, tag_names
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, ManifestPlace, Snapshot
from omnigraph.manifest.spoken import EXAMPLES, spoken_moment

HEAD = "HEAD"
"""Another name for main, for hands that are used to git: no branch is checked out here."""
_BACK = re.compile(r"(.+)~(\d{0,9})", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A state of a graph, as a user names it. At most one of the details is given."""

    branch: str | None = None
    """None: main, or for a commit whichever branch has it."""
    commit: str | None = None
    tag: str | None = None
    version: int | None = None
    at_us: int | None = None
    name: str | None = None
    """A branch, a tag or a commit, whichever there is."""

    @staticmethod
    def parse(text: str) -> Target:
        """A target from its text."""
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"not a branch, tag or commit: {text!r}", hint="for example: main")
        kind, colon, rest = text.strip().partition(":")
        if colon and rest and (made := _said(kind, rest)) is not None:
            return made
        name, at, detail = text.strip().rpartition("@")
        if at and name:
            if detail.isdecimal():
                return Target(branch=name, version=int(detail))
            if (moment := moment_of(detail)) is not None:
                return Target(branch=name, at_us=moment)
        return Target(name=text.strip())

    @staticmethod
    def of(
        *,
        branch: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        version: int | None = None,
        at: str | datetime | None = None,
        clock: Clock | None = None,
    ) -> Target:
        """A target from separate options, of which some exclude each other.

        ``at`` may be in words if there is a clock.
        """
        details = {"commit": commit, "tag": tag, "version": version, "at": at}
        given = [name for name, value in details.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} name two states", hint="give one of them")
        if tag is not None and branch is not None:
            raise UsageError("a tag belongs to no branch", hint="leave the branch out")
        if version is not None and (isinstance(version, bool) or not isinstance(version, int)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"version is {version!r}", hint="a manifest version is a number")
        at_us = moment_us(at, clock) if at is not None else None
        return Target(branch=branch, commit=commit, tag=tag, version=version, at_us=at_us)


_COMMIT_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.I)


def check_new_name(name: str, what: str) -> None:
    """Refuse a new name that would be read as something else: a commit, a version, a moment."""
    target = Target.parse(name)
    meaning = "the id of a commit" if _COMMIT_ID.fullmatch(name) else None
    if target.version is not None:
        meaning = f"version {target.version} of '{target.branch}'"
    elif target.at_us is not None:
        meaning = f"a moment of '{target.branch}'"
    elif target.name is None:
        meaning = f"a {name.partition(':')[0]} called '{name.partition(':')[2]}'"
    if meaning is not None:
        raise UsageError(
            f"a {what} cannot be called '{name}': that means {meaning}",
            hint="leave out what stands before ':' and from '@' on"
            if target.name is None
            else "choose another name",
        )


def _said(kind: str, name: str) -> Target | None:
    match kind:
        case "branch":
            return Target(branch=name)
        case "tag":
            return Target(tag=name)
        case "commit":
            return Target(commit=name)
        case _:
            return None


def resolve(repository: Repository, target: Target) -> Snapshot:
    """The state that a target names. Raises ``NotFoundError`` if there is none."""
    if target.name is not None:
        return _named(repository, target.name)
    if target.tag is not None:
        return _tagged(repository, target.tag)
    if target.commit is not None:
        return _whole(repository, find_commit(repository, target).place)
    branch = target.branch if target.branch is not None else MAIN
    newest = repository.head(branch).snapshot
    if target.version is not None:
        if not 1 <= target.version <= newest.version:
            raise NotFoundError(
                f"branch '{branch}' has no manifest version {target.version}",
                kind=ErrorKind.COMMIT_NOT_FOUND,
                hint=f"its versions are 1 to {newest.version}",
                details={"branch": branch, "version": target.version},
            )
        return _whole(repository, ManifestPlace(path=newest.path, version=target.version))
    if target.at_us is None:
        return newest
    return _whole(repository, state_at(repository, newest, target.at_us).place)


def _whole(repository: Repository, place: ManifestPlace) -> Snapshot:
    """A past state that can be read. Raises ``NotFoundError`` if a cleanup took its tables."""
    snapshot = repository.lineage.snapshot(place)
    check_whole(repository, snapshot, repository.branch(MAIN).head.snapshot.swept)
    return snapshot


def find_commit(repository: Repository, target: Target) -> GraphCommit:
    """The commit that a target names: on its branch, else on main, else anywhere in the graph.

    Anywhere is on another branch, at a tag, or among the commits that a reset left behind.
    """
    wanted = str(target.commit).strip()
    if target.branch is not None:
        head = repository.head(target.branch).snapshot
        return _commit_behind(repository, head, wanted, target.branch)
    for state in _states(repository):
        with suppress(NotFoundError):
            return _commit_behind(repository, state, wanted, None)
    raise commit_not_found(wanted, None)


def _states(repository: Repository) -> Iterator[Snapshot]:
    """States that all commits lie behind: main first, then other branches, resets, tags."""
    heads: list[Snapshot] = []
    for name in (MAIN, *branch_names(repository.objects)):
        with suppress(NotFoundError):  # Ended since it was listed.
            heads.append(repository.head(name).snapshot)
            yield heads[-1]
    for head in heads:
        yield from left_behind(repository.lineage, head)
    for name in tag_names(repository.objects):
        tag = find_tag(repository.objects, name)
        if tag is not None:
            with suppress(NotFoundError):
                yield repository.lineage.snapshot(tag.place)


def _commit_behind(
    repository: Repository, state: Snapshot, wanted: str, branch: str | None
) -> GraphCommit:
    def search() -> GraphCommit:
        return commit_named(repository.lineage.reachable(state), wanted, branch)

    if len(wanted) == COMMIT_ID_LENGTH:
        return repository.lineage.find(state, wanted.upper(), search)
    return search()


def moment_us(moment: object, clock: Clock | None = None) -> int:
    """A moment in microseconds since 1970; with a clock also one in words, such as `yesterday`."""
    if isinstance(moment, datetime):
        return _microseconds(moment)
    found = moment_of(moment) if isinstance(moment, str) else None
    if found is None and clock is not None and isinstance(moment, str):
        found = spoken_moment(moment, clock.now_us())
    if found is None:
        raise UsageError(
            f"not a moment: {moment!r}",
            hint=f"for example 2026-11-15 or 2026-11-15T10:30:00Z, or {EXAMPLES}",
        )
    return found


def _named(repository: Repository, name: str) -> Snapshot:
    if name == MAIN or find_branch_quietly(repository, name):
        return repository.head(name).snapshot
    tag = find_tag(repository.objects, name)
    if tag is not None:
        return repository.lineage.snapshot(tag.place)
    if looks_like_commit(name):
        return _whole(repository, find_commit(repository, Target(commit=name)).place)
    if name == HEAD:
        return repository.head(MAIN).snapshot
    branch, _, words = name.rpartition("@")
    spoken = spoken_moment(words, repository.clock.now_us()) if branch else None
    if spoken is not None:
        return resolve(repository, Target(branch=_unaliased(branch), at_us=spoken))
    if (back := _BACK.fullmatch(name)) is not None:
        return _before(repository, back[1], int(back[2] or 1))
    raise NotFoundError(
        f"no branch, tag or commit '{name}' in {repository.location.uri}",
        kind=ErrorKind.BRANCH_NOT_FOUND,
        hint=_spelled(name)
        or "'omnigraph branch list', 'tag list' and 'commit list' show what there is",
        details={"name": name},
    )


def _unaliased(branch: str) -> str:
    return MAIN if branch == HEAD else branch


def _before(repository: Repository, name: str, steps: int) -> Snapshot:
    """The state so many commits before another one, on its own line."""
    state = resolve(repository, Target.parse(name))
    if not steps:
        return state
    line = repository.lineage.first_parents(state)
    for behind, commit in enumerate(line):
        if behind == steps:
            return _whole(repository, commit.place)
    raise NotFoundError(
        f"'{name}' has no {steps} commits before it",
        kind=ErrorKind.COMMIT_NOT_FOUND,
        hint="'omnigraph commit list --first-parent' shows the commits of the line",
        details={"name": name, "steps": steps},
    )


def _spelled(name: str) -> str | None:
    """What may have been meant by something like a moment."""
    if moment_of(name) is not None:
        return f"a moment is one of a branch: main@{name}"
    if "@" in name:
        return "behind @ stands a version, or a moment such as 2026-11-15T10:30:00Z"
    return None


def find_branch_quietly(repository: Repository, name: str) -> bool:
    """Whether a text is the name of a living branch; any text may be asked."""
    try:
        return find_branch(repository.objects, name) is not None
    except UsageError:
        return False


def _tagged(repository: Repository, name: str) -> Snapshot:
    tag = find_tag(repository.objects, check_tag_name(name))
    if tag is None:
        raise tag_not_found(name, repository.location.uri)
    return repository.lineage.snapshot(tag.place)


def tag_not_found(name: str, where: str) -> NotFoundError:
    """There is no such tag."""
    return NotFoundError(
        f"no tag '{name}' in {where}",
        kind=ErrorKind.TAG_NOT_FOUND,
        hint="'omnigraph tag list' shows the tags",
        details={"tag": name},
    )


def moment_of(text: str) -> int | None:
    """A moment in microseconds since 1970; None if the text is none."""
    try:
        return _microseconds(datetime.fromisoformat(text))
    except ValueError:
        return None


def _microseconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    past = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds


# -- lookup ----------------------------------------------------------------------------------------
# A commit by the name that was given, or an error that helps.


COMMIT_ID_LENGTH = 26
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{3,25}", re.IGNORECASE)
"""128 bits in base 32: the first digit is at most 7."""


def looks_like_commit(text: str) -> bool:
    """Whether a text could be the id of a commit, or the beginning of one."""
    return _ULID.fullmatch(text) is not None


def commit_named(history: Iterable[GraphCommit], commit_id: str, branch: str | None) -> GraphCommit:
    """The commit with this id, or whose id alone begins so. Raises ``NotFoundError``, which names
    the branch if it was looked for on one only."""
    wanted = str(commit_id).strip().upper()
    found: list[GraphCommit] = []
    for commit in history:
        if wanted and commit.id.startswith(wanted):
            found.append(commit)
            if len(wanted) == COMMIT_ID_LENGTH:
                break
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} commits begin with {wanted}", hint="give more of the id")
    raise commit_not_found(commit_id, branch)


def commit_not_found(commit_id: str, branch: str | None) -> NotFoundError:
    """There is no such commit."""
    where = f"on branch '{branch}'" if branch is not None else "in this graph"
    return NotFoundError(
        f"no commit {commit_id} {where}",
        kind=ErrorKind.COMMIT_NOT_FOUND,
        hint="'omnigraph commit list' shows the commits",
        details={"graph_commit_id": commit_id},
    )
