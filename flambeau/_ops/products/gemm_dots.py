"""Matrix products of int8 and bfloat16 by instructions that add up products of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import bf16, f32, i8, i16, i32, u8
from flambeau._core import settings
from flambeau._ops.products.gemm_tiles import strides, tile_of
from flambeau._ops.products.kernels import gemm_dots as kernels
from flambeau._runtime import engine
from flambeau._runtime.launch import kernel


@dataclass(frozen=True, slots=True)
class Dots:
    """An instruction: `dot` multiplies groups of `group` numbers of type `packed`, those of A with
    `offset` added."""

    dot: Any
    group: int
    packed: Any
    offset: int = 0


@cache
def of_int8() -> Dots:
    """What this processor has for int8."""
    if engine.has("avx512vnni"):
        return Dots(kernels.dot_vnni_512, 4, u8, 128)
    if engine.has("avxvnni") and engine.vector_bits() == 256:
        return Dots(kernels.dot_vnni_256, 4, u8, 128)
    return Dots(kernels.dot_int16, 2, i16)


@cache
def of_bfloat16() -> Dots:
    """What this processor has for bfloat16."""
    if engine.has("avx512bf16"):
        return Dots(kernels.dot_bfloat16_512, 2, bf16)
    return Dots(kernels.dot_bfloat16, 2, bf16)


def constants(dots: Dots, source: Any, sums: Any) -> dict[str, Any]:
    """What `multiply_dots` is compiled for."""
    return {"S": source, "G": dots.packed, "T": sums, "GROUP": dots.group, "OFFSET": dots.offset,
            "DOT": dots.dot, **tile_of(f32).constants}  # fmt: skip


def gemm_int8(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` of int8 in int32: [M, K] and [K, N], any strides; sums wrap round."""
    return _multiply(left, right, of_int8(), i8, i32, np.dtype(np.int32))


def gemm_bfloat16(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`left @ right` of bfloat16 in float32: [M, K] and [K, N], any strides."""
    return _multiply(left, right, of_bfloat16(), bf16, f32, np.dtype(np.float32))


def _multiply(left: np.ndarray, right: np.ndarray, dots: Dots, source: Any, sums: Any,
              result: np.dtype) -> np.ndarray:  # fmt: skip
    (rows, depth), columns = left.shape, right.shape[1]
    out = np.empty((rows, columns), result)
    if not out.size:
        return out
    run = kernel(kernels.multiply_dots, **constants(dots, source, sums))
    panels = -(-rows // tile_of(f32).rows)
    fewest = -(-rows // kernels.ROWS)
    tasks = max(fewest, min(panels, 2 * settings.get_num_threads()))
    run.parallel(tasks, left, right, out, *strides(left), *strides(right), rows, columns, depth)
    return out
