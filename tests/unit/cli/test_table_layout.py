"""How a table fits a terminal."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from omnigraph.show.text import GAP, WIDTH_MIN, fit
from omnigraph.tabular import layout_of, table_lines


def _lines(table: pa.Table, width: int | None) -> list[str]:
    return list(table_lines(table, layout_of(table, width), ellipsis="…", rule="─"))


def test_in_a_pipe_nothing_is_cut() -> None:
    lines = _lines(pa.table({"a": ["x" * 500]}), None)
    assert lines[2] == "x" * 500


def test_numbers_stand_right_and_text_left() -> None:
    table = pa.table({"name": ["Alba", None], "n": [5, 12345]})
    assert _lines(table, None) == [
        "name      n",
        "───────────",
        "Alba      5",
        "null  12345",
    ]


def test_the_widest_give_first() -> None:
    layout = fit([4, 100, 20], [False, False, False], 40)
    assert layout.widths == (4, 16, 16)
    assert layout.cut


def test_numbers_are_never_cut() -> None:
    assert fit([20, 30], [True, False], 40).widths == (20, 18)


def test_columns_without_a_place_are_left_out() -> None:
    layout = fit([30] * 10, [False] * 10, 42)
    assert layout.widths == (9, 9, 9, 9)[:4]
    assert len(layout.widths) == 4


def test_a_single_column_is_cut_to_the_window() -> None:
    assert fit([100], [True], 30).widths == (30,)


def test_wide_characters_take_two_columns() -> None:
    lines = _lines(pa.table({"a": ["日本語日本語日本語", "ab"], "b": ["x", "y"]}), 16)
    assert all(cell_len(line) <= 16 for line in lines)
    assert lines[3].endswith("y") and cell_len(lines[3]) == cell_len(lines[2])


def test_control_characters_are_shown_not_sent() -> None:
    lines = _lines(pa.table({"a": ["\x1b[31mred\n\u202e"]}), None)
    assert lines[2] == r"\x1b[31mred\n\u202e"


@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=12),
    st.integers(10, 120),
)
def test_what_is_shown_fits(columns: list[tuple[int, bool]], width: int) -> None:
    natural, numeric = [w for w, _ in columns], [n for _, n in columns]
    layout = fit(natural, numeric, width)
    assert layout.widths
    total = sum(layout.widths) + len(GAP) * (len(layout.widths) - 1)
    assert total <= width
    if len(layout.widths) > 1:
        for shown, wish, number in zip(layout.widths, natural, numeric, strict=False):
            assert shown <= wish
            assert shown >= (wish if number else min(wish, WIDTH_MIN))
