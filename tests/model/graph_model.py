"""A graph as plain dicts: what the store must agree with after any history."""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> City @card(0..2) { @key(@src, @dst) }
"""
ENDPOINTS = {"Knows": ("Person", "Person"), "Likes": ("Person", "City")}
NODES = ("Person", "City")


class RefusedError(Exception):
    """The model would not accept this load."""


@dataclass
class GraphModel:
    """Entities by type and id; each value is the complete row."""

    content: dict[str, dict[str, dict]] = field(
        default_factory=lambda: {t: {} for t in ("Person", "City", "Knows", "Likes")}
    )
    commits: int = 1

    def load(self, records: list[dict], mode: str) -> None:
        """Apply a load as a whole, or refuse it as a whole."""
        new = {t: dict(rows) for t, rows in self.content.items()}
        given: dict[str, list[tuple[str, dict]]] = {}
        for record in records:
            type_name, entity_id, row = entity(record)
            given.setdefault(type_name, []).append((entity_id, row))
        for type_name, rows in given.items():
            ids = [i for i, _ in rows]
            keyed = type_name != "Knows"
            if len(set(ids)) < len(ids) and (keyed or mode != "merge"):
                raise RefusedError(f"repeated id in {type_name}")
            if mode == "overwrite":
                new[type_name] = {}
            elif mode == "append" and set(ids) & set(new[type_name]):
                raise RefusedError(f"existing id in {type_name}")
            new[type_name].update(rows)
        check(new)
        self.content = new
        self.commits += bool(given)


def entity(record: dict) -> tuple[str, str, dict]:
    """Type, id and stored row of a record."""
    data = record.get("data", {})
    if "type" in record:
        row = {"id": data["name"], "name": data["name"]}
        if record["type"] == "Person":
            row["age"] = data.get("age")
        return record["type"], data["name"], row
    ends = {"src": record["from"], "dst": record["to"]}
    if record["edge"] == "Knows":
        row = {"id": data["id"], **ends, "since": data.get("since")}
        return "Knows", data["id"], row
    key = f'["{ends["src"]}","{ends["dst"]}"]'
    return "Likes", key, {"id": key, **ends}


def check(content: dict[str, dict[str, dict]]) -> None:
    """The rules of the schema, one row at a time."""
    for edge_type, (source, target) in ENDPOINTS.items():
        for row in content[edge_type].values():
            if row["src"] not in content[source] or row["dst"] not in content[target]:
                raise RefusedError(f"dangling {edge_type}")
    sources = [row["src"] for row in content["Likes"].values()]
    if any(sources.count(s) > 2 for s in set(sources)):
        raise RefusedError("too many likes")
