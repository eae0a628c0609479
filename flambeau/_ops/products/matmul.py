"""Matrix products: `matmul` with its rank rules, `mm`, `bmm`, `mv`, `dot`, `vdot`.

NumPy's BLAS multiplies floats and complex numbers, transposed operands included; half types are
multiplied in float32 and rounded once. Gradients need products with an adjoint, which are rows of
their own, so that a step backward makes no views.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.autocast import outside_regions, settings
from flambeau._ops.elementwise.arithmetic import conj
from flambeau._ops.launching.precision import refuse, widen
from flambeau._ops.products import decompositions, examples, of_views  # noqa: F401  `@`
from flambeau._ops.products.blas import SMALL, matrices, multiply, product
from flambeau._ops.products.blas import dot as blas_dot
from flambeau._ops.products.conjugated import Conjugated
from flambeau._ops.products.conjugated import matrices as complex_matrices
from flambeau._ops.products.errors import c_name, multipliable_error, scalar_name
from flambeau._ops.table.binder import explained
from flambeau._ops.table.dims import size_at
from flambeau._ops.table.dispatch import otherwise
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op, alias, composite, internal, kernel
from flambeau._ops.table.outputs import EXACT, INPUT
from flambeau._tensor.bits import on_memory, set_bits, without_values
from flambeau._tensor.sparse import NotStrided
from flambeau._tensor.tensor import Tensor, memory_of
from flambeau.autograd.saved_fields import layouts

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


# ---- products with an adjoint, for gradients


def adjoint(data: np.ndarray) -> np.ndarray:
    """The conjugate transpose of matrices, for a product: their memory, and how it is meant."""
    swapped = data.T if data.ndim == 2 else data.swapaxes(-1, -2)
    if data.dtype.kind != "c":
        return swapped
    return swapped.view(np.ndarray if data.__class__ is Conjugated else Conjugated)


def _rows(matrices: Any) -> Any:
    """The rows of a batch of matrices, as one: a sum over the batch is then one product."""
    shape = matrices._data.shape
    return matrices if len(shape) == 2 else matrices.reshape(math.prod(shape[:-1]), shape[-1])


def _of_adjoint(grad: Any, self: Any, other_shape: Any) -> Any:
    if len(other_shape) == 2:
        return ops._adjoint_times(_rows(grad), _rows(self))
    return ops._adjoint_times(grad, self)


@internal(
    "_times_adjoint(Tensor self, Tensor other) -> Tensor",
    factors=("self", "other"),
    node="MmBackward0",
    autocast="lower",
    decomposition=lambda self, other: ops.matmul(self, conj(other).transpose(-1, -2)),
    backward={
        "self": lambda grad, other: ops.matmul(grad, other),  # noqa: PLW0108
        "other": _of_adjoint,
    },
)
def times_adjoint(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`input @ other.mH`; batches broadcast."""
    return product(left, adjoint(right))


@internal(
    "_adjoint_times(Tensor self, Tensor other) -> Tensor",
    factors=("self", "other"),
    node="MmBackward0",
    autocast="lower",
    decomposition=lambda self, other: ops.matmul(conj(self).transpose(-1, -2), other),
    backward={
        "self": lambda grad, other: ops._times_adjoint(other, grad),
        "other": lambda grad, self: ops.matmul(self, grad),
    },
)
def adjoint_times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`input.mH @ other`; batches broadcast."""
    return product(adjoint(left), right)


# ---- two matrices


def _of_self(grad: Any, mat2: Any) -> Any:
    return ops._times_adjoint(grad, mat2)


_of_matrices = partial(
    kernel,
    between_kernels=True,
    regular=True,
    batch=examples.matrices,
    factors=("self", "mat2"),
    out=True,
    out_type=EXACT,
    autocast="lower",
    backward={
        "self": _of_self,
        "mat2": lambda grad, self: ops._adjoint_times(self, grad),
    },
)
"""What the products of matrices and of batches of them have in common."""


@_of_matrices("mm(Tensor self, Tensor mat2) -> Tensor", saved_facts=layouts("self", "mat2"))
def mm(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two matrices: [N, K] and [K, M] give [N, M].

    >>> import flambeau as torch
    >>> torch.mm(torch.ones(2, 3), torch.ones(3, 2))
    tensor([[3., 3.],
            [3., 3.]])
    """
    dtype = left.dtype
    # The short way: benchmarks/op_overhead.py "matmul".
    plain = right.dtype is dtype and left.ndim == 2 and right.ndim == 2
    if plain and (dtype is FLOAT32 or dtype is FLOAT64):
        if left.size * right.shape[1] >= SMALL and left.shape[1] == right.shape[0]:
            return matrices(left, right)
        try:
            return left.dot(right)  # type: ignore[no-any-return]
        except ValueError:
            raise multipliable_error(left.shape, right.shape) from None
    if plain and dtype.kind == "c" and left.shape[1] == right.shape[0]:
        return complex_matrices(left, right)
    _check_mm(left, right)
    return product(left, right)


