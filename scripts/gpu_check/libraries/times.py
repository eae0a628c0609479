"""Times beside PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries import cudnn_attention
from flambeau._runtime.cuda.libraries.cublaslt import Kind, Plan, Unsupported
from flambeau._runtime.cuda.libraries.cudnn import Convolution, Wishes, convolution
from flambeau._runtime.cuda.libraries.cudnn_attention import Attention
from flambeau._runtime.cuda.libraries.matrices import Array, arranged, contiguous
from scripts.gpu_check.libraries.arrays import TYPES, poisoned, repeated
from scripts.gpu_check.libraries.report import late
from scripts.gpu_check.libraries.timing import host_us, timed, torch_timed


def time_products(torch: Any) -> dict[str, Any]:
    """us: first candidate, best, PyTorch; TF/s of the best."""
    found: dict[str, Any] = {}
    for label, name, tf32 in (("bf16", "bfloat16", False), ("f16", "float16", False),
                              ("tf32", "float32", True), ("f32", "float32", False)):  # fmt: skip
        for n in (256, 1024, 4096, 8192):
            if late():
                return found
            if label == "f32" and n == 8192:
                continue
            dtype = TYPES[name][0]
            x, y, out = (
                repeated((n, n), dtype),
                repeated((n, n), dtype),
                poisoned((1, n * n), dtype),
            )
            plan = Plan(arranged(x.array, y.array, contiguous((n, n))), Kind(name, tf32=tf32))  # type: ignore[arg-type]
            go = lambda p=plan, a=x, b=y, o=out: p.run(a.address, b.address, o.address)  # noqa: E731
            plan.settled, waits = True, plan.settled
            first = timed(go)
            plan.settled = waits
            go()
            best = timed(go)
            theirs = None
            if torch is not None:
                torch.backends.cuda.matmul.allow_tf32 = tf32
                a, b = (torch.randn(n, n, device="cuda", dtype=getattr(torch, name))
                        for _ in range(2))  # fmt: skip
                c = torch.empty_like(a)
                work = lambda a=a, b=b, c=c: torch.mm(a, b, out=c)  # noqa: E731
                theirs = round(torch_timed(torch, work), 1)
            found[f"{label} {n}"] = [round(first, 1), round(best, 1), theirs,
                                     round(2 * n**3 / best / 1e6, 1)]  # fmt: skip
    return found


def time_linear(torch: Any) -> dict[str, Any]:
    """A transformer's linear layer 8192x768 -> 3072, bf16: us, ours and PyTorch's."""
    tokens, narrow, broad = 8192, 768, 3072
    dtype = TYPES["bfloat16"][0]
    x, w, b = (repeated(s, dtype, 0.1) for s in ((tokens, narrow), (broad, narrow), (broad,)))
    g, h, aux = (repeated((tokens, broad), dtype, 0.1) for _ in range(3))
    w2, dw = repeated((narrow, broad), dtype, 0.1), poisoned((broad, narrow), dtype)
    dy, db = repeated((tokens, narrow), dtype, 0.1), poisoned((broad,), dtype)
    forward, backward = (
        arranged(x.array, w.array.mT, h.array),
        arranged(dy.array, w2.array, h.array),
    )
    weight = arranged(g.array.mT, x.array, dw.array)
    rows = {
        "product": (forward, numbers.DEFAULT, x, w, h),
        "bias": (forward, numbers.BIAS, x, w, h),
        "gelu of bias": (forward, numbers.GELU_BIAS, x, w, h),
        "gelu of bias, kept": (forward, numbers.GELU_AUX_BIAS, x, w, h),
        "dgelu": (backward, numbers.DGELU, dy, w2, h),
        "weight": (weight, numbers.DEFAULT, g, x, dw),
        "weight and bias": (weight, numbers.BGRADB, g, x, dw),
    }
    found: dict[str, Any] = {}
    for title, (planned, epilogue, left, right, out) in rows.items():
        plan = Plan(planned, Kind("bfloat16", epilogue))  # type: ignore[arg-type]
        shift = db if epilogue == numbers.BGRADB else b
        go = lambda p=plan, i=left, j=right, o=out, s=shift: p.run(  # noqa: E731
            i.address, j.address, o.address, bias=s.address, aux=aux.address)  # fmt: skip
        go()
        found[title] = [round(timed(go), 1)]
    if torch is not None:
        _time_linear_of_torch(torch, found, (tokens, narrow, broad))
    return found


def _time_linear_of_torch(torch: Any, found: dict[str, Any], sizes: tuple[int, int, int]) -> None:
    tokens, narrow, broad = sizes
    F = torch.nn.functional
    draw = lambda *s: torch.randn(*s, device="cuda", dtype=torch.bfloat16) * 0.1  # noqa: E731
    x, w, b, g, dy, w2 = (draw(tokens, narrow), draw(broad, narrow), draw(broad),
                          draw(tokens, broad), draw(tokens, narrow),
                          draw(narrow, broad))  # fmt: skip
    z = draw(tokens, broad)
    for title, work in {
        "product": lambda: F.linear(x, w), "bias": lambda: F.linear(x, w, b),
        "gelu of bias": lambda: F.gelu(F.linear(x, w, b), approximate="tanh"),
        "dgelu": lambda: torch.ops.aten.gelu_backward(dy @ w2, z, approximate="tanh"),
        "weight": lambda: g.t() @ x, "weight and bias": lambda: (g.t() @ x, g.sum(0)),
    }.items():  # fmt: skip
        found[title].append(round(torch_timed(torch, work), 1))


SHAPES = (((32, 64, 56, 56), (64, 64, 3, 3)), ((32, 256, 28, 28), (256, 256, 3, 3)))
ENGINES = 4


def time_convolutions(torch: Any) -> dict[str, Any]:
    """us of forward, data, filter: first engine, best engine, PyTorch (benchmark on)."""
    found: dict[str, Any] = {}
    for (x_shape, w_shape), (label, name) in product(SHAPES, (("f16", "float16"),
                                                              ("tf32", "float32"))):  # fmt: skip
        dtype, pad = TYPES[name][0], w_shape[2] // 2
        y_shape = (x_shape[0], w_shape[0], *x_shape[2:])
        x, w, y = (repeated(shape, dtype, 0.1) for shape in (x_shape, w_shape, y_shape))
        for order in ("rows", "last"):
            forms = [of_format(shape, order) for shape in (x_shape, w_shape, y_shape)]
            given = (pad, pad), (1, 1), (1, 1)
            if late() or (order == "rows" and label == "tf32"):
                continue
            for kind in ("forward", "data", "filter"):
                title = f"{'x'.join(map(str, x_shape))} {w_shape[2]}x{w_shape[3]} {label} {order}"
                try:
                    plan = convolution(
                        Convolution(kind, name, *forms, *given), Wishes(limit=ENGINES)
                    )
                except Unsupported as refusal:
                    found[f"{title} {kind}"] = str(refusal)
                    continue
                out = {"forward": (2, y), "data": (0, x), "filter": (1, w)}[kind]
                at = x.address, w.address, y.address
                go = lambda p=plan, a=at, s=(out[0], out[1].nbytes): p.run(*a, scratch=s)  # noqa: E731
                plan.settled = True
                first = timed(go, 0.02)
                plan.settled = len(plan.found) == 1
                go()
                found[f"{title} {kind}"] = [round(first, 1), round(timed(go, 0.02), 1)]
            if torch is not None:
                shapes = (x_shape, w_shape, y_shape)
                _time_convolutions_of_torch(torch, found, title, shapes, name, order, pad)
    return found


def of_format(shape: tuple[int, ...], order: str) -> Array:
    if order == "rows":
        return contiguous(shape)
    n, c, h, w = shape
    return Array(shape, (h * w * c, 1, w * c, c))


def _time_convolutions_of_torch(torch: Any, found: dict[str, Any], title: str, shapes: Any,
                                name: str, order: str, pad: int) -> None:  # fmt: skip
    torch.backends.cudnn.benchmark = True
    form = torch.channels_last if order == "last" else torch.contiguous_format
    x, w, y = (torch.randn(s, device="cuda", dtype=getattr(torch, name)).to(memory_format=form)
               for s in shapes)  # fmt: skip
    back = torch.ops.aten.convolution_backward
    for kind, work in {
        "forward": lambda: torch.nn.functional.conv2d(x, w, padding=pad),
        "data": lambda: back(y, x, w, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1,
                             [True, False, False]),
        "filter": lambda: back(y, x, w, None, [1, 1], [pad, pad], [1, 1], False, [0, 0], 1,
                               [False, True, False]),
    }.items():  # fmt: skip
        entry = found.get(f"{title} {kind}")
        if isinstance(entry, list):
            entry.append(round(torch_timed(torch, work, 0.02), 1))


def time_attention(torch: Any) -> dict[str, Any]:
    """us of attention forward, 8 x 12 heads of 512 x 64, bf16: ours through cuDNN, PyTorch's."""
    found: dict[str, Any] = {}
    dtype = TYPES["bfloat16"][0]
    shape, strides = (8, 12, 512, 64), (512 * 12 * 64, 64, 12 * 64, 1)
    q, k, v, out = (repeated((8, 512, 12, 64), dtype) for _ in range(4))
    sums = poisoned((8, 12, 512, 1), np.float32)
    array = Array(shape, strides)
    for causal in (False, True):
        title = "causal" if causal else "whole"
        try:
            plan = cudnn_attention.forward(
                Attention("bfloat16", array, array, array, array, causal), Wishes(limit=1)
            )
            go = lambda p=plan: p.run(q.address, k.address, v.address, out.address,  # noqa: E731
                                      sums.address, 0.125)  # fmt: skip
            found[title] = [round(timed(go), 1)]
        except Unsupported as refusal:
            found[title] = [f"refused: {refusal}"]
        if torch is not None:
            a, b, c = (torch.randn(8, 512, 12, 64, device="cuda", dtype=torch.bfloat16)
                       .transpose(1, 2) for _ in range(3))  # fmt: skip
            attend = torch.nn.functional.scaled_dot_product_attention
            work = lambda x=(a, b, c), f=causal, act=attend: act(*x, is_causal=f)  # noqa: E731
            found[title].append(round(torch_timed(torch, work), 1))
    return found


def time_host() -> dict[str, float]:
    """us of host time of a call with everything planned."""
    x = repeated((16, 16), np.float16)
    plan = Plan(arranged(x.array, x.array, x.array), Kind("float16"))  # type: ignore[arg-type]
    out = poisoned((16, 16), np.float16)
    found = {"product": host_us(lambda: plan.run(x.address, x.address, out.address))}
    plan = Plan(plan.product, Kind("float16", numbers.BIAS))
    found["with bias"] = host_us(
        lambda: plan.run(x.address, x.address, out.address, bias=x.address)
    )
    a, w = repeated((1, 8, 8, 8), np.float16), repeated((8, 8, 3, 3), np.float16)
    y = poisoned((1, 8, 8, 8), np.float16)
    asked = Convolution("forward", "float16", a.array, w.array, y.array, (1, 1), (1, 1), (1, 1))
    conv = convolution(asked, Wishes())
    found["convolution"] = host_us(lambda: conv.run(a.address, w.address, y.address))
    return found
