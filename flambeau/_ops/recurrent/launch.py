"""Recurrent layers over all steps: one product and one kernel of gates for each step, or all steps
in one launch (`recurrent_rows`, `recurrent_steps`).

Arrays: `from_input` [T, N, gates * H] (W x + b of every step), weights [gates * H, H], states
[N, H]. Steps run from the first to the last, or with `backwards` the other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from flambeau._compiler.types import NAMES, OF_NUMPY
from flambeau._core.settings import get_num_threads
from flambeau._ops.products.blas import column_sums
from flambeau._ops.products.gemm import Finish, Repeated, gemm
from flambeau._ops.recurrent import launch_rows as recurrent_rows
from flambeau._ops.recurrent import launch_steps as recurrent_steps
from flambeau._ops.recurrent.kernels import gates as kernels
from flambeau._runtime.features import vector_bits
from flambeau._runtime.launch import Kernel, kernel

UNITS_PER_TASK = 4096
"""Hidden units that one task computes: about 20 µs."""


@cache
def _kernel(native: Any, dtype: np.dtype[Any], **statics: Any) -> Kernel:
    element = OF_NUMPY[NAMES[dtype]]
    return kernel(native, T=element, W=vector_bits() // element.bits, **statics)


def _tasks(units: int) -> int:
    return max(1, min(units // UNITS_PER_TASK, 2 * get_num_threads()))


def _order(steps: int, backwards: bool) -> Iterator[tuple[int, int]]:
    """(step, the step before it), -1 standing for the start."""
    order = list(range(steps))
    if backwards:
        order.reverse()
    return iter(list(zip(order, [-1, *order[:-1]], strict=True)))


def _states(start: np.ndarray, values: np.ndarray, step: int) -> np.ndarray:
    return start if step < 0 else values[step]


def lstm(from_input: np.ndarray, weight: np.ndarray, hidden: np.ndarray, cell: np.ndarray,
         backwards: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Outputs [T, N, H], cell states [T, N, H] and gates [T, N, 4 H]."""
    steps, rows, width = from_input.shape
    units = width // 4
    gates, (outputs, cells) = np.empty_like(from_input), _pair(from_input, units)
    for whole in (recurrent_rows, recurrent_steps):
        if whole.fits(from_input, units):
            whole.lstm(from_input, weight, hidden, cell, outputs, cells, gates, backwards)
            return outputs, cells, gates
    step_kernel = _kernel(kernels.lstm_step, from_input.dtype)
    across = Repeated(weight.T)
    for step, last in _order(steps, backwards):
        from_hidden = across.after(_states(hidden, outputs, last))
        step_kernel.parallel(
            _tasks(rows * units), from_input[step], gates[step], from_hidden,
            _states(cell, cells, last), cells[step], outputs[step], rows, units,
        )  # fmt: skip
    return outputs, cells, gates


def _pair(like: np.ndarray, units: int) -> tuple[np.ndarray, np.ndarray]:
    shape = (*like.shape[:2], units)
    return np.empty(shape, like.dtype), np.empty(shape, like.dtype)


