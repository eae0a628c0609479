"""Products of examples, in terms of products of batches of matrices: what `vmap` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._ops.table.namespace import ops

Product = Callable[[Any, Any], Any]


def matrices(first: Any, second: Any) -> Any:
    """[N, K] and [K, M]: [N, M]; so batches of them."""
    return ops._matmul(first, second)


def matrix_vector(matrix: Any, vector: Any) -> Any:
    """[N, K] and [K]: [N]."""
    return ops._matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def vector_matrix(vector: Any, matrix: Any) -> Any:
    """[K] and [K, M]: [M]."""
    return ops._matmul(vector.unsqueeze(-2), matrix).squeeze(-2)


def vectors(first: Any, second: Any) -> Any:
    """[K] and [K]: a number."""
    return ops._matmul(first.unsqueeze(-2), second.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def outer(first: Any, second: Any) -> Any:
    """[N] and [M]: [N, M]."""
    return first.unsqueeze(-1) * second


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """[..., K], [M, K] and [M]: [..., M]."""
    product = vector_matrix if input.dim() == 1 else matrices
    result = product(input, weight.mT)
    return result if bias is None else result + bias


def linear_gradients(input: Any, grad: Any, weight: Any, wanted: Any) -> tuple[Any, ...]:
    """Those of `linear`: of [..., K], [..., M] and [M, K]."""
    grads = grad.reshape(-1, grad.shape[-1])
    inputs = input.reshape(-1, input.shape[-1])
    return (
        matrices(grads, weight).reshape(input.shape) if wanted[0] else None,
        matrices(grads.mT, inputs) if wanted[1] else None,
        grads.sum(0) if wanted[2] else None,
    )


def added_to(product: Product) -> Callable[..., Any]:
    """`beta * self + alpha * product`, as `addmm` and its relatives have it."""

    def total(self: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        result = product(first, second)
        if alpha != 1:
            result = result * alpha
        if beta == 0:
            return result
        return (self if beta == 1 else self * beta) + result

    return total
