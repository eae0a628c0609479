"""Affine maps: `linear` and `bilinear`.

`linear` is one kernel for the product and the bias, and one for all of its gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._ops.launching.precision import NOT_AS_THEY_ARE, narrow, refuse, require_known, widen
from flambeau._ops.products import blas, decompositions, examples
from flambeau._ops.table.binder import explained
from flambeau._ops.table.dims import require_sizes
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, internal
from flambeau._ops.table.outputs import EXACT, write_out
from flambeau._tensor.sparse import NotStrided


def rows_product(input: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """`input @ weight.T` over the last dims, in new memory; half types give float32."""
    if input.dtype.char in NOT_AS_THEY_ARE:
        require_known("addmm_impl_cpu_", input.dtype)
        input, weight = widen(input), widen(weight)
    transposed = weight.T
    if input.size * weight.shape[0] >= blas.SMALL:
        return blas.multiply(input, transposed)
    if input.ndim == 2:
        return input.dot(transposed)  # type: ignore[no-any-return]
    result = np.empty((*input.shape[:-1], weight.shape[0]), input.dtype)
    if result.size:
        rows = math.prod(input.shape[:-1])
        flat = input.reshape(rows, input.shape[-1])
        np.dot(flat, transposed, out=result.reshape(rows, weight.shape[0]))
    return result


def _linear(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """`input @ weight.T + bias`: [*, K] and [N, K] give [*, N]; the bias is [N] or broadcasts."""
    dtype = input.dtype
    if dtype != weight.dtype or dtype.kind == "b" or (bias is not None and bias.dtype != dtype):
        _check_types(input, weight, bias)
    if input.ndim == 0 or weight.ndim != 2 or input.shape[-1] != weight.shape[1]:
        _check_shapes(input, weight)
    if input.size * weight.shape[0] >= blas.SMALL or dtype.itemsize == 2:
        result = blas.affine(input, weight.T, bias)
        if result is not None:
            return result  # type: ignore[no-any-return]
    result = rows_product(input, weight)
    if bias is not None:
        if bias.dtype in dt.NUMPY_HALVES:
            bias = widen(bias)
        try:
            np.add(result, bias, out=result)
        except ValueError:
            raise _bias_error(result.shape, bias.shape) from None
    return result if dtype == result.dtype else narrow(result, dtype)


def _check_types(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> None:
    """Torch's words for operands of different types."""
    names = [dt.from_numpy_dtype(a.dtype) for a in (input, weight)]
    if bias is not None and bias.dtype != weight.dtype:
        raise RuntimeError(
            "self and mat2 must have the same dtype, but got "
            f"{dt.from_numpy_dtype(bias.dtype).scalar_name} and {names[1].scalar_name}"
        )
    if input.dtype != weight.dtype and bias is not None:
        of_bias = bias.dtype != weight.dtype
        first = dt.from_numpy_dtype(bias.dtype) if of_bias else names[0]
        raise RuntimeError(
            f"{'self' if of_bias else 'mat1'} and mat2 must have the same dtype, but got "
            f"{first.scalar_name} and {names[1].scalar_name}"
        )
    if input.dtype != weight.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {names[0].c_name} != "
            f"{names[1].c_name}"
        )
    if input.dtype.kind in "bW":
        raise refuse("addmm_impl_cpu_", input.dtype)


def _check_shapes(input: np.ndarray, weight: np.ndarray) -> None:
    if input.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and "
            f"{weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    rows = math.prod(input.shape[:-1])
    raise RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and "
        f"{weight.shape[1]}x{weight.shape[0]})"
    )


def _bias_error(shape: tuple[int, ...], bias: tuple[int, ...]) -> RuntimeError:
    """Torch expands the bias to the rows of the product before it multiplies."""
    rows = math.prod(shape[:-1])
    target = (rows, shape[-1])
    missing = 2 - len(bias)
    for dim in reversed(range(2)):
        have = bias[dim - missing] if dim >= missing else 1
        if have not in (1, target[dim]):
            return RuntimeError(
                f"The expanded size of the tensor ({target[dim]}) must match the existing size "
                f"({have}) at non-singleton dimension {dim}.  Target sizes: {list(target)}.  "
                f"Tensor sizes: {list(bias)}"
            )
    return RuntimeError(f"a bias of shape {list(bias)} does not fit rows of {list(target)}")


