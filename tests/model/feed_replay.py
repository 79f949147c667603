"""A copy of a branch that knows nothing but its change feed."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

Copy = dict[str, dict[str, dict[str, Any]]]
"""Rows by the id of their type and their own."""


class Replica:
    """Follows schema steps and changes as documented in docs/guide/changes.md."""

    def __init__(self) -> None:
        self.rows: Copy = {}
        self.names: dict[str, str] = {}
        """What each type is called now."""

    def apply(self, block: dict[str, Any]) -> None:
        """One block of a feed, as its JSON."""
        for step in block.get("schema", {}).get("steps", ()):
            self._step(step)
        renames: dict[str, dict[str, str]] = {}
        for step in block.get("schema", {}).get("steps", ()):
            if step["op"] == "rename_property":
                renames.setdefault(step["type"]["id"], {})[step["from"]] = step["to"]
        for type_id, names in renames.items():
            for row in self.rows.get(type_id, {}).values():
                old = dict(row["properties"])
                row["properties"] = {names.get(n, n): v for n, v in old.items()}
        for change in block["changes"]:
            type_id = change["type"]["id"]
            rows = self.rows.setdefault(type_id, {})
            self.names.setdefault(type_id, change["type"]["name"])
            if change["op"] == "delete":
                assert rows.pop(change["id"], None) is not None, change
            else:
                assert (change["id"] in rows) == (change["op"] == "update"), change
                rows[change["id"]] = change["after"]

    def _step(self, step: dict[str, Any]) -> None:
        type_id = step["type"]["id"]
        match step["op"]:
            case "renumber_type":
                self.rows[type_id] = self.rows.pop(step["from"], {})
                self.names.pop(step["from"], None)
            case "drop_property":
                for row in self.rows.get(type_id, {}).values():
                    row["properties"].pop(step["property"], None)
            case _:
                pass
        if step["op"] != "drop_type":
            self.names[type_id] = step["type"]["name"]

    def state(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Rows by the names of types; types without rows are left out."""
        return {self.names[t]: rows for t, rows in self.rows.items() if rows}


def exported(view: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """The same of a view: what its export writes."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    out = BytesIO()
    view.export(out)
    for line in out.getvalue().splitlines():
        record = json.loads(line)
        data = dict(record.get("data", {}))
        name, entity_id = record.get("type") or record["edge"], data.pop("id")
        row: dict[str, Any] = {"properties": data}
        if "edge" in record:
            row["endpoints"] = {"from": record["from"], "to": record["to"]}
        found.setdefault(name, {})[entity_id] = row
    return found
