"""A made-up shipping network, the same on every run: records in the shape that `load` takes.

    seed -> carriers, ports, fleet -> services -> voyages -> journeys of containers

Ports and their places are real, everything else is invented. Nothing here knows omnigraph.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

Record = dict[str, Any]

SEED = 1956
START = datetime(2026, 1, 5, tzinfo=UTC)
TODAY = datetime(2026, 6, 1, tzinfo=UTC)
SERVICES = 36
VESSELS = 260
CONTAINERS = 20_000
DAYS = 240
SPEED_KN = 16.0
CARGO_CLASSES = (
    "machinery", "textiles", "food", "fuel", "chemicals", "vehicles", "timber", "electronics",
)  # fmt: skip

# Locode, name, latitude, longitude; the country is the locode's first half. Hubs come first.
PORTS: Mapping[str, str] = {
    "east-asia": """CNSHA Shanghai 31.2 121.5; CNNGB Ningbo 29.9 121.9; CNSZX Shenzhen 22.5 114.1;
        CNTAO Qingdao 36.1 120.3; KRPUS Busan 35.1 129.0; HKHKG Hong Kong 22.3 114.2;
        TWKHH Kaohsiung 22.6 120.3; JPTYO Tokyo 35.6 139.8; JPUKB Kobe 34.7 135.2""",
    "southeast-asia": """SGSIN Singapore 1.3 103.8; MYPKG Port Klang 3.0 101.4;
        MYTPP Tanjung Pelepas 1.4 103.5; VNSGN Ho Chi Minh City 10.8 106.7;
        THLCH Laem Chabang 13.1 100.9; IDJKT Jakarta -6.1 106.9; PHMNL Manila 14.6 121.0""",
    "south-asia": """LKCMB Colombo 6.9 79.8; INNSA Nhava Sheva 18.9 72.9; INMUN Mundra 22.7 69.7;
        PKKHI Karachi 24.8 67.0; BDCGP Chattogram 22.3 91.8""",
    "middle-east": """AEJEA Jebel Ali 25.0 55.1; OMSLL Salalah 16.9 54.0; SAJED Jeddah 21.5 39.2;
        EGPSD Port Said 31.3 32.3""",
    "mediterranean": """GRPIR Piraeus 37.9 23.6; ITGOA Genoa 44.4 8.9; ESALG Algeciras 36.1 -5.4;
        ESVLC Valencia 39.4 -0.3; MAPTM Tanger Med 35.9 -5.5; MTMAR Marsaxlokk 35.8 14.5""",
    "north-europe": """NLRTM Rotterdam 51.9 4.1; BEANR Antwerp 51.3 4.3; DEHAM Hamburg 53.5 9.9;
        FRLEH Le Havre 49.5 0.1; GBFXT Felixstowe 51.9 1.3; DKAAR Aarhus 56.2 10.2;
        SEGOT Gothenburg 57.7 11.9; NOOSL Oslo 59.9 10.7; PLGDN Gdańsk 54.4 18.7;
        ISREY Reykjavík 64.1 -21.9""",
    "north-america": """USNYC New York 40.7 -74.0; USSAV Savannah 32.1 -81.1;
        USHOU Houston 29.7 -95.3; USLAX Los Angeles 33.7 -118.3; USOAK Oakland 37.8 -122.3;
        CAVAN Vancouver 49.3 -123.1""",
    "latin-america": """MXZLO Manzanillo 19.1 -104.3; PAONX Colón 9.4 -79.9;
        COCTG Cartagena 10.4 -75.5; BRSSZ Santos -24.0 -46.3; ARBUE Buenos Aires -34.6 -58.4;
        CLVAP Valparaíso -33.0 -71.6; PECLL Callao -12.0 -77.1""",
    "africa": """ZADUR Durban -29.9 31.0; ZACPT Cape Town -33.9 18.4; NGLOS Lagos 6.4 3.4;
        GHTEM Tema 5.6 0.0; KEMBA Mombasa -4.1 39.7; TZDAR Dar es Salaam -6.8 39.3""",
    "oceania": "AUSYD Sydney -33.9 151.2; AUMEL Melbourne -37.8 144.9; NZAKL Auckland -36.8 174.8",
}
TRADES = (
    ("east-asia", "southeast-asia", "middle-east", "mediterranean", "north-europe"),
    ("east-asia", "southeast-asia", "south-asia", "middle-east", "mediterranean"),
    ("east-asia", "north-america"),
    ("north-europe", "north-america"),
    ("north-europe", "mediterranean", "africa"),
    ("north-america", "latin-america"),
    ("north-europe", "latin-america"),
    ("southeast-asia", "oceania"),
    ("south-asia", "middle-east", "africa"),
    ("north-europe",),
    ("southeast-asia", "east-asia"),
    ("east-asia", "latin-america"),
)
# Code, name, year of foundation, alliance, share of the market.
CARRIERS = (
    ("BOLT", "Baltic Orient Line", 1921, "northern", 9),
    ("NRDS", "Nordstern Schifffahrt", 1887, "northern", 7),
    ("HALY", "Halyard Container", 1974, "northern", 5),
    ("PCRW", "Pacific Crown", 1958, "pacific", 9),
    ("KAIY", "Kaiyo Marine", 1948, "pacific", 6),
    ("SEAJ", "Seajade Lines", 1993, "pacific", 6),
    ("MRDN", "Meridiana", 1970, "meridian", 8),
    ("ATLQ", "Atlantique Transport", 1936, "meridian", 4),
    ("CSTY", "Costa y Cía", 1962, "meridian", 3),
    ("KELP", "Kelp & Sons", 1899, "independent", 2),
    ("TRDW", "Tradewind Feeder", 2008, "independent", 2),
    ("OSPR", "Osprey Ocean", 2016, "independent", 3),
)
VESSEL_NAMES = (
    ("Aurora", "Baltic", "Coral", "Distant", "Emerald", "Fair", "Golden", "Horizon", "Indigo",
     "Jade", "Kindly", "Lucky", "Morning", "Northern", "Opal", "Polar", "Quiet", "Rising",
     "Silver", "Tidal", "Unity", "Velvet", "Western", "Zenith"),
    ("Albatross", "Breeze", "Current", "Dawn", "Eider", "Falcon", "Gannet", "Harvest", "Island",
     "Journey", "Kestrel", "Lantern", "Mariner", "Navigator", "Osprey", "Pioneer", "Quest",
     "Reef", "Swan", "Tern", "Venture", "Wave"),
)  # fmt: skip

# The values of letters in a check digit: from 10 on, without the multiples of 11.
_LETTERS = dict(
    zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", (n for n in range(10, 39) if n % 11), strict=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A port as the generator needs it."""

    locode: str
    name: str
    region: str
    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One stop of one voyage."""

    voyage: str
    leg: int
    port: str
    arrival: datetime
    departure: datetime
    sailed_nm: int
    """Since the start of the voyage."""


@dataclass(slots=True)
class Shipping:
    """The network as records, in the pieces in which it is loaded."""

    reference: list[Record] = field(default_factory=list)
    """Carriers, ports and lanes."""
    fleet: list[Record] = field(default_factory=list)
    voyages: list[Record] = field(default_factory=list)
    cargo: list[Record] = field(default_factory=list)
    arrivals: list[Record] = field(default_factory=list)
    """Voyages again, with the status they have today."""


def make_shipping(seed: int = SEED) -> Shipping:
    """The whole network."""
    random = Random(seed)
    places = _places()
    made = Shipping()
    made.reference += [_carrier(*c) for c in CARRIERS]
    made.reference += [_port(p, random) for p in places]
    vessels = _fleet(made, random)
    loops = [_loop(places, TRADES[i % len(TRADES)], random) for i in range(SERVICES)]
    made.reference += _lanes(loops)
    calls = _voyages(made, loops, vessels, random)
    _cargo(made, calls, random)
    return made


def write_jsonl(path: Path, records: Iterable[Record]) -> int:
    """One record a line; returns the number of lines."""
    lines = [json.dumps(r, ensure_ascii=False) for r in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


def node(type_name: str, **properties: Any) -> Record:
    """A node as a record."""
    return {"type": type_name, "data": properties}


def edge(type_name: str, source: object, target: object, **properties: Any) -> Record:
    """An edge as a record; endpoints are ids, and ids are text."""
    return {"edge": type_name, "from": str(source), "to": str(target), "data": properties}


def _places() -> list[Place]:
    found: list[Place] = []
    for region, text in PORTS.items():
        for line in text.split(";"):
            locode, *words, latitude, longitude = line.split()
            found.append(
                Place(
                    locode=locode,
                    name=" ".join(words),
                    region=region,
                    latitude=float(latitude),
                    longitude=float(longitude),
                )
            )
    return found


def _carrier(scac: str, name: str, year: int, alliance: str, _share: int) -> Record:
    return node("Carrier", scac=scac, name=name, founded=f"{year}-03-01", alliance=alliance)


def _port(place: Place, random: Random) -> Record:
    offered = ("reefer", "rail", "barge", "bunkering", "shore-power", "repair", "cold-store")
    # Ports of a region trade alike.
    taste = Random(place.region)
    weights = [taste.uniform(0.2, 1.0) * random.uniform(0.6, 1.4) for _ in CARGO_CLASSES]
    total = sum(weights)
    return node(
        "Port",
        locode=place.locode,
        name=place.name,
        country=place.locode[:2],
        latitude=place.latitude,
        longitude=place.longitude,
        region=place.region,
        berths=random.randint(4, 42),
        depth_m=round(random.uniform(9.5, 18.5), 1),
        services=sorted(random.sample(offered, random.randint(2, 5))),
        cargo_mix=[round(w / total, 4) for w in weights],
    )


def _fleet(made: Shipping, random: Random) -> dict[str, list[int]]:
    """Vessels and their operators; returns IMO numbers by carrier."""
    operators = random.choices([c[0] for c in CARRIERS], [c[4] for c in CARRIERS], k=VESSELS)
    # Nobody is left without a ship.
    operators[: len(CARRIERS)] = [c[0] for c in CARRIERS]
    names = [f"{a} {b}" for a in VESSEL_NAMES[0] for b in VESSEL_NAMES[1]]
    random.shuffle(names)
    vessels: dict[str, list[int]] = {}
    for i, (operator, name) in enumerate(zip(operators, names, strict=False)):
        imo = _imo(910_000 + 251 * i)
        made.fleet.append(
            node(
                "Vessel",
                imo=imo,
                name=name,
                call_sign=f"{operator[:2]}{i:04d}",
                capacity_teu=random.choice((900, 1_700, 2_800, 4_500, 8_500, 14_000, 23_500)),
                built=date(random.randint(1998, 2025), random.randint(1, 12), 15).isoformat(),
            )
        )
        made.fleet.append(edge("OperatedBy", imo, operator))
        vessels.setdefault(operator, []).append(imo)
    return vessels


def _loop(places: list[Place], regions: tuple[str, ...], random: Random) -> list[Place]:
    """The ports of a service in sailing order: out through its regions, and back."""
    stops: list[Place] = []
    for region in regions:
        count = None if len(regions) == 1 else random.choice((2, 2, 3, 4))
        chosen = _pick(places, region, count, random)
        while chosen:
            here = stops[-1] if stops else chosen[0]
            stops.append(chosen.pop(_nearest(here, chosen)))
    for region in regions[-2:0:-1]:
        stops += _pick(places, region, 1, random)
    return stops


def _pick(places: list[Place], region: str, count: int | None, random: Random) -> list[Place]:
    """Ports of a region; those named first are the hubs and picked more often."""
    inside = [p for p in places if p.region == region]
    luck = [random.random() * (i + 2) for i in range(len(inside))]
    return [inside[i] for i in sorted(range(len(inside)), key=luck.__getitem__)[:count]]


def _nearest(here: Place, candidates: list[Place]) -> int:
    return min(range(len(candidates)), key=lambda i: sea_miles(here, candidates[i]))


def _lanes(loops: list[list[Place]]) -> list[Record]:
    miles = {
        (a.locode, b.locode): sea_miles(a, b)
        for loop in loops
        for a, b in zip(loop, [*loop[1:], loop[0]], strict=True)
    }
    return [edge("Lane", a, b, distance_nm=nm) for (a, b), nm in sorted(miles.items())]


def _voyages(
    made: Shipping, loops: list[list[Place]], vessels: dict[str, list[int]], random: Random
) -> list[list[Call]]:
    """Every service leaves at regular intervals with the next ship of its carrier."""
    all_calls: list[list[Call]] = []
    carriers = [c[0] for c in CARRIERS]
    for number, loop in enumerate(loops):
        carrier = carriers[number % len(carriers)]
        ships = vessels[carrier]
        every = random.choice((5, 7, 7, 10, 14))
        day = random.uniform(0, every)
        for round_trip in range(1, 1 + DAYS // every):
            voyage = f"{carrier}-{number:02d}-{round_trip:03d}"
            calls = _sail(voyage, [*loop, loop[0]], START + timedelta(days=day), random)
            all_calls.append(calls)
            service = f"{carrier} {loop[0].name}–{loop[-1].name}"
            made.voyages.append(node("Voyage", number=voyage, service=service, status="planned"))
            made.voyages.append(edge("SailedBy", voyage, ships[round_trip % len(ships)]))
            made.voyages += [_call(c) for c in calls]
            if calls[0].departure <= TODAY:
                status = "completed" if calls[-1].arrival <= TODAY else "under-way"
                made.arrivals.append(node("Voyage", number=voyage, service=service, status=status))
            day += random.uniform(every - 1, every + 1)
    return all_calls


def _sail(voyage: str, stops: list[Place], start: datetime, random: Random) -> list[Call]:
    calls: list[Call] = []
    now, sailed = start, 0
    for leg, stop in enumerate(stops, start=1):
        if leg > 1:
            miles = sea_miles(stops[leg - 2], stop)
            sailed += miles
            now += timedelta(minutes=round(60 * miles / SPEED_KN * random.uniform(0.95, 1.2)))
        leaves = now + timedelta(minutes=random.randint(480, 2_400))
        calls.append(
            Call(
                voyage=voyage,
                leg=leg,
                port=stop.locode,
                arrival=now,
                departure=leaves,
                sailed_nm=sailed,
            )
        )
        now = leaves
    return calls


def _call(call: Call) -> Record:
    times = {"arrival": _instant(call.arrival), "departure": _instant(call.departure)}
    return edge("CallsAt", call.voyage, call.port, leg=call.leg, **times)


def _cargo(made: Shipping, voyages: list[list[Call]], random: Random) -> None:
    """Boxes that travel from voyage to voyage, always from where the last one left them."""
    by_port: dict[str, list[tuple[datetime, int, int]]] = {}
    for v, calls in enumerate(voyages):
        for i, call in enumerate(calls[:-1]):
            by_port.setdefault(call.port, []).append((call.departure, v, i))
    for departures in by_port.values():
        departures.sort()
    carriers, shares = [c[0] for c in CARRIERS], [c[4] for c in CARRIERS]
    starts = sorted(by_port)
    for i in range(CONTAINERS):
        owner = random.choices(carriers, shares)[0]
        number = _container_number(owner, 200_000 + 37 * i)
        size = random.choice(("20ft", "40ft", "40hc"))
        cold = random.random() < 0.12
        tare = {"20ft": 2_200, "40ft": 3_700, "40hc": 3_900}[size] + (900 if cold else 0)
        made.cargo.append(
            node("Container", number=number, size=size, tare_kg=tare, refrigerated=cold)
        )
        made.cargo.append(edge("OwnedBy", number, owner))
        made.cargo += _journey(number, tare, random.choice(starts), voyages, by_port, random)


def _journey(
    number: str,
    tare: int,
    port: str,
    voyages: list[list[Call]],
    by_port: dict[str, list[tuple[datetime, int, int]]],
    random: Random,
) -> list[Record]:
    found: list[Record] = []
    used: set[int] = set()
    now = START + timedelta(days=random.uniform(0, 60))
    for _ in range(random.choice((2, 3, 4, 4, 5, 6, 7, 9))):
        departures = by_port.get(port, [])
        at = bisect_left(departures, (now, 0, 0)) + random.randint(0, 2)
        if at >= len(departures) or departures[at][1] in used:
            break
        _, v, i = departures[at]
        used.add(v)
        on = voyages[v][i]
        off = random.choice([c for c in voyages[v][i + 1 :] if c.port != on.port])
        found.append(
            edge(
                "Carries",
                on.voyage,
                number,
                loaded_at=on.port,
                discharged_at=off.port,
                gross_kg=tare + random.randint(800, 21_000),
                distance_nm=off.sailed_nm - on.sailed_nm,
            )
        )
        port, now = off.port, off.arrival + timedelta(days=random.uniform(1, 6))
    return found


def sea_miles(a: Place, b: Place) -> int:
    """Great-circle distance in nautical miles, a third longer because of the land in the way."""
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    turn = math.radians(b.longitude - a.longitude)
    part = math.sin((lat_b - lat_a) / 2) ** 2
    part += math.cos(lat_a) * math.cos(lat_b) * math.sin(turn / 2) ** 2
    return max(1, round(2 * 3_440 * math.asin(math.sqrt(part)) * 4 / 3))


def _instant(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:00Z}"


def _imo(serial: int) -> int:
    """Six digits and the check digit of ship numbers."""
    check = sum(int(d) * weight for d, weight in zip(str(serial), range(7, 1, -1), strict=True))
    return serial * 10 + check % 10


def _container_number(owner: str, serial: int) -> str:
    """Owner, category U, six digits and the check digit of ISO 6346."""
    text = f"{owner[:3]}U{serial:06d}"
    values = [int(c) if c.isdigit() else _LETTERS[c] for c in text]
    check = sum(v << i for i, v in enumerate(values)) % 11 % 10
    return f"{text}{check}"
