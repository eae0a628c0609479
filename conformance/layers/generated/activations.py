"""Functions of each element."""

from __future__ import annotations

from typing import Any

from .drawing import Drawing, Text, called

PLAIN = (
    "relu relu6 elu selu celu gelu silu mish hardswish hardsigmoid hardtanh leaky_relu sigmoid tanh"
    " softplus softsign tanhshrink logsigmoid hardshrink softshrink threshold glu prelu rrelu"
    " dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d"
).split()
OPTIONS: dict[str, dict[str, Any]] = {
    "elu": {"alpha": 0.5}, "celu": {"alpha": 0.5}, "gelu": {"approximate": "tanh"},
    "hardtanh": {"min_val": -0.5, "max_val": 0.7}, "leaky_relu": {"negative_slope": 0.3},
    "softplus": {"beta": 2, "threshold": 1.0}, "hardshrink": {"lambd": 0.2},
    "softshrink": {"lambd": 0.2}, "rrelu": {"training": True},
}  # fmt: skip
OTHERS = (
    "sqrt rsqrt exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh asinh atanh"
    " erf erfc erfinv sign abs neg floor ceil round trunc frac square reciprocal lgamma digamma"
    " sigmoid logit nan_to_num sinc deg2rad positive exp2 i0 special.i1 special.ndtri"
    " special.log_ndtr special.entr"
).split()
PAIRS = (
    "add sub mul div pow atan2 hypot maximum minimum fmod remainder floor_divide copysign"
    " logaddexp logaddexp2 xlogy fmax fmin heaviside ldexp special.zeta special.xlog1py gt eq"
    " nextafter rsub true_divide float_power"
).split()


def drawn(p: Drawing) -> None:
    p.one(_activation, _activation, _elementwise, _pair, _clamped)(p)


def _activation(p: Drawing) -> None:
    shape = p.sizes(p.size(0, 5), 1, 5)
    name = p.one(*PLAIN)
    # What PyTorch does with the others: docs/compatibility.md, "Layers".
    dtype = "float32" if name == "hardsigmoid" else ""
    x = p.tensor(shape, dtype, layout="rows" if name == "logsigmoid" else "")
    options = p.some(0.5, **OPTIONS.get(name, {}))
    words: list[Any] = [x]
    if name == "threshold":
        words += [p.one(0.1, -0.5), p.one(0, 20)]
    if name == "prelu":
        words.append(p.tensor((p.one(1, shape[1] if len(shape) > 1 else 1),)))
    if name == "glu":
        options = {"dim": p.dim(len(shape))}
    if "dropout" in name:
        options = p.some(0.6, p=p.one(0.2, 0.5, 0.0, 1.0), training=p.one(True, False))
    p.gradients(p.result(called(f"F.{name}", *words, **options)))


def _elementwise(p: Drawing) -> None:
    if p.chance(0.2):
        p.dtype = p.one("int64", "bool", "uint8")
    x = p.tensor(p.sizes(p.size(0, 5), 1, 5))
    p.gradients(p.result(called(f"torch.{p.one(*OTHERS)}", x)))


def _pair(p: Drawing) -> None:
    shape = p.sizes(p.size(0, 4), 1, 4)
    other = tuple(p.one(size, size, 1) for size in shape[p.size(0, len(shape)) :])
    x = p.tensor(shape)
    y = p.tensor(other, p.one(p.dtype, p.dtype, "float32", "int64"))
    words = [x, y] if p.chance(0.5) else [y, x]
    p.gradients(p.result(called(f"torch.{p.one(*PAIRS)}", *words)))


def _clamped(p: Drawing) -> None:
    shape = p.sizes(p.size(0, 4), 1, 4)
    x = p.tensor(shape)
    other = tuple(p.one(size, size, 1) for size in shape)
    text = p.one(
        lambda: called("torch.clamp", x, **p.some(0.7, min=-0.5, max=p.one(0.5, -1.0))),
        lambda: called("torch.clamp", x, p.tensor(other), p.tensor(shape)),
        lambda: called("torch.lerp", x, p.tensor(other), p.one(0.3, p.tensor(shape))),
        lambda: called("torch.addcmul", x, p.tensor(other), p.tensor(shape), value=0.5),
        lambda: called("torch.addcdiv", x, p.tensor(other), p.tensor(shape)),
        lambda: called("torch.where", Text(f"{x} > 0"), x, p.tensor(other)),
    )()
    p.gradients(p.result(text))
