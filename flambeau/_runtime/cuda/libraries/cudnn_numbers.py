"""cuDNN's numbers and the parameters of its functions, as its header has them.

`KINDS` says what descriptors of the graph interface hold: each attribute's number and type.
"""

from __future__ import annotations

from ctypes import c_bool, c_double, c_float, c_int, c_int64, c_void_p
from typing import Any

TYPES = {"float32": 0, "float64": 1, "float16": 2, "int8": 3, "int32": 4, "bfloat16": 9,
         "int64": 10, "bool": 11}  # fmt: skip
"""`cudnnDataType_t` by NumPy's names."""
HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, DOUBLE, POINTER, CONVOLUTION_MODE, HEURISTIC = range(9)
NOTE, POINTWISE_MODE, DESCRIPTOR, REDUCTION = 11, 14, 15, 18
WIDTHS: dict[int, Any] = {
    HANDLE: c_void_p, DATA_TYPE: c_int, BOOLEAN: c_bool, INT64: c_int64, FLOAT: c_float,
    DOUBLE: c_double, POINTER: c_void_p, CONVOLUTION_MODE: c_int, HEURISTIC: c_int, NOTE: c_int,
    POINTWISE_MODE: c_int, DESCRIPTOR: c_void_p, REDUCTION: c_int,
}  # fmt: skip
"""What elements of a type are in C."""


def _convolution(first: int) -> dict[str, tuple[int, int]]:
    names = ("conv", "w", "x", "y")
    found = {"alpha": (first, FLOAT), "beta": (first + 1, FLOAT)}
    found.update({name: (first + 2 + place, DESCRIPTOR) for place, name in enumerate(names)})
    return found


KINDS: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {
    "tensor": (17, {
        "alignment": (900, INT64), "dtype": (901, DATA_TYPE), "dims": (902, INT64),
        "strides": (903, INT64), "number": (906, INT64), "virtual": (907, BOOLEAN),
        "by_value": (908, BOOLEAN),
    }),
    "convolution": (1, {
        "compute": (100, DATA_TYPE), "mode": (101, CONVOLUTION_MODE), "dilations": (102, INT64),
        "strides": (103, INT64), "post": (104, INT64), "pre": (105, INT64), "dims": (106, INT64),
    }),
    "forward": (10, _convolution(700)),
    "data": (12, _convolution(706)),
    "filter": (11, _convolution(712)),
    "pointwise": (0, {"mode": (0, POINTWISE_MODE), "compute": (1, DATA_TYPE), "axis": (9, INT64)}),
    "apply": (13, {
        "pointwise": (750, DESCRIPTOR), "x": (751, DESCRIPTOR), "b": (752, DESCRIPTOR),
        "y": (753, DESCRIPTOR), "t": (758, DESCRIPTOR),
    }),
    "matmul": (18, {"compute": (1500, DATA_TYPE)}),
    "multiply": (19, {"a": (1520, DESCRIPTOR), "b": (1521, DESCRIPTOR), "c": (1522, DESCRIPTOR),
                      "matmul": (1523, DESCRIPTOR)}),
    "reduction": (21, {"operator": (1600, REDUCTION), "compute": (1601, DATA_TYPE)}),
    "reduce": (22, {"x": (1610, DESCRIPTOR), "y": (1611, DESCRIPTOR),
                    "reduction": (1612, DESCRIPTOR)}),
    "reshape": (31, {"x": (2200, DESCRIPTOR), "y": (2201, DESCRIPTOR)}),
    "graph": (15, {"handle": (800, HANDLE), "operations": (801, DESCRIPTOR)}),
    "heuristic": (4, {"mode": (200, HEURISTIC), "graph": (201, DESCRIPTOR),
                      "results": (202, DESCRIPTOR)}),
    "config": (3, {"engine": (300, DESCRIPTOR)}),
    "engine": (2, {"notes": (1303, NOTE)}),
    "plan": (5, {"handle": (400, HANDLE), "config": (401, DESCRIPTOR), "workspace": (402, INT64)}),
    "pack": (16, {"numbers": (1000, INT64), "pointers": (1001, POINTER),
                  "workspace": (1003, POINTER)}),
}  # fmt: skip
CROSS_CORRELATION = 1
MODE_A, FALLBACK = 3, 2
"""Heuristics: the one that knows most, and the one that always knows something."""
TENSOR_CORE, DOWN_CONVERT, NONDETERMINISTIC = 0, 1, 4
"""Numerical notes of engines."""
MODES = {
    "add": 0, "mul": 1, "div": 6, "sub": 9, "exp": 13, "log": 15, "identity": 21, "relu": 100,
    "greater_equal": 303, "index": 501, "select": 601,
}  # fmt: skip
"""`cudnnPointwiseMode_t`."""
SUM, MAX = 0, 3

BAD_PARAM, NOT_SUPPORTED, INTERNAL_ERROR = 2000, 3000, 4000
REFUSALS = range(2000, 4000)
"""Statuses that say that something cannot be done so."""
WORDS = {
    1001: "CUDNN_STATUS_NOT_INITIALIZED", BAD_PARAM: "CUDNN_STATUS_BAD_PARAM",
    NOT_SUPPORTED: "CUDNN_STATUS_NOT_SUPPORTED", INTERNAL_ERROR: "CUDNN_STATUS_INTERNAL_ERROR",
    5000: "CUDNN_STATUS_EXECUTION_FAILED",
}  # fmt: skip
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnGetVersion": (),
    "cudnnCreate": (c_void_p,),
    "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnBackendCreateDescriptor": (c_int, c_void_p),
    "cudnnBackendDestroyDescriptor": (c_void_p,),
    "cudnnBackendSetAttribute": (c_void_p, c_int, c_int, c_int64, c_void_p),
    "cudnnBackendGetAttribute": (c_void_p, c_int, c_int, c_int64, c_void_p, c_void_p),
    "cudnnBackendFinalize": (c_void_p,),
    "cudnnBackendExecute": (c_void_p, c_void_p, c_void_p),
}