def _check_mm(left: np.ndarray, right: np.ndarray) -> None:
    if left.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if right.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if left.shape[1] != right.shape[0]:
        raise multipliable_error(left.shape, right.shape)
    check_mm_types(left, right)


def check_mm_types(left: np.ndarray, right: np.ndarray) -> None:
    """Two matrices to multiply are of the same type, and not bool where there is work."""
    if left.dtype != right.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(left)} != {c_name(right)}"
        )
    if left.dtype.kind in "bW" and left.size and right.size:
        raise refuse("addmm_impl_cpu_", left.dtype)


@_of_matrices("bmm(Tensor self, Tensor mat2) -> Tensor")
def bmm(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The products of two batches of matrices: [B, N, K] and [B, K, M] give [B, N, M].

    >>> import flambeau as torch
    >>> torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape
    torch.Size([2, 3, 5])
    """
    dtype = left.dtype
    plain = right.dtype is dtype and (dtype is FLOAT32 or dtype is FLOAT64)
    fits = left.ndim == 3 == right.ndim and left.shape[::2] == right.shape[:2]
    if plain and fits and left.size * right.shape[2] < SMALL:
        return np.matmul(left, right, order="C")  # type: ignore[no-any-return]
    check_bmm_shapes(left, right)
    if left.dtype.kind in "bW" and left.size and right.size:
        raise refuse("bmm", left.dtype)
    if left.dtype != right.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(left)} but found {scalar_name(right)}"
        )
    return product(left, right)


def check_bmm_shapes(left: np.ndarray, right: np.ndarray) -> None:
    """Both operands are batches of matrices, as many on both sides, and their sizes fit."""
    for name, data in (("batch1", left), ("batch2", right)):
        if data.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    check_batch2(left, right)


def check_batch2(left: np.ndarray, right: np.ndarray) -> None:
    """The batch of the second operand and its rows must be those that the first needs."""
    wanted, have = [left.shape[0], left.shape[2]], list(right.shape[:2])
    if wanted != have:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {wanted} but got: "
            f"{have}."
        )


# ---- vectors


@kernel(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    between_kernels=True,
    device_check="_dot",
    batch=examples.vectors,
    linear="self tensor",
    autocast="cuda=widest",
    out=True,
    out_type=INPUT,
    backward={
        "self": lambda grad, tensor: grad * conj(tensor),
        "tensor": lambda grad, self: grad * conj(self),
    },
)
def dot(left: np.ndarray, right: np.ndarray) -> Any:
    """The sum of the products of two vectors' elements: two of shape (n,) give one of no dims.

    Both have one type. Nothing broadcasts, unlike in `matmul`; of complex vectors none is
    conjugated, unlike in `vdot`. Raises RuntimeError for other dims, sizes or types.

    >>> import flambeau as torch
    >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    dtype = left.dtype
    plain = right.dtype is dtype and left.shape == right.shape and left.ndim == 1
    if plain and (dtype is FLOAT32 or dtype is FLOAT64):
        return left.dot(right) if dtype is FLOAT32 else blas_dot(left, right)
    _check_dot(left, right, "dot")
    return np.asarray(blas_dot(widen(left), widen(right))).astype(left.dtype, copy=False)


def _dot_of_bits(call: Any, self: Any, tensor: Any) -> Any:
    """The product of two conjugate vectors is the conjugate of their memory's product."""
    both = (self, tensor)
    if not all(isinstance(one, Tensor) and one._conjugated and not one._negated for one in both):
        return NotImplemented
    with on_memory(both):
        return set_bits(call(*both), True, False)


dot.bits = _dot_of_bits


@kernel(
    "vdot(Tensor self, Tensor other) -> Tensor",
    autocast="cuda=widest",
    out=True,
    out_type=INPUT,
    backward={
        "self": lambda grad, other: conj(grad) * other,
        "other": lambda grad, self: grad * self,
    },
)
def vdot(left: np.ndarray, right: np.ndarray) -> Any:
    """`dot` with the first vector conjugated.

    >>> import flambeau as torch
    >>> torch.vdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    _check_dot(left, right, "vdot" if left.dtype.kind == "c" else "dot")
    product: Any = np.vdot if left.dtype.kind == "c" else blas_dot
    result: Any = product(widen(left), widen(right))
    return np.asarray(result).astype(left.dtype, copy=False)


def _check_dot(left: np.ndarray, right: np.ndarray, label: str) -> None:
    if left.ndim != 1 or right.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {left.ndim}D and {right.ndim}D tensors")
    if left.dtype != right.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{scalar_name(left)} and {scalar_name(right)}"
        )
    if left.size != right.size:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{left.size}] and src [{right.size}] to "
            f"have the same number of elements, but got {left.size} and {right.size} elements "
            "respectively"
        )
    if left.dtype.kind in "bW":
        raise refuse(label, left.dtype)


@kernel(
    "mv(Tensor self, Tensor vec) -> Tensor",
    between_kernels=True,
    regular=True,
    batch=examples.matrix_vector,
    factors=("self", "vec"),
    out=True,
    out_type=EXACT,
    autocast="cuda=lower",
    backward={
        "self": lambda grad, vec: grad.unsqueeze(1) * conj(vec),
        "vec": lambda grad, self: ops._transposed_mv(grad, conj(self)),
    },
)
def mv(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The product of a matrix and a vector: [N, K] and [K] give [N].

    >>> import flambeau as torch
    >>> torch.mv(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    dtype = matrix.dtype
    plain = vector.dtype is dtype and matrix.ndim == 2 and vector.shape == matrix.shape[1:]
    if plain and (dtype is FLOAT32 or dtype is FLOAT64):
        small = matrix.size < SMALL
        return matrix.dot(vector) if small else multiply(matrix, vector)  # type: ignore[no-any-return]
    check_mv(matrix, vector)
    return product(matrix, vector)


def check_mv(matrix: np.ndarray, vector: np.ndarray) -> None:
    """Torch's errors for a matrix and a vector that cannot be multiplied."""
    size_at(matrix, 0)  # it has to be there
    if matrix.ndim != 2 or vector.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {matrix.ndim}, {vector.ndim}"
        )
    rows, columns = matrix.shape
    if columns != vector.size:
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({vector.size})"
        )
    if matrix.dtype != vector.dtype:
        raise addmv_types(vector, matrix, vector)
    if matrix.dtype.kind in "bW" and matrix.size:
        raise refuse("addmv_impl_cpu", matrix.dtype)


