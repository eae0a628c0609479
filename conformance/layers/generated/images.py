"""What changes images: sizes, grids, borders, the place of channels."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, called


def drawn(p: Drawing) -> None:
    p.one(_interpolate, _interpolate, _grid, _affine, _shuffle, _pad, _pad, _pad_layer, _roll)(p)


MODES = {
    1: ("nearest", "linear", "nearest-exact", "area"),
    2: ("nearest", "bilinear", "bicubic", "nearest-exact", "area"),
    3: ("nearest", "trilinear", "nearest-exact", "area"),
}
SMOOTH = ("linear", "bilinear", "bicubic", "trilinear")


def _interpolate(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 2, 3)
    shape = (p.one(1, 2, 3), p.one(1, 2, 3, 4), *p.sizes(dims, 1, 6))
    x = p.tensor(shape)
    mode = p.one(*MODES[dims])
    options: dict[str, Any] = {"mode": mode}
    if p.chance(0.5):
        options["size"] = p.each(dims, lambda: p.size(1, 9))
    else:
        options["scale_factor"] = p.each(dims, lambda: p.one(0.5, 1.5, 2, 2.0, 0.7, 3.0))
        options.update(p.some(0.3, recompute_scale_factor=p.one(True, False)))
    if mode in SMOOTH:
        options.update(p.some(0.4, align_corners=p.one(True, False)))
    if mode in ("bilinear", "bicubic"):
        # PyTorch repeats one row where smoothed images become one pixel wide.
        options.update(p.some(0.3, antialias=True) if _is_wide(shape, options) else {})
    if p.chance(0.8):
        p.gradients(p.result(called("F.interpolate", x, **options)))
        return
    options.pop("antialias", None)
    p.gradients(p.result(called(called("nn.Upsample", **options), x)))


def _is_wide(shape: tuple[int, ...], options: dict[str, Any]) -> bool:
    """Whether the result has a width of more than a pixel."""
    size = options.get("size", 0)
    width = size[-1] if isinstance(size, tuple) else size
    return width > 1 or (not width and shape[-1] > 3)


def _grid(p: Drawing) -> None:
    dims = p.one(2, 2, 3)
    batch = p.size(1, 3)
    x = p.tensor((batch, p.size(1, 4), *p.sizes(dims, 1, 6)))
    grid = p.tensor((batch, *p.sizes(dims, 1, 5), dims))
    options = p.some(
        0.5, mode=p.one("bilinear", "nearest", "bicubic"), align_corners=p.one(True, False),
        padding_mode=p.one("zeros", "border", "reflection")
    )  # fmt: skip
    p.gradients(p.result(called("F.grid_sample", x, grid, **options)))


def _affine(p: Drawing) -> None:
    dims = p.one(2, 2, 3)
    batch = p.size(1, 3)
    theta = p.tensor((batch, dims, dims + 1))
    size = (batch, p.size(1, 3), *p.sizes(dims, 1, 5))
    options = p.some(0.6, align_corners=p.one(True, False))
    p.gradients(p.result(called("F.affine_grid", theta, size, **options)))


def _shuffle(p: Drawing) -> None:
    factor = p.size(1, 3)
    batch = p.sizes(p.one(0, 1, 1, 2), 1, 3)
    kind = p.one("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
    if kind == "pixel_shuffle":
        shape = (*batch, factor * factor * p.size(1, 3), *p.sizes(2, 1, 4))
    elif kind == "pixel_unshuffle":
        shape = (*batch, p.size(1, 3), factor * p.size(1, 3), factor * p.size(1, 3))
    else:
        shape = (p.size(1, 3), factor * p.size(1, 3), *p.sizes(p.size(1, 2), 1, 4))
    p.gradients(p.result(called(f"F.{kind}", p.tensor(shape), factor)))


def _pad(p: Drawing) -> None:
    dims = p.size(1, 5)
    shape = p.sizes(dims, 1, 5)
    mode = p.one("constant", "constant", "reflect", "replicate", "circular")
    count = p.size(1, dims) if mode == "constant" else max(1, min(3, dims - p.one(1, 2)))
    # PyTorch wraps what it has not written yet where one end is cropped.
    low = -1 if p.chance(0.3) and mode != "circular" else 0
    widths = [p.size(low, 2) for _ in range(2 * count)]
    options: dict[str, Any] = {"mode": mode}
    if mode == "constant":
        options = p.some(0.5, mode=mode, value=p.one(1.5, -2, 0.0))
    p.gradients(p.result(called("F.pad", p.tensor(shape), p.one(widths, tuple(widths)), **options)))


def _pad_layer(p: Drawing) -> None:
    kind = p.one("Constant", "Reflection", "Replication", "Circular", "Zero")
    dims = p.one(1, 2, 3)
    shape = (*p.sizes(p.one(0, 1), 1, 3), p.size(1, 3), *p.sizes(dims, 3, 5))
    widths = p.one(p.size(0, 2), tuple(p.size(0, 2) for _ in range(2 * dims)))
    words = [widths, p.one(1.5, 0)] if kind == "Constant" else [widths]
    layer = called(f"nn.{kind}Pad{dims}d", *words)
    p.gradients(p.result(called(layer, p.tensor(shape))))


def _roll(p: Drawing) -> None:
    """What moves elements."""
    dims = p.size(1, 4)
    x = p.tensor(p.sizes(dims, 1, 5))
    dim, other = p.dim(dims), p.dim(dims)
    text = p.one(
        called("torch.roll", x, p.size(-3, 3), dim), called("torch.roll", x, p.size(-3, 3)),
        called("torch.flip", x, [dim]), called("torch.rot90", x, p.size(-1, 3), [dim, other]),
        called("torch.repeat_interleave", x, p.size(0, 3), dim),
        called("torch.repeat_interleave", x, p.size(0, 3)),
        called("torch.tile", x, p.sizes(p.size(1, 4), 1, 2)),
        called("torch.diff", x, dim=dim), called("torch.cat", [x, x], dim),
        called("torch.stack", [x, x], dim), called("torch.unfold_copy", x, dim, 1, 1),
        called("torch.tril", x, p.size(-1, 1)), called("torch.triu", x),
        called("torch.diag_embed", x), called(f"{x}.repeat", *p.sizes(dims, 1, 2)),
        called(f"{x}.unfold", dim, p.size(1, 2), p.size(1, 2)), called("torch.movedim", x, dim, 0),
    )  # fmt: skip
    p.gradients(p.result(text))
