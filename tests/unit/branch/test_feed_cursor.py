"""Cursors and page tokens: what is not exactly one of ours is refused, with the reason."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph.branch.feed import tokens
from omnigraph.branch.feed.blocks import PageSize, Room
from omnigraph.branch.feed.tokens import (
    BlockToken,
    CursorBinding,
    FeedCursor,
    NamedFilter,
    PollToken,
    Position,
    Reason,
)
from omnigraph.errors import ErrorKind
from omnigraph.manifest.snapshot import MAIN_PATH, ManifestPlace
from omnigraph.schema.compile import compile_schema

ULID = "01JZ8Y6N2D3V5K7M9P1R3T5V7X"
PATHS = (MAIN_PATH, f"_branches/{ULID}")
POSITION = Position(commit_id=ULID, place=ManifestPlace(path=MAIN_PATH, version=12))
BINDING = CursorBinding(graph_id="G" * 26, path=PATHS[1], filter="0123456789abcdef")
CURSOR = FeedCursor(binding=BINDING, position=POSITION).encode()
POLL = PollToken(
    binding=BINDING, position=POSITION, offset=7, end=POSITION, caught_up=True
).encode()
BLOCK = BlockToken(binding=BINDING, commit=POSITION, offset=7).encode()


def reason(found: pytest.ExceptionInfo[omnigraph.UsageError]) -> str:
    assert found.value.kind is ErrorKind.CURSOR_REJECTED
    assert found.value.message.startswith("change cursor rejected: ")
    assert found.value.hint
    return found.value.details["reason"]


_places = st.builds(
    ManifestPlace, path=st.sampled_from(PATHS), version=st.integers(0, (1 << 63) - 1)
)
_positions = st.builds(Position, commit_id=st.text(max_size=30), place=_places)
_bindings = st.builds(
    CursorBinding,
    graph_id=st.text(max_size=30),
    path=st.sampled_from(PATHS),
    filter=st.text(max_size=16),
)


@given(st.builds(FeedCursor, binding=_bindings, position=_positions))
def test_a_cursor_reads_back(cursor: FeedCursor) -> None:
    assert FeedCursor.decode(cursor.encode()) == cursor


@given(
    st.builds(
        PollToken,
        binding=_bindings,
        position=_positions,
        offset=st.integers(0, 1 << 40),
        end=_positions,
        caught_up=st.booleans(),
    )
)
def test_a_page_token_reads_back(token: PollToken) -> None:
    assert PollToken.decode(token.encode()) == token


@given(st.builds(BlockToken, binding=_bindings, commit=_positions, offset=st.integers(0, 1 << 40)))
def test_a_page_token_of_a_commit_reads_back(token: BlockToken) -> None:
    assert BlockToken.decode(token.encode()) == token


def test_tokens_are_short_and_safe_in_a_shell_and_an_address() -> None:
    for token in (CURSOR, POLL, BLOCK):
        assert len(token) < 512
        assert token.replace("-", "").replace("_", "").isalnum()
        assert not token.startswith("-")


def test_space_around_a_cursor_does_not_matter() -> None:
    assert FeedCursor.decode(f" {CURSOR}\n") == FeedCursor.decode(CURSOR)


@pytest.mark.parametrize("token", [CURSOR, POLL, BLOCK])
def test_a_cut_or_changed_token_is_damaged(token: str) -> None:
    decoders = {"c": FeedCursor.decode, "p": PollToken.decode, "b": BlockToken.decode}
    decode = decoders[token[0]]
    changed = [
        token[:i] + ("A" if token[i] != "A" else "B") + token[i + 1 :] for i in range(len(token))
    ]
    for bad in [*(token[:i] for i in range(len(token))), *changed, token + "AAAA", token + "!"]:
        with pytest.raises(omnigraph.UsageError) as found:
            decode(bad)
        assert reason(found) == Reason.DAMAGED


@pytest.mark.parametrize("bad", [None, 12, b"c", "", "c", "cé", "c\ud800", "now", [], "=" * 40])
def test_what_was_never_a_cursor_is_damaged(bad: Any) -> None:
    with pytest.raises(omnigraph.UsageError) as found:
        FeedCursor.decode(bad)
    assert reason(found) == Reason.DAMAGED


@given(st.text(max_size=200) | st.binary(max_size=100).map(lambda b: base64.b64encode(b).decode()))
def test_noise_is_refused_and_nothing_else_happens(noise: str) -> None:
    for decode in (FeedCursor.decode, PollToken.decode, BlockToken.decode):
        with pytest.raises(omnigraph.UsageError):
            decode(noise)


def test_a_long_text_is_not_even_looked_at() -> None:
    with pytest.raises(omnigraph.UsageError) as found:
        FeedCursor.decode("c" + "A" * 4096)
    assert reason(found) == Reason.TOO_LONG


def test_page_tokens_are_no_cursors_and_cursors_no_page_tokens() -> None:
    for token in (POLL, BLOCK):
        with pytest.raises(omnigraph.UsageError, match="page token") as found:
            FeedCursor.decode(token)
        assert reason(found) == Reason.NOT_A_CURSOR
    for decode, others in (
        (PollToken.decode, (CURSOR, BLOCK)),
        (BlockToken.decode, (CURSOR, POLL)),
    ):
        for token in others:
            with pytest.raises(omnigraph.UsageError) as found:
                decode(token)
            assert reason(found) == Reason.NOT_A_PAGE_TOKEN


def forged(*fields: Any) -> str:
    """A token whose checksum is right: everybody can compute it."""
    content = json.dumps(["c", *fields], separators=(",", ":")).encode()
    return "c" + base64.urlsafe_b64encode(tokens._check(content) + content).decode().rstrip("=")


GOOD = ("g", MAIN_PATH, "", ULID, MAIN_PATH, 3)


@pytest.mark.parametrize(
    "fields",
    [
        (),
        GOOD[:-1],
        (*GOOD, 1),
        (*GOOD[:-1], -1),
        (*GOOD[:-1], 1 << 63),
        (*GOOD[:-1], True),
        (*GOOD[:-1], 1.0),
        (*GOOD[:-1], None),
        (None, *GOOD[1:]),
        (*GOOD[:4], "../../etc", 3),
        (*GOOD[:4], f"{MAIN_PATH}/..", 3),
        (*GOOD[:4], "_branches/../x", 3),
        ("g", "elsewhere", *GOOD[2:]),
    ],
)
def test_a_forged_token_with_misfitting_fields_is_damaged(fields: tuple[Any, ...]) -> None:
    assert FeedCursor.decode(forged(*GOOD))
    with pytest.raises(omnigraph.UsageError) as found:
        FeedCursor.decode(forged(*fields))
    assert reason(found) == Reason.DAMAGED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"graph_id": "x"}, Reason.OTHER_GRAPH),
        ({"path": MAIN_PATH}, Reason.OTHER_BRANCH),
        ({"filter": ""}, Reason.OTHER_FILTER),
        ({"graph_id": "x", "path": MAIN_PATH, "filter": ""}, Reason.OTHER_GRAPH),
    ],
)
def test_a_token_of_something_else_is_refused(change: dict[str, str], why: Reason) -> None:
    own = {"graph_id": BINDING.graph_id, "path": BINDING.path, "filter": BINDING.filter}
    BINDING.check(CursorBinding(**own))
    with pytest.raises(omnigraph.UsageError) as found:
        BINDING.check(CursorBinding(**own | change))
    assert reason(found) == why


CATALOG = compile_schema("node A { k: String @key }\nnode B { k: String @key }\nedge E: A -> B")


def digest(kinds: Any = (), types: Any = (), ops: Any = ()) -> str:
    return NamedFilter.of(kinds, types, ops).on(lambda: CATALOG).digest


def test_one_filter_has_one_digest_however_it_is_said() -> None:
    assert digest() == digest(["edge", "node"], [], ["delete", "insert", "update"]) == ""
    assert digest(types=["A", "E"]) == digest(types=["e", "A", "A"])
    assert digest(ops=["insert", "delete"]) == digest(ops=["delete", "insert", "delete"])
    different = [
        digest(), digest(["node"]), digest(["edge"]), digest(types=["A"]), digest(types=["B"]),
        digest(ops=["insert"]), digest(["node"], ["A"]), digest(["node"], ["A"], ["insert"]),
    ]  # fmt: skip
    assert len(set(different)) == len(different)


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        ({"kinds": ["vertex"]}, omnigraph.UsageError),
        ({"kinds": "node"}, omnigraph.UsageError),
        ({"ops": ["upsert"]}, omnigraph.UsageError),
        ({"ops": None}, omnigraph.UsageError),
        ({"types": ["Z"]}, omnigraph.NotFoundError),
        ({"types": [1]}, omnigraph.UsageError),
        ({"kinds": [[]]}, omnigraph.UsageError),
    ],
)
def test_a_filter_that_means_nothing_is_refused(wish: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        digest(**wish)


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 10), st.integers(1, 60), st.data())
def test_pages_keep_their_limits_and_always_advance(
    sizes: list[int], changes: int, nbytes: int, data: st.DataObject
) -> None:
    left = np.array(sizes, np.int64)
    while len(left):
        room, page = Room(PageSize(changes=changes, nbytes=nbytes)), []
        while len(left) and room.changes:
            offered = left[: data.draw(st.integers(1, len(left)))][: room.changes]
            taken = room.take(offered)
            page += offered[:taken].tolist()
            left = left[taken:]
            if taken < len(offered):
                assert room.is_full
        assert 1 <= len(page) <= changes
        assert sum(page) <= nbytes or len(page) == 1


@pytest.mark.parametrize("bad", [0, -1, 8193, True, 1.5, "10"])
def test_limits_out_of_range_are_refused(bad: Any) -> None:
    with pytest.raises(omnigraph.UsageError, match="max_changes"):
        PageSize.of(bad, None)
    assert PageSize.of(8192, 32 << 20) == PageSize(changes=8192, nbytes=32 << 20)
    assert PageSize.of(None, None) == PageSize(changes=1000, nbytes=4 << 20)
