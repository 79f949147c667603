from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from load_cases import CATALOG, day

from omnigraph.errors import InputError
from omnigraph.ids import SeededIds
from omnigraph.input import jsonl_exact
from omnigraph.input.jsonl_exact import rows_from_records


def _read(*records: object):
    return rows_from_records(records, CATALOG, SeededIds(1))  # type: ignore[arg-type]


def _one(name: str, value: object) -> object:
    return _read({"type": "All", "data": {name: value}})["node:All"].rows[name][0].as_py()


def test_records_have_the_shapes_of_lines():
    loaded = _read(
        {"type": "Vessel", "data": {"imo": 5, "name": "Alba"}},
        {"edge": "knows", "from": "a", "to": "b", "data": {"id": "k"}},
        {"type": "Bare"},
    )
    assert list(loaded) == ["node:Vessel", "edge:Knows", "node:Bare"]
    assert loaded["node:Vessel"].rows["id"].to_pylist() == ["5"]
    assert loaded["edge:Knows"].origins.at(0) == ("rows", 2)


_EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("on", day("2026-01-02"), day("2026-01-02")),
        ("on", np.datetime64("2026-01-02"), day("2026-01-02")),
        ("at", datetime(2026, 1, 2, 3), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("at", datetime(2026, 1, 2, 3, tzinfo=_EAST), datetime(2026, 1, 2, 1, tzinfo=UTC)),
        ("at", np.datetime64("2026-01-02T03:00", "ns"), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("at", pd.Timestamp("2026-01-02T03:00Z"), datetime(2026, 1, 2, 3, tzinfo=UTC)),
        ("at", day("2026-01-02"), datetime(2026, 1, 2, tzinfo=UTC)),
        ("b", b"\x00", b"\x00"),
        ("b", bytearray(b"x"), b"x"),
        ("i", np.int64(5), 5),
        ("d", np.float32(0.5), 0.5),
        ("d", 0.1, 0.1),
        ("t", np.bool_(True), True),
        ("v", np.array([1, 2, 3]), [1.0, 2.0, 3.0]),
        ("ls", (1, 2), [1, 2]),
        ("s", np.str_("x"), "x"),
        ("i", Decimal(7), 7),
        ("i", Decimal("7.00"), 7),
        ("i", Decimal("-0"), 0),
        ("w", Decimal("1.8446744073709551615e19"), 2**64 - 1),
        ("d", Decimal("0.1"), 0.1),
        ("d", Decimal("1e3"), 1000.0),
        ("f", Decimal("1.00000017881393432617187501"), 1.000000238418579),
        ("v", [Decimal("0.5"), 1, 2.0], [0.5, 1.0, 2.0]),
        ("s", pd.NA, None),
        ("i", pd.NA, None),
        ("t", pd.NA, None),
        ("v", pd.NA, None),
        ("ss", pd.NA, None),
        ("b", pd.NaT, None),
        ("on", pd.NaT, None),
        ("at", pd.NaT, None),
    ],
)
def test_python_values(name, value, expected):
    assert _one(name, value) == expected


class _Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("on", datetime(2026, 1, 2), "All.on: expected Date, got the timestamp 2026-01-02"),
        ("at", datetime(2026, 1, 2, microsecond=1), "not a DateTime of whole milliseconds"),
        ("at", pd.Timestamp(1), "not a DateTime of whole milliseconds"),
        ("at", np.datetime64("NaT", "s"), "not a DateTime of whole milliseconds"),
        ("d", float("nan"), "All.d: expected a finite number, got nan"),
        ("f", 1e39, "All.f: 1e+39 is out of range for F32"),
        ("i", 1.0, "All.i: expected I32, got 1.0"),
        ("i", np.int64(2**40), "out of range for I32"),
        ("s", b"x", "All.s: expected String, got bytes"),
        ("s", "\ud800", "half of a surrogate pair"),
        ("v", "abc", "expected Vector(3)"),
        ("ls", {1}, "expected a list [I64]"),
        ("ls", [1, pd.NA], "element 1 of the list is null"),
        ("ats", [pd.NaT], "element 0 of the list is null"),
        ("i", Decimal("7.5"), "All.i: expected I32, got 7.5"),
        ("i", Decimal("1e999999"), "out of range for I32"),
        ("i", Decimal("1e-999999"), "All.i: expected I32, got 1E-999999"),
        ("i", Decimal("nan"), "All.i: expected I32, got NaN"),
        ("d", Decimal("inf"), "All.d: expected a finite number, got Infinity"),
        ("d", Decimal("snan"), "All.d: expected a finite number, got sNaN"),
        ("d", Decimal("1e400"), "All.d: 1E+400 is out of range for F64"),
        ("f", Decimal("1e39"), "All.f: 1E+39 is out of range for F32"),
        ("on", Decimal(1), "All.on: expected Date"),
        ("s", Decimal(1), "All.s: expected String, got 1"),
        pytest.param(
            "i",
            10**5000,
            "All.i: an integer of about 5000 digits is out of range for I32",
            id="huge",
        ),
        pytest.param(
            "f",
            10**5000,
            "All.f: an integer of about 5000 digits is out of range for F32",
            id="huge",
        ),
        pytest.param(
            "s", 10**5000, "All.s: expected String, got an integer of about 5000 digits", id="huge"
        ),
        pytest.param("on", 10**5000, "outside of the years", id="huge"),
        ("s", _Mute(), "All.s: expected String, got a value of type _Mute"),
    ],
)
def test_python_values_that_are_refused(name, value, message):
    with pytest.raises(InputError) as caught:
        _one(name, value)
    assert caught.value.message.startswith("rows:1: ") and message in caught.value.message


def test_records_that_are_no_records():
    with pytest.raises(InputError) as caught:
        _read("x", {1: 2, "type": "Bare"}, {"type": "Bare", "data": {2: 3}})
    assert [p["line"] for p in caught.value.details["problems"]] == [1, 2, 3]


def test_ids_of_endpoints_that_are_numbers():
    for value, hint in ((7, True), (True, False), (10**5000, False), (pd.NA, False)):
        with pytest.raises(InputError) as caught:
            _read({"edge": "Knows", "from": value, "to": "b"})
        assert ('(write "7")' in caught.value.message) == hint


def test_many_records_are_packed_in_pieces(monkeypatch):
    monkeypatch.setattr(jsonl_exact, "_ROWS_PER_PART", 10)
    loaded = _read(*({"type": "Vessel", "data": {"imo": i}} for i in range(95)))["node:Vessel"]
    assert loaded.rows["id"].to_pylist() == [str(i) for i in range(95)]
    wrong = [{"type": "Vessel", "data": {"imo": i, "id": "x"}} for i in range(95)]
    with pytest.raises(InputError) as caught:
        _read(*wrong)
    assert caught.value.details["problem_count"] == 20
