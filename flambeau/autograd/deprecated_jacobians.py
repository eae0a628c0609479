"""Jacobians as functions of `torch.autograd.gradcheck`, which PyTorch deprecates.

Theirs have a row for each element of an input and a column for each of an output; those of complex
inputs are complex: by the real part, plus `1j` times by the imaginary part.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.jacobians import analytical, numerical, outputs_of, stored

DEPRECATED = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and "
    "it will be removed in a future version of PyTorch. If you have a specific use for this or "
    "feature request for this to be a stable API, please file us an issue at "
    "https://github.com/pytorch/pytorch/issues/new"
)

Jacobians = tuple[Tensor, ...]


def get_numerical_jacobian(fn: Callable[[tuple[Any, ...]], Any], inputs: Any, target: Any = None,
                           eps: float = 1e-3, grad_out: float = 1.0) -> Jacobians:  # fmt: skip
    """The Jacobians of `fn`'s first output by each floating tensor that learns among `inputs`, or
    by those in `target` (which may be others), by central differences.

    `fn` takes the inputs as one tuple. Raises ValueError for another `grad_out` than 1.0 and for
    complex outputs.
    """
    _warn("get_numerical_jacobian")
    _require_one("get_numerical_jacobian", grad_out)
    given = _as_tuple(inputs)
    for output in _as_tuple(fn(given)):
        _require_real("get_numerical_jacobian", output)
    wanted = _learning(given if target is None else _as_tuple(target))

    def called(*values: Any) -> Any:
        return fn(values)

    return tuple(_turned(numerical(called, given, x, 0, eps), x) for x in wanted)


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[Jacobians, bool, bool, bool]:
    """The Jacobians of `output` by each floating tensor that learns among `inputs`, by backward,
    and whether a second backward gives the same up to `nondet_tol`, and sizes and types of the
    gradients are those of the inputs.

    Raises ValueError for another `grad_out` than 1.0 and for complex outputs.
    """
    _warn("get_analytical_jacobian")
    _require_one("get_analytical_jacobian", grad_out)
    _require_real("get_analytical_jacobian", output)
    wanted = _learning(_as_tuple(inputs))
    first, again = analytical(output, wanted), analytical(output, wanted)
    pairs = zip(first, again, strict=True)
    is_same = all(np.abs(one - two).max(initial=0.0) <= nondet_tol for one, two in pairs)
    found = tuple(_turned(one, x) for one, x in zip(first, wanted, strict=True))
    return found, is_same, True, True  # the engine refuses other sizes, and casts other types


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: tuple[Any, ...],
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> Jacobians:
    """The Jacobians of each of `fn`'s outputs by `inputs[input_idx]`, or by `input` if it is given,
    by central differences.

    Raises AssertionError for complex outputs, with `is_forward_ad` too.
    """
    x = inputs[input_idx] if input is None else input
    for output in _as_tuple(outputs):
        if output.is_complex():
            raise AssertionError("Expected ds_dx to be real-valued, not complex")
    count = len(outputs_of(outputs))
    found = (numerical(fn, inputs, x, position, eps) for position in range(count))
    return tuple(_turned(one, x) for one in found)


def _warn(name: str) -> None:
    warnings.warn(DEPRECATED.format(name), FutureWarning, stacklevel=3)


def _require_one(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _require_real(name: str, output: Any) -> None:
    if output.is_complex():
        raise ValueError(f"Expected output to be non-complex. {name} no longer supports functions "
                         "that return complex outputs.")  # fmt: skip


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _learning(values: tuple[Any, ...]) -> list[Tensor]:
    """The tensors of floating numbers that require grad."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    return [x for x in tensors if x.requires_grad and stored(x).dtype.kind in "fc"]


def _turned(jacobian: np.ndarray, x: Tensor) -> Tensor:
    """A Jacobian whose rows are outputs and whose columns are real parts of an input."""
    rows = jacobian.T
    if stored(x).dtype.kind in "cW":
        rows = rows[::2] + 1j * rows[1::2]
    return wrap(np.ascontiguousarray(rows, stored(x).dtype))
