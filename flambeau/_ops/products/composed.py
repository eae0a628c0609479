"""Products made from products: `tensordot`, `outer`, `kron`, `cross`, chains and powers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.dtype import from_numpy_dtype
from flambeau._core.layout import contiguous_format
from flambeau._core.programs import EAGER
from flambeau._core.promotion import promote_types
from flambeau._core.settings import warn_once
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.precision import widen
from flambeau._ops.linalg import by_name as kernels
from flambeau._ops.linalg.checks import check_square
from flambeau._ops.products import examples
from flambeau._ops.products.errors import c_name, scalar_name
from flambeau._ops.reductions.sums import write
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.dims import wrap_dim, wrap_dims
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import alias, composite, internal, kernel
from flambeau._ops.table.outputs import EXACT, castable
from flambeau._ops.table.pointwise import LIMIT, broadcast_shape, wants_grad
from flambeau._runtime import cpu
from flambeau._tensor.tensor import Tensor, wrap

# ---- over chosen dims

CONTRACTED = (
    "tensordot: Expected the output tensor to have dtype {want}, but got an output tensor with "
    "dtype {have}"
)


@composite("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
           out_writer="copy_",
           autocast="cuda=widest", method=False, out_type=CONTRACTED, program=True,
           choices={"dims": ("int", "Tuple[List[int], List[int]]", "List[List[int]]", "Tensor")}
           )  # fmt: skip
def tensordot(a: Any, b: Any, dims: Any = 2, out: Tensor | None = None) -> Any:
    """The sum of products over the last `dims` dims of a and the first of b, or over two lists.

    >>> import flambeau as torch
    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5), dims=2).shape
    torch.Size([2, 5])
    """
    if isinstance(dims, int):
        first, second = _last_and_first(dims, f"{dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    elif isinstance(dims, Tensor):
        if dims.numel() > 1:
            if dims.size(0) != 2:
                raise AssertionError(
                    f"dims tensor must have size 2 in first dimension, got {dims.size(0)}"
                )
            pairs: list[list[int]] = dims.tolist()
            first, second = pairs[0], pairs[1]
        else:
            first, second = _last_and_first(int(dims.item()), f"{dims}")
    else:
        if EAGER:
            _check_lists(dims)
        first, second = dims[0], dims[1]
    if EAGER:
        return write(tensordot, out, _paired(a, b, first, second))
    if out is None:
        return ops.tensordot(a, b, first, second)
    return ops.tensordot(a, b, first, second, out=out)


def _last_and_first(count: int, given: str) -> tuple[list[int], list[int]]:
    if count < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={given}")
    return [dim - count for dim in range(count)], list(range(count))


def _check_lists(dims: Any) -> None:
    """Torch's error for what is no pair of lists."""
    if not isinstance(dims, (tuple, list)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    _, _ = dims  # as Python says it


def _as_dims(dims: Any, name: str) -> list[int]:
    if not isinstance(dims, (tuple, list)):
        position = 3 if name == "dims_self" else 4
        raise TypeError(f"tensordot(): argument '{name}' (position {position}) must be tuple of "
                        f"ints, not {plain_type_name(dims)}")  # fmt: skip
    return [int(dim) for dim in dims]


def _paired(a: Any, b: Any, first: Any, second: Any) -> Any:
    """The product over pairs of dims."""
    first, second = _as_dims(first, "dims_self"), _as_dims(second, "dims_other")
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    if a._data.dtype != b._data.dtype:
        raise RuntimeError("both inputs should have same dtype")
    left_shape, right_shape = a._data.shape, b._data.shape
    for d, e in zip(first, second, strict=True):
        have = left_shape[wrap_dim(d, len(left_shape))], right_shape[wrap_dim(e, len(right_shape))]
        if have[0] != have[1] and 1 not in have:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {have[0]} in dim {d} and "
                f"second has size {have[1]} in dim {e}"
            )
    return _contracted(a, b, first, second)


def _contracted(a: Any, b: Any, first: list[int], second: list[int]) -> Any:
    first = list(wrap_dims(first, a._data.ndim)) if first else []
    second = list(wrap_dims(second, b._data.ndim)) if second else []
    for d, e in zip(first, second, strict=True):
        if a._data.shape[d] != b._data.shape[e]:
            # One of the two has size 1: the sum over the other comes first.
            alone = b._data.shape[e] == 1
            a = a.sum(d, keepdim=True, dtype=a.dtype) if alone else a
            b = b if alone else b.sum(e, keepdim=True, dtype=b.dtype)
    rows = [d for d in range(a._data.ndim) if d not in first]
    columns = [e for e in range(b._data.ndim) if e not in second]
    shape = [a._data.shape[d] for d in rows] + [b._data.shape[e] for e in columns]
    inner = math.prod([a._data.shape[d] for d in first])
    left = a.permute([*rows, *first]).reshape(math.prod(shape[: len(rows)]), inner)
    right = b.permute([*second, *columns]).reshape(inner, math.prod(shape[len(rows) :]))
    if math.prod(shape) == 1:
        return ops.dot(left.reshape(-1), right.reshape(-1)).reshape(shape)
    return ops.mm(left, right).reshape(shape)


