"""A few boxes and the arrows between them as SVG, laid out without a library and without chance.

    schema, subgraph -> boxes, arrows -> [drawing] -> Drawing -> notebook, file

Boxes begin on a circle in the order they are given and are moved by springs (Fruchterman and
Reingold) a fixed number of times, so that the same input is always the same picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from omnigraph.show.text import one_line

STEPS = 120
GAP = 70.0
"""Between the boxes, about."""
LINE_HEIGHT, LETTER_WIDTH, MARGIN = 15.0, 6.7, 9.0
LINES_MAX, LETTERS_MAX = 14, 34
COLORS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#bab0ac")


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A box: its title, lines below it, and a number that decides its colour."""

    title: str
    lines: tuple[str, ...] = ()
    group: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """From one box to another, by their places."""

    start: int
    end: int
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture, as the text of an SVG document. ``str()`` of it can be written to a file."""

    svg: str

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg


Point = tuple[float, float]


def draw(boxes: Sequence[Box], arrows: Sequence[Arrow], *, note: str = "") -> Drawing:
    """The picture of boxes and arrows; ``note`` stands below it."""
    shown = [_cut(box) for box in boxes]
    sizes = [_size(box) for box in shown]
    centres = _placed(sizes, arrows)
    pairs: dict[tuple[int, int], int] = {}
    parts: list[str] = []
    for arrow in arrows:
        pair = (min(arrow.start, arrow.end), max(arrow.start, arrow.end))
        number = pairs[pair] = pairs.get(pair, -1) + 1
        parts.append(_arrow(arrow, centres, sizes, number))
    parts += [_box(b, c, s) for b, c, s in zip(shown, centres, sizes, strict=True)]
    width = max((x + w / 2 for (x, _), (w, _) in zip(centres, sizes, strict=True)), default=0) + 60
    height = max((y + h / 2 for (_, y), (_, h) in zip(centres, sizes, strict=True)), default=0) + 30
    if note:
        height += LINE_HEIGHT
        parts.append(_text(MARGIN, height - MARGIN, note, "font-style='italic'"))
        width = max(width, len(note) * LETTER_WIDTH + 2 * MARGIN)
    return Drawing(
        svg=(
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
            f"viewBox='0 0 {width:.0f} {height:.0f}' font-family='sans-serif' font-size='12'>"
            "<defs><marker id='omnigraph-tip' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' "
            "markerHeight='8' orient='auto'><path d='M0 0L8 4L0 8z' fill='#888'/></marker></defs>"
            f"{''.join(parts)}</svg>"
        )
    )


def _cut(box: Box) -> Box:
    lines = [_short(line) for line in box.lines[:LINES_MAX]]
    if more := len(box.lines) - len(lines):
        lines.append(f"… {more} more")
    return Box(title=_short(box.title), lines=tuple(lines), group=box.group)


def _short(text: str) -> str:
    shown = one_line(text)
    return shown if len(shown) <= LETTERS_MAX else shown[: LETTERS_MAX - 1] + "…"


def _size(box: Box) -> Point:
    longest = max(map(len, (box.title, *box.lines)))
    height = LINE_HEIGHT * (1 + len(box.lines)) + MARGIN + (MARGIN / 2 if box.lines else 0)
    return longest * LETTER_WIDTH + 2 * MARGIN, height


# -- layout --------------------------------------------------------------------------------------


def _placed(sizes: Sequence[Point], arrows: Sequence[Arrow]) -> list[Point]:
    """Where the centres of the boxes stand, all of them below and right of the origin."""
    count = len(sizes)
    if not count:
        return []
    # Springs know points; the typical box says how far apart these have to be.
    apart = GAP + sum(math.hypot(*size) for size in sizes) / count
    radius = apart * max(1.0, count / math.pi / 2)
    turn = 2 * math.pi / count
    at = [(radius * math.cos(i * turn), radius * math.sin(i * turn)) for i in range(count)]
    ends = {(a.start, a.end) for a in arrows if a.start != a.end}
    for step in range(STEPS if count > 2 else 0):
        at = _moved(at, ends, apart, heat=apart * (1 - step / STEPS) / 4)
    at = _spread(at, sizes)
    left = min(x - w / 2 for (x, _), (w, _) in zip(at, sizes, strict=True)) - 60
    top = min(y - h / 2 for (_, y), (_, h) in zip(at, sizes, strict=True)) - 30
    return [(x - left, y - top) for x, y in at]


def _moved(at: list[Point], ends: set[tuple[int, int]], apart: float, heat: float) -> list[Point]:
    pulls = [[0.0, 0.0] for _ in at]
    for i, (x, y) in enumerate(at):
        for j in range(i):
            dx, dy = x - at[j][0], y - at[j][1]
            square = max(dx * dx + dy * dy, 1.0)
            force = apart * apart / square
            pulls[i][0] += dx * force
            pulls[i][1] += dy * force
            pulls[j][0] -= dx * force
            pulls[j][1] -= dy * force
    for i, j in sorted(ends):
        dx, dy = at[i][0] - at[j][0], at[i][1] - at[j][1]
        force = math.hypot(dx, dy) / apart
        pulls[i][0] -= dx * force
        pulls[i][1] -= dy * force
        pulls[j][0] += dx * force
        pulls[j][1] += dy * force
    moved: list[Point] = []
    for (x, y), (px, py) in zip(at, pulls, strict=True):
        # What no arrow holds would leave: everything is drawn a little to the middle.
        px, py = px - x * 0.08, py - y * 0.08
        length = max(math.hypot(px, py), 1e-9)
        step = min(length, heat)
        moved.append((x + px / length * step, y + py / length * step))
    return moved


def _spread(at: list[Point], sizes: Sequence[Point]) -> list[Point]:
    """Widened until no box lies on another."""
    for _ in range(40):
        overlap = any(
            abs(at[i][0] - at[j][0]) < (sizes[i][0] + sizes[j][0]) / 2 + 24
            and abs(at[i][1] - at[j][1]) < (sizes[i][1] + sizes[j][1]) / 2 + 18
            for i in range(len(at))
            for j in range(i)
        )
        if not overlap:
            break
        at = [(x * 1.12, y * 1.12) for x, y in at]
    return at


# -- marks ---------------------------------------------------------------------------------------


def _box(box: Box, centre: Point, size: Point) -> str:
    (x, y), (width, height) = centre, size
    left, top = x - width / 2, y - height / 2
    color = COLORS[box.group % len(COLORS)]
    parts = [
        f"<rect x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{height:.1f}' rx='5' "
        f"fill='#fff' stroke='{color}' stroke-width='1.5'/>",
        _text(left + MARGIN, top + LINE_HEIGHT, box.title, f"font-weight='bold' fill='{color}'"),
    ]
    for number, line in enumerate(box.lines, start=2):
        below = top + number * LINE_HEIGHT + MARGIN / 2
        parts.append(_text(left + MARGIN, below, line, "fill='#333'"))
    return "".join(parts)


def _arrow(arrow: Arrow, centres: Sequence[Point], sizes: Sequence[Point], number: int) -> str:
    line = "fill='none' stroke='#888' marker-end='url(#omnigraph-tip)'"
    (x, y), (width, height) = centres[arrow.start], sizes[arrow.start]
    label = _short(arrow.label)
    if arrow.start == arrow.end:
        right, reach = x + width / 2, 34 + 16 * number
        path = f"M{right:.1f} {y - 6:.1f}c{reach} -22 {reach} 34 0 12"
        return f"<path d='{path}' {line}/>" + _text(right + 4, y - 14 - 13 * number, label)
    other, other_size = centres[arrow.end], sizes[arrow.end]
    start = _edge((x, y), other, (width, height))
    end = _edge(other, (x, y), other_size)
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = max(math.hypot(dx, dy), 1e-9)
    # Several arrows between two boxes bend away from each other; so do those of both directions.
    bend = 26.0 * ((number + 1) // 2) * (1 if number % 2 else -1)
    side = 1 if arrow.start < arrow.end else -1
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    via = (middle[0] - dy / length * bend * side, middle[1] + dx / length * bend * side)
    path = f"M{start[0]:.1f} {start[1]:.1f}Q{via[0]:.1f} {via[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
    at = ((middle[0] + via[0]) / 2, (middle[1] + via[1]) / 2)
    left = at[0] - len(label) * LETTER_WIDTH / 2
    return f"<path d='{path}' {line}/>" + _text(left, at[1] - 3, label)


def _edge(centre: Point, towards: Point, size: Point) -> Point:
    """Where the line between two centres leaves the first box."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    scale = min(
        size[0] / 2 / abs(dx) if dx else math.inf, size[1] / 2 / abs(dy) if dy else math.inf
    )
    scale = min(scale, 1.0)
    return centre[0] + dx * scale, centre[1] + dy * scale


def _text(x: float, y: float, text: str, style: str = "fill='#666'") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(text)}</text>" if text else ""
