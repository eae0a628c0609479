"""cuDNN: convolutions against their definition, attention against its formula."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cudnn_attention
from flambeau._runtime.cuda.libraries.cublaslt import Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Convolution, Wishes, convolution
from flambeau._runtime.cuda.libraries.cudnn_attention import Attention
from flambeau._runtime.cuda.memory import running
from scripts.gpu_check.libraries.arrays import POISON, TYPES, OnDevice, drawn, error, poisoned, wide
from scripts.gpu_check.libraries.report import late


def windows(x: np.ndarray, w: np.ndarray, padding: Any, stride: Any, dilation: Any) -> np.ndarray:
    """A convolution by its definition, one output position after the other."""
    x, w = wide(x), wide(w)
    padded = np.pad(x, [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    sizes = [(size - gap * (taps - 1) - 1) // step + 1 for size, taps, step, gap in zip(
        padded.shape[2:], w.shape[2:], stride, dilation, strict=True)]  # fmt: skip
    groups = x.shape[1] // w.shape[1]
    result = np.zeros((len(x), len(w), *sizes))
    size = len(w) // groups
    for place in product(*map(range, sizes)):
        window = tuple(slice(p * step, p * step + gap * (taps - 1) + 1, gap) for
                       p, step, taps, gap in zip(place, stride, w.shape[2:], dilation,
                                                 strict=True))  # fmt: skip
        part = padded[(slice(None), slice(None), *window)]
        for group in range(groups):
            inputs = part[:, group * w.shape[1] : (group + 1) * w.shape[1]].reshape(len(x), -1)
            filters = slice(group * size, (group + 1) * size)
            result[(slice(None), filters, *place)] = inputs @ w[filters].reshape(size, -1).T
    return result


def channels_last(values: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)


CASES = {
    "1d": ((2, 16, 20), (24, 16, 3), (1,), (1,), (1,)),
    "2d": ((2, 16, 10, 9), (24, 16, 3, 3), (1, 1), (1, 1), (1, 1)),
    "2d strided": ((2, 16, 10, 9), (8, 16, 3, 2), (1, 0), (2, 1), (1, 2)),
    "2d groups": ((2, 16, 10, 9), (16, 4, 3, 3), (1, 1), (1, 1), (1, 1)),
    "2d depthwise": ((2, 16, 10, 9), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1)),
    "3d": ((1, 8, 6, 6, 6), (8, 8, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
}
FUSED = ("float16", "float32")
"""Types of which convolutions with a bias are checked: cuDNN compiles a kernel for each."""
TOLERANCES = {"float32": 1e-4, "float64": 1e-10, "float16": 1e-2, "bfloat16": 6e-2}


def check_convolutions(name: str) -> dict[str, Any]:
    """The three maps, both formats, bias and relu: errors; adjoints by probing."""
    found: dict[str, Any] = {}
    dtype = TYPES[name][0]
    rng = np.random.default_rng(11)
    for title, (x_shape, w_shape, *given) in CASES.items():
        x, w = drawn(rng, x_shape, dtype), drawn(rng, w_shape, dtype)
        want = windows(x, w, *given)
        grad, bias = drawn(rng, want.shape, dtype), drawn(rng, (len(w),), dtype)
        shift = wide(bias).reshape(-1, *(1,) * (x.ndim - 2))
        for form in (np.asarray, channels_last):
            if form is channels_last and x.ndim == 3:
                continue
            a, b, g, s = (OnDevice(form(v) if v.ndim > 1 else v) for v in (x, w, grad, bias))
            label = f"{title} {'last' if form is channels_last else 'rows'}"
            fused = ("bias", "bias relu") if title == "2d" and name in FUSED else ()
            for what in ("forward", *fused, "data", "filter"):
                if late():
                    return found | {"left out": "no time"}
                result = {"data": x, "filter": w}.get(what, grad)
                out = OnDevice(form(np.zeros_like(result)))
                running().fill(out.address, POISON, 1, out.nbytes, 0)
                kind = what if what in ("data", "filter") else "forward"
                asked = Convolution(kind, name, a.array, b.array, g.array, *given,
                                    biased="bias" in what, relu="relu" in what)  # fmt: skip
                try:
                    plan = convolution(asked, Wishes(tf32=False))
                except Unsupported as refusal:
                    found[f"{label} {what}"] = f"refused: {refusal}"
                    continue
                places = {"data": (out, b, g), "filter": (a, out, g)}.get(what, (a, b, out))
                extra = (s.address,) if "bias" in what else ()
                plan.run(*(one.address for one in places), *extra)
                got = out.back()
                if kind == "forward":
                    total = want + shift if extra else want
                    wrong = error(got, total.clip(0) if "relu" in what else total)
                else:
                    probe = rng.standard_normal(result.shape)
                    pair = (probe, w) if what == "data" else (x, probe)
                    expected = (windows(*pair, *given) * wide(grad)).sum()
                    wrong = abs(float((wide(got) * probe).sum() - expected))
                    wrong /= 1 + float(np.abs(wide(got)).sum())
                if not wrong < TOLERANCES[name]:
                    found[f"{label} {what}"] = f"WRONG {wrong}"
                found["checked"] = found.get("checked", 0) + 1
    return found


def check_attention() -> dict[str, Any]:
    """cuDNN's graph of attention: errors of values and of the logarithms of sums."""
    found: dict[str, Any] = {}
    rng = np.random.default_rng(12)
    for name, causal, size in product(("float16", "bfloat16"), (False, True), (64, 128)):
        dtype = TYPES[name][0]
        q, k, v = (drawn(rng, (2, 128, 3, size), dtype).transpose(0, 2, 1, 3) for _ in range(3))
        a, b, c, out = (OnDevice(one) for one in (q, k, v, np.zeros_like(q)))
        sums = poisoned((2, 3, 128, 1), np.float32)
        asked = Attention(name, a.array, b.array, c.array, out.array, causal)
        title = f"{name} {'causal ' if causal else ''}{size}"
        try:
            plan = cudnn_attention.forward(asked, Wishes())
        except Exception as refusal:
            found[title] = f"refused: {refusal}"
            continue
        plan.run(a.address, b.address, c.address, out.address, sums.address, size**-0.5)
        scores = wide(q) @ wide(k).swapaxes(2, 3) * size**-0.5
        if causal:
            scores[..., np.arange(128) > np.arange(128)[:, None]] = -np.inf
        powers = np.exp(scores)
        totals = powers.sum(3, keepdims=True)
        wrong = [error(out.back(), powers / totals @ wide(v)), error(sums.back(), np.log(totals))]
        found[title] = [*wrong, "right" if max(wrong) < 3e-2 else "WRONG"]
    return found