@composite("inner(Tensor self, Tensor other) -> Tensor", out_writer="copy_", autocast="cuda=widest",
           out_type=CONTRACTED)  # fmt: skip
def inner(input: Any, other: Any, *, out: Any = None) -> Any:
    """The sum of products over the last dims of both; with a 0-dim operand the plain product.

    >>> import flambeau as torch
    >>> torch.inner(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    left, right = input._data.shape, other._data.shape
    if not left or not right:
        return write(inner, out, input * other)
    if left[-1] != right[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(left)} and {list(right)}"
        )
    return write(inner, out, ops.tensordot(input, other, dims=([-1], [-1])))


def _outer_of_input(grad: Any, vec2: Any) -> Any:
    return ops.mv(grad, conj(vec2).to(grad.dtype))


def _outer_of_vec2(grad: Any, self: Any) -> Any:
    return ops._transposed_mv(conj(self).to(grad.dtype), grad)


@kernel(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    saved_names={"vec2": "other"},
    out_writer="mul",
    batch=examples.outer,
    out=True,
    node="MulBackward0",
    backward={"self": _outer_of_input, "vec2": _outer_of_vec2},
)
def outer(data: np.ndarray, vec2: np.ndarray) -> np.ndarray:
    """All products of the elements of two vectors: [N] and [M] give [N, M].

    >>> import flambeau as torch
    >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    if data.ndim != 1 or vec2.ndim != 1:
        name, ndim = ("self", data.ndim) if data.ndim != 1 else ("vec2", vec2.ndim)
        raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {ndim}-D")
    if data.dtype is vec2.dtype and data.dtype.itemsize > 2:
        return np.multiply(data[:, None], vec2)
    if data.dtype != vec2.dtype:
        common = promote_types(from_numpy_dtype(data.dtype), from_numpy_dtype(vec2.dtype))
        data, vec2 = (v.astype(common.numpy_dtype, copy=False) for v in (data, vec2))
    result = np.multiply(widen(data)[:, None], widen(vec2))
    return result.astype(data.dtype, copy=False)


alias("ger", "outer")

# The same for the gradients of a row times a matrix, which torch multiplies as matrices.
internal("_matmul_outer(Tensor self, Tensor vec2) -> Tensor",
         batch=examples.outer, node="MmBackward0",
         autocast="lower", backward={
             "self": lambda grad, vec2: ops._times_row(grad, conj(vec2)),
             "vec2": lambda grad, self: ops._vector_times(conj(self), grad),
         })(outer.body)  # fmt: skip


@composite("kron(Tensor self, Tensor other) -> Tensor", out_writer="mul")
def kron(input: Any, other: Any, *, out: Any = None) -> Any:
    """Kronecker's product: each element of input times the whole of other.

    Sizes multiply, dim by dim, after ones were put before the shorter shape.

    >>> import flambeau as torch
    >>> torch.kron(torch.eye(2), torch.ones(1, 2))
    tensor([[1., 1., 0., 0.],
            [0., 0., 1., 1.]])
    """
    ndim = max(input._data.ndim, other._data.ndim)
    left = (1,) * (ndim - input._data.ndim) + input._data.shape
    right = (1,) * (ndim - other._data.ndim) + other._data.shape
    wide = [n for size in left for n in (size, 1)]
    narrow = [n for size in right for n in (1, size)]
    sizes = [n * m for n, m in zip(left, right, strict=True)]
    x, y = input._data, other._data
    plain = x.dtype == y.dtype and x.flags.c_contiguous and y.flags.c_contiguous
    small = x.size * y.size < LIMIT and x.dtype.kind in "fi"
    if plain and small and not (modes.watch.active or wants_grad((input, other))):
        blocks = np.empty([n for pair in zip(left, right, strict=True) for n in pair], x.dtype)
        with cpu.quiet():
            np.multiply(x.reshape(wide), y.reshape(narrow), out=blocks)
        return write(kron, out, wrap(blocks.reshape(sizes)))
    product = input.reshape(wide) * other.reshape(narrow)
    return write(kron, out, ops._unsafe_view(product, sizes))