def _linear_gradients(grad: Any, input: Any, weight: Any, weight_shape: Any, bias_shape: Any,
                      wanted: Any) -> Any:  # fmt: skip
    """An operand is there where the other one's gradient is wanted; else only its place is."""
    plain_bias = bias_shape == weight_shape[:1]
    # In regions of autocast products choose a type, but the sum for the bias does not; and it needs
    # no further gradients of the operands.
    apart = modes.grad.enabled or (modes.watch.active and settings.enabled["cpu"])
    plain_bias = plain_bias and not apart
    mask = (wanted[0], wanted[1], wanted[2] and plain_bias)
    input = grad if input is None else input
    weight = grad if weight is None else weight
    of_input, of_weight, of_bias = ops.linear_backward(input, grad, weight, mask)
    if wanted[2] and not plain_bias:
        of_bias = grad
    return of_input, of_weight, of_bias


def _taken_apart(node: Any) -> Any:
    from flambeau._ops.products.linear_nodes import taken_apart

    return taken_apart(node)


def _linear_row(name: str, node: str) -> None:
    internal(
        f"{name}(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        node=node, autocast="lower", batch=examples.linear, between_kernels=True,
        backward={("input", "weight", "bias"): _linear_gradients},
        saved_for={"input": "weight", "weight": "input"}, shown="linear", public_node=_taken_apart,
        decomposition=decompositions.linear,
    )(_linear)  # fmt: skip


# One kernel; `grad_fn` has the name of what torch composes for the number of dims.
_linear_row("_linear", "AddmmBackward0")
_linear_row("_linear_no_bias", "MmBackward0")
_linear_row("_linear_nd", "ViewBackward0")
_linear_row("_linear_nd_no_bias", "UnsafeViewBackward0")


@composite(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    builtin=True,
    regular=True,
    method=False,
    namespace="nn.functional",
    out_type=EXACT,
)
def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """`input @ weight.T + bias`: input [*, K], weight [N, K] or [K], bias [N], result [*, N].

    >>> import flambeau as torch
    >>> torch.nn.functional.linear(torch.ones(2), torch.tensor([[1.0, 2.0]]), torch.tensor([0.5]))
    tensor([3.5000])
    """
    if out is not None:
        return write_out(linear, out, linear.body(input, weight, bias), (input, weight, bias))
    try:
        rank = input._data.ndim
        vector = weight._data.ndim == 1
    except AttributeError as error:
        if isinstance(error, NotStrided):
            return _sparse_linear(input, weight, bias)
        raise explained(linear, (input, weight, bias), error) from None
    if vector:
        return _vector_linear(input, weight, bias)
    if rank == 2:
        if bias is None:
            return ops._linear_no_bias(input, weight)
        return ops._linear(input, weight, bias)
    if bias is None:
        return ops._linear_nd_no_bias(input, weight)
    try:
        return ops._linear_nd(input, weight, bias)
    except RuntimeError:
        if not _is_added_after(input, weight, bias):
            raise
    return ops._linear_nd_no_bias(input, weight).add_(bias)


def _is_added_after(input: Any, weight: Any, bias: Any) -> bool:
    """Whether a bias of another type is cast in a sum of its own: where the product is not one of
    matrices that lie in a row."""
    if bias._data.dtype == weight._data.dtype or input._data.dtype != weight._data.dtype:
        return False
    return bias._data.ndim != 1 or not input._data.flags.c_contiguous


def _sparse_linear(input: Any, weight: Any, bias: Any) -> Any:
    """The same with a sparse input or weight, for which there is a product."""
    product = ops.matmul(input, ops.transpose(weight, 0, 1))
    return product if bias is None else product + bias


def _vector_linear(input: Any, weight: Any, bias: Any) -> Any:
    if not input._data.ndim:
        _check_shapes(input._data, weight._data)
    if bias is None:
        return ops.matmul(input, weight)
    in_rows = input._data.flags.c_contiguous
    if input._data.ndim == 2 or (bias._data.ndim == 1 and in_rows):
        if bias._data.dtype != weight._data.dtype or input._data.dtype != weight._data.dtype:
            _check_types(input._data, weight._data, bias._data)
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    return ops.matmul(input, weight).add_(bias)


# ---- gradients


