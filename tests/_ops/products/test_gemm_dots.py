"""Products of int8 and bfloat16 by groups: against NumPy, and as code for other processors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import llvmlite.binding as llvm

from flambeau._compiler.types import bf16, f32, i8, i32, u8
from flambeau._ops.products import gemm_dots
from flambeau._ops.products.kernels import gemm_dots as kernels
from flambeau._runtime import engine

SIZES = [(1, 1, 1), (3, 0, 4), (0, 3, 4), (6, 4, 16), (7, 9, 33), (130, 70, 40), (5, 2100, 18)]


def operands(size: Any, make: Any) -> Any:
    """Both matrices, the second one transposed in memory."""
    rows, depth, columns = size
    return make((rows, depth)), make((columns, depth)).T


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_int8(size: Any):
    rng = np.random.default_rng(0)
    left, right = operands(size, lambda shape: rng.integers(-128, 128, shape, np.int8))
    result = gemm_dots.gemm_int8(left, right)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, left.astype(np.int64) @ right.astype(np.int64))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_bfloat16(size: Any):
    rng = np.random.default_rng(1)
    left, right = operands(
        size, lambda shape: rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    )
    wide, other = left.astype(np.float64), right.astype(np.float64)
    error = abs(gemm_dots.gemm_bfloat16(left, right) - wide @ other)
    assert (error <= 2e-6 * (abs(wide) @ abs(other)) + 1e-30).all()


@pytest.mark.parametrize(
    ("dot", "group", "packed", "source", "sums", "offset", "instruction"),
    [
        (kernels.dot_vnni_512, 4, u8, i8, i32, 128, "vpdpbusd"),
        (kernels.dot_bfloat16_512, 2, bf16, bf16, f32, 0, "vdpbf16ps"),
    ],
    ids=["int8", "bfloat16"],
)
def test_code_for_avx512(dot: Any, group: int, packed: Any, source: Any, sums: Any, offset: int,
                         instruction: str):  # fmt: skip
    """The kernel for a Zen 4 is valid and has the instruction, 14 x 2 of them in the loop."""
    statics = {"S": source, "G": packed, "T": sums, "GROUP": group, "OFFSET": offset, "DOT": dot,
               "MR": 14, "NV": 2, "W": 16}  # fmt: skip
    parsed = llvm.parse_assembly(engine.text_of(kernels.multiply_dots, statics, False).text())
    parsed.verify()
    try:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    except RuntimeError:
        pytest.skip("this LLVM has no x86")
    machine = target.create_target_machine(cpu="znver4", opt=2)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    llvm.create_pass_builder(machine, options).getModulePassManager().run(
        parsed, llvm.create_pass_builder(machine, options)
    )
    assert machine.emit_assembly(parsed).count(instruction) >= 28
