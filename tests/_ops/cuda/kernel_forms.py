"""Every form of our kernels, compiled for GPUs: what becomes of them, as JSON.

    FLAMBEAU_EMULATE_CUDA=1 python tests/_ops/cuda/kernel_forms.py sm_90a [--table] [--sample]

`--sample`: a tenth of them. Nothing is launched: calls with large tensors tell which kernels they
would launch. Registers and spills are known where there is ptxas.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._runtime.cuda import assemble, launch
from flambeau.nn import functional as F

Made = list[tuple[str, Any]]


class Recorded:
    """The kernels that calls would launch."""

    made: Made = []  # noqa: RUF012
    title = ""


def note(kernel: Any, *_: Any) -> None:
    Recorded.made.append((Recorded.title, kernel))
    kernel.devices.setdefault(0, lambda *_: None)  # what quick calls go to


def noted(title: str, function: Callable[[], Any]) -> None:
    Recorded.title = title
    function()


def tensors(dtype: Any) -> dict[str, Any]:
    """Memory that nobody writes to."""

    def empty(*shape: int, dtype: Any = dtype) -> Any:
        return torch.empty(shape, dtype=dtype, device="cuda")

    return {"x": empty(8192, 8192), "w": empty(8192), "short": empty(4096, 128), "v": empty(128),
            "odd": empty(64, 50257), "long": empty(1024, 100000), "image": empty(32, 64, 56, 56),
            "c": empty(64), "table": empty(50257, 768), "t": empty(8192, dtype=torch.int64),
            "g": empty(8192, 768), "o": empty(64, dtype=torch.int64),
            "m": empty(8192, 8192, dtype=torch.bool)}  # fmt: skip


SAMPLE = ("exp", "sin", "gelu", "add", "add row", "transposed", "softmax x", "softmax long",
          "layer_norm x", "layer_norm odd", "layer_norm long", "sum of all x", "sum down x",
          "argmax x", "cross_entropy", "layer_norm backward", "embedding backward",
          "adamw")  # fmt: skip
POINTWISE = ("exp log log1p expm1 sin cos tan atan sqrt rsqrt reciprocal floor neg abs tanh "
             "sigmoid relu erf exp2 log2 sinh cosh isnan").split()  # fmt: skip
BINARY = "add sub mul div pow maximum minimum atan2 fmod eq gt".split()


FEW = 32
"""PTX instructions that an element of half types may take; these may take more, and why:"""
MORE = {
    "max_pool2d": (131, "a window of nine elements for each result"),
    "max_pool2d forward": (131, "a window of nine elements, and which one is the largest"),
    "avg_pool2d": (68, "a window of four elements for each result"),
    "pow": (97, "a logarithm beyond single precision, and a dozen special cases"),
    "tan": (86, "bfloat16 from 2**17 to 3e38: turns are counted by whole numbers, in a branch"),
    "sin": (59, "bfloat16 from 2**17 to 3e38: turns are counted by whole numbers, in a branch"),
    "cos": (59, "bfloat16 from 2**17 to 3e38: turns are counted by whole numbers, in a branch"),
    "embedding backward": (86, "four elements a thread; a loop finds the rows that meet in one"),
    "layer_norm backward": (70, "passes over memory: each has loops of its own for the rest"),
    "batch_norm backward": (44, "passes over memory: each has loops of its own for the rest"),
    "group_norm": (59, "passes over memory: each has loops of its own for the rest"),
    "softmax down": (54, "passes over memory: each has loops of its own for the rest"),
    "layer_norm odd": (38, "rows that begin anywhere: their edges are read apart"),
    "gelu backward": (53, "two operands, the error function and an exponential"),
    "fmod": (47, "the rest is exact: a loop for long quotients"),
    "softplus": (42, "an exponential and a logarithm in plain arithmetic"),
    "atan2": (38, "two operands and four quadrants"),
    "add apart": (36, "elements that begin anywhere: each is found by itself"),
    "adamw": (35, "four arrays"),
}  # fmt: skip


def elements(t: dict[str, Any]) -> None:
    x, w, m = t["x"], t["w"], t["m"]
    for name in POINTWISE:
        noted(name, lambda n=name: getattr(torch, n)(x))
    for name in BINARY:
        noted(name, lambda n=name: getattr(torch, n)(x, x))
    for function in (F.gelu, F.silu, F.softplus, F.elu, F.hardswish, F.mish, F.leaky_relu):
        noted(function.__name__, lambda f=function: f(x))
    noted("add number", lambda: x + 1.5)
    noted("add row", lambda: x + w)
    noted("add column", lambda: x + w[:, None])
    noted("add apart", lambda: x[:, 1:] + x[:, :-1])
    noted("in place", lambda: x.add_(w))
    for other in (torch.float32, torch.float16, torch.bool, torch.int64):
        noted(f"to {other}", lambda d=other: x.to(d))
    noted("transposed", lambda: x.t().contiguous())
    noted("fill", lambda: x.fill_(1))
    noted("where", lambda: torch.where(m, x, w))


def rows(t: dict[str, Any]) -> None:
    for name in ("x", "short", "odd", "long"):
        x = t[name]
        v = x[0].contiguous()
        noted(f"softmax {name}", lambda x=x: x.softmax(-1))
        noted(f"layer_norm {name}", lambda x=x, v=v: F.layer_norm(x, x.shape[-1:], v, v))
        noted(f"sum {name}", lambda x=x: x.sum(-1))
        noted(f"sum of all {name}", lambda x=x: x.sum())
        noted(f"sum down {name}", lambda x=x: x.sum(0))
        noted(f"argmax {name}", lambda x=x: x.argmax(-1))
        noted(f"var {name}", lambda x=x: x.var(-1))
        noted(f"cumsum {name}", lambda x=x: x.cumsum(-1))
    noted("softmax down", lambda: t["x"].softmax(0))
    noted("cross_entropy", lambda: F.cross_entropy(t["x"], t["t"]))
    noted("cross_entropy odd", lambda: F.cross_entropy(t["odd"], t["o"]))
    noted("mse_loss", lambda: F.mse_loss(t["x"], t["x"]))
    noted("norm", lambda: torch.linalg.vector_norm(t["x"]))
    i, c = t["image"], t["c"]
    noted("batch_norm", lambda: F.batch_norm(i, None, None, c, c, True))
    noted("group_norm", lambda: F.group_norm(i, 8, c, c))
    noted("max_pool2d", lambda: F.max_pool2d(i, 3, 2, 1))
    noted("avg_pool2d", lambda: F.avg_pool2d(i, 2))


def places(t: dict[str, Any]) -> None:
    noted("embedding", lambda: F.embedding(t["t"], t["table"]))
    noted("gather", lambda: t["x"].gather(1, t["t"][:, None]))
    noted("scatter", lambda: t["x"].scatter_add(1, t["t"][:, None], t["x"][:, :1]))
    noted("tril", lambda: t["x"].tril())


def gradients(dtype: Any, t: dict[str, Any]) -> None:
    def leaf(x: Any) -> Any:
        return x.detach().requires_grad_()

    x, v = leaf(t["short"]), leaf(t["v"])
    for title, function in (
        ("softmax backward", lambda: x.softmax(-1)), ("gelu backward", lambda: F.gelu(x)),
        ("layer_norm backward", lambda: F.layer_norm(x, (128,), v, v)),
        ("cross_entropy backward", lambda: F.cross_entropy(x, t["t"][:4096])),
        ("embedding backward", lambda: F.embedding(t["t"], leaf(t["table"]))),
        ("batch_norm backward", lambda: F.batch_norm(leaf(t["image"]), None, None, training=True)),
        ("max_pool2d backward", lambda: F.max_pool2d(leaf(t["image"]), 3, 2, 1)),
    ):  # fmt: skip
        Recorded.title = title.replace("backward", "forward")
        result = function()
        noted(title, lambda r=result: r.backward(torch.empty_like(r)))
    parameter = torch.nn.Parameter(t["g"])
    parameter.grad = torch.empty_like(t["g"])
    noted("adamw", torch.optim.AdamW([parameter]).step)
    scale, found = (torch.empty((), device="cuda") for _ in range(2))
    unscale = torch.amp.unscaled._amp_foreach_non_finite_check_and_unscale_
    noted("unscale", lambda: unscale([parameter.grad], found, scale))


def main() -> None:
    warnings.simplefilter("ignore")
    arch = sys.argv[1]
    launch.Kernel.__call__ = note  # type: ignore[assignment]
    found: dict[str, Any] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        Recorded.made = []
        t = tensors(dtype)
        elements(t)
        rows(t)
        places(t)
        if dtype is not torch.float16:
            gradients(dtype, t)
        for title, kernel in Recorded.made:
            name = f"{title} {str(dtype)[6:]}: {kernel.native.name}"
            if name not in found and ("--sample" not in sys.argv or title in SAMPLE):
                found[name] = told(kernel, arch)
    if "--table" in sys.argv:
        print_table(found)
    else:
        print(json.dumps(found))


def told(kernel: Any, arch: str) -> dict[str, Any]:
    try:
        report = assemble.report(kernel.native, kernel.statics, kernel.shape, arch)
    except Exception as error:
        return {"failed": str(error)[:600]}
    count = kernel.statics.get("V", 1) * vectors(kernel)
    return {"instructions": report.instructions, "each": count, "wide": report.wide,
            "narrow": report.narrow, "generic": report.generic, "registers": report.registers,
            "spilled": report.spilled, "aligned": kernel.shape.aligned}  # fmt: skip


HELD = re.compile(r"^ +p\d+ = \(", re.MULTILINE)
"""Where a vector of a row in registers lies."""


def vectors(kernel: Any) -> int:
    """How many vectors a thread computes: those that it keeps of a row, and those of a step."""
    held = len(HELD.findall(kernel.native.source)) or kernel.statics.get("KEPT", 0)
    kept = held if isinstance(held, int) else 0
    return kept + kernel.statics.get("U", 0) or 1


def print_table(found: dict[str, Any]) -> None:
    print(f"{'':56s} PTX  wide narrow generic registers spilled")
    for name, it in found.items():
        if "failed" in it:
            print(f"{name:56s} {it['failed'][:200]}")
        else:
            print(f"{name:56s} {it['instructions']:4d} {it['wide']:4d} {it['narrow']:5d} "
                  f"{it['generic']:6d} {it['registers']:8d} {it['spilled']:8d}")  # fmt: skip


if __name__ == "__main__":
    main()
