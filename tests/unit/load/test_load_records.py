from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from load_cases import CATALOG, day

from omnigraph.errors import InputError
from omnigraph.ids import SeededIds
from omnigraph.load import records as records_module
from omnigraph.load import rows_from_records


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
    ],
)
def test_python_values(name, value, expected):
    assert _one(name, value) == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("on", datetime(2026, 1, 2), "All.on: expected Date, got the timestamp 2026-01-02"),
        ("at", datetime(2026, 1, 2, microsecond=1), "not a DateTime of whole milliseconds"),
        ("at", pd.Timestamp(1), "not a DateTime of whole milliseconds"),
        ("at", pd.NaT, "not a DateTime of whole milliseconds"),
        ("at", np.datetime64("NaT"), "not a DateTime of whole milliseconds"),
        ("d", float("nan"), "All.d: expected a finite number, got nan"),
        ("f", 1e39, "All.f: 1e+39 is out of range for F32"),
        ("i", 1.0, "All.i: expected I32, got 1.0"),
        ("i", np.int64(2**40), "out of range for I32"),
        ("s", b"x", "All.s: expected String, got bytes"),
        ("s", "\ud800", "half of a surrogate pair"),
        ("v", "abc", "expected Vector(3)"),
        ("ls", {1}, "expected a list [I64]"),
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


def test_many_records_are_packed_in_pieces(monkeypatch):
    monkeypatch.setattr(records_module, "_ROWS_PER_PART", 10)
    loaded = _read(*({"type": "Vessel", "data": {"imo": i}} for i in range(95)))["node:Vessel"]
    assert loaded.rows["id"].to_pylist() == [str(i) for i in range(95)]
    wrong = [{"type": "Vessel", "data": {"imo": i, "id": "x"}} for i in range(95)]
    with pytest.raises(InputError) as caught:
        _read(*wrong)
    assert caught.value.details["problem_count"] == 20