@composite("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", out_writer="sum",
           autocast="lower", namespace="linalg",
           public="vecdot", method=False,
           out_type="linalg.vecdot: Expected out of dtype{want} but found {have}")  # fmt: skip
def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The dot products along a dim, the first operand conjugated; other dims broadcast.

    >>> import flambeau as torch
    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError("linalg.vecdot: Expected a floating point or complex tensor as input. "
                           f"Got {scalar_name(x._data)}")  # fmt: skip
    if x._data.dtype != y._data.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_name(x._data)} and y of type {scalar_name(y._data)} instead"
        )
    if x._data.ndim == 1 and y._data.ndim == 1:
        return write(vecdot, out, ops.vdot(x, y))
    return write(vecdot, out, (conj(x) * y).sum(dim))


# ---- cross products


@kernel(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    out_writer="linalg_cross",
    namespace="linalg",
    public="cross",
    method=False,
    out=True,
    out_type=EXACT,
    out_apart=True,
    backward={
        "self": lambda grad, other, dim: ops.linalg.cross(conj(other), grad, dim=dim),
        "other": lambda grad, self, dim: ops.linalg.cross(grad, conj(self), dim=dim),
    },
)
def linalg_cross(data: np.ndarray, other: np.ndarray, dim: int) -> np.ndarray:
    """The cross product along a dim of size 3; other dims broadcast.

    >>> import flambeau as torch
    >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    fits = data.ndim == other.ndim and data.shape[wrap_dim(dim, data.ndim)] == 3
    if fits and other.shape[dim] == 3:
        if data.shape != other.shape:
            broadcast_shape([data.shape, other.shape])
        if data.dtype != other.dtype:
            raise RuntimeError(
                f"expected scalar type {scalar_name(data)} but found {scalar_name(other)}"
            )
    result = kernels.cross(widen(data), widen(other), dim)
    return np.asarray(result, data.dtype, order="C")


@composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
           out_writer="linalg_cross", autocast="cuda=widest",
           out_type=EXACT)  # fmt: skip
def cross(input: Any, other: Any, dim: int | None = None, *, out: Any = None) -> Any:
    """The cross product along a dim of size 3, the first such dim unless given.

    >>> import flambeau as torch
    >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
    tensor([0., 0., 1.])
    """
    if dim is None:
        if out is None and isinstance(other, Tensor):  # types come first
            warn_once(NO_DIM)
        sizes = input._data.shape
        if 3 not in sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes.index(3)
    return ops.linalg.cross(input, other, dim=dim, out=out)


NO_DIM = (
    "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim "
    "explicitly or simply use torch.linalg.cross.\nThe default value of dim will change to agree "
    "with that of linalg.cross in a future release."
)


# ---- chains


def chain_order(sizes: list[int]) -> list[list[int]]:
    """Where to cut each run of matrices for the fewest multiplications; sizes[i] x sizes[i+1].

    Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, 15.2.
    """
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    # Of cuts that cost the same torch takes the first, but of three matrices the last.
    order = -1 if count == 3 else 1
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], order * k)
                for k in range(i, j)
            ]
            cost[i][j], chosen = min(options)
            cut[i][j] = order * chosen
    return cut


def _chain(matrices: list[Any], cut: list[list[int]], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = cut[i][j]
    return ops.mm(_chain(matrices, cut, i, k), _chain(matrices, cut, k + 1, j))


CHAIN_TYPE = "multi_dot(): expected out tensor to have dtype {c_want} but got {c_have}"


@composite("linalg_multi_dot(Tensor[] tensors) -> Tensor", out_writer="mm", autocast="cuda=lower",
           namespace="linalg", public="multi_dot", method=False,
           out_type=CHAIN_TYPE)  # fmt: skip
def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of two or more matrices in the order that needs the fewest multiplications.

    The first and the last may be vectors: a row and a column.

    >>> import flambeau as torch
    >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 5)]).shape
    torch.Size([2, 5])
    """
    if isinstance(tensors, Tensor):  # which iterates over its rows
        raise TypeError("linalg_multi_dot(): argument 'tensors' (position 1) must be tuple of "
                        "Tensors, not Tensor")  # fmt: skip
    tensors = list(tensors)
    _check_chain(tensors)
    first, last = tensors[0], tensors[-1]
    given = [list(t._data.shape) for t in tensors]
    shape = list(first._data.shape[:-1]) + list(last._data.shape[1:])
    if first._data.ndim == 1:
        tensors[0] = first.unsqueeze(0)
    if last._data.ndim == 1:
        tensors[-1] = last.unsqueeze(-1)
    _check_links(tensors, given)
    sizes = [t._data.shape[0] for t in tensors] + [tensors[-1]._data.shape[1]]
    result = _chain(tensors, chain_order(sizes), 0, len(tensors) - 1)
    return write(multi_dot, out, result.reshape(shape))


