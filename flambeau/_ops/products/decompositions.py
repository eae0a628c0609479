"""What linear layers and products of more than two dims are made of in ATen: for those who look on
below autograd (`transforms/dispatching`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.table.namespace import ops


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`: one product of matrices, with all rows of `input`."""
    if input.ndim == 2 or (input.ndim != 1 and bias is not None):  # noqa: PLR2004
        rows = input if input.ndim == 2 else _rows(input)  # noqa: PLR2004
        turned = weight.t()
        found = ops.mm(rows, turned) if bias is None else ops.addmm(bias, rows, turned)
        return found if rows is input else found.view(*input.shape[:-1], -1)
    found = matmul(input, weight.t())
    return found if bias is None else found + bias


def linear_backward(self: Any, grad_output: Any, weight: Any, output_mask: Any
                    ) -> tuple[Any, Any, Any]:  # fmt: skip
    """The gradients of a linear layer: products of matrices with all rows, and their sum."""
    rows = _rows(grad_output)
    of_input = ops.mm(rows, conj(weight)).view(self.shape) if output_mask[0] else None
    of_weight = ops.mm(rows.t(), conj(_rows(self))) if output_mask[1] else None
    return of_input, of_weight, rows.sum(0) if output_mask[2] else None


def matmul(self: Any, other: Any) -> Any:
    """The product by what ATen has for vectors, matrices and batches of matrices."""
    ranks = self.ndim, other.ndim
    if max(ranks) == 1:
        return ops.dot(self, other)
    if ranks == (2, 1):
        return ops.mv(self, other)
    if ranks == (1, 2):
        return ops.mm(self.unsqueeze(0), other).squeeze(0)
    if ranks == (2, 2):
        return ops.mm(self, other)
    if ranks[1] <= 2:  # noqa: PLR2004
        return _folded(self, other)
    if ranks[0] <= 2:  # noqa: PLR2004
        turned = _folded(other.transpose(-1, -2), self if ranks[0] == 1 else self.t())
        return turned if ranks[0] == 1 else turned.transpose(-1, -2)
    return _batches(self, other)


def _rows(batch: Any) -> Any:
    return batch.reshape(-1, batch.shape[-1])


def _folded(self: Any, other: Any) -> Any:
    """A batch times one matrix or vector: all rows at once."""
    rows = _rows(self)
    if other.ndim == 1:
        return ops._unsafe_view(ops.mv(rows, other), list(self.shape[:-1]))
    return ops._unsafe_view(ops.mm(rows, other), [*self.shape[:-1], other.shape[-1]])


def _batches(self: Any, other: Any) -> Any:
    batch = list(np.broadcast_shapes(self.shape[:-2], other.shape[:-2]))
    count = math.prod(batch)
    left = self.expand(*batch, *self.shape[-2:]).reshape(count, *self.shape[-2:])
    right = other.expand(*batch, *other.shape[-2:]).reshape(count, *other.shape[-2:])
    return ops._unsafe_view(ops.bmm(left, right), [*batch, self.shape[-2], other.shape[-1]])