def _linear_double_backward(given: Any, self: Any, grad_output: Any, weight: Any,
                            output_mask: Any, wanted: Any) -> Any:  # fmt: skip
    """The gradients are products of the same three matrices, so theirs are as well."""
    of_input, of_weight, of_bias = given
    left, right = self if of_input is None else of_input, weight if of_weight is None else of_weight
    mask = (wanted[0] and of_weight is not None, wanted[2] and of_input is not None, False)
    to_self, to_weight, _ = ops.linear_backward(left, grad_output, right, mask)
    to_grad = None
    if wanted[1]:
        parts = [] if of_input is None else [ops._linear_nd_no_bias(of_input, weight)]
        parts += [] if of_weight is None else [ops._linear_nd_no_bias(self, of_weight)]
        parts += [] if of_bias is None else [of_bias.expand(grad_output.shape)]
        to_grad = parts[0].to(grad_output.dtype)  # autocast rounds each product, not their sum
        for part in parts[1:]:
            to_grad = to_grad + part.to(grad_output.dtype)
    return to_self, to_grad, to_weight


@internal(
    "linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask)"
    " -> (Tensor, Tensor, Tensor)",
    between_kernels=True,
    batch=examples.linear_gradients,
    autocast="lower",
    composed=True,
    decomposition=decompositions.linear_backward,
    backward={("self", "grad_output", "weight"): _linear_double_backward},
)
def linear_backward(input: np.ndarray, grad: np.ndarray, weight: np.ndarray,
                    output_mask: Any) -> tuple[np.ndarray | None, ...]:  # fmt: skip
    """`grad @ weight`, `grad.T @ input` and the column sums of `grad`, where wanted."""
    dtype = input.dtype
    if dtype.kind == "c":
        input, weight = input.conj(), weight.conj()
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        of_input = blas.affine(grad, weight)
        if of_input is None:
            of_input = narrow(rows_product(grad, weight.T), dtype)
    if grad.ndim != 2:
        rows = math.prod(grad.shape[:-1])
        grad, input = grad.reshape(rows, grad.shape[-1]), input.reshape(rows, input.shape[-1])
    if output_mask[1]:
        of_weight = blas.product(grad.T, input)
    if output_mask[2]:
        of_bias = narrow(blas.column_sums(grad), dtype)
    return of_input, of_weight, of_bias


# ---- bilinear


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    builtin=True,
    method=False,
    autocast="cpu=outside cuda=widest",
)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """`y[n] = input1 @ weight[n] @ input2 + bias[n]`: weight [N, K1, K2], inputs [*, K].

    >>> import flambeau as torch
    >>> one, two = torch.tensor([[1., 2.]]), torch.tensor([[3., 4., 5.]])
    >>> weight = torch.ones(1, 2, 3)
    >>> torch.bilinear(one, two, weight, None)
    tensor([[36.]])
    """
    _check_bilinear_types({"input1": input1, "input2": input2, "weight": weight, "bias": bias})
    _check_bilinear(input1._data.shape, input2._data.shape, weight._data.shape)
    out_features, first, second = weight._data.shape
    left = ops.matmul(input1, weight.permute(1, 0, 2).reshape(first, out_features * second))
    left = left.reshape(*input1._data.shape[:-1], out_features, second)
    result = (left * input2.unsqueeze(-2)).sum(-1, dtype=input1.dtype)
    return result if bias is None else result + bias


def _check_bilinear_types(tensors: dict[str, Any]) -> None:
    given = {name: tensor.dtype for name, tensor in tensors.items() if tensor is not None}
    if len(set(given.values())) > 1:
        names = ", ".join(f"{name}: {dtype.c_name}" for name, dtype in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {names}")


def _check_bilinear(input1: Any, input2: Any, weight: Any) -> None:
    if len(input1) != len(input2):
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {len(input1)} and {len(input2)}"
        )
    for dim in range(len(input1) - 1):
        if input1[dim] != input2[dim]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {input1[dim]} "
                f"and {input2[dim]}"
            )
    for position, shape in enumerate((input1, input2)):
        require_sizes(len(shape), -1)
        require_sizes(len(weight), position + 1)
        if shape[-1] != weight[position + 1]:
            raise RuntimeError(
                f"bilinear(): input{position + 1} size does not match weight size: got "
                f"{shape[-1]} but expected {weight[position + 1]}"
            )