def addmv_types(*arrays: np.ndarray) -> RuntimeError:
    """Torch's error for a vector, a matrix and a vector of different types."""
    first, second, third = (scalar_name(array) for array in arrays)
    return RuntimeError(
        f"addmv input tensors must have the same dtype, but got {first}, {second}, and {third}"
    )


@internal(
    "_vector_times(Tensor self, Tensor mat) -> Tensor",
    batch=examples.vector_matrix,
    factors=("self", "mat"),
    node="SqueezeBackward4",
    also_saved=("result_shape",),
    saved_names={"self": None, "mat": None, "result_shape": None},
    saved_facts={"dim": 0, "self_sym_sizes": lambda values: (1, *values["result_shape"])},
    autocast="lower",
    decomposition=decompositions.matmul,
    backward={
        "self": lambda grad, mat: ops._times_row(conj(mat), grad),
        "mat": lambda grad, self: ops._matmul_outer(conj(self), grad),
    },
)
def vector_times(vector: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product of a vector and a matrix: [K] and [K, M] give [M]."""
    if vector.size != matrix.shape[0]:
        raise multipliable_error((1, vector.size), matrix.shape)
    check_mm_types(vector, matrix)
    return product(vector, matrix)


# `mv` for the gradients of a row times a matrix, which torch multiplies as matrices.
internal("_times_row(Tensor self, Tensor vec) -> Tensor",
         batch=examples.matrix_vector, node="MmBackward0",
         autocast="lower", factors=("self", "vec"),
         decomposition=decompositions.matmul, backward={
             "self": lambda grad, vec: ops._matmul_outer(grad, conj(vec)),
             "vec": lambda grad, self: ops._vector_times(grad, conj(self)),
         })(mv.body)  # fmt: skip


@internal(
    "_transposed_mv(Tensor self, Tensor mat) -> Tensor",
    batch=examples.vector_matrix,
    factors=("self", "mat"),
    node="MvBackward0",
    autocast="cuda=lower",
    decomposition=lambda self, mat: ops.mv(mat.t(), self),
    backward={
        "self": lambda grad, mat: ops.mv(conj(mat), grad),
        "mat": lambda grad, self: conj(self).unsqueeze(1) * grad,
    },
)
def transposed_mv(vector: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The same for gradients of `mv`, to which autocast has nothing to say on the CPU either."""
    return vector_times.body(vector, matrix)  # type: ignore[no-any-return]


# ---- any ranks


@composite("matmul(Tensor self, Tensor other) -> Tensor", regular=True, bare=True, out_type=EXACT)
def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The product of vectors, matrices or batches of them.

    Two vectors give their dot product; a vector counts as a row on the left, as a column on the
    right; dims before the last two are batches and broadcast.

    >>> import flambeau as torch
    >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3)).shape
    torch.Size([5, 2])
    """
    try:
        ranks = input._data.ndim, other._data.ndim
    except AttributeError as error:
        if isinstance(error, NotStrided):
            return otherwise(matmul, (input, other), error, out)
        raise explained(matmul, (input, other), error) from None
    function = PRODUCTS.get(ranks)
    if function is None:
        _check_ranks(ranks)
        function = "_matmul"
    if out is None:
        return getattr(ops, function)(input, other)
    from flambeau._ops.table.outputs import write_out

    with outside_regions():
        return write_out(matmul, out, getattr(ops, function)(input, other))


without_values(matmul.body, memory_of)  # it looks for numbers of dims


def _as_matmul(name: str, row: Op, node: str) -> None:
    """A row under a name of its own: called as `matmul`, it chooses a type for autocast."""
    made = internal(f"{name}{row.text.removeprefix(row.name)}", node=node,
                    autocast="lower", backward=row.backward,
                    factors=row.factors, batch=row.batch,
                    decomposition=decompositions.matmul)(row.body)  # fmt: skip
    made.bits = row.bits


_as_matmul("_matmul_dot", dot, "DotBackward0")
_as_matmul("_matmul_mv", mv, "MvBackward0")

PRODUCTS = {(2, 2): "mm", (1, 1): "_matmul_dot", (2, 1): "_matmul_mv", (1, 2): "_vector_times"}
"""Which row multiplies operands of two ranks; all others are `_matmul`'s."""


