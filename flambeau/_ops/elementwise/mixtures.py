"""Points between two tensors, and products and quotients that are added: `lerp`, `addcmul`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler import expr as E
from flambeau._compiler.primitives import add_primitive
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.table.op import (
    pointwise,
)
from flambeau._tensor.tensor import Tensor


def _lerp(start: np.ndarray, end: np.ndarray, weight: np.ndarray) -> Any:
    """From the nearer end, so that weights 0 and 1 are exact."""
    span = end - start
    near = np.abs(weight) < 0.5  # noqa: PLR2004
    if near.ndim == 0:
        return start + weight * span if near else end - span * (1 - weight)
    return np.where(near, start + weight * span, end - span * (1 - weight))


add_primitive("lerp", _lerp)
_LERP = {
    "self": lambda grad, weight: grad * (1 - _conj(weight)),
    "end": lambda grad, weight: grad * _conj(weight),
}


def _conj(weight: Any) -> Any:
    return conj(weight) if isinstance(weight, Tensor) else weight.conjugate()


def _check_mixture(operands: list[Any]) -> None:
    """Types are not promoted; a weight without dims may have another one."""
    start = operands[0]._data.dtype
    for name, other in zip(("end", "weight"), operands[1:3], strict=True):
        if not isinstance(other, Tensor) or other._data.dtype == start:
            continue
        if name == "end" or other._data.ndim:
            want, have = (tensor.dtype.c_name for tensor in (operands[0], other))
            raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {have}")


@pointwise("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
           order=1,
           dtypes="float complex", numbers="none", promote="tensors", label="lerp_kernel_scalar",
           check=_check_mixture, node="LerpBackward0", backward=_LERP)  # fmt: skip
def lerp(self: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`.

    >>> import flambeau as torch
    >>> torch.lerp(torch.tensor([0.0]), torch.tensor([10.0]), 0.25)
    tensor([2.5000])
    """
    return E.lerp(self, end, weight)


@pointwise("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
           regular=True, fused=True,
           order=0,
           dtypes="float complex", numbers="none", label="lerp_kernel_tensor",
           check=_check_mixture, node="LerpBackward1", backward={
    **_LERP,
    "weight": lambda grad, self, end: grad * conj(end - self),
})  # fmt: skip
def lerp_tensor(self: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`, with a weight for each element."""
    return E.lerp(self, end, weight)


@pointwise("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
           regular=True,
           fused=True,
           devices="first factor", complex_half=True, earlier=True, autocast="cuda=widest",
           dtypes="int float complex", numbers="none", promote="tensors",
           label="addcmul_cpu_out", backward={
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(tensor2 * value),
    "tensor2": lambda grad, tensor1, value: grad * conj(tensor1 * value),
})  # fmt: skip
def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """`input + value * tensor1 * tensor2`.

    >>> import flambeau as torch
    >>> torch.addcmul(torch.ones(1), torch.tensor([2.0]), torch.tensor([3.0]), value=0.5)
    tensor([4.])
    """
    return self + value * tensor1 * tensor2


_NO_INTEGERS = RuntimeError(
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
    "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
    "implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer "
    "inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv "
    "behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all "
    "dtypes."
)


def _check_quotient(operands: list[Any]) -> None:
    """Torch refuses integers over integers whatever they are added to."""
    if all(isinstance(v, Tensor) and v._data.dtype.kind in "biu" for v in operands[1:3]):
        raise _NO_INTEGERS


@pointwise("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
           fused=True,
           earlier=True, autocast="cuda=widest",
           dtypes="float complex", numbers="none", promote="tensors", label="addcdiv_cpu_out",
           refusals={"int": _NO_INTEGERS, "bool": _NO_INTEGERS}, check=_check_quotient, backward={
    "self": lambda grad: grad,
    "tensor1": lambda grad, tensor2, value: grad * conj(value / tensor2),
    "tensor2": lambda grad, tensor1, tensor2, value: -grad * conj(
        value * tensor1 / (tensor2 * tensor2)),
})  # fmt: skip
def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """`input + value * tensor1 / tensor2`.

    >>> import flambeau as torch
    >>> torch.addcdiv(torch.ones(1), torch.tensor([6.0]), torch.tensor([3.0]), value=0.5)
    tensor([2.])
    """
    return self + value * tensor1 / tensor2
