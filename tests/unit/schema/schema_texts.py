"""Hypothesis strategy: texts of valid schemas, with everything the language has."""

from __future__ import annotations

from hypothesis import strategies as st

SCALARS = ("String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime")
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
names = st.from_regex(r"p[a-z_]{0,5}", fullmatch=True)
quoted = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).map(
    lambda t: '"x' + t.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
enums = st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True), min_size=1, unique=True)


@st.composite
def types(draw):
    kind = draw(st.sampled_from(["scalar", "scalar", "list", "enum", "vector", "Blob"]))
    core = {
        "scalar": draw(st.sampled_from(SCALARS)),
        "list": f"[{draw(st.sampled_from(SCALARS))}]",
        "enum": f"enum({', '.join(draw(enums))})",
        "vector": f"Vector({draw(st.integers(1, 64))})",
        "Blob": "Blob",
    }[kind]
    return core + draw(st.sampled_from(["", "?"]))


@st.composite
def bodies(draw, *, on_edge, taken=()):
    found = draw(st.lists(names.filter(lambda n: n not in taken), max_size=5, unique=True))
    lines, plain = [], []
    for name in found:
        kind = draw(types())
        line = f"{name}: {kind}"
        scalar = kind.rstrip("?")
        single = not scalar.startswith(("[", "Vector", "Blob"))
        if single and not kind.endswith("?"):
            plain.append(name)
        if single and draw(st.booleans()):
            line += draw(st.sampled_from([" @unique", " @index", " @unique @index"]))
        if draw(st.booleans()):
            line += f" @description({draw(quoted)})"
        if draw(st.booleans()):
            line += f" @owner({draw(quoted)}, level = {draw(st.integers(0, 9))})"
        lines.append(line)
        if scalar in NUMBERS and not on_edge:
            low = draw(st.integers(0, 100))
            lines.append(f"@range({name}, {low}..{draw(st.sampled_from(['', low, low + 7]))})")
        if scalar == "String" and not on_edge:
            lines.append(f'@check({name}, "^[a-z]+")')
    group = draw(st.lists(st.sampled_from(plain), unique=True)) if plain else []
    if on_edge and draw(st.booleans()):
        lines.append(f"@key({', '.join(['@src', '@dst', *group])})")
    elif group and not on_edge:
        lines.append(f"@key({', '.join(group)})")
    if plain:
        lines.append(f"@unique({', '.join([*plain, 'src'] if on_edge else plain)})")
        lines.append(f"@index({', '.join(plain)})")
    return found, draw(st.sampled_from([" ", "\n  ", " /* c */ "])).join(lines)


@st.composite
def schema_texts(draw):
    parts, interfaces, nodes = [], {}, []
    for i in range(draw(st.integers(0, 2))):
        found = draw(st.lists(names, max_size=3, unique=True))
        prop_types = [f"{name}{i}: {draw(types())}" for name in found]
        interfaces[f"I{i}"] = {f"{n}{i}" for n in found}
        parts.append(f"interface I{i} {{ {' '.join(prop_types)} }}")
    for i in range(draw(st.integers(0, 3))):
        chosen = (
            draw(st.lists(st.sampled_from(sorted(interfaces)), unique=True)) if interfaces else []
        )
        taken = {p for name in chosen for p in interfaces[name]}
        _, body = draw(bodies(on_edge=False, taken=taken))
        implements = f" implements {', '.join(chosen)}" if chosen else ""
        parts.append(f"node N{i} @instruction({draw(quoted)}){implements} {{ {body} }}")
        nodes.append(f"N{i}")
    for i in range(draw(st.integers(0, 3)) if nodes else 0):
        ends = f"{draw(st.sampled_from(nodes))} -> {draw(st.sampled_from(nodes))}"
        card = draw(st.sampled_from(["", " @card(0..)", " @card(1..1)", " @card(2..5)"]))
        _, body = draw(bodies(on_edge=True))
        parts.append(f"edge E{i}: {ends}{card} {{ {body} }}")
    return "\n".join(draw(st.permutations(parts or ["node Only {}"])))
