"""Any history of main, mirrored at any moment: a plain Lance program finds exactly main's rows."""

from __future__ import annotations

import base64
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.mirror import type_name
from omnigraph.storage.mirror import mirror_path
from support.examples import examples

VALUES: dict[str, list[Any]] = {
    "I32": [1, -5, None],
    "I64": [2**40, -7],
    "String": ["x", "", "ü"],
    "[I32]": [[1, 2], [], None],
    "Vector(2)": [[1.0, 2.0], [0.5, -3.0]],
    "enum(hi, lo)": ["lo", "hi", None],
    "Date": ["2020-02-29", "1969-12-31"],
    "Blob": [
        "base64:" + base64.b64encode(content).decode() for content in (b"small", b"x" * 70_000)
    ],
}
KEYS = [f"k{i}" for i in range(6)]
BRANCHES = st.sampled_from(["main", "main", "dev"])
Schema = dict[str, dict[str, str]]


def text_of(schema: Schema, hints: dict[str, str]) -> str:
    """A schema text; hints by ``Type`` or ``Type.property``."""
    said: list[str] = []
    for name, properties in schema.items():
        body = "  ".join(
            f"{p}: {kind}? {hints.get(f'{name}.{p}', '')}" for p, kind in properties.items()
        )
        said.append(f"node {name} {hints.get(name, '')} {{ k: String @key  {body} }}")
    return "\n".join([*said, "edge Link: A -> A { w: I32? }"]) + "\n"


