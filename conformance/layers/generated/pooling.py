"""Pools of all kinds, as functions and as layers."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, called


def drawn(p: Drawing) -> None:
    p.one(_max, _max, _average, _average, _adaptive, _adaptive_max, _power, _unpool, _fractional)(p)


def _image(p: Drawing, dims: int, low: int = 2) -> tuple[int, ...]:
    batch = p.one((), (1,), (2,), (2,), (3,), (0,) if p.chance(0.2) else (2,))
    return (*batch, p.one(1, 2, 3, 3), *p.sizes(dims, low, 9 if dims < 3 else 6))


def _windows(p: Drawing, dims: int) -> dict[str, Any]:
    return p.some(
        0.4,
        stride=p.each(dims, lambda: p.size(1, 3)),
        padding=p.each(dims, lambda: p.size(0, 1)),
        ceil_mode=p.one(True, False),
    )  # fmt: skip


def _apply(p: Drawing, function: str, layer: str, x: Any, *words: Any, **options: Any) -> None:
    """As a function or as a layer."""
    if p.chance(0.7):
        text = called(function, x, *words, **options)
    else:
        text = called(called(f"nn.{layer}", *words, **options), x)
    p.gradients(p.result(text))


def _max(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims), fill=p.one("", "", "", "small"))
    options = _windows(p, dims)
    options.update(p.some(0.3, dilation=p.each(dims, lambda: p.size(1, 2)), return_indices=True))
    kernel = p.each(dims, lambda: p.size(1, 3))
    _apply(p, f"F.max_pool{dims}d", f"MaxPool{dims}d", x, kernel, **options)


def _average(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims))
    options = _windows(p, dims)
    options.update(p.some(0.3, count_include_pad=p.one(True, False)))
    if dims > 1:
        options.update(p.some(0.3, divisor_override=p.one(1, 3, None)))
    kernel = p.each(dims, lambda: p.size(1, 3))
    _apply(p, f"F.avg_pool{dims}d", f"AvgPool{dims}d", x, kernel, **options)


def _wanted(p: Drawing, dims: int) -> Any:
    if dims == 1:
        return p.size(1, 5)
    return p.each(dims, lambda: p.one(p.size(1, 5), p.size(1, 5), None))


def _adaptive(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims))
    name = f"{dims}d"
    _apply(p, f"F.adaptive_avg_pool{name}", f"AdaptiveAvgPool{name}", x, _wanted(p, dims))


def _adaptive_max(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims))
    options = p.some(0.3, return_indices=True)
    size = _wanted(p, dims)
    name = f"{dims}d"
    _apply(p, f"F.adaptive_max_pool{name}", f"AdaptiveMaxPool{name}", x, size, **options)


def _power(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims))
    options = p.some(
        0.4, stride=p.each(dims, lambda: p.size(1, 3)), ceil_mode=p.one(True, False)
    )  # fmt: skip
    kernel = p.each(dims, lambda: p.size(1, 3))
    power = p.one(1, 2, 2.0, 3, 1.5, 4.0)
    _apply(p, f"F.lp_pool{dims}d", f"LPPool{dims}d", x, power, kernel, **options)


def _unpool(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    x = p.tensor(_image(p, dims, 4))
    options: dict[str, Any] = p.some(0.3, stride=p.size(2, 3), padding=p.size(0, 1))
    pooled = called(f"F.max_pool{dims}d", x, 2, **options, return_indices=True)
    y = p.let("y", pooled)
    if p.chance(0.3):
        options["output_size"] = p.sizes(dims, 4, 9)
    turned = p.one("", "", ".contiguous()", ".transpose(-1, -2).contiguous().transpose(-1, -2)")
    z = p.result(called(f"F.max_unpool{dims}d", f"#{y}[0]{turned}", f"#{y}[1]", 2, **options)
                 .replace("'#", "").replace("]'", "]").replace(")'", ")"))  # fmt: skip
    p.gradients(z)


def _fractional(p: Drawing) -> None:
    dims = p.one(2, 2, 3)
    shape = _image(p, dims, 4)
    x = p.tensor(shape)
    options: dict[str, Any] = {}
    if p.chance(0.5):
        options["output_size"] = p.each(dims, lambda: p.size(1, 3))
    else:
        options["output_ratio"] = p.each(dims, lambda: p.one(0.3, 0.5, 0.7))
    options.update(p.some(0.3, return_indices=True))
    if p.chance(0.5):
        batch = shape[0] if len(shape) == dims + 2 else 1
        samples = p.let("s", f"make({p.seed()}, {(batch, shape[-dims - 1], dims)}).sigmoid()")
        options["_random_samples"] = p.let("s", f"{samples}.to(torch.{p.dtype})")
    kernel = p.each(dims, lambda: p.size(1, 3))
    p.gradients(p.result(called(f"F.fractional_max_pool{dims}d", x, kernel, **options)))
