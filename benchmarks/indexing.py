"""Time of `x[...]` and `x[...] = value` against torch, in microseconds, one thread.

    python benchmarks/indexing.py        (needs torch beside flambeau)

Both libraries run the same lines in one process, in turns; the best of several rounds counts.
"""

from __future__ import annotations

import timeit
from typing import Any

import numpy as np
import torch

import flambeau

LINES = (
    "x[3]", "v[3]", "x[2:5]", "x[3, 4]", "x[:, 1]", "x[..., 1]", "x[None]", "x[::2]", "x[i]",
    "x[m]", "x[full]", "x[:, [0, 1]]", "r[3]", "r[2:5]", "r[:, 1]", "r[i]", "r[m]",
    "x[3] = 1.0", "x[3] = row", "x[3, 4] = 2.0", "x[:, 1] = 0", "x[m] = 0.0", "x[i] = row",
)  # fmt: skip
ROUNDS = 7
CALLS = 5000


def names(library: Any) -> dict[str, Any]:
    """The tensors that the lines use: r requires grad, m and full are masks, i positions."""
    numbers = np.random.RandomState(0)
    table = numbers.rand(500, 10).astype(np.float32)
    return {
        "x": library.tensor(table),
        "v": library.tensor(table[:, 0].copy()),
        "r": library.tensor(table, requires_grad=True),
        "i": library.tensor(np.arange(32)),
        "m": library.tensor(table[:, 0] > 0.5),
        "full": library.tensor(table > 0.5),
        "row": library.tensor(np.ones(10, np.float32)),
    }


def main() -> None:
    """Print one line per expression."""
    torch.set_num_threads(1)
    scopes = [names(torch), names(flambeau)]
    for line in LINES:
        best = [float("inf")] * 2
        for _ in range(ROUNDS):
            for position, scope in enumerate(scopes):
                spent = timeit.timeit(line, globals=scope, number=CALLS) / CALLS * 1e6
                best[position] = min(best[position], spent)
        ratio = best[1] / best[0]
        print(f"{line:16} torch {best[0]:8.2f}   flambeau {best[1]:8.2f}   ratio {ratio:5.2f}")


if __name__ == "__main__":
    main()