def _check_chain(tensors: list[Any]) -> None:
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    for place, tensor in (("first", tensors[0]), ("last", tensors[-1])):
        if tensor._data.ndim not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {place} tensor must be 1D or 2D but got {tensor._data.ndim}D"
            )
    for position, tensor in enumerate(tensors[1:-1], 1):
        if tensor._data.ndim != 2:
            raise RuntimeError(
                f"multi_dot(): tensor {position} must be 2D but got {tensor._data.ndim}D"
            )


def _check_links(tensors: list[Any], given: list[list[int]]) -> None:
    """Types and sizes; `given`: the shapes before vectors became rows and columns."""
    first = tensors[0]._data
    for position, tensor in enumerate(tensors):
        if tensor._data.dtype != first.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{c_name(first)} and tensor {position} {c_name(tensor._data)}"
            )
    for position, (left, right) in enumerate(zip(tensors, tensors[1:], strict=False)):
        if left._data.shape[1] != right._data.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {position} and {position + 1} with shapes "
                f"{given[position]} and {given[position + 1]} cannot be multiplied"
            )


@composite("chain_matmul(Tensor[] matrices) -> Tensor", autocast="cuda=lower", method=False,
           out_type=CHAIN_TYPE)  # fmt: skip
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of matrices in the best order: the older form of `linalg.multi_dot`.

    >>> import flambeau as torch
    >>> matrices = [torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)]
    >>> torch.linalg.multi_dot(matrices)  # the way of today
    tensor([[12.],
            [12.]])
    """
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for position, matrix in enumerate(matrices):
        if not hasattr(matrix, "_data"):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got "
                            f"{type(matrix).__name__}")  # fmt: skip
    warn_once(OLD_CHAIN)
    for matrix in matrices:
        if matrix._data.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {matrix._data.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return write(chain_matmul, out, matrices[0])
    return write(chain_matmul, out, ops.linalg.multi_dot(matrices))


OLD_CHAIN = (
    "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
    "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than "
    "multiple parameters."
)


# ---- powers and the exponential


@composite(
    "matrix_power(Tensor self, int n) -> Tensor",
    out_writer="matmul",
    out_type=castable("matrix_power"),
)
def matrix_power(input: Any, n: int, *, out: Any = None) -> Any:
    """Square matrices multiplied n times; their inverses for negative n, identities for 0.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    check_square(input._data, "linalg.matrix_power")
    return write(matrix_power, out, _power(input, n))


def _power(input: Any, n: int) -> Any:
    if n == 0:
        size = input._data.shape[-1]
        identity = ops.eye(size, dtype=input.dtype, device=input.device)
        result = input.clone(memory_format=contiguous_format)
        return result.copy_(identity.expand(input._data.shape))
    if n == 1:
        return input.clone()
    if n < 0:
        return _power(ops.linalg.inv(input), -n) if n < -1 else ops.linalg.inv(input)
    if n == 3:
        return ops.matmul(ops.matmul(input, input), input)
    result = None
    square = input
    while n:
        if n & 1:
            result = square if result is None else ops.matmul(result, square)
        n >>= 1
        if n:
            square = ops.matmul(square, square)
    return result


alias("linalg.matrix_power", "matrix_power")


DOUBLE = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}


def _exponential_backward(grad: Any, self: Any) -> Any:
    """The Frechet derivative at the adjoint: the corner of exp [[A^H, G], [0, A^H]] (Higham)."""
    size = self._data.shape[-1]
    adjoint = conj(self).transpose(-2, -1)
    upper = ops.cat([adjoint, grad], -1)
    lower = ops.cat([ops.zeros_like(adjoint), adjoint], -1)
    corner = ops.linalg.matrix_exp(ops.cat([upper, lower], -2))
    return corner.narrow(-2, 0, size).narrow(-1, size, size)


@kernel(
    "linalg_matrix_exp(Tensor self) -> Tensor",
    batch=(2,),
    namespace="linalg",
    public="matrix_exp",
    method=False,
    backward={"self": _exponential_backward},
)
def linalg_matrix_exp(data: np.ndarray) -> np.ndarray:
    """The exponential of square matrices. Single precision is computed in double and rounded.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    wide = DOUBLE.get(data.dtype, data.dtype)
    return np.asarray(kernels.matrix_exp(data.astype(wide, copy=False)), data.dtype, order="C")


@composite("matrix_exp(Tensor self) -> Tensor")
def matrix_exp(input: Any) -> Any:
    """The exponential of square matrices.

    >>> import flambeau as torch
    >>> torch.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return ops.linalg.matrix_exp(input)
