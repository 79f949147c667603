"""Mutations on real graphs: what statements do, what they count, what they refuse."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from mutation_support import NOW, counts, ends, fleet, mutate, nodes

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.ids import SeededIds


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return fleet(tmp_path / "fleet")


def test_an_insert_into_a_keyed_type_replaces_the_whole_row(graph: omnigraph.Graph) -> None:
    outcome = mutate(graph, 'insert Vessel { imo: 200, name: "Brisa II" }')
    assert counts(outcome) == (1, 0)
    assert outcome.receipt.changes["node:Vessel"].updated == 1
    cleared = {"imo": 200, "name": "Brisa II", "flag": None, "built": None, "tags": None}
    assert nodes(graph, "Vessel")["200"] == cleared
    mutate(graph, 'insert Vessel { imo: 400, name: "Dana", built: date("2020-02-29") }')
    assert nodes(graph, "Vessel")["400"]["built"] == date(2020, 2, 29)
    assert len(graph.commits()) == 4


def test_an_upsert_keeps_what_it_does_not_assign(graph: omnigraph.Graph) -> None:
    outcome = mutate(graph, 'upsert Vessel { imo: 200, name: "Brisa II" }')
    assert counts(outcome) == (1, 0)
    kept = {"imo": 200, "name": "Brisa II", "flag": "no", "built": None, "tags": ["ice"]}
    assert nodes(graph, "Vessel")["200"] == kept
    mutate(graph, 'upsert Vessel { imo: 500, name: "Eva", flag: "pa" }')
    assert nodes(graph, "Vessel")["500"]["flag"] == "pa"


def test_an_edge_that_would_be_one_too_many_is_refused(graph: omnigraph.Graph) -> None:
    before = graph.snapshot().version
    with pytest.raises(omnigraph.ConstraintError) as caught:
        mutate(graph, 'insert CallsAt { from: "100", to: "BGO", on: date("2026-03-01") }')
    assert "@card violation on edge CallsAt: source '100' has 4 edges (max 3)" in str(caught.value)
    assert graph.snapshot().version == before


def test_an_edge_to_nowhere_is_refused(graph: omnigraph.Graph) -> None:
    before = graph.snapshot().version
    with pytest.raises(omnigraph.ConstraintError, match="src '999' not found in Vessel"):
        mutate(graph, 'insert CallsAt { from: "999", to: "BGO", on: date("2026-03-01") }')
    assert graph.snapshot().version == before


def test_deleting_a_node_takes_its_edges_of_all_types_in_both_directions(
    graph: omnigraph.Graph,
) -> None:
    outcome = mutate(graph, 'delete Port where code = "AAR"')
    assert counts(outcome) == (1, 4)
    deleted = {key: c.deleted for key, c in outcome.receipt.changes.items()}
    assert deleted == {"node:Port": 1, "edge:CallsAt": 2, "edge:Feeds": 2}
    assert set(nodes(graph, "Port")) == {"BGO", "CPH"}
    assert ends(graph, "CallsAt") == [("100", "CPH"), ("200", "BGO")]
    assert ends(graph, "Feeds") == [("BGO", "CPH")]
    assert len(graph.commits()) == 3, "one commit over three tables"
    with omnigraph.open(graph.uri) as fresh:
        assert ends(fresh, "Feeds") == [("BGO", "CPH")]


def test_deletes_that_overlap_count_each_entity_once(graph: omnigraph.Graph) -> None:
    outcome = mutate(
        graph,
        """
        delete CallsAt where to = "AAR"
        delete Port where code = "AAR" or berths > 5
        delete Port where berths >= 4
        delete CallsAt where from = "100"
        delete Feeds where from = "CPH" and to = "AAR"
        """,
    )
    assert counts(outcome) == (2, 6)
    assert set(nodes(graph, "Port")) == {"BGO"}
    assert ends(graph, "CallsAt") == [("200", "BGO")]
    assert ends(graph, "Feeds") == []


def test_a_self_loop_goes_once(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", "node P { code: String @key }\nedge E: P -> P") as graph:
        mutate(
            graph,
            'insert P { code: "a" } insert P { code: "b" } insert E { from: "a", to: "a" }'
            ' insert E { from: "a", to: "b" } insert E { from: "b", to: "a" }',
        )
        assert counts(mutate(graph, 'delete P where code = "a"')) == (1, 3)
        assert ends(graph, "E") == []


def test_an_unknown_condition_deletes_and_updates_nothing(graph: omnigraph.Graph) -> None:
    """Cora has no flag: whatever is asked about it is unknown."""
    assert counts(mutate(graph, 'delete Vessel where not (flag = "dk")')) == (1, 1)
    assert set(nodes(graph, "Vessel")) == {"100", "300"}
    outcome = mutate(graph, 'delete Vessel where flag != "dk" delete Vessel where flag = "dk"')
    assert counts(outcome) == (1, 3), "the first condition is unknown, the second is true"
    assert set(nodes(graph, "Vessel")) == {"300"}
    assert counts(mutate(graph, 'update Vessel set { name: "x" } where flag = "dk"')) == (0, 0)
    assert counts(mutate(graph, 'update Vessel set { name: "x" } where flag is null')) == (1, 0)
    gone = mutate(graph, "query q($f: String?) { delete Vessel where flag = $f }", {"f": None})
    assert counts(gone) == (0, 0) and gone.receipt.commit is None


def test_an_update_changes_what_matches_and_nothing_else(graph: omnigraph.Graph) -> None:
    before = nodes(graph, "Port")
    text = 'update Port set { berths: 9 } where berths > 2 and not (code = "x")'
    outcome = mutate(graph, text)
    assert counts(outcome) == (2, 0)
    changed = {k: {**v, "berths": 9 if v["berths"] > 2 else v["berths"]} for k, v in before.items()}
    assert nodes(graph, "Port") == changed
    assert len(ends(graph, "Feeds")) == 3


def test_an_edge_is_updated_by_its_endpoints(graph: omnigraph.Graph) -> None:
    text = 'update CallsAt set { cargo: "steel" } where from = "100" and to = "AAR"'
    assert counts(mutate(graph, text)) == (0, 2)
    rows = graph.snapshot().rows("CallsAt").to_dicts()
    cargo = sorted((r["src"], r["dst"], str(r["on"]), r["cargo"]) for r in rows)
    assert cargo == [
        ("100", "AAR", "2026-01-02", "steel"),
        ("100", "AAR", "2026-02-02", "steel"),
        ("100", "CPH", "2026-02-10", None),
        ("200", "BGO", "2026-02-20", None),
    ]
    one = next(r["id"] for r in rows if r["dst"] == "CPH")
    by_id = f'update CallsAt set {{ on: date("2027-01-01") }} where id = "{one}"'
    assert counts(mutate(graph, by_id)) == (0, 1)
    assert counts(mutate(graph, f'delete CallsAt where id in ["{one}", "none"]')) == (0, 1)


def test_statements_see_what_earlier_ones_did(graph: omnigraph.Graph) -> None:
    outcome = mutate(
        graph,
        """
        insert Port { code: "DUB", name: "dub", berths: 1 }
        update Port set { berths: 50 } where berths <= 2
        update Port set { name: "big" } where berths = 50
        insert Port { code: "CPH", name: "again", berths: 50 }
        update Port set { berths: 51 } where name = "again" or name = "big"
        upsert Port { code: "DUB", berths: 7, name: "dub" }
        """,
    )
    assert counts(outcome) == (1 + 2 + 2 + 1 + 3 + 1, 0)
    found = {k: (v["name"], v["berths"]) for k, v in nodes(graph, "Port").items()}
    assert found == {"AAR": ("aar", 4), "BGO": ("big", 51), "CPH": ("again", 51), "DUB": ("dub", 7)}
    change = outcome.receipt.changes["node:Port"]
    assert (change.inserted, change.updated, change.deleted) == (1, 2, 0)
    assert len(graph.commits()) == 3


def test_a_new_edge_may_stand_before_its_new_node(graph: omnigraph.Graph) -> None:
    outcome = mutate(
        graph,
        'insert CallsAt { from: "900", to: "EBJ", on: date("2026-05-01") }'
        ' insert Vessel { imo: 900, name: "Nia" } insert Port { code: "EBJ", name: "e", berths: 1 }',
    )
    assert counts(outcome) == (2, 1)
    assert ("900", "EBJ") in ends(graph, "CallsAt")


def test_a_value_can_be_released_and_taken_in_one_mutation(tmp_path: Path) -> None:
    schema = "node P { code: String @key  badge: I32? @unique }"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        mutate(graph, 'insert P { code: "a", badge: 1 } insert P { code: "b" }')
        swap = 'update P set { badge: 2 } where code = "a" insert P { code: "c", badge: 1 }'
        assert counts(mutate(graph, swap)) == (2, 0)
        with pytest.raises(omnigraph.ConstraintError, match=r"@unique violation on P\.badge"):
            mutate(graph, "update P set { badge: 7 } where badge is null or badge = 1")
        assert {k: v["badge"] for k, v in nodes(graph, "P").items()} == {"a": 2, "b": None, "c": 1}


# ---------------------------------------------------------------- nothing changed


@pytest.mark.parametrize(
    ("text", "affected"),
    [
        ('update Port set { berths: 4 } where code = "AAR"', (1, 0)),
        ('update Port set { berths: 4, name: "aar" } where berths = 4', (1, 0)),
        ("update Port set { berths: 1 } where berths = 1", (0, 0)),
        ('update Vessel set { tags: ["ice"] } where imo = 200', (1, 0)),
        ("update Vessel set { flag: null, built: null } where imo = 300", (1, 0)),
        ('insert Port { code: "AAR", name: "aar", berths: 4 }', (1, 0)),
        ('insert Vessel { imo: 200, name: "Brisa", flag: "no", tags: ["ice"] }', (1, 0)),
        ('upsert Vessel { imo: 200, name: "Brisa" }', (1, 0)),
        ('delete Port where code = "nowhere"', (0, 0)),
        ('delete CallsAt where from = "300"', (0, 0)),
        ("update Port set { berths: 5 } where berths = 4 update Port set { berths: 4 } where berths = 5", (2, 0)),
        ('upsert Port { code: "CPH", name: "x", berths: 6 } upsert Port { code: "CPH", name: "cph", berths: 6 }', (2, 0)),
    ],
)  # fmt: skip
def test_what_changes_nothing_makes_no_commit(
    graph: omnigraph.Graph, text: str, affected: tuple[int, int]
) -> None:
    before = graph.snapshot()
    outcome = mutate(graph, text)
    assert counts(outcome) == affected
    assert outcome.receipt.commit is None
    assert outcome.receipt.changes == {}
    assert graph.snapshot().commit == before.commit


def test_only_rows_that_change_are_written(graph: omnigraph.Graph) -> None:
    outcome = mutate(graph, "update Port set { berths: 4 } where berths > 0")
    assert counts(outcome) == (3, 0)
    assert outcome.receipt.changes["node:Port"].updated == 2


def test_the_other_zero_is_another_value(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", "node P { code: String @key  x: F64?  y: F32? }") as graph:
        mutate(graph, 'insert P { code: "a", x: 0.0, y: 0.0 }')
        assert mutate(graph, "update P set { x: 0.0 } where x = 0").receipt.commit is None
        assert mutate(graph, "update P set { x: -0.0 } where x = 0").receipt.commit is not None
        assert str(nodes(graph, "P")["a"]["x"]) == "-0.0"


# ---------------------------------------------------------------- identity


def test_rows_without_a_key_get_fresh_ids(tmp_path: Path) -> None:
    schema = "node Note { text: String }\nedge Cites: Note -> Note"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        outcome = mutate(graph, 'insert Note { text: "a" } insert Note { text: "a" }')
        assert counts(outcome) == (2, 0)
        ids = sorted(nodes(graph, "Note"))
        assert len(ids) == 2 and all(len(i) == 26 for i in ids)
        text = f'insert Cites {{ from: "{ids[0]}", to: "{ids[1]}" }}'
        assert counts(mutate(graph, text)) == (0, 1)
        assert counts(mutate(graph, text)) == (0, 1)
        assert len(ends(graph, "Cites")) == 2, "edges without a key stay apart"


def test_a_chosen_id_must_be_new(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", "node Note { text: String }") as graph:
        mutate(graph, 'insert Note { id: "n1", text: "a" } insert Note { id: "n2", text: "b" }')
        assert set(nodes(graph, "Note")) == {"n1", "n2"}
        for text in (
            'insert Note { id: "n1", text: "c" }',
            'update Note set { text: "z" } where id = "n1" insert Note { id: "n1", text: "c" }',
            'insert Note { id: "n3", text: "c" } insert Note { id: "n3", text: "d" }',
        ):
            with pytest.raises(omnigraph.ConstraintError) as caught:
                mutate(graph, text)
            assert caught.value.kind is ErrorKind.KEY_CONFLICT
            assert "key conflict on Note" in str(caught.value)
        assert {k: v["text"] for k, v in nodes(graph, "Note").items()} == {"n1": "a", "n2": "b"}
        assert counts(mutate(graph, 'update Note set { text: "z" } where id = "n1"')) == (1, 0)


def test_keys_of_every_type_are_found_by_their_id(tmp_path: Path) -> None:
    schema = """
    node Pair { a: I64  b: String  @key(a, b)  n: I32? }
    node Day { on: Date @key  n: I32? }
    node Moment { at: DateTime @key  n: I32? }
    node Half { x: F32 @key  n: I32? }
    node Flag { is: Bool @key  n: I32? }
    node Big { u: U64 @key  n: I32? }
    node Named { id: String @key  n: I32? }
    edge Knows: Named -> Named { since: I32  n: I32?  @key(@src, @dst, since) }
    """
    with omnigraph.init(tmp_path / "g", schema) as graph:
        mutate(
            graph,
            """
            insert Pair { a: -1, b: "x\\"y" } insert Pair { a: 2, b: "é" }
            insert Day { on: date("1969-12-31") } insert Day { on: date("2026-01-01") }
            insert Moment { at: datetime("2026-01-01T00:00:00.001Z") }
            insert Half { x: 0.1 } insert Half { x: -0.0 }
            insert Flag { is: true } insert Flag { is: false }
            insert Big { u: 18446744073709551615 }
            insert Named { id: "a" } insert Named { id: "b" }
            insert Knows { from: "a", to: "b", since: 1 } insert Knows { from: "a", to: "b", since: 2 }
            """,
        )
        for where, expected in (
            ('Pair set { n: 1 } where a = -1 and b = "x\\"y"', (1, 0)),
            ('Pair set { n: 2 } where b = "é" and a in [1, 2] and n is null', (1, 0)),
            ('Day set { n: 1 } where on = date("1969-12-31")', (1, 0)),
            ('Moment set { n: 1 } where at = datetime("2026-01-01T01:00:00.001+01:00")', (1, 0)),
            ("Half set { n: 1 } where x = 0", (1, 0)),
            ("Half set { n: 1 } where x = 0.5", (0, 0)),
            ("Flag set { n: 1 } where is = false", (1, 0)),
            ("Big set { n: 1 } where u = 18446744073709551615", (1, 0)),
            ("Big set { n: 1 } where u = -1", (0, 0)),
            ('Named set { n: 1 } where id = "a" or id = "b"', (2, 0)),
            ('Knows set { n: 5 } where from = "a" and to = "b" and since = 2', (0, 1)),
            ('Knows set { n: 6 } where to = "b"', (0, 2)),
        ):
            assert counts(mutate(graph, f"update {where}")) == expected, where
        outcome = mutate(graph, 'upsert Knows { from: "a", to: "b", since: 2, n: 9 }')
        assert outcome.receipt.changes["edge:Knows"].updated == 1
        assert counts(mutate(graph, 'delete Named where id = "b"')) == (1, 2)


def test_the_last_of_two_inserts_of_one_key_stays(graph: omnigraph.Graph) -> None:
    outcome = mutate(
        graph,
        'insert Vessel { imo: 7, name: "one", flag: "dk" } insert Vessel { imo: 7, name: "two" }'
        ' upsert Vessel { imo: 7, name: "three", built: date("2020-01-01") }'
        ' upsert Vessel { imo: 8, name: "a", flag: "no" } upsert Vessel { imo: 8, name: "b" }',
    )
    assert counts(outcome) == (5, 0)
    assert outcome.receipt.changes["node:Vessel"].inserted == 2
    found = nodes(graph, "Vessel")
    assert (found["7"]["name"], found["7"]["flag"]) == ("three", None)
    assert (found["8"]["name"], found["8"]["flag"]) == ("b", "no")


# ---------------------------------------------------------------- values


def test_every_kind_of_value_is_assigned_kept_and_cleared(tmp_path: Path) -> None:
    schema = """node All {
      code: String @key  s: String?  b: Blob?  t: Bool?  i: I32?  l: I64?  u: U32?  w: U64?
      f: F32?  d: F64?  on: Date?  at: DateTime?  v: Vector(3)?  e: enum(x, y)?
      ss: [String]?  is: [I32]?  ds: [F64]?  ons: [Date]?  }"""
    kinds = {
        "s": "String", "b": "Blob", "t": "Bool", "i": "I32", "l": "I64", "u": "U32", "w": "U64",
        "f": "F32", "d": "F64", "on": "Date", "at": "DateTime", "v": "Vector(3)", "e": "String",
        "ss": "[String]", "is": "[I32]", "ds": "[F64]", "ons": "[Date]",
    }  # fmt: skip
    given = {
        "s": "it's", "b": "base64:AP8=", "t": False, "i": -(2**31), "l": 2**63 - 1, "u": 2**32 - 1,
        "w": 2**64 - 1, "f": 0.5, "d": 0.1, "on": "0001-01-01", "at": "9999-12-31T23:59:59.999Z",
        "v": [0.5, -1, 2], "e": "x", "ss": ["", "ü"], "is": [], "ds": [1, 0.5],
        "ons": ["2026-01-01"],
    }  # fmt: skip
    stored = given | {
        "b": b"\x00\xff",
        "on": date(1, 1, 1),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        "ds": [1.0, 0.5],
        "ons": [date(2026, 1, 1)],
    }
    declared = ", ".join(f"${n}: {k}?" for n, k in kinds.items())
    assigned = ", ".join(f"{n}: ${n}" for n in kinds)
    with omnigraph.init(tmp_path / "g", schema) as graph:
        query = f'query q({declared}) {{ insert All {{ code: "a", {assigned} }} }}'
        assert counts(mutate(graph, query, given)) == (1, 0)
        assert nodes(graph, "All")["a"] == {"code": "a", **stored}
        assert mutate(graph, query, given).receipt.commit is None
        for name, kind in kinds.items():
            update = f'query q($x: {kind}?) {{ update All set {{ {name}: $x }} where code = "a" }}'
            assert mutate(graph, update, {"x": given[name]}).receipt.commit is None, name
            assert mutate(graph, update, {"x": None}).receipt.commit is not None, name
            assert nodes(graph, "All")["a"] == {"code": "a", **stored, name: None}
            assert mutate(graph, update, {"x": None}).receipt.commit is None, name
            assert mutate(graph, update, {"x": given[name]}).receipt.commit is not None, name
        mutate(graph, 'upsert All { code: "a", i: 1 }')
        assert nodes(graph, "All")["a"] == {"code": "a", **stored, "i": 1}
        mutate(graph, "update All set { i: 2 } where i = 1")
        with omnigraph.open(graph.uri) as fresh:
            assert nodes(fresh, "All")["a"] == {"code": "a", **stored, "i": 2}
        mutate(graph, 'insert All { code: "a" }')
        assert nodes(graph, "All")["a"] == {"code": "a", **dict.fromkeys(kinds)}


def test_blobs_of_rows_that_are_updated_stay_as_they_are(tmp_path: Path) -> None:
    schema = "node P { code: String @key  n: I32  photo: Blob?  face: Vector(2)? }"
    photos = [None, b"", b"x" * 10, bytes(range(256)) * 4096]
    rows = [
        {"code": f"p{i:03}", "n": i, "photo": photos[i % 4], "face": [i, -i] if i % 3 else None}
        for i in range(200)
    ]
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load(rows, type="P")
        expected = {r["code"]: dict(r) for r in rows}

        def check() -> None:
            assert nodes(graph, "P") == expected

        for text, chosen in (
            ('update P set { n: 1000 } where code = "p003"', lambda r: r["code"] == "p003"),
            (
                "update P set { n: 1001 } where n in [5, 6, 7, 11]",
                lambda r: r["n"] in (5, 6, 7, 11),
            ),
            (
                "update P set { n: 1002 } where n >= 100 and n < 1000",
                lambda r: 100 <= r["n"] < 1000,
            ),
        ):
            value = int(text.split("n: ")[1].split(" ")[0])
            matched = [k for k, r in expected.items() if chosen(r)]
            assert counts(mutate(graph, text)) == (len(matched), 0)
            for key in matched:
                expected[key]["n"] = value
            check()
        mutate(graph, 'upsert P { code: "p007", n: 3 }')
        expected["p007"]["n"] = 3
        check()


def test_now_is_one_moment(tmp_path: Path) -> None:
    schema = "node P { code: String @key  at: DateTime?  was: DateTime? }"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        late = NOW.replace(microsecond=250_999)
        mutate(
            graph,
            'insert P { code: "a", at: now(), was: now() } insert P { code: "b", at: now() }',
            now=late,
        )
        found = nodes(graph, "P")
        assert {found["a"]["at"], found["a"]["was"], found["b"]["at"]} == {NOW}
        assert counts(mutate(graph, "delete P where at <= now()", now=NOW)) == (2, 0)


def test_a_parameter_is_fitted_without_loss_or_refused(tmp_path: Path) -> None:
    with omnigraph.init(
        tmp_path / "g", "node P { code: String @key  i: I32?  f: F32?  d: F64? }"
    ) as graph:
        mutate(graph, 'insert P { code: "a" }')
        before = graph.snapshot().version

        def put(column: str, kind: str, value: object) -> object:
            mutate(
                graph,
                f'query q($x: {kind}) {{ update P set {{ {column}: $x }} where code = "a" }}',
                {"x": value},
            )
            return nodes(graph, "P")["a"][column]

        for column, kind, value in (
            ("i", "F64", 2.5),
            ("i", "I64", 2**31),
            ("i", "F64", 1e300),
            ("d", "I64", 2**53 + 1),
            ("f", "I64", 2**24 + 1),
            ("f", "F64", 1e300),
        ):
            with pytest.raises(omnigraph.ParameterError, match=rf"\$x for P\.{column}"):
                put(column, kind, value)
        assert graph.snapshot().version == before
        assert put("i", "F64", 3.0) == 3
        assert put("d", "I64", 2**53) == float(2**53)
        assert put("f", "F64", 0.1) == pytest.approx(0.1, abs=1e-8)


def test_a_required_value_cannot_be_cleared(graph: omnigraph.Graph) -> None:
    with pytest.raises((omnigraph.ConstraintError, omnigraph.QueryError)):
        mutate(
            graph,
            "query q($n: String?) { update Port set { name: $n } where berths = 4 }",
            {"n": None},
        )
    with pytest.raises(omnigraph.ConstraintError, match=r"enum value 'se' for Vessel\.flag"):
        mutate(
            graph,
            "query q($f: String) { update Vessel set { flag: $f } where imo = 100 }",
            {"f": "se"},
        )
    with pytest.raises(omnigraph.ConstraintError, match=r"@range violation on Vessel\.imo"):
        mutate(graph, 'insert Vessel { imo: 10000000, name: "x" }')


# ---------------------------------------------------------------- lineage, preconditions


def test_the_commit_says_who_and_what(graph: omnigraph.Graph) -> None:
    outcome = mutate(graph, 'delete Feeds where id != ""', actor="ann", message="no feeds")
    commit = outcome.receipt.commit
    assert commit is not None and commit == graph.commits()[0]
    assert (commit.kind, commit.actor, commit.message) == ("mutation", "ann", "no feeds")
    assert commit.changes["edge:Feeds"].deleted == 3


def test_if_commit_is_a_precondition(graph: omnigraph.Graph) -> None:
    seen = graph.snapshot().commit.id
    done = mutate(graph, 'delete Port where code = "AAR"', expected_commit=seen)
    assert done.receipt.commit is not None
    for text in (
        'delete Port where code = "BGO"',
        'delete Port where code = "nowhere"',
        "update Port set { berths: 1 } where berths > 0",
        'insert Port { code: "NEW", name: "n", berths: 1 }',
    ):
        with pytest.raises(omnigraph.ConflictError) as caught:
            mutate(graph, text, expected_commit=seen)
        assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert set(nodes(graph, "Port")) == {"BGO", "CPH"}


def test_ids_come_from_the_graph(tmp_path: Path) -> None:
    def made(name: str) -> list[str]:
        with omnigraph.init(
            tmp_path / name, "node Note { text: String }", ids=SeededIds(7)
        ) as graph:
            mutate(graph, 'insert Note { text: "a" } insert Note { text: "b" }')
            return [r["id"][10:] for r in graph.snapshot().rows("Note")]

    assert made("one") == made("other")


def test_mutations_are_durable_where_that_is_promised(tmp_path: Path) -> None:
    schema = "node P { code: String @key  n: I32? }\nedge E: P -> P"
    with omnigraph.init(tmp_path / "g", schema, durability="fsync") as graph:
        mutate(
            graph, 'insert P { code: "a" } insert P { code: "b" } insert E { from: "a", to: "b" }'
        )
        assert counts(mutate(graph, "update P set { n: 1 } where n is null")) == (2, 0)
        assert counts(mutate(graph, 'delete P where code = "a"')) == (1, 1)
        assert nodes(graph, "P") == {"b": {"code": "b", "n": 1}}
