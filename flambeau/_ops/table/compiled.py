"""Pointwise rows on large operands: which kernel computes a row in a type.

`LargeKernels` stands beside a row's `Kernels` and is used in the same way. Rows and types that have
no form in the kernel language, and operands that lie across each other, are left to NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._compiler.expr import parameter, trace
from flambeau._compiler.kernel_source import has_form
from flambeau._compiler.types import OF_NUMPY
from flambeau._core import dtype as dt
from flambeau._ops.table import pointwise as kind
from flambeau._runtime import choice

BOOL = np.dtype(bool)


class LargeKernels(dict[Any, Callable[..., np.ndarray]]):
    """NumPy dtype of the operands -> kernel(*arrays, out=...), as in `Kernels`."""

    def __init__(self, kernels: kind.Kernels) -> None:
        super().__init__()
        self.kernels = kernels
        self.op = kernels.op
        self.limit = kind.limit_of(kernels.op, kernels.names)
        self.fusions: dict[Any, Any] = {}
        self.tables.append(self)

    tables: list[LargeKernels] = []

    def __missing__(self, numpy_dtype: Any) -> Callable[..., np.ndarray]:
        made = self._build(numpy_dtype)
        self[numpy_dtype] = made
        return made

    def _build(self, numpy_dtype: Any) -> Callable[..., np.ndarray]:
        plain = self.kernels[numpy_dtype]
        element = dt.from_numpy_dtype(numpy_dtype)
        if not kind.supports(self.op, element):
            return plain
        fusion = self.fusion(kind.row_dtype(self.op, element).numpy_dtype)
        if fusion is None:
            return plain

        def kernel(*arrays: np.ndarray, out: Any = ...) -> np.ndarray:
            results = fusion.run(arrays, None if out is ... else (out,))
            return plain(*arrays, out=out) if results is None else results[0]

        kernel.fusion = fusion  # type: ignore[attr-defined]
        return kernel

    def fusion(self, compute: np.dtype[Any], factor: bool = False) -> Any:
        """The row as a `Fusion` in a type; with `factor`, its last operand is multiplied."""
        key = (compute, factor)
        if key not in self.fusions:
            self.fusions[key] = self._fusion(compute, factor)
        return self.fusions[key]

    def _fusion(self, compute: np.dtype[Any], factor: bool) -> Any:
        if not choice.available() or compute.kind in "cW":
            return None
        from flambeau._ops.launching.loop_plans import Fusion

        names = self.kernels.names
        expression = trace(self.op.body, names)
        if factor:
            *first, last = [parameter(name) for name in names]
            expression = self.op.body(*first, last * parameter("alpha"))
            names = [*names, "alpha"]
        result = BOOL if self.op.promote == "bool" else compute
        computed = OF_NUMPY.get(compute.name)
        if computed is None or not has_form(expression, names, computed):
            return None
        return Fusion(self.op.full_name, [expression], names, compute, [result])


def forget() -> None:
    """The default type has changed: integers enter float operators as another one."""
    for table in LargeKernels.tables:
        table.clear()


dt.on_default_change.append(forget)
