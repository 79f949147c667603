"""CSV: what a cell means, where records end, and that neither ranges nor the fast path change it."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from input_cases import CATALOG, parse_here

from omnigraph import InputError, UsageError
from omnigraph.input import csv as csv_reader
from omnigraph.input.jsonl_blocks import LINE_BYTES_MAX
from omnigraph.input.plan import plan_input
from omnigraph.input.ranges import Block
from omnigraph.input.sources import sort_out
from support.examples import examples

HEADER = ["s", "b", "t", "i", "l", "u", "w", "f", "d", "on", "at", "v", "e", "ss", "is", "ds"]


@pytest.fixture
def file(tmp_path: Path):
    def write(content: bytes | str, name: str = "in.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def messages(parsed) -> list[tuple[int | None, str]]:
    return [(p.line, p.message) for p in parsed.problems]


# --- what a cell means --------------------------------------------------------------------------


def test_every_type_is_read_by_the_schema(file):
    rows = [
        'é "q", x', "base64:AAE=", "TRUE", "-5", "9007199254740993", "7", str(2**64 - 1), "0.1",
        "1e300", "2020-02-29", "2020-01-01T12:00:00+01:00", "[1, 2.5,-3]", "x", '["a","b,c"]',
        "[1,2]", "[]",
    ]  # fmt: skip
    out = io.StringIO()
    csv.writer(out).writerows([HEADER, rows, [""] * len(rows), rows])
    parsed = parse_here(file(out.getvalue()), type_name="All")
    assert not parsed.problems
    table = parsed.rows["node:All"].drop_columns(["id", "_file"])
    first, empty, last = table.to_pylist()
    assert [r.pop("_line") for r in (first, empty, last)] == [2, 3, 4]
    assert set(empty.values()) == {None}
    assert first == last
    assert first["s"] == 'é "q", x' and first["b"] == b"\x00\x01" and first["t"] is True
    assert (first["i"], first["l"], int(first["w"])) == (-5, 9007199254740993, 2**64 - 1)
    assert first["d"] == 1e300 and str(first["on"]) == "2020-02-29"
    assert first["at"].isoformat() == "2020-01-01T11:00:00+00:00"
    assert first["v"] == [1.0, 2.5, -3.0] and first["ss"] == ["a", "b,c"] and first["ds"] == []


def test_an_empty_cell_is_null_and_a_quoted_one_is_the_empty_text_where_text_is_wanted(file):
    parsed = parse_here(file('s,i\n"",""\n,\n'), type_name="All")
    assert parsed.rows["node:All"].select(["s", "i"]).to_pylist() == [
        {"s": "", "i": None},
        {"s": None, "i": None},
    ]


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("i", "x", 'expected I32, got "x"'),
        ("i", "1.0", "expected I32, got 1.0"),
        ("i", "007", 'expected I32, got "007"'),
        ("i", "0x10", 'expected I32, got "0x10"'),
        ("i", "99999999999", "99999999999 is out of range for I32 (-2147483648..2147483647)"),
        ("u", "-1", "-1 is out of range for U32 (0..4294967295)"),
        ("w", str(2**64), f"{2**64} is out of range for U64 (0..{2**64 - 1})"),
        ("f", "1e39", "1e39 is out of range for F32"),
        ("d", "nan", 'expected F64, got "nan"'),
        ("d", "inf", 'expected F64, got "inf"'),
        ("t", "yes", 'expected Bool, got "yes"'),
        ("t", "1", 'expected Bool, got "1"'),
        ("on", "2020-02-30", '"2020-02-30" is not a Date (YYYY-MM-DD, years 0001 to 9999)'),
        ("b", "AAE=", "AAE="),
        ("v", '"[1,2]"', "expected Vector(3), got 2 numbers"),
        ("v", "5", 'expected Vector(3) (an array of 3 numbers), got "5"'),
        ("is", '"[1,null]"', "element 1 of the list is null"),
    ],
)
def test_a_cell_that_does_not_fit_is_a_problem_with_its_line(file, column, cell, message):
    parsed = parse_here(file(f"s,{column}\na,\nb,{cell}\nc,\n"), type_name="All")
    ((line, found),) = messages(parsed)
    assert line == 3 and found.startswith(f"column '{column}': ") and message in found


def test_blanks_around_a_number_are_not_part_of_it(file):
    for text in ("i,d\n 5, 1.5 \n", 'i,d\n 5, 1.5 \n"5 ",1.5\n'):
        parsed = parse_here(file(text), type_name="All")
        assert set(parsed.rows["node:All"]["i"].to_pylist()) == {5} and not parsed.problems


def test_edges_take_their_ends_from_either_pair_of_names(file):
    for header in ("from,to,since", "src,dst,since"):
        parsed = parse_here(file(f"{header}\na,b,1\n,c,2\n"), type_name="Knows")
        assert messages(parsed) == [
            (3, f"column '{header[: header.index(',')]}': an endpoint of an edge cannot be null")
        ]
    parsed = parse_here(file("from,to\na,b\n"), type_name="knows")
    assert parsed.rows["edge:Knows"].select(["src", "dst"]).to_pylist() == [
        {"src": "a", "dst": "b"}
    ]


def test_ids_follow_from_the_key_and_a_given_one_must_agree(file):
    parsed = parse_here(file("imo,name\n5,x\n"), type_name="Vessel")
    assert parsed.rows["node:Vessel"]["id"].to_pylist() == ["5"]
    parsed = parse_here(file("id,imo,name\n5,5,x\n7,6,y\n"), type_name="Vessel")
    assert messages(parsed) == [(3, 'id "7" is not the id that the key gives ("6"); leave it out')]


# --- header and columns -------------------------------------------------------------------------


def test_columns_are_chosen_by_a_mapping_and_others_ignored(file):
    parsed = parse_here(
        file("x,The Note,x\n1,hello,2\n"), type_name="Bare", mapping={"note": "The Note"}
    )
    assert parsed.rows["node:Bare"]["note"].to_pylist() == ["hello"]


@pytest.mark.parametrize(
    ("content", "mapping", "message"),
    [
        ("", None, "in.csv:1: the first line of a CSV file names its columns; there is none"),
        ("\n\n", None, "in.csv:1: the first line of a CSV file names its columns; there is none"),
        ("nota\n", None, "in.csv:1: Bare has no property \"nota\" (did you mean 'note'?)"),
        ("note,note\n", None, "in.csv:1: column 'note' occurs twice"),
        ('\n"no"te\n', None, "in.csv:2: not valid CSV: text after a closing quote"),
        (b"\xff\n", None, "in.csv:1: the header is not valid UTF-8"),
        ("a\n", {"note": "b"}, 'in.csv:1: there is no column "b" for "note"'),
        ("a\n", {"nota": "a"}, 'in.csv:1: Bare has no property "nota"'),
    ],
)
def test_a_header_that_does_not_fit_is_refused_before_anything_is_read(
    file, content, mapping, message
):
    with pytest.raises(InputError) as error:
        parse_here(file(content), type_name="Bare", mapping=mapping)
    assert message in error.value.message


def test_an_edge_table_needs_both_ends(file):
    with pytest.raises(InputError, match="an edge table has the columns 'src' and 'dst' or"):
        parse_here(file("src,since\n"), type_name="Knows")


def test_a_csv_file_needs_its_type(file):
    with pytest.raises(UsageError, match=r"in\.csv: a CSV file needs its type"):
        parse_here(file("note\nx\n"))


def test_a_header_alone_mentions_the_type(file):
    parsed = parse_here(file("note"), type_name="Bare")
    assert parsed.rows["node:Bare"].num_rows == 0


def test_tabs_separate_in_tsv_files(file):
    parsed = parse_here(file("note\tid\na,b\tx\n", "in.tsv"), type_name="Bare")
    assert parsed.rows["node:Bare"].select(["id", "note"]).to_pylist() == [
        {"id": "x", "note": "a,b"}
    ]


# --- records ------------------------------------------------------------------------------------


def test_lines_of_records_are_those_they_begin_on(file):
    text = '\n\nnote,id\r\n"a\nb",1\r\n\r\nc,2\n"d\r\n\n"",",3\n\ne,4'
    for step in (1, 3, 8, 1000):
        parsed = parse_here(
            file(b"\xef\xbb\xbf" + text.encode()), type_name="Bare", range_bytes=step
        )
        rows = parsed.rows["node:Bare"].select(["note", "id", "_line"]).to_pylist()
        assert [tuple(r.values()) for r in rows] == [
            ("a\nb", "1", 4),
            ("c", "2", 7),
            ('d\r\n\n",', "3", 8),
            ("e", "4", 12),
        ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('a"b,1', "a quote within a value that does not begin with one"),
        ('"a"b,1', "text after a closing quote"),
        ("a", "expected 2 values, got 1"),
        ("a,1,2", "expected 2 values, got 3"),
        ("\xff,1".encode("latin-1"), "not valid UTF-8: byte 0xff at byte 1 of the record"),
    ],
)
def test_a_bad_record_is_one_problem_and_the_others_are_read(file, record, message):
    raw = record if isinstance(record, bytes) else record.encode()
    # A second odd quote makes the number even again, so that later records are not swallowed.
    content = b"note,id\nx,1\n" + raw + b'\ny,2\n"z",3\n'
    parsed = parse_here(file(content), type_name="Bare")
    if raw.count(b'"') % 2:
        assert parsed.problems and parsed.problems[0].line == 3
    else:
        ((line, found),) = messages(parsed)
        assert line == 3 and message in found


def test_a_quote_that_is_never_closed_is_told_where_it_opens(file):
    parsed = parse_here(file('note,id\na,1\n"b,2\nc,3\n'), type_name="Bare", range_bytes=5)
    assert messages(parsed) == [(3, "not valid CSV: the quote is never closed")]


def test_a_record_beyond_the_limit(file):
    parsed = parse_here(
        file('note,id\n"' + ("x" * 4095 + "\n") * (LINE_BYTES_MAX // 4096 + 1)), type_name="Bare"
    )
    ((line, message),) = messages(parsed)
    assert line == 2 and "is a quote not closed?" in message


def test_a_newline_in_quotes_at_the_border_of_a_range_is_found_out(file):
    rows = ['"' + "x\n" * (n % 5) + f'",{n}\n' for n in range(100)]
    path = file("note,id\n" + "".join(rows))
    whole = parse_here(path, type_name="Bare")
    plan = plan_input(sort_out(path, type_name="Bare"), CATALOG, range_bytes=47)
    assert plan.work.unit_count > 5
    cut = parse_here(path, type_name="Bare", range_bytes=47)
    assert cut.plan.work.unit_count == 1
    assert cut.rows["node:Bare"].equals(whole.rows["node:Bare"])


def test_a_file_without_quotes_is_cut(file):
    path = file("note,id\n" + "".join(f"x{n},{n}\n" for n in range(100)))
    cut = parse_here(path, type_name="Bare", range_bytes=50)
    assert cut.plan.work.unit_count > 5
    assert cut.rows["node:Bare"].equals(parse_here(path, type_name="Bare").rows["node:Bare"])


def test_a_packed_file_reads_as_what_it_holds(file):
    text = b'note,id\n"a\nb",1\nc,2\n'
    plain = parse_here(file(text), type_name="Bare")
    packed = parse_here(file(gzip.compress(text), "in.csv.gz"), type_name="Bare")
    assert packed.rows["node:Bare"].equals(plain.rows["node:Bare"])


# --- the two ways agree -------------------------------------------------------------------------

_ODD_CELLS = """
"" 1 -0 0.5 true False "a,b" "q""q" é " a" 2020-01-01 2020-01-01T00:00:00Z "[1,2,3]" [1] base64: 1e5
+1 007 99999999999999999999 1e400 "[1,2,3" "[1,2,3e0]" nan
"""
_CELLS = st.one_of(
    st.sampled_from([*_ODD_CELLS.split(), "", '"x\ny"', "\r", "\x00", '"\r\n"', '"[1, 2,3]"', " "]),
    st.text(st.characters(codec="utf-8"), max_size=4),
)


@settings(max_examples=examples(170))
@given(
    st.lists(st.lists(_CELLS, min_size=1, max_size=3), max_size=6),
    st.sampled_from(["s,i", "on,at", "t,d", "f,w", "v,is", "b,ds", "s", "ss,e"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_whole_columns_are_read_as_single_cells_are(tmp_path_factory, cells, header, end):
    path = tmp_path_factory.getbasetemp() / "agree.csv"
    path.write_bytes(f"{header}{end}".encode())
    plan = plan_input(sort_out(path, type_name="All"), CATALOG, range_bytes=1 << 20)
    planned = plan.work.files[0]
    body = "".join(",".join(record) + end for record in cells).encode()
    block = Block(text=body, start=planned.header_stop, stop=planned.header_stop + len(body))
    if not body:
        return
    records = csv_reader.cut_records(block.text)
    graph_type = CATALOG.nodes["All"]
    whole = csv_reader._read_columns(records, 0, planned, graph_type)
    single = list(csv_reader._read_records(records, 0, planned, graph_type))
    assert sum(p.line_count for p in single) == body.count(b"\n")
    if whole is None:
        return
    assert not any(p.problems for p in single)
    found = [row for p in single for part in p.parts for row in part.rows.to_pylist()]
    assert str([r for part in whole.parts for r in part.rows.to_pylist()]) == str(found)
    assert [n for part in whole.parts for n in part.lines] == [
        n for p in single for part in p.parts for n in part.lines
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_python_writes_is_read_back(file, seed: int):
    random = Random(seed)
    rows = [
        ["".join(random.choice('ab,"\n\r é') for _ in range(random.randrange(6))), str(n)]
        for n in range(random.choice([0, 3, 60]))
    ]
    out = io.StringIO()
    writer = csv.writer(
        out, quoting=csv.QUOTE_ALL if seed % 2 else csv.QUOTE_MINIMAL, lineterminator="\n"
    )
    writer.writerows([["note", "id"], *rows])
    parsed = parse_here(file(out.getvalue()), type_name="Bare", range_bytes=64)
    assert not parsed.problems
    found = parsed.rows["node:Bare"].select(["note", "id"]).to_pylist()
    assert [((r["note"] or ""), r["id"]) for r in found] == [tuple(r) for r in rows]
