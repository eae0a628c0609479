"""Time of sorting, scans, indexing and random fills against torch, in milliseconds.

    python benchmarks/sort_scan_scatter.py [NAME ...]        (needs torch beside flambeau)

Both libraries run the same lines on the same arrays in one process, in turns; the best of several
rounds counts. Names choose the lines that contain them.
"""

from __future__ import annotations

import sys
import timeit
from typing import Any

import numpy as np
import torch

import flambeau

N = 1 << 20
ROUNDS = 12

LINES = {
    "sort 1M": "lib.sort(line)",
    "sort 1M int64": "lib.sort(places)",
    "sort 4096x256": "lib.sort(table.view(4096, 256))",
    "sort dim 0": "lib.sort(square, 0)",
    "topk 100 of 1M": "lib.topk(line, 100)",
    "topk 10 of 1024": "lib.topk(table, 10)",
    "cumsum dim 1": "table.cumsum(1)",
    "cumsum dim 0": "table.cumsum(0)",
    "cumprod dim 0": "square.cumprod(0)",
    "cummax dim 1": "square.cummax(1)",
    "embedding": "lookup(few, weight)",
    "embedding and backward": "lib.autograd.grad(lookup(few, grown), grown, rows)",
    "index_select dim 0": "square.index_select(0, few)",
    "index_select dim 1": "square.index_select(1, few)",
    "gather dim 0": "square.gather(0, each)",
    "gather dim 1": "square.gather(1, each)",
    "x[i]": "line[places]",
    "scatter_add dim 0": "square.scatter_add(0, each, square)",
    "scatter_add dim 1": "square.scatter_add(1, each, square)",
    "scatter_add 1M": "line.scatter_add(0, places, line)",
    "scatter_reduce amax": "square.scatter_reduce(0, each, square, 'amax')",
    "index_add": "square.index_add(0, few, rows)",
    "rand": "lib.rand(N)",
    "randn": "lib.randn(N)",
    "randn float64": "lib.randn(N, dtype=lib.float64)",
    "randint": "lib.randint(0, 100, (N,))",
    "bernoulli_": "line.bernoulli_(0.3)",
    "exponential_": "line.exponential_()",
    "dropout": "lib.nn.functional.dropout(line, 0.1)",
    "randperm": "lib.randperm(N)",
}


def names(library: Any) -> dict[str, Any]:
    """The tensors that the lines use."""
    numbers = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return library.from_numpy(numbers.standard_normal(shape, dtype=np.float32))

    def positions(size: int, *shape: int) -> Any:
        return library.from_numpy(numbers.integers(0, size, shape))

    return {
        "lib": library, "N": N, "line": floats(N), "table": floats(1024, 1024),
        "square": floats(1000, 1000), "weight": floats(1000, 1000), "rows": floats(5000, 1000),
        "grown": floats(1000, 1000).requires_grad_(), "lookup": library.nn.functional.embedding,
        "places": positions(N, N), "few": positions(1000, 5000),
        "each": positions(1000, 1000, 1000),
    }  # fmt: skip


def main(wanted: list[str]) -> None:
    """Print a table."""
    scopes = [names(torch), names(flambeau)]
    for title, line in LINES.items():
        if wanted and not any(word in title for word in wanted):
            continue
        best = [float("inf")] * 2
        for _ in range(ROUNDS):
            for side, scope in enumerate(scopes):
                seconds = timeit.timeit(line, globals=scope, number=1)
                best[side] = min(best[side], seconds * 1e3)
        ratio = best[0] / best[1]
        print(f"{title:22} torch {best[0]:9.3f}   flambeau {best[1]:9.3f}   {ratio:6.2f}x")


if __name__ == "__main__":
    main(sys.argv[1:])
