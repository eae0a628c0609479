"""Convolutions, and the windows that they are made of."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, called


def drawn(p: Drawing) -> None:
    p.one(_function, _function, _transposed, _layer, _layer_transposed, _unfold, _fold)(p)


def _channels(p: Drawing) -> tuple[int, int, int]:
    """Groups, and channels on both sides."""
    groups = p.one(1, 1, 1, 2, 3)
    into = groups * p.one(1, 1, 2, 3)
    return groups, into, groups * p.one(1, 2, 3)


def _image(p: Drawing, channels: int, dims: int) -> tuple[int, ...]:
    batch = p.one((), (1,), (2,), (2,), (3,), (0,) if p.chance(0.2) else (2,))
    return (*batch, channels, *p.sizes(dims, 3, 9 if dims < 3 else 5))


def _options(p: Drawing, dims: int) -> dict[str, Any]:
    found = p.some(
        0.4,
        stride=p.each(dims, lambda: p.size(1, 3)),
        padding=p.each(dims, lambda: p.size(0, 2)),
        dilation=p.each(dims, lambda: p.size(1, 2)),
    )  # fmt: skip
    if p.chance(0.1):
        found["padding"] = p.one("same", "valid")
    return found


def _function(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    groups, into, out = _channels(p)
    x = p.tensor(_image(p, into, dims))
    w = p.tensor((out, into // groups, *p.sizes(dims, 1, 4)))
    words: list[Any] = [x, w]
    if p.chance(0.5):
        words.append(p.tensor((out,)))
    options = _options(p, dims)
    if groups > 1:
        options["groups"] = groups
    p.gradients(p.result(called(f"F.conv{dims}d", *words, **options)))


def _transposed(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    groups, into, out = _channels(p)
    x = p.tensor(_image(p, into, dims))
    w = p.tensor((into, out // groups, *p.sizes(dims, 1, 4)))
    words: list[Any] = [x, w]
    if p.chance(0.5):
        words.append(p.tensor((out,)))
    options = _options(p, dims)
    options.update(p.some(0.3, output_padding=p.each(dims, lambda: p.size(0, 1))))
    if groups > 1:
        options["groups"] = groups
    p.gradients(p.result(called(f"F.conv_transpose{dims}d", *words, **options)))


def _layer(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    groups, into, out = _channels(p)
    x = p.tensor(_image(p, into, dims))
    options = _options(p, dims)
    options.update(p.some(0.3, bias=False))
    options.update(p.some(0.4, padding_mode=p.one("reflect", "replicate", "circular", "zeros")))
    if groups > 1:
        options["groups"] = groups
    kernel = p.each(dims, lambda: p.size(1, 4))
    m = p.module(called(f"nn.Conv{dims}d", into, out, kernel, **options))
    p.gradients(p.result(called(m, x)))


def _layer_transposed(p: Drawing) -> None:
    dims = p.one(1, 2, 2, 3)
    groups, into, out = _channels(p)
    x = p.tensor(_image(p, into, dims))
    options = {**_options(p, dims), "padding": p.one(0, 1)}
    options.update(p.some(0.3, bias=False, output_padding=p.each(dims, lambda: p.size(0, 1))))
    if groups > 1:
        options["groups"] = groups
    kernel = p.each(dims, lambda: p.size(1, 4))
    m = p.module(called(f"nn.ConvTranspose{dims}d", into, out, kernel, **options))
    p.gradients(p.result(called(m, x)))


def _windows(p: Drawing) -> dict[str, Any]:
    return p.some(
        0.4,
        stride=p.each(2, lambda: p.size(1, 3)),
        padding=p.each(2, lambda: p.size(0, 2)),
        dilation=p.each(2, lambda: p.size(1, 2)),
    )  # fmt: skip


def _unfold(p: Drawing) -> None:
    x = p.tensor(_image(p, p.size(1, 3), 2))
    kernel = p.each(2, lambda: p.size(1, 3))
    p.gradients(p.result(called("F.unfold", x, kernel, **_windows(p))))


def _pair(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value, value)


def _fold(p: Drawing) -> None:
    size = p.sizes(2, 3, 7)
    kernel = p.each(2, lambda: p.size(1, 3))
    options = _windows(p)
    count = 1
    for dim in range(2):
        step, pad, spread = (
            _pair(options.get(name, default))[dim]
            for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))
        )
        reach = size[dim] + 2 * pad - spread * (_pair(kernel)[dim] - 1) - 1
        count *= max(reach // step + 1, 1)
    batch = p.one((), (1,), (2,))
    channels = p.size(1, 3) * _pair(kernel)[0] * _pair(kernel)[1]
    x = p.tensor((*batch, channels, count))
    p.gradients(p.result(called("F.fold", x, size, kernel, **options)))