def lstm_backward(grad: np.ndarray, grad_cell: np.ndarray | None, weight: np.ndarray,
                  hidden: np.ndarray, cell: np.ndarray, outputs: np.ndarray, cells: np.ndarray,
                  gates: np.ndarray, backwards: bool) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Gradients of from_input, weight, hidden and cell; `grad` is that of all outputs,
    `grad_cell` that of the last cell state."""
    steps, rows, width = gates.shape
    units = width // 4
    slopes, of_hidden = np.empty_like(gates), np.zeros_like(hidden)
    of_cell = np.zeros_like(cell) if grad_cell is None else grad_cell.copy()
    for whole in (recurrent_rows, recurrent_steps):
        if whole.fits(gates, units):
            whole.lstm_backward(gates, slopes, weight, cell, cells, grad, of_hidden, of_cell,
                                backwards)  # fmt: skip
            of_weight = _weight_gradient(slopes, hidden, outputs, backwards)
            return slopes, of_weight, of_hidden, of_cell
    back = Repeated(weight)
    step_kernel = _kernel(kernels.lstm_step_backward, gates.dtype)
    for step, last in reversed(list(_order(steps, backwards))):
        step_kernel.parallel(
            _tasks(rows * units), gates[step], slopes[step], _states(cell, cells, last),
            cells[step], grad[step], of_hidden, of_cell, rows, units,
        )  # fmt: skip
        of_hidden = back.after(slopes[step])
    of_weight = _weight_gradient(slopes, hidden, outputs, backwards)
    return slopes, of_weight, of_hidden, of_cell


def _weight_gradient(slopes: np.ndarray, hidden: np.ndarray, outputs: np.ndarray,
                     backwards: bool) -> np.ndarray:  # fmt: skip
    """The sum over all steps of slope.T @ state before, as one product."""
    before = np.empty_like(outputs)
    if backwards:
        before[-1], before[:-1] = hidden, outputs[1:]
    else:
        before[0], before[1:] = hidden, outputs[:-1]
    rows = outputs.shape[0] * outputs.shape[1]
    return gemm(slopes.reshape(rows, -1).T, before.reshape(rows, -1))


def gru(from_input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, hidden: np.ndarray,
        backwards: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Outputs [T, N, H], gates [T, N, 3 H], and V h + c of every step [T, N, 3 H]."""
    steps, rows, width = from_input.shape
    units = width // 3
    gates, from_hidden = np.empty_like(from_input), np.empty_like(from_input)
    outputs = np.empty((steps, rows, units), from_input.dtype)
    if recurrent_steps.fits(gates, units):
        recurrent_steps.gru(from_input, weight, bias, hidden, outputs, gates, from_hidden,
                            backwards)  # fmt: skip
        return outputs, gates, from_hidden
    across = Repeated(weight.T)
    step_kernel = _kernel(kernels.gru_step, from_input.dtype)
    for step, last in _order(steps, backwards):
        before = _states(hidden, outputs, last)
        from_hidden[step] = across.after(before, Finish(bias))
        step_kernel.parallel(
            _tasks(rows * units), from_input[step], gates[step], from_hidden[step], before,
            outputs[step], rows, units,
        )  # fmt: skip
    return outputs, gates, from_hidden


def gru_backward(grad: np.ndarray, weight: np.ndarray, hidden: np.ndarray, outputs: np.ndarray,
                 gates: np.ndarray, from_hidden: np.ndarray,
                 backwards: bool) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Gradients of from_input, weight, bias and hidden."""
    steps, rows, width = gates.shape
    units = width // 3
    slopes, inner = np.empty_like(gates), np.empty_like(gates)
    of_hidden = np.zeros_like(hidden)
    if recurrent_steps.fits(gates, units):
        recurrent_steps.gru_backward(gates, from_hidden, slopes, inner, weight, hidden, outputs,
                                     grad, of_hidden, backwards)  # fmt: skip
    else:
        back = Repeated(weight)
        step_kernel = _kernel(kernels.gru_step_backward, gates.dtype)
        for step, last in reversed(list(_order(steps, backwards))):
            before = _states(hidden, outputs, last)
            step_kernel.parallel(
                _tasks(rows * units), gates[step], from_hidden[step], slopes[step], inner[step],
                before, grad[step], of_hidden, rows, units,
            )  # fmt: skip
            of_hidden += back.after(inner[step])
    of_weight = _weight_gradient(inner, hidden, outputs, backwards)
    return slopes, of_weight, column_sums(inner.reshape(-1, width)), of_hidden


def plain(from_input: np.ndarray, weight: np.ndarray, hidden: np.ndarray, relu: bool,
          backwards: bool) -> np.ndarray:  # fmt: skip
    """Outputs [T, N, H] of a layer without gates."""
    steps, rows, units = from_input.shape
    outputs = np.empty_like(from_input)
    across = Repeated(weight.T)
    step_kernel = _kernel(kernels.plain_step, from_input.dtype, RELU=relu)
    for step, last in _order(steps, backwards):
        from_hidden = across.after(_states(hidden, outputs, last))
        step_kernel.parallel(
            _tasks(rows * units), from_input[step], outputs[step], from_hidden, rows * units
        )
    return outputs


def plain_backward(grad: np.ndarray, weight: np.ndarray, hidden: np.ndarray, outputs: np.ndarray,
                   relu: bool, backwards: bool) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Gradients of from_input, weight and hidden."""
    steps, rows, units = outputs.shape
    slopes = np.empty_like(outputs)
    of_hidden = np.zeros_like(hidden)
    back = Repeated(weight)
    step_kernel = _kernel(kernels.plain_step_backward, outputs.dtype, RELU=relu)
    for step, _ in reversed(list(_order(steps, backwards))):
        step_kernel.parallel(
            _tasks(rows * units), outputs[step], grad[step], of_hidden, slopes[step], rows * units
        )
        of_hidden = back.after(slopes[step])
    return slopes, _weight_gradient(slopes, hidden, outputs, backwards), of_hidden
