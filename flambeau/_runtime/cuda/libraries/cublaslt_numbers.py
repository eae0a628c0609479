"""cuBLASLt's numbers, its one structure and the parameters of its functions, as its header has
them."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

TYPES = {
    "float32": 0, "float64": 1, "float16": 2, "int8": 3, "complex64": 4, "complex128": 5,
    "int32": 10, "bfloat16": 14,
}  # fmt: skip
"""`cudaDataType_t` by NumPy's names."""
COMPUTE_32F, COMPUTE_64F, COMPUTE_32I, COMPUTE_TF32 = 68, 70, 72, 77
COMPUTE = {
    "float16": (COMPUTE_32F, "float32"), "bfloat16": (COMPUTE_32F, "float32"),
    "float32": (COMPUTE_32F, "float32"), "complex64": (COMPUTE_32F, "complex64"),
    "float64": (COMPUTE_64F, "float64"), "complex128": (COMPUTE_64F, "complex128"),
    "int8": (COMPUTE_32I, "int32"),
}  # fmt: skip
"""How factors of a type are multiplied, and the type of alpha and beta."""
RESULTS = {"int8": "int32"}
"""The types of results that are not those of the factors."""
AS_IT_IS, TRANSPOSED, ADJOINT = 0, 1, 2

# Epilogues. DGELU_BGRAD (208) takes three times as long as DGELU and is never asked for.
DEFAULT, RELU, BIAS, GELU = 1, 2, 4, 32
RELU_BIAS, GELU_BIAS, GELU_AUX, GELU_AUX_BIAS = 6, 36, 160, 164
DGELU, BGRADB = 192, 512
WITH_BIAS = frozenset({BIAS, RELU_BIAS, GELU_BIAS, GELU_AUX_BIAS, BGRADB})
WITH_AUX = frozenset({GELU_AUX, GELU_AUX_BIAS, DGELU})

DESCRIPTION = {
    "transa": (3, c_int32), "transb": (4, c_int32), "epilogue": (7, c_uint32),
    "bias": (8, c_uint64), "aux": (11, c_uint64), "aux_ld": (12, c_int64),
    "bias_type": (26, c_int32),
}  # fmt: skip
LAYOUT = {"batch": (5, c_int32), "step": (6, c_int64)}
PREFERENCE = {
    "workspace": (1, c_uint64), "reductions": (3, c_uint32), "alignment_a": (5, c_uint32),
    "alignment_b": (6, c_uint32), "alignment_c": (7, c_uint32), "alignment_d": (8, c_uint32),
}  # fmt: skip
"""Attributes: their numbers and types."""
WIDE_REDUCTIONS = 0 | 2
"""Parts of a sum are added in the type of the computation."""

SUCCESS, INVALID_VALUE, NOT_SUPPORTED = 0, 7, 15
WORDS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED",
    INVALID_VALUE: "CUBLAS_STATUS_INVALID_VALUE", 8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR", NOT_SUPPORTED: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}  # fmt: skip


class Found(ctypes.Structure):
    """An algorithm that the heuristic proposes: `cublasLtMatmulHeuristicResult_t`."""

    _fields_ = [  # noqa: RUF012
        ("algorithm", c_uint64 * 8), ("workspace", c_size_t), ("state", c_int),
        ("waves", c_float), ("reserved", c_int * 4),
    ]  # fmt: skip


POINTER = c_void_p
ATTRIBUTE = (POINTER, c_int, POINTER, c_size_t)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER,),
    "cublasLtMatmulDescCreate": (POINTER, c_int, c_int),
    "cublasLtMatmulDescSetAttribute": ATTRIBUTE,
    "cublasLtMatrixLayoutCreate": (POINTER, c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutSetAttribute": ATTRIBUTE,
    "cublasLtMatmulPreferenceCreate": (POINTER,),
    "cublasLtMatmulPreferenceSetAttribute": ATTRIBUTE,
    "cublasLtMatmulAlgoGetHeuristic": (*(POINTER,) * 7, c_int, POINTER, POINTER),
    # handle, description, alpha, A, its layout, B, its layout, beta, C, its layout, D, its layout,
    # algorithm, workspace, its size, stream
    "cublasLtMatmul": (*(POINTER,) * 14, c_size_t, POINTER),
}
