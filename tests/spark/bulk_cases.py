"""Generated inputs for bulk loads: clean ones, and ones that break every rule many times.

Everything follows from a seed. A dirty input breaks each rule in turn, and some rows break several.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

SCHEMA = """
node City { name: String @key  zip: String? @unique  size: I64? }
node Person {
  nick: String?
  mail: String? @unique
  age: I32?
  score: F64?
  tier: enum(gold, silver)?
  tags: [F32]?
  face: Vector(2)?
  born: Date?
  seen: DateTime?
  serial: U64? @unique
  photo: Blob?
  @range(age, 0..120)
  @check(mail, "@")
  @unique(nick, born)
}
edge Lives: Person -> City @card(0..2) { since: I32?  @unique(src, since) }
edge Knows: Person -> Person { weight: F64? }
edge Road: City -> City @card(1..3) { lanes: I32?  @key(@src, @dst) }
"""


class World:
    """Makes records of the schema above; numbers decide on names, so states can be planned."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def city(self, i: int, **data: object) -> dict:
        zipped = None if i % 5 == 0 else f"z{i}"
        return {"type": "City", "data": {"name": f"c{i}", "zip": zipped, "size": i, **data}}

    def person(self, i: int, **data: object) -> dict:
        own = {
            "id": f"p{i}",
            "nick": f"n{i % 7}",
            "mail": f"p{i}@x" if i % 4 else None,
            "age": i % 100,
            "score": self.random.random(),
            "tier": self.random.choice(["gold", "silver", None]),
            "tags": [float(i), 0.5],
            "face": [0.25, i / 2] if i % 3 else None,
            "born": f"19{10 + i % 90}-{1 + i % 12:02d}-{1 + i // 90 % 28:02d}",
            "seen": f"2024-01-01T00:00:{i % 60:02d}.{i % 1000:03d}Z",
            "serial": 2**63 + i,
            "photo": "base64:aGVsbG8=" if i % 6 == 0 else None,
        }
        return {"type": "Person", "data": own | data}

    def lives(self, number: int, person: int, city: int, **data: object) -> dict:
        own = {"id": f"L{number}", "since": number}
        return {"edge": "Lives", "from": f"p{person}", "to": f"c{city}", "data": own | data}

    def knows(self, a: int, b: int) -> dict:
        weight = {"weight": self.random.random()}
        return {"edge": "Knows", "from": f"p{a}", "to": f"p{b}", "data": weight}

    def road(self, a: int, b: int, lanes: int = 1) -> dict:
        return {"edge": "Road", "from": f"c{a}", "to": f"c{b}", "data": {"lanes": lanes}}

    def shuffled(self, records: list[dict]) -> list[dict]:
        self.random.shuffle(records)
        return records

    def clean(self, people: range, cities: range, first_edge: int) -> list[dict]:
        """Entities of these numbers, and edges among them that keep all rules."""
        records = [self.city(i) for i in cities] + [self.person(i) for i in people]
        number = first_edge
        for i in people:
            for _ in range(self.random.randrange(3)):
                records.append(self.lives(number, i, self.random.choice(cities)))
                number += 1
            records.append(self.knows(i, self.random.choice(people)))
        for i in cities:
            ends = self.random.sample(cities, min(len(cities), 1 + i % 3))
            records.extend(self.road(i, j) for j in ends)
        return self.shuffled(records)

    def dirty(self, people: range, cities: range) -> list[dict]:
        """Breaks every rule, whatever there is: ids that exist, values, tuples, ends, counts."""
        pick = self.random.choice
        wrong: list[dict] = [
            *(self.person(pick(people), age=age) for age in (-1, 121, 50)),
            *(self.person(pick(people), mail=m) for m in ("bad", "p1@x", "p2@x", "worse") * 2),
            *(self.person(i, tier="lead") for i in self.sample(people, 3)),
            *(self.person(i, nick="same", born="1950-05-05") for i in self.sample(people, 3)),
            *(self.person(i, serial=2**63 + 1) for i in self.sample(people, 3)),
            *(self.person(1000 + i) for i in range(5)),
            *(self.city(i, zip=pick(["z1", "z2"])) for i in self.sample(cities, 4)),
            *(self.city(i) for i in self.sample(cities, 3)),
            {"type": "City", "data": {"zip": "z999"}},
            *(self.lives(900 + i, pick(people), 777) for i in range(4)),
            *(self.lives(920 + i, 888, pick(cities), since=1) for i in range(4)),
            *(self.lives(i, people[0], cities[0]) for i in range(940, 944)),
            *(self.lives(i, people[1], cities[1]) for i in range(3)),
            *(self.knows(pick(people), pick([5000, people[2]])) for _ in range(4)),
            *(self.road(cities[0], i) for i in [*cities, 555]),
            *(self.road(cities[1], cities[2], lanes=i) for i in range(2)),
        ]
        return self.shuffled(wrong)

    def sample(self, numbers: range, count: int) -> list[int]:
        return self.random.choices(numbers, k=count)


def write_jsonl(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def split_jsonl(folder: Path, records: list[dict], parts: int) -> list[Path]:
    """The records in several files, in order."""
    folder.mkdir()
    size = -(-len(records) // parts)
    return [
        write_jsonl(folder / f"part-{i}.jsonl", records[i * size : (i + 1) * size])
        for i in range(parts)
    ]
