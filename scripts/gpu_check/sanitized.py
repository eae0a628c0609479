"""Kernels at sizes that fit nothing, for NVIDIA's compute-sanitizer to look at each access.

    compute-sanitizer --tool memcheck python scripts/gpu_check/sanitized.py

Prints how many calls were made; what they computed is checked against the CPU. The sanitizer
reports accesses out of bounds and fails then (--error-exitcode).
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("FLAMBEAU_ENGINE", "llvm")

import flambeau as fl
import flambeau.nn.functional as F

Call = Callable[[Any], Any]

CALLS: dict[str, Call] = {
    "gelu": F.gelu, "exp": fl.exp, "sum": fl.sum, "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1), "argmax": lambda x: x.argmax(1), "amax": lambda x: x.amax(0),
    "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(1),
    "softmax 0": lambda x: x.softmax(0), "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "logsumexp": lambda x: x.logsumexp(1), "var": lambda x: x.float().var(1),
    "transposed": lambda x: x.t().contiguous(), "cumsum": lambda x: x.float().cumsum(1),
    "cat": lambda x: fl.cat([x, x[:1]]), "half": lambda x: x.half().float(),
    "rows": lambda x: x[fl.arange(x.shape[0] - 1, -1, -1, device=x.device)],
    "sorted": lambda x: x.float().sort(1)[0], "where": lambda x: fl.where(x > 0, x, -x),
    "cross_entropy": lambda x: F.cross_entropy(x, fl.arange(x.shape[0], device=x.device)
                                               % x.shape[1]),
    "strided": lambda x: (x[:, 1:] * x[:, :-1])[::2],
}  # fmt: skip
SLOPES = ("gelu", "softmax", "layer_norm", "cross_entropy", "rows", "sum 0", "logsumexp", "cat")
"""Calls whose gradients are computed, too."""
SIZES = ((3, 5), (1, 1030), (67, 33), (2, 9001), (300, 7))
NEAR = {fl.float32: 1e-4, fl.bfloat16: 0.05, fl.float16: 0.01}


def gone_wrong(call: Call, numbers: Any, learns: bool, near: float) -> bool:
    """Whether a result on the GPU, or its gradient, is another than the CPU's."""
    found = []
    for place in ("cuda", "cpu"):
        x = numbers.detach().to(place, copy=True).requires_grad_(learns)
        result = call(x)
        parts = [result.detach()]
        if learns:
            (result.float() ** 2).sum().backward()
            parts.append(x.grad)
        found.append([part.cpu().double() for part in parts])
    return not all(fl.allclose(a, b, near, near) for a, b in zip(*found, strict=True))


def main() -> None:
    made, wrong = 0, []
    for dtype, near in NEAR.items():
        for shape in SIZES:
            numbers = fl.randn(shape).to(dtype)
            for name in random.sample(list(CALLS), len(CALLS) if dtype is fl.float32 else 8):
                made += 1
                if gone_wrong(CALLS[name], numbers, name in SLOPES, near):
                    wrong.append(f"{name} {shape} {dtype}")
    fl.cuda.synchronize()
    print(f"{made} calls, {len(wrong)} unlike the CPU's: {wrong[:9]}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
