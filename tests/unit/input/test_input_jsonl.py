"""JSONL in byte ranges is JSONL: the same rows, problems and places as the local loader finds,
wherever the borders of ranges fall."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_cases import CATALOG, assert_same, parse_here, random_text, run_files, stats_of

from omnigraph import InputError, NotFoundError, UsageError
from omnigraph.ids import SeededIds
from omnigraph.input import jsonl
from omnigraph.input.jsonl_blocks import LINE_BYTES_MAX
from omnigraph.input.packed import UNIT, Ledger, unpacked
from omnigraph.input.plan import plan_input
from omnigraph.input.ranges import Lines, record_blocks
from omnigraph.input.record_shape import RecordShape
from omnigraph.input.sources import sort_out
from omnigraph.input.threads import read_input
from support.examples import examples


@pytest.fixture
def file(tmp_path: Path):
    def write(content: bytes | str, name: str = "in.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def bare(*notes: str) -> str:
    return "".join(f'{{"type":"Bare","data":{{"note":"{note}"}}}}\n' for note in notes)


# --- ranges -------------------------------------------------------------------------------------


@settings(max_examples=examples(130))
@given(
    st.lists(st.sampled_from([b"\n", b"a", b"bb", b"\r\n", b"\xef\xbb\xbf", b"ccccccccc"])),
    st.integers(1, 12),
    st.integers(1, 7),
)
def test_ranges_own_every_line_once(pieces: list[bytes], step: int, block: int):
    content = b"".join(pieces)
    size = len(content)

    def read_at(offset: int, length: int) -> bytes:
        assert offset >= 0 and length > 0
        return content[offset : offset + length]

    texts = []
    for start in range(0, size, step):
        blocks = record_blocks(
            read_at,
            start=start,
            stop=min(start + step, size),
            size=size,
            borders=Lines(),
            block_bytes=block,
        )
        texts += [b.text for b in blocks]
    assert all(text.endswith(b"\n") for text in texts)
    whole = content.removeprefix(b"\xef\xbb\xbf")
    assert b"".join(texts) == (whole + b"\n" if whole and not whole.endswith(b"\n") else whole)


# --- the same as the local loader ---------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_good_input_gives_the_rows_of_the_local_loader(file, seed: int):
    random = Random(seed)
    paths = [
        file(random_text(random, lines=random.choice([0, 1, 40]), bad=0), f"{n}.jsonl")
        for n in range(random.choice([1, 1, 3]))
    ]
    size = max(p.stat().st_size for p in paths)
    step = random.choice([max(1, size // 50), 100 + size // 100, 1024, 1 << 20])
    assert_same(parse_here([str(p) for p in paths], range_bytes=step), paths)


@pytest.mark.parametrize("seed", range(30))
def test_bad_input_gives_the_problems_of_the_local_loader(file, seed: int):
    random = Random(1000 + seed)
    paths = [
        file(random_text(random, lines=random.choice([1, 5, 60]), bad=0.3), f"{n}.jsonl")
        for n in range(random.choice([1, 1, 3]))
    ]
    size = max(p.stat().st_size for p in paths)
    step = random.choice([max(1, size // 50), 100 + size // 100, 1024, 1 << 20])
    try:
        parsed = parse_here([str(p) for p in paths], range_bytes=step)
    except InputError as error:  # a file that is plainly something else, found by its first line
        from input_cases import read_locally

        assert error.details["problems"] == read_locally(paths)
        return
    assert_same(parsed, paths)


def test_every_border_of_one_file(file):
    path = file(b"\xef\xbb\xbf" + bare("é", "x", "").encode() + b"\r\n\n{\n" + bare("y").encode())
    for step in range(1, 60, 3):
        parsed = parse_here(str(path), range_bytes=step)
        assert [(p.line, p.column) for p in parsed.problems] == [(6, 2)]
        assert parsed.rows["node:Bare"]["_line"].to_pylist() == [1, 2, 3, 7]


def test_a_line_longer_than_many_ranges(file):
    path = file(bare("a", "b" * 5000, "c"))
    parsed = parse_here(str(path), range_bytes=64)
    assert parsed.rows["node:Bare"]["_line"].to_pylist() == [1, 2, 3]
    assert_same(parsed, [path])


def test_a_line_beyond_the_limit_is_one_problem_and_the_lines_after_it_count_on(file):
    long = b'{"type":"Bare","data":{"note":"' + b"x" * LINE_BYTES_MAX + b'"}}\n'
    path = file(bare("a").encode() + long + b"{\n")
    parsed = parse_here(str(path), range_bytes=8 << 20)
    assert [(p.line, p.message) for p in parsed.problems] == [
        (2, "the line is longer than 32 MiB"),
        (3, "not valid JSON: expected the name of a member in double quotes"),
    ]


def test_all_problems_are_found_and_few_are_held_at_a_time(file, monkeypatch):
    monkeypatch.setattr(jsonl, "PROBLEMS_AT_ONCE_MAX", 10)
    path = file("x\n" * 1000 + bare("a") + "{}\n" * 70)
    parsed = parse_here(str(path))
    assert [p.line for p in parsed.problems] == [*range(1, 1001), *range(1002, 1072)]
    assert sum(s.problems for s in parsed.stats) == 1070
    pieces = list(jsonl.read_text(path.read_bytes(), CATALOG, RecordShape(CATALOG)))
    assert max(len(p.problems) for p in pieces) < 10
    assert sum(p.line_count for p in pieces) == 1071


def test_a_line_with_more_problems_than_are_held_is_still_one_line(file, monkeypatch):
    monkeypatch.setattr(jsonl, "PROBLEMS_AT_ONCE_MAX", 2)
    path = file('{"type":"Bare","data":{"p":1,"q":2,"r":3}}\n' * 3)
    assert [p.line for p in parse_here(str(path)).problems] == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_the_text_of_a_refused_line_is_kept(file):
    path = file(b'{"type":"Bare","data":{"note":"\xff"}}\r\n')
    parsed = parse_here(str(path))
    packed = next(iter(unpacked(iter(parsed.batches), parsed.ledger)))
    assert packed.rows["text"].to_pylist() == ['{"type":"Bare","data":{"note":"\ufffd"}}']


# --- packed texts -------------------------------------------------------------------------------


def pack(content: bytes, kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(content)
    return pa.Codec("zstd").compress(content, asbytes=True)


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_packed_files_read_as_what_they_hold(file, kind: str):
    for seed in range(6):
        content = random_text(Random(seed), lines=60, bad=0.3 * (seed % 2))
        plain = file(content)
        packed = file(pack(content, kind), f"in.jsonl.{kind}")
        ours, plainly = parse_here(str(packed), range_bytes=100), parse_here(str(plain))
        assert len(ours.stats) == 1
        for key, rows in plainly.rows.items():
            assert ours.rows[key].equals(rows)
        places = [(p.line, p.column, p.message) for p in ours.problems]
        assert places == [(p.line, p.column, p.message) for p in plainly.problems]


def test_two_packed_texts_in_one_file_are_one_text(file):
    path = file(gzip.compress(bare("a").encode()) + gzip.compress(bare("b").encode()))
    assert parse_here(str(path)).rows["node:Bare"]["note"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_packed_file_that_is_cut_off_is_a_problem_that_names_it(file, kind: str):
    content = b"".join(bare(os.urandom(30).hex()).encode() for _ in range(90_000))
    path = file(pack(content, kind)[:-1000], f"in.jsonl.{kind}")
    (problem,) = parse_here(str(path)).problems
    assert problem.source == str(path) and problem.line is None
    word = "gzip" if kind == "gz" else "zstd"
    assert problem.message.startswith(f"the {word} data is cut off after line ")
    assert int(problem.message.rpartition(" ")[2]) > 40_000


def test_a_damaged_packed_file_is_a_problem(file):
    packed = bytearray(gzip.compress(bare("a").encode()))
    packed[-6] ^= 0xFF
    (problem,) = parse_here(str(file(bytes(packed), "in.gz"))).problems
    assert problem.message == "the gzip data is damaged after line 0"


def test_an_empty_file_with_a_packed_name_is_refused(file):
    with pytest.raises(InputError, match=r"in\.jsonl\.gz: the file ends before its packed data"):
        parse_here(str(file(b"", "in.jsonl.gz")))


# --- files that are not what they should be -----------------------------------------------------


def test_a_missing_file(tmp_path: Path):
    with pytest.raises(NotFoundError, match=r"gone\.jsonl: no such file"):
        parse_here(str(tmp_path / "gone.jsonl"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"\xff\xfe{\x00", "UTF-16 text"),
        (b'[{"type":"Bare"}]', "a JSON array"),
        (b'{\n"type":"Bare"}', "pretty-printed JSON"),
        (b"name,age\n1,2\n", "CSV"),
    ],
)
def test_another_format_is_refused_in_the_words_of_the_local_loader(file, content, what):
    path = file(content)
    with pytest.raises(InputError) as ours:
        parse_here(str(path), range_bytes=4)
    with pytest.raises(InputError) as local:
        read_input(sort_out(path), CATALOG, SeededIds(1))
    assert ours.value.message == local.value.message
    assert what in ours.value.message
    assert (ours.value.hint, ours.value.details) == (local.value.hint, local.value.details)


@pytest.mark.parametrize("change", ["vanish", "shrink", "grow", "rewrite"])
def test_a_file_that_changes_after_it_was_found_is_a_problem(file, change: str):
    path = file(bare("a", "b", "c"))
    plan = plan_input(sort_out(path), CATALOG, range_bytes=1 << 20)
    found = path.stat()
    match change:
        case "vanish":
            path.unlink()
        case "shrink":
            path.write_text(bare("a"))
        case "grow":
            path.write_text(bare("a", "b", "c", "d"))
        case _:
            path.write_text(bare("a", "b", "d"))
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    batches = run_files(plan)
    stats = stats_of(batches)
    assert [s.problems for s in stats] == [1] and stats[0].rows == {}
    packed = next(iter(unpacked(iter(batches), Ledger.of(plan.names, stats))))
    (message,) = packed.rows["message"].to_pylist()
    assert message.startswith(
        "no such file" if change == "vanish" else "the file changed while it was being loaded"
    )


def test_a_unit_that_reads_differently_the_second_time_fails(file):
    path = file(bare("a", "b"))
    parsed = parse_here(str(path))
    list(unpacked(iter(parsed.batches), parsed.ledger))
    path.write_text(bare("a"))
    changed = run_files(parsed.plan)
    with pytest.raises(InputError, match=r"in\.jsonl: the input changed while it was being"):
        list(unpacked(iter(changed), parsed.ledger))
    assert {kind for b in changed for kind in b.column(0).to_pylist()} == {"!problems", UNIT}


def test_an_unreadable_file(file, monkeypatch):
    """Root may read everything, so the answer of the system is given here."""
    path = file(bare("a"))
    real = os.open

    def refusing(name, *args, **options):
        if name == str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return real(name, *args, **options)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        parse_here(str(path))
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        read_input(sort_out(path), CATALOG, SeededIds(1))


# --- folders, patterns, sources -----------------------------------------------------------------


def test_folders_and_patterns_are_read_in_the_order_of_names(tmp_path: Path):
    for name in ("b.jsonl", "a.jsonl", "sub/c.jsonl", "_SUCCESS", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(bare(name) if "jsonl" in name else "junk")
    parsed = parse_here(str(tmp_path))
    assert parsed.plan.names == tuple(
        f"{tmp_path}/{n}" for n in ("a.jsonl", "b.jsonl", "sub/c.jsonl")
    )
    assert parsed.rows["node:Bare"]["note"].to_pylist() == ["a.jsonl", "b.jsonl", "sub/c.jsonl"]
    assert len(parse_here(f"{tmp_path}/*.jsonl").plan.names) == 2
    with pytest.raises(NotFoundError, match="no file matches"):
        parse_here(f"{tmp_path}/*.parquet")


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path: Path):
    (tmp_path / "a*.jsonl").write_text(bare("x"))
    (tmp_path / "ab.jsonl").write_text(bare("y"))
    assert len(parse_here(str(tmp_path / "a*.jsonl")).plan.names) == 1


def test_the_same_file_twice_is_two_sources(file):
    path = str(file(bare("a")))
    ids = parse_here([path, path]).rows["node:Bare"]["id"].to_pylist()
    assert ids[0] < ids[1]


@pytest.mark.parametrize("source", [b"bytes", 5, {}, object()])
def test_what_cannot_be_loaded_at_all(source):
    with pytest.raises(UsageError):
        parse_here(source)


def test_a_type_does_not_go_with_jsonl(file):
    with pytest.raises(UsageError, match="JSONL names its types itself"):
        parse_here(str(file(bare("a"))), type_name="Bare")
