"""What the short forms of half types give for all 65,536 numbers, beside the CPU's kernels.

    FLAMBEAU_EMULATE_CUDA=1 FLAMBEAU_ENGINE=llvm python tests/_compiler/gpu/short_bits.py exp gelu

Prints for every row and type: how many results differ, by how many units of the last place at
most, how many are nan on one side only, how many rows the host computed, and by how many units at
most the GPU's are beside double precision.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._ops.cuda import host
from flambeau.nn import functional as F


def units(a: Any, b: Any) -> Any:
    """How many numbers of their type lie between the elements; 0 where both are nan."""
    orders = []
    for x in (a, b):
        bits = x.view(torch.int16).numpy().astype(np.int64)
        orders.append(np.where(bits < 0, -32768 - bits, bits))
    both = (torch.isnan(a) & torch.isnan(b)).numpy()
    return np.where(both, 0, np.abs(orders[0] - orders[1]))


def facts(name: str, dtype: Any) -> dict[str, int]:
    function = getattr(torch, name, None) or getattr(F, name)
    x = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16).view(np.int16).copy()).view(dtype)
    host.CALLS.clear()
    found = function(x.cuda()).cpu()
    by_host = sum(host.CALLS.values())
    expected = function(x)
    exact = function(x.double()).float().to(dtype)
    apart = units(found, expected)
    inside = (expected.abs() > 1e-4).numpy()
    return {
        "differ": int((apart > 0).sum()),
        "most": int(apart.max()),
        "nan": int((torch.isnan(found) != torch.isnan(expected)).sum()),
        "host": by_host,
        "beside exact": int(units(found, exact)[inside].max()),
    }


def main() -> None:
    found = {f"{name} {str(dtype)[6:]}": facts(name, dtype)
             for name in sys.argv[1:] for dtype in (torch.float16, torch.bfloat16)}  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
