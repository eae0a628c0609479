"""Random products of every type, against NumPy in double precision, within what rounding can do.

    python tests/_ops/products/random_products.py 20000              as many products
    python tests/_ops/products/random_products.py 20000 --seed 7     the same again

FLAMBEAU_CPU forbids features of the processor. Each product is computed with one number of threads
and with another: the bits have to be the same.
"""

from __future__ import annotations

import argparse
import random
import secrets
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from flambeau._core import settings
from flambeau._ops.products import blas, gemm, integers

BFLOAT16, INT8 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.int8)
UINT8 = np.dtype(np.uint8)
FLOAT16, FLOAT32, FLOAT64 = (np.dtype(f"f{size}") for size in (2, 4, 8))
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
PARTS = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
"""The type of a complex number's parts."""
UNITS = {BFLOAT16: 2.0**-8, FLOAT16: 2.0**-11, FLOAT32: 2.0**-24, FLOAT64: 2.0**-53}
"""How much rounding to a type changes a number, relative to it."""
SMALLEST = {BFLOAT16: 1e-37, FLOAT16: 2.0**-24, FLOAT32: 1e-37, FLOAT64: 1e-300}
"""What rounding may change near 0, where numbers are lost to it."""


@dataclass
class Product:
    """Operands, and what is done to the sums."""

    left: np.ndarray
    right: np.ndarray
    finish: Any
    result: np.dtype

    def computed(self, threads: int) -> np.ndarray:
        """By flambeau."""
        before = settings.get_num_threads()
        settings.set_num_threads(threads)
        settings.Determinism.enabled = True  # of complex numbers, see `blas.HEAVY`
        try:
            if self.left.dtype == UINT8:
                return integers._int_mm.body(self.left, self.right)
            if self.left.dtype in PARTS:
                return blas.product(self.left, self.right)
            return gemm.gemm(self.left, self.right, self.finish, self.result)
        finally:
            settings.set_num_threads(before)
            settings.Determinism.enabled = False


def drawn_size(draw: random.Random) -> int:
    """0 to 600, small ones and those around the sizes of tiles more often."""
    kind = draw.random()
    if kind < 0.5:  # noqa: PLR2004
        return draw.randint(0, 40)
    if kind < 0.7:  # noqa: PLR2004
        return max(0, draw.choice([14, 16, 28, 32, 48, 64, 96, 128, 256]) + draw.randint(-1, 1))
    return draw.randint(0, 600)