class MirrorHistory(RuleBasedStateMachine):
    """One graph with a branch; what is right is what the graph itself shows."""

    folder: str
    numbers = count()

    @initialize()
    def begin(self) -> None:
        self.root = Path(self.folder) / str(next(self.numbers))
        schema: Schema = {"A": {"a": "I32", "b": "Blob"}, "B": {"a": "[I32]"}}
        self.graph = omnigraph.init(self.root, text_of(schema, {}))
        self.names, self.turns = count(), count()
        for keys in (KEYS[:3], KEYS[3:]):
            self._load("A", keys)
            self._load("B", keys)
        self.graph.branches.create("dev")
        self.graph.upkeep.mirror()

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.close_and_open()
            self.graph.close()

    def _schema(self, branch: str) -> Schema:
        nodes = self.graph.snapshot(branch).catalog.nodes
        return {
            name: {p.name: str(p.type).removesuffix("?") for p in node.properties if p.name != "k"}
            for name, node in nodes.items()
        }

    # -- writes ----------------------------------------------------------------------------------

    def _load(self, name: str, keys: list[str], branch: str = "main", mode: str = "merge") -> None:
        """Rows with values that differ from turn to turn."""
        properties = self._schema(branch)[name]
        records: list[dict[str, Any]] = []
        for key in keys:
            turn = next(self.turns)
            row = {p: VALUES[kind][turn % len(VALUES[kind])] for p, kind in properties.items()}
            records.append({"type": name, "data": {"k": key, **row}})
        with suppress(OmnigraphError):  # An edge may lead to what would be gone.
            self.graph.load(records, mode=mode, branch=branch)

    @rule(data=st.data(), branch=BRANCHES, mode=st.sampled_from(["merge", "merge", "overwrite"]))
    def put(self, data: st.DataObject, branch: str, mode: str) -> None:
        first = data.draw(st.integers(0, len(KEYS) - 1))
        for name in self._schema(branch):
            self._load(name, KEYS[first : first + 3], branch, mode)

    @rule(branch=BRANCHES, ends=st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS)))
    def link(self, branch: str, ends: tuple[str, str]) -> None:
        with suppress(OmnigraphError):  # An end may not be there.
            self.graph.load([{"edge": "Link", "from": ends[0], "to": ends[1]}], branch=branch)

    @rule(data=st.data(), branch=BRANCHES, everything=st.sampled_from([False, False, False, True]))
    def remove(self, data: st.DataObject, branch: str, everything: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self._schema(branch))))
        chosen = 'k <= "zz"' if everything else f'k = "{data.draw(st.sampled_from(KEYS))}"'
        self.graph.mutate(f"delete {name} where {chosen}", branch=branch)

    @rule(indexes=st.booleans())
    def maintain(self, indexes: bool) -> None:
        if indexes:
            self.graph.build_indexes()
        else:
            self.graph.optimize()

    # -- columns and types -----------------------------------------------------------------------

    @rule(data=st.data(), branch=BRANCHES)
    def change_columns(self, data: st.DataObject, branch: str) -> None:
        schema, hints = self._schema(branch), dict[str, str]()
        name = data.draw(st.sampled_from(sorted(schema)))
        # Names that were used before are other columns now.
        chosen = data.draw(st.sampled_from(["a", "b", "c"]))
        own = schema[name]
        if chosen not in own:
            own[chosen] = data.draw(st.sampled_from(sorted(VALUES)))
        elif data.draw(st.booleans()):
            del own[chosen]
        else:
            fresh = f"p{next(self.names)}"
            own[fresh] = {"I32": "I64"}.get(own[chosen], own[chosen])
            del own[chosen]
            hints[f"{name}.{fresh}"] = f'@rename_from("{chosen}")'
        self.graph.schema_apply(text_of(schema, hints), branch=branch, confirm=True)
        self._load(name, KEYS[2:4], branch)

    @rule(data=st.data(), branch=BRANCHES, rename=st.booleans())
    def change_types(self, data: st.DataObject, branch: str, rename: bool) -> None:
        schema, hints = self._schema(branch), dict[str, str]()
        others = sorted(schema.keys() - {"A"})
        if not others:
            schema["B"] = {"a": "String"}
        else:
            name = data.draw(st.sampled_from(others))
            dropped = schema.pop(name)
            if rename:
                fresh = f"T{next(self.names)}"
                schema[fresh], hints[fresh] = dropped, f'@rename_from("{name}")'
        self.graph.schema_apply(text_of(schema, hints), branch=branch, confirm=True)

    # -- states ----------------------------------------------------------------------------------

    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        commits = [c.id for b in ("main", "dev") for c in self.graph.commits(branch=b)]
        self.graph.reset(data.draw(st.sampled_from(commits)))

    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        commits = [c.id for c in self.graph.commits()]
        with suppress(OmnigraphError):
            self.graph.revert(data.draw(st.sampled_from(commits)), prefer="ours")

    @rule(back=st.booleans())
    def merge(self, back: bool) -> None:
        with suppress(OmnigraphError):
            if back:
                self.graph.merge("main", into="dev", prefer="theirs")
            else:
                self.graph.merge("dev", prefer="theirs")

    # -- what other programs find ----------------------------------------------------------------

    @rule()
    def mirror(self) -> None:
        assert set(self.graph.upkeep.mirror().values()) <= {"current"}
        self._compare()

    @rule()
    def close_and_open(self) -> None:
        self.graph.close()
        self.graph = omnigraph.open(self.root)
        self._compare()

    def _compare(self) -> None:
        view = self.graph.snapshot()
        pins = self.graph._repository.head("main").snapshot.pins
        shown = {type_name(key) for key in pins}
        for name in (*view.catalog.nodes, *view.catalog.edges):
            if name in shown:
                found = lance.dataset(str(self.root / mirror_path(name)))
                rows = found.scanner(blob_handling="all_binary").to_table()
                assert rows.sort_by("id").to_pydict() == (
                    view.rows(name).to_arrow().sort_by("id").to_pydict()
                )
                assert found.count_rows() == view.count(name)
            else:
                assert view.count(name) == 0
        versions = self.root.glob("tables/*.lance/_versions/*.manifest")
        assert {path.parts[-3].removesuffix(".lance") for path in versions} <= shown


@pytest.mark.hypothesis
def test_mirror_histories(tmp_path: Path) -> None:
    machine = type("Machine", (MirrorHistory,), {"folder": str(tmp_path)})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(8), stateful_step_count=25, deadline=None)
    )