def _check_ranks(ranks: tuple[int, int]) -> None:
    if 0 in ranks:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {ranks[0]}D and "
            f"{ranks[1]}D"
        )


def _of_left(grad: Any, self_shape: Any, other: Any) -> Any:
    if other._data.ndim == 1:
        return grad.unsqueeze(-1) * conj(other)
    if len(self_shape) < 3 and modes.watch.active and settings.enabled["cpu"]:
        return _of_left_at_once(grad, len(self_shape), other)
    if len(self_shape) == 1:
        return ops._matmul_as_mv(conj(other), grad.unsqueeze(-1)).squeeze(-1)
    return ops._times_adjoint(grad, other)


def _of_left_at_once(grad: Any, ndim: int, other: Any) -> Any:
    """The same where autocast rounds each product: torch sums over the batch within one."""
    other = _rows(other.transpose(-1, -2))
    if ndim == 1:
        return ops._transposed_mv(grad.reshape(-1), conj(other))
    grad = _rows(grad.transpose(-1, -2))
    return ops._adjoint_times(conj(grad), conj(other))


def _of_right(grad: Any, self: Any, other_shape: Any) -> Any:
    if self._data.ndim == 1:
        return conj(self).unsqueeze(-1) * grad.unsqueeze(-2)
    if len(other_shape) > 2:
        return ops._adjoint_times(self, grad)
    if len(other_shape) == 2:
        return ops._adjoint_times(_rows(self), _rows(grad))
    return ops._transposed_mv(grad.reshape(-1), conj(_rows(self)))


