"""A graph of calls as SVG: boxes in layers, what comes first above."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from flambeau.debug.module_graph import Call

WIDTH, HEIGHT, APART, BETWEEN, EDGE = 210, 44, 24, 34, 20
FILL = {"input": "#e9efe6", "output": "#e9efe6", "function": "#f3f1ec", "module": "#dcebf0"}
HEAT = (224, 122, 95)


def layers(calls: Sequence[Call]) -> list[list[Call]]:
    """Calls by their longest way from an input; within a layer near to what they come from."""
    level: dict[Call, int] = {}
    for call in calls:
        level[call] = 1 + max((level[source] for source in call.before), default=-1)
    last = max(level.values())
    for call in calls:
        if call.kind == "output":
            level[call] = last
    rows = [[call for call in calls if level[call] == k] for k in range(last + 1)]
    place: dict[Call, float] = {}
    for row in rows:
        row.sort(key=lambda call: _middle([place[source] for source in call.before]))
        for k, call in enumerate(row):
            place[call] = k - (len(row) - 1) / 2
    return rows


def _middle(places: Sequence[float]) -> float:
    return sum(places) / len(places) if places else 0.0


def svg(calls: Sequence[Call]) -> str:
    """The drawing, with the shapes that go along the arrows and the time of each box."""
    rows = layers(calls)
    widest = max(len(row) for row in rows)
    skips = _skips(rows)
    margin = EDGE + 22 * min(len(skips), 6)
    width = widest * (WIDTH + APART) - APART + 2 * margin
    height = len(rows) * (HEIGHT + BETWEEN) - BETWEEN + 2 * EDGE
    corner: dict[Call, tuple[float, float]] = {}
    for down, row in enumerate(rows):
        left = (width - len(row) * (WIDTH + APART) + APART) / 2
        for k, call in enumerate(row):
            corner[call] = left + k * (WIDTH + APART), EDGE + down * (HEIGHT + BETWEEN)
    total = sum(call.seconds for call in calls) or 1.0
    pairs = [(source, call) for call in calls for source in call.before]
    arrows = [_arrow(*pair, corner, skips, width) for pair in pairs]
    boxes = [_box(call, *corner[call], call.seconds / total) for call in calls]
    style = "font-family:system-ui,sans-serif;font-size:12px"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="{style}">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#7d8c92"/></marker></defs>'
        f"{''.join(arrows)}{''.join(boxes)}</svg>"
    )


def _skips(rows: list[list[Call]]) -> dict[tuple[Call, Call], int]:
    """The arrows that pass a layer, each with a number: they go round at the side."""
    level = {call: k for k, row in enumerate(rows) for call in row}
    pairs = [(source, call) for row in rows for call in row for source in call.before]
    return {
        pair: number
        for number, pair in enumerate(p for p in pairs if level[p[1]] - level[p[0]] > 1)
    }


def _arrow(source: Call, call: Call, corner: dict[Call, tuple[float, float]],
           skips: dict[tuple[Call, Call], int], width: float) -> str:  # fmt: skip
    (x0, y0), (x1, y1) = corner[source], corner[call]
    number = skips.get((source, call))
    if number is None:
        start, end = x0 + WIDTH / 2, x1 + WIDTH / 2
        middle = (y0 + HEIGHT + y1) / 2
        path = (
            f"M{start:.0f} {y0 + HEIGHT}C{start:.0f} {middle:.0f} "
            f"{end:.0f} {middle:.0f} {end:.0f} {y1}"
        )
    else:
        side = width - EDGE - 18 * (number % 6)
        start, low, high = x0 + WIDTH, y0 + HEIGHT / 2, y1 + HEIGHT / 2
        end = x1 + WIDTH
        path = (
            f"M{start:.0f} {low:.0f}C{side:.0f} {low:.0f} {side:.0f} {low + 20:.0f} "
            f"{side:.0f} {low + 40:.0f}V{high - 40:.0f}C{side:.0f} {high - 20:.0f} {side:.0f} "
            f"{high:.0f} {end:.0f} {high:.0f}"
        )
    return (
        f'<path d="{path}" fill="none" stroke="#7d8c92" stroke-width="1.3" marker-end="url(#tip)"/>'
    )


def _box(call: Call, x: float, y: float, share: float) -> str:
    title = f"{call.title} ({call.path})" if call.path else call.title
    shapes = " ".join(f"({', '.join(map(str, shape))})" for shape in call.shapes[:2])
    words = [shapes]
    if call.parameters:
        words.append(f"{call.parameters:,} par.")
    if call.kind in ("module", "function"):
        words.append(_time(call.seconds))
    text = " · ".join(word for word in words if word)
    middle = f'x="{x + WIDTH / 2:.0f}" text-anchor="middle"'
    frame = f'width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{FILL[call.kind]}" stroke="#9db0b7"'
    bar = f'y="{y + HEIGHT - 4:.0f}" width="{WIDTH * share:.1f}" height="4" fill="rgb{HEAT}"'
    head, below = escape(_short(title, 30)), escape(_short(text, 42))
    return (
        f"<g><title>{escape(title)}: {escape(text)}</title>"
        f'<rect x="{x:.0f}" y="{y}" {frame}/><rect x="{x:.0f}" {bar}/>'
        f'<text {middle} y="{y + 17}" font-weight="600" fill="#1d3038">{head}</text>'
        f'<text {middle} y="{y + 33}" font-size="10.5" fill="#465a62">{below}</text></g>'
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"
