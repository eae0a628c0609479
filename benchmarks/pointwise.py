"""Elementwise work on large tensors: GB/s beside what a copy reaches, and the ratio to PyTorch.

Usage: `python benchmarks/pointwise.py [elements] [words of case names]`. PyTorch is left out where
it is not installed. Bytes are those that have to be read and written; results go to new memory
unless the name ends in `_` (in place) or `_out`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

Case = tuple[float, Callable[[Any, Any, Any, Any], Any]]

CASES: dict[str, Case] = {  # tensors read and written, and the call
    "copy_": (2, lambda m, x, y, z: z.copy_(x)),
    "fill_": (1, lambda m, x, y, z: z.fill_(1.5)),
    "add": (3, lambda m, x, y, z: x + y),
    "add_out": (3, lambda m, x, y, z: m.add(x, y, out=z)),
    "add_": (3, lambda m, x, y, z: z.add_(x)),
    "add_factor_": (3, lambda m, x, y, z: z.add_(x, alpha=0.5)),
    "number": (2, lambda m, x, y, z: x * 2.0),
    "relu": (2, lambda m, x, y, z: m.relu(x)),
    "clamp": (2, lambda m, x, y, z: x.clamp(-1, 1)),
    "where": (3, lambda m, x, y, z: m.where(x > 0, x, y)),
    "lerp": (3, lambda m, x, y, z: m.lerp(x, y, 0.3)),
    "exp": (2, lambda m, x, y, z: m.exp(x)),
    "tanh": (2, lambda m, x, y, z: m.tanh(x)),
    "sigmoid": (2, lambda m, x, y, z: m.sigmoid(x)),
    "gelu": (2, lambda m, x, y, z: m.nn.functional.gelu(x)),
    "gelu_tanh": (2, lambda m, x, y, z: m.nn.functional.gelu(x, approximate="tanh")),
    "silu": (2, lambda m, x, y, z: m.nn.functional.silu(x)),
    "half": (1.5, lambda m, x, y, z: x.half()),
    "bfloat16": (1.5, lambda m, x, y, z: x.bfloat16()),
}


def best(function: Callable[[], Any], rounds: int = 7) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def tensors(module: Any, elements: int) -> list[Any]:
    """Three tensors of normal numbers."""
    module.manual_seed(0)
    return [module.randn(elements) for _ in range(3)]


def main() -> None:
    """Print a line for each case."""
    words = sys.argv[1:]
    elements = int(words.pop(0)) if words and words[0].isdigit() else 1 << 24
    names = ["torch", "flambeau"] if importlib.util.find_spec("torch") else ["flambeau"]
    modules = {name: importlib.import_module(name) for name in names}
    held = {name: tensors(module, elements) for name, module in modules.items()}
    ceiling = 0.0
    for name, (count, call) in CASES.items():
        if words and not any(word in name for word in words) and name != "copy_":
            continue
        steps = {k: partial(call, modules[k], *held[k]) for k in names}
        times = {k: best(step) for k, step in steps.items()}
        rate = 4 * count * elements / times["flambeau"] / 1e9
        ceiling = max(ceiling, rate if name == "copy_" else 0.0)
        text = f"{name:12s} {1e3 * times['flambeau']:8.3f} ms {rate:6.1f} GB/s"
        text += f"  {100 * rate / ceiling:4.0f} % of a copy"
        if "torch" in times:
            text += f"  torch / flambeau {times['torch'] / times['flambeau']:5.2f}"
        print(text, flush=True)


if __name__ == "__main__":
    main()
