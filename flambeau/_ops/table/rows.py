"""The kind `rows`: operators that are a formula over the rows along `dim`.

    @rows("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", label="softmax")
    def softmax(x):
        weight = exp(x - amax(x))
        return weight * (1 / total(weight))

The formula is all there is: small tensors run it as NumPy calls (`_compiler/row_numpy.py`), large
ones as kernels (`rows/launch.py`), scripts join it with what stands around it
(`jit/optimise/fusion/rules.py`). Its parameters are the schema's tensors in order, all of one
shape. The schema's type is that of the result: `dtype` casts the operand before, `input_dtype` the
result after. A schema with `keepdim` is a reduction: the formula has one result a row, a row is
what lies along all of the dims, and integers count as the default type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._compiler.row_numpy import formula_of_arrays
from flambeau._core import dtype as dt
from flambeau._ops.launching.precision import narrow, refuse, widen
from flambeau._ops.reductions.sums import compiled, finished, float_type, fused, working_array
from flambeau._ops.table.dims import wrap_dim, wrap_dims
from flambeau._ops.table.op import Body, Op, register

BLOCK = 1 << 16
"""Elements of a part of a large input: several passes over it stay in the cache."""
HALVES = dt.NUMPY_HALVES


def rows(schema: str, *, label: str = "", of_complex: Any = None,
         **options: Any) -> Callable[[Body], Op]:  # fmt: skip
    """Register an operator whose body is a formula.

    Args:
        label: what torch calls it in errors.
        of_complex: `function(data, axes)`, a reduction of complex numbers that keeps the dims; the
            formula is of real ones.
    """

    def row(function: Body) -> Op:
        op = Op(schema, "rows", function, label=label, **options)
        kinds = dict.fromkeys(signature(function).parameters, "full")
        op.formula = formula = Formula(function, kinds)
        names = [argument.name for argument in op.schema.arguments]
        op.reduces = "keepdim" in names
        if op.reduces:
            op.body = _reduced(formula, of_complex)
        else:
            op.body = _of_one(formula, label) if names[-1] == "dtype" else _of_several(formula)
        op.body.__doc__ = function.__doc__
        return register(op)

    return row


def _of_one(formula: Formula, label: str) -> Body:
    """The body for one operand, whose type is checked, and cast to what is asked for."""
    form = formula_of_arrays(formula)

    def body(data: np.ndarray, dim: int, dtype: dt.dtype | None) -> np.ndarray:
        result = data.dtype if dtype is None else dtype.numpy_dtype
        dim = wrap_dim(dim, data.ndim)
        if result.kind not in "fV":
            if not data.size:  # torch has nothing to compute, whatever the type
                return np.empty(data.shape, result)
            last = "_lastdim" if dim >= data.ndim - 1 else ""
            raise refuse(f"{label}{last}_kernel_impl", result)
        if result in HALVES and data.dtype != result:
            data = narrow(data, result)
        kernels = fused("softmax", data, result) if data.ndim else None
        if kernels is not None:
            return kernels.along_dim(formula, (data,), dim, result)
        working = np.dtype(np.float32) if result in HALVES else result
        if data.dtype != working or not data.flags.c_contiguous:
            data = data.astype(working, "C")  # results are row-major, as those of kernels
        return _finished(_computed(form, dim, (data,)), result)

    return body


def _of_several(formula: Formula) -> Body:
    """The body for operands of one shape: gradients."""
    form = formula_of_arrays(formula)

    def body(*values: Any) -> np.ndarray:
        *arrays, dim, input_dtype = values
        result = input_dtype.numpy_dtype
        first = arrays[0]
        dim = wrap_dim(dim, first.ndim)
        kernels = fused("softmax", *arrays) if first.ndim else None
        if kernels is not None:
            return kernels.along_dim(formula, tuple(arrays), dim, result)
        return _finished(_computed(form, dim, tuple([widen(a) for a in arrays])), result)

    return body


def _reduced(formula: Formula, of_complex: Any) -> Body:
    """The body of a reduction."""
    form = formula_of_arrays(formula)

    def body(data: np.ndarray, dim: Any, keepdim: bool) -> np.ndarray:
        result = float_type(data.dtype)
        axes = wrap_dims(dim, data.ndim)
        kernels = compiled(data, axes, "softmax") if data.dtype == result else None
        values = None if kernels is None else kernels.of_rows(formula, data, axes, keepdim)
        if values is None:
            data = working_array(data if data.dtype == result else data.astype(result))
            if data.dtype.kind == "c":
                values = of_complex(data, axes)
                values = values if keepdim else np.squeeze(values, axes)
            else:
                values = _over_axes(form, data, axes, keepdim)
        return finished(values, result)

    return body


def _over_axes(form: Callable[..., Any], data: np.ndarray, axes: tuple[int, ...],
               keepdim: bool) -> np.ndarray:  # fmt: skip
    """A formula of rows that lie along several axes, by NumPy, which adds up best along memory."""
    if axes == (data.ndim - 1,) and data.flags.c_contiguous:
        values = form(-1, data)
        return values if keepdim else values[..., 0]  # type: ignore[no-any-return]
    others = [d for d in range(data.ndim) if d not in axes]
    kept = [data.shape[d] for d in others]
    length = math.prod([data.shape[d] for d in axes])
    lined_up = np.ascontiguousarray(data.transpose(*others, *axes)).reshape(*kept, length)
    values = form(-1, lined_up)
    if keepdim:
        return values.reshape([1 if d in axes else n for d, n in enumerate(data.shape)])
    return values.reshape(kept)


def _finished(values: np.ndarray, result: np.dtype[Any]) -> np.ndarray:
    return values if values.dtype == result else narrow(values, result)


def _computed(form: Callable[..., Any], dim: int, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """The formula of arrays by NumPy, in parts along the first dim that stay in the cache. As from
    a kernel, the result lies in rows, however the arrays lie."""
    arrays = tuple([a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays])
    first = arrays[0]
    if not first.size:
        return np.empty(first.shape, first.dtype)
    if not first.ndim:
        return form(0, *[array.reshape(1) for array in arrays]).reshape(())
    if first.size <= BLOCK or dim == 0:
        return form(dim, *arrays)
    values = np.empty(first.shape, first.dtype)
    step = max(BLOCK * first.shape[0] // first.size, 1)
    for start in range(0, first.shape[0], step):
        block = slice(start, start + step)
        values[block] = form(dim, *[array[block] for array in arrays])
    return values
