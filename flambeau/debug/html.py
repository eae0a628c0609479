"""Tensors and modules as HTML, for notebooks: what they are, and a small picture."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

SMALL = 64
"""Up to so many elements, the numbers themselves are shown."""
LARGEST_MAP = 96
"""Rows and columns of a heat map; of larger tensors, every so-manieth is shown."""
MOST_POINTS = 240
MOST_ROWS = 80
CELL = 'style="text-align:left;padding:1px 10px 1px 0"'
LOW, MIDDLE, HIGH = (224, 122, 95), (247, 247, 242), (31, 111, 139)


def tensor_html(tensor: Any) -> str:
    """A tensor: type, shape, device; below, its numbers, a line or a heat map."""
    facts = [str(tensor.dtype), f"shape {tuple(tensor.shape)}", str(tensor.device)]
    if tensor.requires_grad:
        node = tensor.grad_fn
        facts.append(f"from {type(node).__name__}" if node is not None else "requires grad")
    head = f"<div><b>Tensor</b> {escape(' · '.join(facts))}</div>"
    values = _numbers(tensor)
    if values is None:
        return head + _text(repr(tensor))
    if values.size <= SMALL:
        return head + _text(repr(tensor.detach()))
    return head + _picture(values) + _summary(values)


def _text(numbers: str) -> str:
    """Numbers in columns, also where a page's style has other letters for `pre`."""
    return f'<pre style="font-family:monospace;line-height:1.3">{escape(numbers)}</pre>'


def _numbers(tensor: Any) -> np.ndarray | None:
    """The numbers on the CPU, as floats; None where there are none to show."""
    if tensor.device.type == "meta" or tensor.is_sparse or tensor.is_complex():
        return None
    plain = tensor.detach().cpu()
    if plain.dtype.is_floating_point:
        plain = plain.float() if plain.dtype.itemsize < 4 else plain
    result: np.ndarray = plain.clone().numpy().astype(np.float64)
    return result


def _picture(values: np.ndarray) -> str:
    if values.ndim == 1:
        line = sparkline(values)
        return line and svg_image(line, "the numbers as a line")
    note = ""
    if values.ndim > 2:
        place = ", ".join("0" for _ in values.shape[:-2])
        note = f'<div style="opacity:0.7">[{place}, :, :]</div>'
        values = values[(0,) * (values.ndim - 2)]
    return note + heat_map(values)


def sparkline(values: np.ndarray) -> str:
    """A line through the numbers of a row, as SVG; gaps where they are not finite."""
    step = max(1, math.ceil(values.size / MOST_POINTS))
    shown = values[::step]
    good = shown[np.isfinite(shown)]
    if not good.size:
        return ""
    low, high = float(good.min()), float(good.max())
    across = 240 / max(1, shown.size - 1)
    scale = 40 / (high - low) if high > low else 0.0
    pieces: list[list[str]] = [[]]
    for k, value in enumerate(shown.tolist()):
        if math.isfinite(value):
            pieces[-1].append(f"{k * across:.1f},{44 - (value - low) * scale:.1f}")
        elif pieces[-1]:
            pieces.append([])
    lines = "".join(f'<polyline points="{" ".join(piece)}"/>' for piece in pieces if piece)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="244" height="48" viewBox="-2 0 244 48" '
        'fill="none" '
        f'stroke="#1f8bab" stroke-width="1.3">{lines}</svg>'
    )


def svg_image(drawing: str, words: str) -> str:
    """SVG as an `<img>`: notebooks that were run elsewhere show images, but leave out bare SVG.

    words: what is read out, and shown where there are no images.
    """
    data = base64.b64encode(drawing.encode()).decode()
    return (
        f'<img alt="{escape(words)}" style="max-width:100%;margin:0" '
        f'src="data:image/svg+xml;base64,{data}"/>'
    )


def heat_map(values: np.ndarray) -> str:
    """A table of numbers as a picture: low ones red, high ones blue, nan and infinity black."""
    if not values.size:
        return ""
    rows, columns = (max(1, math.ceil(size / LARGEST_MAP)) for size in values.shape)
    shown = values[::rows, ::columns]
    image = base64.b64encode(png(_colours(shown))).decode()
    height, width = shown.shape
    unit = max(1, min(16, 240 // max(height, width)))
    style = f"image-rendering:pixelated;width:{width * unit}px;height:{height * unit}px;margin:0"
    return f'<img alt="heat map" style="{style}" src="data:image/png;base64,{image}"/>'


def _colours(values: np.ndarray) -> np.ndarray:
    """(height, width, 3) bytes: two ramps that meet in the middle of the range."""
    finite = np.isfinite(values)
    good = values[finite]
    low, high = (float(good.min()), float(good.max())) if good.size else (0.0, 1.0)
    place = (np.where(finite, values, low) - low) / ((high - low) or 1.0)
    stops = np.array([LOW, MIDDLE, HIGH], np.float64)
    channels = [np.interp(place, [0.0, 0.5, 1.0], stops[:, k]) for k in range(3)]
    image = np.stack(channels, -1).astype(np.uint8)
    image[~finite] = 0
    return image


def png(image: np.ndarray) -> bytes:
    """The file of a picture of (height, width, 3) bytes."""
    height, width, _ = image.shape
    lines = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def _summary(values: np.ndarray) -> str:
    good = values[np.isfinite(values)]
    words = []
    if good.size:
        words.append(f"{good.min():.4g} to {good.max():.4g}, mean {good.mean():.4g}")
    if good.size < values.size:
        words.append(f"{values.size - good.size:,} not finite")
    return f'<div style="opacity:0.7">{escape(", ".join(words))}</div>'


# ---- modules


def module_html(module: Any) -> str:
    """A module as a table: a row for each module within, with the parameters it holds itself."""
    total = sum(p.numel() for p in module.parameters())
    trained = sum(p.numel() for p in module.parameters() if p.requires_grad)
    note = "" if trained == total else f", {trained:,} of them trained"
    mode = "training" if module.training else "evaluation"
    facts = f"{total:,} parameters{note} · {mode} mode"
    head = f"<div><b>{escape(type(module).__name__)}</b> {escape(facts)}</div>"
    rows = list(_module_rows(module))
    more = len(rows) - MOST_ROWS
    body = "".join(_row(cells) for cells in rows[:MOST_ROWS])
    rest = f"<div>and {more} more modules</div>" if more > 0 else ""
    titles = _row(["module", "class", "parameters", "shapes"], "th")
    return f'{head}<table style="margin:4px 0">{titles}{body}</table>{rest}'


def _module_rows(module: Any) -> Iterator[list[str]]:
    for name, part in module.named_modules():
        own = dict(part.named_parameters(recurse=False))
        depth = name.count(".") + bool(name)
        label = "\u2003" * max(0, depth - 1) + (name.rpartition(".")[2] or "(itself)")
        shapes = ", ".join(f"{key} {tuple(p.shape)}" for key, p in own.items())
        count = sum(p.numel() for p in own.values())
        yield [label, type(part).__name__, f"{count:,}" if count else "", shapes]


def _row(cells: Sequence[str], tag: str = "td") -> str:
    inner = "".join(f"<{tag} {CELL}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
