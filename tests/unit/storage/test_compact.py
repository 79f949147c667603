"""Joining fragments and building indexes in a staging namespace: what Lance does, pinned.

``test_lance_surface`` has the ground; here are the behaviours that maintenance rests on.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.storage.compact import (
    FRAGMENT_ROWS_MAX,
    JoinFiles,
    groups_to_join,
    tail_to_join,
)
from omnigraph.storage.indexing import (
    BuildIndexes,
    DropIndexes,
    IndexKind,
    IndexSpec,
    indexes_of,
)
from omnigraph.storage.layout import Fragment
from omnigraph.storage.namespace import StagingNamespace

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("kind", pa.string()),
        ("text", pa.string()),
        ("vector", pa.list_(pa.float32(), 4)),
        lance.blob_field("data"),
    ]
)
SPECS = (
    IndexSpec(column="id", kind=IndexKind.BTREE),
    IndexSpec(column="kind", kind=IndexKind.BITMAP),
    IndexSpec(column="text", kind=IndexKind.TEXT),
    IndexSpec(column="text", kind=IndexKind.NGRAM),
    IndexSpec(column="vector", kind=IndexKind.VECTOR),
)
KINDS = ["btree", "bitmap", "text", "ngram", "vector"]


def rows(ids: list[int], kind: str | None = None) -> pa.Table:
    return pa.table(
        [
            pa.array([f"r{i:05}" for i in ids]),
            pa.array([kind or "xyz"[i % 3] for i in ids]),
            pa.array([f"{kind or ''}word{i % 7} all" if i % 11 else None for i in ids]),
            pa.array([[float(i), 1, 2, 3] for i in ids], pa.list_(pa.float32(), 4)),
            lance.blob_array([b"blob%d" % i for i in ids]),
        ],
        schema=SCHEMA,
    )


class Unstaged(StagingNamespace):
    """Commits where every reader sees it."""

    def commit(self, base: Any, operation: Any, **options: Any) -> LanceDataset:
        return LanceDataset.commit(base, operation, read_version=base.version)


class Staged:
    """A table that grows where nobody sees it."""

    def __init__(self, place: Path) -> None:
        self.uri = str(place)
        self.space = StagingNamespace(self.uri, {})
        files = write_fragments(
            rows(list(range(300))),
            self.uri,
            schema=SCHEMA,
            mode="create",
            data_storage_version="2.2",
        )
        self.dataset = self.space.commit(
            self.uri, LanceOperation.Overwrite(SCHEMA, files), enable_stable_row_ids=True
        )

    def commit(self, operation: Any) -> None:
        self.dataset = self.space.commit(self.dataset, operation)

    def append(self, first: int, count: int) -> None:
        made = write_fragments(rows(list(range(first, first + count))), self.dataset)
        self.commit(LanceOperation.Append(made))

    def upsert(self, ids: list[int], kind: str) -> None:
        operation, _ = (
            self.dataset.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute_uncommitted(rows(ids, kind))
        )
        self.commit(operation)

    def delete(self, ids: list[int]) -> None:
        keys = pa.table({"id": [f"r{i:05}" for i in ids]})
        operation, _ = (
            self.dataset.merge_insert("id").when_matched_delete().execute_uncommitted(keys)
        )
        self.commit(operation)

    def rework(self, rework: Any) -> None:
        self.dataset = rework.commit(self.dataset, self.space)

    @property
    def fragments(self) -> list[Fragment]:
        return [Fragment.of(f.metadata) for f in self.dataset.get_fragments()]

    def covered(self) -> dict[str, int]:
        """Rows that each kind of index covers."""
        live = {f.id: f.live_rows for f in self.fragments}
        return {
            str(index.kind): sum(live.get(f, 0) for f in index.fragments)
            for index in indexes_of(self.dataset)
        }

    def content(self) -> pa.Table:
        table = self.dataset.scanner(
            columns=["id", "kind", "text", "vector", "data", "_row_created_at_version"],
            with_row_id=True,
            blob_handling="all_binary",
        ).to_table()
        return table.sort_by("id")

    def check_finds(self) -> None:
        """Every condition finds the same rows with the indexes as without them."""
        part, few = pc.match_substring(pc.field("text"), "word3"), pc.field("kind") == "x"
        conditions = [
            part,
            pc.match_substring(pc.field("text"), "newword"),
            pc.match_substring(pc.field("text"), "nowhere"),
            part & few,
            part | few,
            ~part,
            pc.field("text").is_null() | part,
            pc.starts_with(pc.field("text"), "word3"),
            pc.field("id").isin(["r00001", "r00150", "r00299", "r00305", "r00604"]),
            pc.field("id") >= "r00290",
            *(pc.field("kind") == kind for kind in ("x", "y", "z", "new")),
            pc.field("kind").isin(["x", "new"]),
            pc.field("kind") != "x",
        ]
        for condition in conditions:
            found = self.dataset.to_table(columns=["id"], filter=condition)
            every = self.dataset.scanner(
                columns=["id"], filter=condition, use_scalar_index=False
            ).to_table()
            assert found.sort_by("id").equals(every.sort_by("id")), str(condition)


@pytest.fixture
def staged(tmp_path: Path) -> Staged:
    return Staged(tmp_path / "table")


def test_joined_fragments_keep_rows_identity_and_blobs(staged: Staged) -> None:
    for start in range(300, 360, 20):
        staged.append(start, 20)
    staged.delete([1, 305, 310, 311, 340])
    staged.upsert([2, 306], "new")
    before = staged.content()
    staged.rework(JoinFiles(groups=(tuple(f.id for f in staged.fragments),)))
    assert staged.content().equals(before)
    assert [(f.live_rows, f.physical_rows, f.deletion) for f in staged.fragments] == [
        (355, 355, None)
    ]


def test_compaction_moves_no_head(staged: Staged) -> None:
    staged.append(300, 5)
    staged.rework(JoinFiles(groups=((0, 1),)))
    staged.rework(BuildIndexes(specs=SPECS[:1]))
    assert not list(Path(staged.uri).glob("_versions/*.manifest"))


def test_many_groups_are_one_version(staged: Staged) -> None:
    for start in (300, 310, 320, 330):
        staged.append(start, 10)
    before, version = staged.content(), staged.dataset.version
    staged.rework(JoinFiles(groups=((1, 2), (3, 4))))
    assert staged.dataset.version == version + 1
    assert [f.live_rows for f in staged.fragments] == [300, 20, 20]
    assert staged.content().equals(before)


def test_indexes_by_identity_keep_what_is_joined_and_btrees_lose_it(staged: Staged) -> None:
    """The ground of ``compact`` and ``indexing``: which index must be brought up again."""
    staged.append(300, 50)
    staged.rework(BuildIndexes(specs=SPECS))
    assert staged.covered() == dict.fromkeys(KINDS, 350)
    staged.rework(JoinFiles(groups=((0, 1),)))
    assert staged.covered() == dict.fromkeys(KINDS, 350) | {"btree": 0}
    staged.check_finds()
    staged.rework(BuildIndexes(specs=SPECS))
    assert staged.covered() == dict.fromkeys(KINDS, 350)
    staged.check_finds()
    found = staged.dataset.to_table(columns=["id", "_score"], full_text_query="word3")
    assert found.num_rows == staged.dataset.count_rows(filter="text like '%word3%'") == 46


def test_covered_and_uncovered_files_are_not_joined_for_an_index_by_identity(
    staged: Staged,
) -> None:
    staged.rework(BuildIndexes(specs=SPECS[1:2]))
    staged.append(300, 5)
    with pytest.raises(OSError, match="split of indexed and non-indexed"):
        staged.rework(JoinFiles(groups=((0, 1),)))


def test_a_btree_takes_more_segments_and_joins_those_of_one_size(staged: Staged) -> None:
    build = BuildIndexes(specs=SPECS[:1])
    staged.rework(build)
    shapes: list[list[int]] = []
    for start in range(300, 500, 20):
        staged.append(start, 20)
        staged.rework(build)
        live = {f.id: f.live_rows for f in staged.fragments}
        (index,) = indexes_of(staged.dataset)
        shapes.append(sorted(sum(live[f] for f in s.fragments) for s in index.segments))
        staged.check_finds()
    assert shapes[:3] == [[20, 300], [40, 300], [60, 300]]
    assert all(len(shape) <= 3 and sum(shape) == 320 + 20 * i for i, shape in enumerate(shapes))


def test_nothing_to_build_makes_no_version(staged: Staged) -> None:
    staged.rework(BuildIndexes(specs=SPECS))
    version = staged.dataset.version
    staged.rework(BuildIndexes(specs=SPECS))
    staged.rework(JoinFiles(groups=()))
    staged.rework(DropIndexes(names=frozenset({"other"})))
    assert staged.dataset.version == version


def test_an_index_is_taken_away(staged: Staged) -> None:
    staged.rework(BuildIndexes(specs=SPECS))
    gone = {i.name for i in indexes_of(staged.dataset) if i.kind is not IndexKind.BTREE}
    staged.rework(DropIndexes(names=frozenset(gone)))
    assert staged.covered() == {"btree": 300}


def test_an_upsert_hides_changed_rows_from_an_index_by_identity(staged: Staged) -> None:
    staged.rework(BuildIndexes(specs=SPECS))
    staged.upsert([1, 150, 299, 700], "new")
    staged.check_finds()


def test_a_second_segment_of_a_bitmap_would_answer_with_old_values(staged: Staged) -> None:
    """Why ``indexing`` builds those anew as a whole: fails when Lance learns better."""
    staged.rework(BuildIndexes(specs=SPECS[1:2]))
    staged.upsert([1, 150, 299], "new")
    (index,) = indexes_of(staged.dataset)
    late = [f.id for f in staged.fragments if f.id not in index.fragments]
    segment = staged.dataset.create_index_uncommitted(
        "kind", "BITMAP", name="late", fragment_ids=late
    )
    segment.name = index.name
    staged.commit(LanceOperation.CreateIndex([segment], []))
    with pytest.raises(AssertionError):
        staged.check_finds()


def test_one_column_has_an_index_of_words_and_one_of_parts(staged: Staged) -> None:
    staged.rework(BuildIndexes(specs=SPECS))
    found = {i.kind: i for i in indexes_of(staged.dataset) if i.column == "text"}
    assert set(found) == {IndexKind.TEXT, IndexKind.NGRAM}
    assert found[IndexKind.NGRAM].name == "omnigraph_ngram_2"
    part = pc.field("text").is_valid() & pc.match_substring(pc.field("text"), "ord3")
    plan = staged.dataset.scanner(columns=["id"], filter=part).explain_plan()
    assert "@omnigraph_ngram_2(NGram)" in plan
    words = staged.dataset.to_table(columns=["id", "_score"], full_text_query="word3")
    assert staged.dataset.count_rows(filter=part) == words.num_rows > 0


def test_a_second_segment_of_an_index_of_parts_answers_right(staged: Staged) -> None:
    """It only proposes rows, which Lance then compares: one that moved is not shown as it was."""
    staged.rework(BuildIndexes(specs=SPECS[3:4]))
    staged.upsert([1, 150, 299], "new")
    (index,) = indexes_of(staged.dataset)
    late = [f.id for f in staged.fragments if f.id not in index.fragments]
    segment = staged.dataset.create_index_uncommitted(
        "text", "NGRAM", name="late", fragment_ids=late
    )
    segment.name = index.name
    staged.commit(LanceOperation.CreateIndex([segment], []))
    assert len(indexes_of(staged.dataset)[0].segments) == 2
    staged.check_finds()


@pytest.mark.parametrize("texts", [[None, None], ["", ""], ["ab", None], ["--", "½"]])
def test_texts_without_three_letters_are_indexed_too(tmp_path: Path, texts: list[Any]) -> None:
    dataset = lance.write_dataset(pa.table({"text": pa.array(texts, pa.string())}), tmp_path / "t")
    built = BuildIndexes(specs=SPECS[3:4]).commit(dataset, Unstaged("", {}))
    assert [i.kind for i in indexes_of(built)] == [IndexKind.NGRAM]
    for part in ("ab", "abc", "-", "½", ""):
        found = built.to_table(filter=pc.match_substring(pc.field("text"), part))["text"]
        assert found.to_pylist() == [t for t in texts if t is not None and part in t]


ODD = [
    "ΟΔΟΣ", "ΟΔΟΣΑΒ", "οδος", "Straße", "STRASSE", "æther", "Aether", "İstanbul", "istanbul",
    "e\u0301te\u0301", "été", "ete", "日本語文字", "語文", "100%_a", "a_b_c", "abc\\def", "abc\ndef",
    "\u212aelvin", "kelvin", "𝒜bcd", "half½abc", "abc.*def", "a|b|c", "(abc)", "ab\u200bc", "ab",
    "", "x" * 300, "xyz" * 200,
]  # fmt: skip


def test_any_text_is_found_by_any_of_its_parts(tmp_path: Path) -> None:
    """Lance folds case and accents in the index and compares with the text itself afterwards."""
    rng = random.Random(5)
    texts: list[str | None] = [*ODD, None]
    texts += ["".join(rng.choices([*ODD, " ", "-", "abc"], k=3)) for _ in range(300)]
    dataset = lance.write_dataset(pa.table({"text": texts}), tmp_path / "t")
    dataset = BuildIndexes(specs=SPECS[3:4]).commit(dataset, Unstaged("", {}))
    parts = set(ODD)
    for text in rng.sample([t for t in texts if t], 100):
        start = rng.randrange(len(text))
        parts.add(text[start : start + rng.randint(1, 8)])
    for part in sorted(parts):
        condition = pc.field("text").is_valid() & pc.match_substring(pc.field("text"), part)
        found = dataset.to_table(filter=condition)["text"].to_pylist()
        assert found == [t for t in texts if t is not None and part in t], part


@pytest.mark.parametrize("seed", range(6))
def test_indexes_never_change_an_answer(staged: Staged, seed: int) -> None:
    """Any order of writes, joins and builds."""
    rng = random.Random(seed)
    live = set(range(300))
    following = 300
    for _ in range(25):
        match rng.choice(["append", "upsert", "delete", "join", "tail", "build", "again"]):
            case "append":
                count = rng.choice([1, 1, 20])
                staged.append(following, count)
                live |= set(range(following, following + count))
                following += count
            case "upsert":
                staged.upsert(rng.sample(sorted(live), 5), rng.choice(["x", "new"]))
            case "delete":
                gone = rng.sample(sorted(live), rng.choice([1, 30]))
                staged.delete(gone)
                live -= set(gone)
            case "join":
                staged.rework(JoinFiles(groups=groups_to_join(staged.fragments, kinds(staged))))
            case "tail":
                covered = frozenset[int]().union(*(i.fragments for i in indexes_of(staged.dataset)))
                staged.rework(JoinFiles(groups=(tail_to_join(staged.fragments, covered),)))
            case "build":
                staged.rework(BuildIndexes(specs=SPECS[:4]))
            case _:
                names = {i.name for i in indexes_of(staged.dataset) if i.column != "id"}
                staged.rework(DropIndexes(names=frozenset(names)))
                staged.rework(BuildIndexes(specs=SPECS[:4]))
        staged.check_finds()
    assert staged.content()["id"].to_pylist() == [f"r{i:05}" for i in sorted(live)]


def kinds(staged: Staged) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for fragment in staged.fragments:
        found[fragment.id] = frozenset(
            index.name
            for index in indexes_of(staged.dataset)
            if index.column != "id" and fragment.id in index.fragments
        )
    return found


def fragment(number: int, live: int, deleted: int = 0) -> Fragment:
    return Fragment(
        id=number,
        files=(f"{number}",),
        deletion="d" if deleted else None,
        physical_rows=live + deleted,
        live_rows=live,
    )


def sized(*sizes: int) -> list[Fragment]:
    return [fragment(i, size) for i, size in enumerate(sizes)]


def test_fragments_are_joined_with_those_of_their_size() -> None:
    assert groups_to_join(sized(1_000_000, *[1] * 50)) == (tuple(range(1, 51)),)
    assert groups_to_join(sized(1000, 600)) == ((0, 1),)
    assert groups_to_join(sized(1000, 400)) == ()
    assert groups_to_join(sized(5, 10_000, 5)) == ((0, 2),)
    assert groups_to_join(sized()) == ()


def test_fragments_are_not_joined_beyond_the_largest_size() -> None:
    half = FRAGMENT_ROWS_MAX // 2
    assert groups_to_join(sized(half, half, half)) == ((0, 1),)
    assert groups_to_join(sized(half + 1, half)) == ()


def test_a_fragment_with_many_deleted_rows_is_rewritten_alone() -> None:
    assert groups_to_join([fragment(0, 95, 5)]) == ()
    assert groups_to_join([fragment(0, 80, 20)]) == ((0,),)


def test_fragments_that_may_not_be_joined_are_kept_apart() -> None:
    assert groups_to_join(sized(1, 1, 1, 1), {0: "a", 1: "a", 2: "b", 3: "b"}) == ((0, 1), (2, 3))


def test_what_was_joined_is_left_alone() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        count = int(rng.integers(0, 40))
        sizes = (2 ** rng.uniform(0, 21, count)).astype(int).tolist()
        fragments = sized(*sizes)
        groups = groups_to_join(fragments)
        joined = {i for group in groups for i in group}
        outcome = [f.live_rows for f in fragments if f.id not in joined]
        outcome += [sum(sizes[i] for i in group) for group in groups]
        assert groups_to_join(sized(*outcome)) == ()
        assert sum(outcome) == sum(sizes)


def test_the_tail_ends_where_a_fragment_is_covered_or_large() -> None:
    assert tail_to_join(sized(1000, 1, 1, 1), frozenset()) == (1, 2, 3)
    assert tail_to_join(sized(1, 1, 1, 1), frozenset({1})) == (2, 3)
    assert tail_to_join(sized(1000, 1), frozenset()) == ()
    assert tail_to_join(sized(6, 3, 1, 1, 1), frozenset()) == (0, 1, 2, 3, 4)