def laid_out(draw: random.Random, data: np.ndarray) -> np.ndarray:
    """The same matrices in another layout: transposed, with gaps, reversed, behind an offset."""
    *batch, rows, columns = data.shape
    layout = draw.randrange(6)
    if layout == 1:
        return np.ascontiguousarray(data.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == 2:  # noqa: PLR2004
        wide = np.zeros((*batch, rows, columns + 7), data.dtype)
        wide[..., 3 : columns + 3] = data
        return wide[..., 3 : columns + 3]
    if layout == 3:  # noqa: PLR2004
        sparse = np.zeros((*batch, 2 * rows, 3 * columns), data.dtype)[..., ::2, ::3]
        sparse[...] = data
        return sparse
    if layout == 4:  # noqa: PLR2004
        return np.ascontiguousarray(data[..., ::-1, :])[..., ::-1, :]
    if layout == 5 and batch:  # noqa: PLR2004
        return np.ascontiguousarray(data.swapaxes(0, -2)).swapaxes(0, -2)
    return data


def numbers(draw: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Normally distributed, or all values that bytes have."""
    rng = np.random.default_rng(draw.getrandbits(32))
    if dtype in PARTS:
        parts = rng.standard_normal((2, *shape)).astype(PARTS[dtype])
        return parts[0] + parts[1] * dtype.type(1j)
    if dtype in (INT8, UINT8):
        return rng.integers(0, 256, shape, np.uint8).view(dtype)
    return rng.standard_normal(shape).astype(dtype)


def drawn_finish(draw: random.Random, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """What is done to the sums: something for one product in two of floats."""
    if dtype.kind in "iuc" or draw.random() < 0.5 or 0 in shape:  # noqa: PLR2004
        return gemm.Finish()
    if draw.random() < 0.5:  # noqa: PLR2004
        of_row = draw.random() < 0.5  # noqa: PLR2004
        bias = numbers(draw, (shape[-2 if of_row else -1],), dtype)
        return gemm.Finish(bias, of_row)
    other = numbers(draw, shape, dtype)
    alpha, beta = draw.choice([0.5, 1.0, 2.0, -1.0]), draw.choice([0.25, 1.0, -3.0])
    return gemm.Finish(other=other, alpha=alpha, beta=beta)


def drawn(draw: random.Random) -> Product:
    """A product of any type."""
    dtype = draw.choice([BFLOAT16, BFLOAT16, INT8, UINT8, FLOAT16, FLOAT32, FLOAT64, COMPLEX64,
                         COMPLEX128])  # fmt: skip
    batch = draw.choice([(), (), (), (1,), (3,), (2, 3)]) if dtype != UINT8 else ()
    rows, depth, columns = (drawn_size(draw) for _ in range(3))
    if batch:
        rows, depth, columns = rows // 4, depth // 4, columns // 4
    left = laid_out(draw, numbers(draw, (*batch, rows, depth), dtype))
    second = INT8 if dtype == UINT8 else dtype
    right = laid_out(draw, numbers(draw, (*batch, depth, columns), second))
    if batch and draw.random() < 0.3:  # noqa: PLR2004
        right = right[:1]
    result = np.dtype(np.int32) if dtype in (INT8, UINT8) else dtype
    if dtype in (BFLOAT16, FLOAT16) and draw.random() < 0.5:  # noqa: PLR2004
        result = FLOAT32
    return Product(left, right, drawn_finish(draw, (*batch, rows, columns), result), result)


def expected(product: Product) -> tuple[np.ndarray, np.ndarray]:
    """The result in double precision, and the sum of the sizes of all that is added up."""
    finish = product.finish
    wide = COMPLEX128 if product.left.dtype in PARTS else FLOAT64
    left, right = product.left.astype(wide), product.right.astype(wide)
    wanted, size = finish.alpha * (left @ right), abs(finish.alpha) * (abs(left) @ abs(right))
    added = np.zeros(1)
    if finish.bias is not None:
        added = finish.bias.astype(np.float64)
        added = added[:, None] if finish.bias_of_row else added
    if finish.other is not None:
        added = finish.beta * finish.other.astype(np.float64)
    wanted, size = wanted + added, size + abs(added)
    return wanted, size


def bound(product: Product, size: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """How far a correct result may be off: sums of k products in float32 (float64), each rounded,
    and the result rounded once."""
    dtype, result = product.left.dtype, PARTS.get(product.result, product.result)
    if dtype in (INT8, UINT8):
        return np.zeros(1)
    sums = UNITS[FLOAT64 if PARTS.get(dtype, dtype) == FLOAT64 else FLOAT32]
    depth = product.left.shape[-1] * (2 if dtype in PARTS else 1)
    return (depth + 6) * sums * size + UNITS[result] * abs(wanted) * 1.01 + SMALLEST[result]


def trouble(product: Product, draw: random.Random) -> str:
    """What is wrong with a product; nothing if all is well."""
    threads = draw.sample(range(1, 9), 2)
    first, second = (product.computed(count) for count in threads)
    wanted, size = expected(product)
    if first.shape != wanted.shape or first.dtype != product.result:
        return f"is {first.dtype} {first.shape}"
    if first.tobytes() != second.tobytes():
        return f"has other bits with {threads[0]} threads than with {threads[1]}"
    off = abs(first.astype(wanted.dtype) - wanted) - bound(product, size, wanted)
    if off.size and not off.max() <= 0:
        return f"is {off.max():.3g} too far off at {np.unravel_index(off.argmax(), off.shape)}"
    return ""


def describe(product: Product) -> str:
    """Types, shapes, strides and finish of a product."""
    left, right, finish = product.left, product.right, product.finish
    return (
        f"{left.dtype} {left.shape} {left.strides} @ {right.shape} {right.strides} -> "
        f"{product.result}, constants {finish.constants}, alpha {finish.alpha}, beta {finish.beta}"
    )


def check(count: int, draw: random.Random) -> list[str]:
    """What is wrong with so many random products."""
    found = []
    for _ in range(count):
        product = drawn(draw)
        what = trouble(product, draw)
        if what:
            found.append(f"{describe(product)}: {what}")
    return found


def main() -> int:
    """1 where a product was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, help="draw what this seed draws")
    chosen = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if chosen.seed is None else chosen.seed
    print(f"random products: --seed {seed}", flush=True)
    found = check(chosen.count, random.Random(seed))
    print("\n".join(found[:20]))
    print(f"{chosen.count} products, {len(found)} wrong")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