def _product_sizes(values: dict[str, Any]) -> tuple[int, ...]:
    """What torch's product of rows, or of a list of matrices, has for sizes before it is shaped."""
    sizes, dims = values["result_shape"], len(values["other_shape"])
    if dims == 1:
        return (math.prod(sizes),)
    kept = 1 if dims == 2 else 2
    return (math.prod(sizes[:-kept]), *sizes[-kept:])


AS_SHAPED: dict[str, Any] = {
    "also_saved": ("result_shape",),
    "saved_names": dict.fromkeys(("self", "other", "other_shape", "result_shape")),
    "saved_facts": {"self_sym_sizes": _product_sizes},
}
"""What users see of a product whose last step, to them, gives it its shape."""


@internal(
    "_matmul(Tensor self, Tensor other) -> Tensor",
    **AS_SHAPED,
    batch=(2, 2),
    factors=("self", "other"),
    node="UnsafeViewBackward0",
    autocast="lower",
    decomposition=decompositions.matmul,
    backward={"self": _of_left, "other": _of_right},
)
def matmul_nd(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """`matmul` where an operand has three dims or more."""
    folded = right.ndim <= 2
    inner = right.shape[0] if right.ndim == 1 else right.shape[-2]
    if left.shape[-1] != inner or left.dtype != right.dtype or left.dtype.kind in "bW":
        _check_folded(left, right) if folded else _check_batches(left, right)
    try:
        return product(left, right)
    except ValueError:
        _check_batches(left, right)
        raise


# Where torch multiplies with `mv`, to which autocast has nothing to say on the CPU.
internal("_matmul_as_mv(Tensor self, Tensor other) -> Tensor",
         **AS_SHAPED, batch=examples.matrix_vector, node="UnsafeViewBackward0",
         autocast="cuda=lower", factors=("self", "other"),
         decomposition=decompositions.matmul, backward=matmul_nd.backward)(
    matmul_nd.body)  # fmt: skip


def _check_folded(left: np.ndarray, right: np.ndarray) -> None:
    """A batch times one matrix or vector: torch multiplies all rows at once."""
    rows = left.reshape(math.prod(left.shape[:-1]), left.shape[-1])
    if right.ndim == 1:
        check_mv(rows, right)
    else:
        _check_mm(rows, right)


def _check_batches(left: np.ndarray, right: np.ndarray) -> None:
    """Two batches: torch broadcasts them, then multiplies as `bmm` does."""
    from flambeau._ops.table.pointwise import broadcast_shape

    rows = (1, *left.shape) if left.ndim == 1 else left.shape
    batch = math.prod(broadcast_shape([rows[:-2], right.shape[:-2]]))
    wanted, have = [batch, rows[-1]], [batch, right.shape[-2]]
    if wanted != have:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {wanted} but got: "
            f"{have}."
        )
    if left.dtype.kind in "bW" and left.size and right.size:
        raise refuse("bmm", left.dtype)
    if left.dtype != right.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(left)} but found {scalar_name(right)}"
        )


alias("linalg.matmul", "matmul")
