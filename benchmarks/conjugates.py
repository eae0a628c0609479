"""Products of conjugate views: nothing is copied for them.

Usage: `python benchmarks/conjugates.py [words of case names]`

First the times under torch and flambeau, then flambeau's alone: each product of a conjugate view
beside the same product of the tensor itself, by time and by the most memory that its arrays took.
Last, by size: `z.conj().T @ w` beside `z.T @ w`, with the views made anew and with them at hand.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

from harness import Case, measure, once, run, show, steps_for

SIZE = 512
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "z.transpose(0, 1) @ w": lambda z, w: z.transpose(0, 1) @ w,
    "z @ w": lambda z, w: z @ w,
    "z @ w.transpose(0, 1)": lambda z, w: z @ w.transpose(0, 1),
    "z @ w[0]": lambda z, w: z @ w[0],
}
"""Products of two square matrices, of which the first may be a conjugate view."""


def operands(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return tuple(torch.randn(SIZE, SIZE, dtype=torch.complex64) for _ in range(2))


def conjugated(torch: Any, product: Callable[[Any, Any], Any]) -> Any:
    z, w = operands(torch)
    return lambda: product(z.conj(), w)


def plain(torch: Any, product: Callable[[Any, Any], Any]) -> Any:
    z, w = operands(torch)
    return lambda: product(z, w)


def peak(step: Callable[[], Any]) -> int:
    """The most bytes that NumPy's arrays took at a time."""
    step()
    tracemalloc.start()
    try:
        step()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def compare(torch: Any) -> None:
    """The table of flambeau's products beside the plain ones."""
    print("\n| product | plain | conjugated | ratio | plain, peak | conjugated, peak |")
    print("|---|---|---|---|---|---|")
    for name, product in PRODUCTS.items():
        # both as cases of one library: alternating rounds
        steps = [plain(torch, product), conjugated(torch, product)]
        times = measure(Case(name, lambda step: step), steps)
        bytes_ = [f"{peak(step):,} B" for step in steps]
        cells = [name, *map(show, times), f"{times[1] / times[0]:.2f}", *bytes_]
        print(f"| {' | '.join(cells)} |", flush=True)


SIZES = (1, 3, 8, 16, 32, 64, 128, 256, 512)
ROUNDS = 300


def least(steps: list[Callable[[], Any]]) -> list[float]:
    """The least seconds per step, from alternating rounds."""
    counts = [steps_for(step, 0.001) for step in steps]
    rounds = [[once(*pair) for pair in zip(steps, counts, strict=True)] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def by_size(torch: Any) -> None:
    """The table of square products by size; at hand, the time of the product alone is left."""
    print("\n| size | z.T @ w | z.conj().T @ w | ratio | at hand | ratio | peak, plain | peak |")
    print("|---|---|---|---|---|---|---|---|")
    for size in SIZES:
        torch.manual_seed(0)
        z, w = (torch.randn(size, size, dtype=torch.complex64) for _ in range(2))
        plain, turned = z.T, z.conj().T
        steps: list[Callable[[], Any]] = [
            lambda z=z, w=w: z.T @ w, lambda z=z, w=w: z.conj().T @ w,
            lambda z=plain, w=w: z @ w, lambda z=turned, w=w: z @ w,
        ]  # fmt: skip
        one, two, three, four = least(steps)
        times = f"{show(one)} | {show(two)} | {two / one:.2f} | {show(four)} | {four / three:.2f}"
        print(f"| {size} | {times} | {peak(steps[2]):,} B | {peak(steps[3]):,} B |", flush=True)


CASES = [
    Case(f"{name}, z conjugated", lambda torch, product=product: conjugated(torch, product))
    for name, product in PRODUCTS.items()
]

if __name__ == "__main__":
    import flambeau

    run("Products of conjugate views", CASES)
    compare(flambeau)
    by_size(flambeau)
