"""Matrix products on GPUs: the rows of `_ops/products` through cuBLASLt.

`multiply` finds the plan of a product by types, shapes and strides alone; a call that was there
before costs a look-up and the launch. Operands that the library cannot read where they lie are
copied first. Shapes and types that do not fit are left to the row on the host, whose errors are
torch's.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import precision
from flambeau._core.dtype import from_numpy_dtype
from flambeau._core.settings import Determinism
from flambeau._ops.cuda.repeating import kept, repeated
from flambeau._ops.cuda.table import on_gpu, writing_on_gpu
from flambeau._ops.products import linear_halves as _other_form  # noqa: F401  (autocast knows it)
from flambeau._ops.table.namespace import ops
from flambeau._ops.views.basic import expand
from flambeau._runtime.cpu import address, element_strides
from flambeau._runtime.cuda.libraries import cublaslt_numbers as numbers
from flambeau._runtime.cuda.libraries.cublaslt import Kind, Plan, Unsupported
from flambeau._runtime.cuda.libraries.matrices import Array, Product, arranged, contiguous, stored
from flambeau._runtime.cuda.libraries.workspaces import capturing
from flambeau._runtime.cuda.memory import Block, Current, running
from flambeau._tensor import device_array
from flambeau._tensor.device_array import layout_of

FLOAT32 = np.dtype(np.float32)
NAMES = {"f": "float32", "d": "float64", "e": "float16", "E": "bfloat16", "F": "complex64",
         "D": "complex128"}  # fmt: skip
"""Types that are multiplied, by NumPy's letters."""
WITH_EPILOGUE = frozenset("feE")
"""Types whose products the library finishes with a bias or an activation."""
HALVES = {"e": "fp16", "E": "bf16"}
MATRIX = 2
PLAIN = (False, False)
LEFT, RIGHT = (True, False), (False, True)


class Ready:
    """A product that was planned: where its result lies, and the library's plan. `plan` is None
    where nothing is multiplied: the result has no elements, or is a sum of none."""

    __slots__ = ("dtype", "kind", "make", "nbytes", "plan", "shape", "steps")

    def __init__(self, plan: Plan | None, out: Array, dtype: np.dtype[Any]) -> None:
        self.plan, self.shape, self.dtype = plan, out.shape, dtype
        self.steps = tuple([step * dtype.itemsize for step in out.strides])
        self.kind = device_array.class_of(Current.device)
        self.nbytes = 0
        if 0 not in out.shape:
            reach = sum([(n - 1) * step for n, step in zip(out.shape, self.steps, strict=True)])
            self.nbytes = reach + dtype.itemsize
        self.make = device_array.maker_of(self.kind, self.shape, dtype, self.steps)


PLANS: dict[Any, Any] = {}
"""All that a plan depends on -> `Ready`; None where the product is not for the library."""


def multiply(left: Any, right: Any, added: Any = None, alpha: complex = 1, beta: complex = 0, *,
             turned: tuple[bool, bool] = PLAIN, epilogue: int = numbers.DEFAULT, bias: Any = None,
             aux: Any = None, tf32: bool | None = None, widened: bool = False,
             strides: tuple[int, ...] | None = None) -> Any:  # fmt: skip
    """`alpha * left @ right + beta * added`, then the epilogue, in new memory.

    Args:
        left: [*, N, K], or its adjoint where `turned` says so; `right`: [*, K, M]. Batches
            broadcast; both have two dims at least.
        added: of the result's shape.
        epilogue: of `cublaslt_numbers`, with the arrays that it reads or writes.
        tf32: whether float32 may be rounded so; by default what the settings of products say.
        widened: half types give float32.
        strides: of the result, in elements; row-major by default.

    Returns:
        NotImplemented where the library cannot.
    """
    letter = left.dtype.char
    if letter not in NAMES:
        if left.dtype.kind in "biu" and left.dtype == right.dtype and left.ndim == MATRIX:
            name = dt.from_numpy_dtype(left.dtype).scalar_name
            raise NotImplementedError(f"\"addmm_cuda\" not implemented for '{name}'")
        return NotImplemented
    at_left, at_right = address(left), address(right)
    at_added = 0 if added is None else address(added)
    at_bias = 0 if bias is None else address(bias)
    low = (at_left | at_right | at_added | at_bias) & 255
    if tf32 is None:
        tf32 = letter in "fF" and allows_tf32()
    key = (left.layout or layout_of(left), right.layout or layout_of(right), turned, epilogue,
           low & -low, tf32, Determinism.enabled, None if added is None else layout_of(added),
           letter in HALVES and HALVES[letter] in precision.Precision.wide_reductions, widened,
           strides, Current.device)  # fmt: skip
    ready = PLANS.get(key, PLANS)
    if ready is PLANS:
        ready = PLANS[key] = _planned(
            left, right, added, turned, strides, _Wish(epilogue, low & -low or 256, tf32, widened)
        )
    if ready is None:
        return _copied(left, right, added, alpha, beta, turned=turned, epilogue=epilogue,
                       bias=bias, aux=aux, tf32=tf32, widened=widened, strides=strides)  # fmt: skip
    block = Block(ready.nbytes, Current.device)
    if ready.plan is None:
        out = device_array.over_block(block, ready.kind, ready.shape, ready.dtype, ready.steps)
    else:
        out = ready.make(block, block.address)
        ready.plan.run(at_left, at_right, block.address, at_added, alpha, beta, at_bias,
                       0 if aux is None else address(aux))  # fmt: skip
    watching = device_array.watching
    if watching is not None and ready.plan is not None:
        watching.allocated(out)
        watching.called(ready.plan.on, (left, right, out, *[0 if array is None else array for array
                                        in (added, bias, aux)], alpha, beta))  # fmt: skip
    if ready.plan is None and out.size:
        return NotImplemented if added is not None or bias is not None else zeroed(out)
    return out


def allows_tf32() -> bool:
    """Whether products of float32 may be rounded to TF32: what `allow_tf32`, `fp32_precision` and
    `set_float32_matmul_precision` say."""
    return precision.fp32_precision(precision.CUDA, "matmul") == "tf32"


def zeroed(out: Any) -> Any:
    """An array whose memory is whole, filled with zeros."""
    device_array.unseen()
    running().fill(address(out), 0, 1, out.nbytes, Current.stream)
    return out


def as_array(data: np.ndarray) -> Array:
    """Shape and strides in elements."""
    return Array(data.shape, element_strides(data))


def _turned(data: np.ndarray, turned: bool) -> Array:
    return as_array(data).mT if turned else as_array(data)


class _Wish(NamedTuple):
    """What is wanted of a product besides its operands."""

    epilogue: int
    alignment: int
    tf32: bool
    widened: bool


def _planned(left: np.ndarray, right: np.ndarray, added: np.ndarray | None,
             turned: tuple[bool, bool], strides: tuple[int, ...] | None,
             wish: _Wish) -> Ready | None:  # fmt: skip
    """The plan of a product; None where operands do not fit, or the library has none."""
    one, other = _turned(left, turned[0]), _turned(right, turned[1])
    if right.dtype != left.dtype or one.shape[-1] != other.shape[-2]:
        return None
    try:
        batch = np.broadcast_shapes(one.shape[:-2], other.shape[:-2])
    except ValueError:
        return None
    shape = (*batch, one.shape[-2], other.shape[-1])
    dtype = FLOAT32 if wish.widened and left.dtype.itemsize == 2 else left.dtype
    if added is not None and (added.shape != shape or added.dtype != dtype):
        return None
    out = contiguous(shape) if strides is None else Array(shape, strides)
    if 0 in shape or one.shape[-1] == 0:
        return Ready(None, out, dtype)
    conjugated = turned if left.dtype.kind == "c" else PLAIN
    product = arranged(one, other, out, None if added is None else as_array(added), conjugated)
    plan = None if product is None else _plan_of(product, left.dtype.char, wish, turned)
    return None if plan is None else Ready(plan, out, dtype)


def _plan_of(product: Product, letter: str, wish: _Wish, turned: tuple[bool, bool]) -> Plan | None:
    """The library's plan of a product; None where it has no algorithm."""
    conjugated = turned if letter in "FD" else PLAIN
    wide = HALVES.get(letter) in precision.Precision.wide_reductions
    result = "float32" if wish.widened and letter in HALVES else ""
    kind = Kind(NAMES[letter], wish.epilogue, wish.tf32, wish.alignment, conjugated, wide,
                measured=not Determinism.enabled, result=result)  # fmt: skip
    try:
        return Plan(product, kind)
    except Unsupported:
        return None


# ---- operands that are copied first


def in_rows(data: Any) -> Any:
    """The array itself where its rows or columns are contiguous, else a row-major copy."""
    return device_array.contiguous(data) if stored(as_array(data)) is None else data


def _copied(left: Any, right: Any, added: Any, alpha: complex, beta: complex,
            **how: Any) -> Any:  # fmt: skip
    """The same with operands that the library can read, if that is what it takes. What is to be
    conjugated is transposed as well, from rows."""
    given = left, right, added
    found = in_rows(left), in_rows(right), added
    if left.dtype.kind == "c":
        found = (*(
            device_array.contiguous(data) if turn and not data.flags.c_contiguous else data
            for data, turn in zip(found, how["turned"], strict=False)
        ), added)  # fmt: skip
    if added is not None and added.strides != element_bytes(added):
        found = *found[:2], device_array.contiguous(added)
    if all(one is other for one, other in zip(given, found, strict=True)):
        return NotImplemented
    return multiply(*found, alpha, beta, **how)


def element_bytes(data: Any) -> tuple[int, ...]:
    """The strides, in bytes, of row-major memory."""
    return tuple([step * data.itemsize for step in contiguous(data.shape).strides])


def spread(data: Any, shape: tuple[int, ...]) -> Any:
    """A copy of an array broadcast to a shape; None where it does not broadcast."""
    try:
        return device_array.contiguous(expand.body(data, shape))
    except RuntimeError:
        return None


# ---- rows


def _fit(left: Any, right: Any, *ranks: int) -> bool:
    return (left.ndim, right.ndim) == ranks


@on_gpu("mm")
def mm(left: Any, right: Any) -> Any:
    """[N, K] @ [K, M]."""
    return multiply(left, right) if _fit(left, right, 2, 2) else NotImplemented


@on_gpu("bmm")
def bmm(left: Any, right: Any) -> Any:
    """[B, N, K] @ [B, K, M]."""
    fits = _fit(left, right, 3, 3) and left.shape[0] == right.shape[0]
    return multiply(left, right) if fits else NotImplemented


@on_gpu("_matmul", "_matmul_as_mv")
def matmul(left: Any, right: Any) -> Any:
    """Any ranks; a vector is a row on the left, a column on the right."""
    if left.ndim > 1 and right.ndim > 1:
        return multiply(left, right)
    return _with_vectors(left, right)


def _with_vectors(left: Any, right: Any) -> Any:
    result = multiply(left[None, :] if left.ndim == 1 else left,
                      right[:, None] if right.ndim == 1 else right)  # fmt: skip
    if result is NotImplemented:
        return result
    if right.ndim == 1:
        result = result[..., 0]
    if left.ndim == 1:
        result = result[..., 0] if right.ndim == 1 else result[..., 0, :]
    return result


@on_gpu("_times_adjoint")
def times_adjoint(left: Any, right: Any) -> Any:
    """`left @ right.mH`."""
    return multiply(left, right, turned=RIGHT)


@on_gpu("_adjoint_times")
def adjoint_times(left: Any, right: Any) -> Any:
    """`left.mH @ right`."""
    return multiply(left, right, turned=LEFT)


@on_gpu("dot", "_matmul_dot")
def dot(left: Any, right: Any) -> Any:
    """[K] by [K]: a number."""
    fits = _fit(left, right, 1, 1) and left.size == right.size
    return _with_vectors(left, right) if fits else NotImplemented


@on_gpu("mv", "_matmul_mv", "_times_row")
def mv(matrix: Any, vector: Any) -> Any:
    """[N, K] @ [K]."""
    return _with_vectors(matrix, vector) if _fit(matrix, vector, 2, 1) else NotImplemented


@on_gpu("_vector_times", "_transposed_mv")
def vector_times(vector: Any, matrix: Any) -> Any:
    """[K] @ [K, M]."""
    return _with_vectors(vector, matrix) if _fit(vector, matrix, 1, 2) else NotImplemented


# ---- sums with a product


def _sum(data: Any, left: Any, right: Any, beta: Any, alpha: Any) -> Any:
    """`beta * data + alpha * left @ right`; `data` broadcasts to the product's shape."""
    if not isinstance(data, device_array.DeviceArray) or data.dtype != left.dtype:
        return NotImplemented
    shape = (*left.shape[:-1], right.shape[-1])
    if not _broadcasts(data.shape, shape):
        return NotImplemented
    if beta == 0:
        return multiply(left, right, None, alpha)
    if data.shape == shape:
        return multiply(left, right, data, alpha, beta)
    row = data if data.ndim == 1 else data[0] if data.ndim == 2 and data.shape[0] == 1 else None
    if row is not None and beta == 1 and left.ndim == 2:
        found = biased(left, right, row, alpha)
        if found is not NotImplemented:
            return found
    return multiply(left, right, spread(data, shape), alpha, beta)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape can be expanded to another."""
    behind = to[len(to) - len(shape) :]
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape, behind, strict=True))


def biased(left: Any, right: Any, bias: Any, alpha: Any = 1, *,
           turned: tuple[bool, bool] = PLAIN, tf32: bool | None = None) -> Any:  # fmt: skip
    """`alpha * left @ right + bias`, [M], by the library's epilogue where it has one."""
    columns = right.shape[-2] if turned[1] else right.shape[-1]
    fits = bias.shape == (columns,) and bias.dtype == left.dtype
    if not fits or left.dtype.char not in WITH_EPILOGUE or right.ndim != 2:
        return NotImplemented
    if columns > 1 and bias.strides[0] != bias.itemsize:
        return NotImplemented
    return multiply(left, right, None, alpha, turned=turned, epilogue=numbers.BIAS, bias=bias,
                    tf32=tf32)  # fmt: skip


@on_gpu("addmm")
def addmm(data: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * data + alpha * mat1 @ mat2`."""
    return _sum(data, mat1, mat2, beta, alpha) if _fit(mat1, mat2, 2, 2) else NotImplemented


@on_gpu("baddbmm")
def baddbmm(data: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """The same of batches."""
    fits = _fit(batch1, batch2, 3, 3) and batch1.shape[0] == batch2.shape[0]
    return _sum(data, batch1, batch2, beta, alpha) if fits else NotImplemented


@on_gpu("addmv")
def addmv(data: Any, matrix: Any, vector: Any, beta: Any, alpha: Any) -> Any:
    """`beta * data + alpha * matrix @ vector`."""
    if not _fit(matrix, vector, 2, 1) or not isinstance(data, device_array.DeviceArray):
        return NotImplemented
    result = _sum(data[..., None] if data.ndim else data, matrix, vector[:, None], beta, alpha)
    return result if result is NotImplemented else result[:, 0]


@on_gpu("addr")
def addr(data: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * data + alpha * outer(vec1, vec2)`."""
    same = isinstance(data, device_array.DeviceArray) and data.dtype == vec1.dtype == vec2.dtype
    if not same or not _fit(vec1, vec2, 1, 1) or data.shape != (vec1.size, vec2.size):
        return NotImplemented
    if isinstance(alpha, complex) or isinstance(beta, complex):
        return NotImplemented
    added = None if beta == 0 else data
    return multiply(vec1[:, None], vec2[None, :], added, alpha, beta, tf32=False)


@on_gpu("outer", "_matmul_outer")
def outer(vec1: Any, vec2: Any) -> Any:
    """[N] by [M]: [N, M]."""
    if not _fit(vec1, vec2, 1, 1) or vec1.dtype != vec2.dtype:
        return NotImplemented
    return multiply(vec1[:, None], vec2[None, :], tf32=False)


@on_gpu("addbmm")
def addbmm(data: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """`beta * data + alpha` times the sum of a batch of products, one after the other."""
    if not _fit(batch1, batch2, 3, 3) or batch1.shape[0] != batch2.shape[0] or not len(batch1):
        return NotImplemented
    total = data
    for place in range(len(batch1)):
        total = _sum(total, batch1[place], batch2[place], beta if place == 0 else 1, alpha)
        if total is NotImplemented:
            return total
    return total


def _written(name: str, compute: Any) -> None:
    """The row in place: what it gives, copied over its first argument."""

    @writing_on_gpu(name)
    def write(data: Any, *values: Any) -> Any:
        result = compute(data, *values)
        if result is not NotImplemented and result.shape == data.shape:
            device_array.assigned[0](data, result)
            return data
        return NotImplemented


for _name, _compute in (("addmm", addmm), ("baddbmm", baddbmm), ("addmv", addmv), ("addr", addr),
                        ("addbmm", addbmm)):  # fmt: skip
    _written(_name, _compute)


# ---- linear maps


@on_gpu("_linear", "_linear_no_bias", "_linear_nd", "_linear_nd_no_bias")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.T + bias`: [*, K], [N, K] and [N]."""
    if weight.ndim != 2 or input.ndim == 0:
        return NotImplemented
    rows = input[None, :] if input.ndim == 1 else input
    result = _linear(rows, weight, bias)
    return result[0] if input.ndim == 1 and result is not NotImplemented else result


def _linear(rows: Any, weight: Any, bias: Any) -> Any:
    if bias is None:
        return multiply(rows, weight.T)
    result = biased(rows, weight, bias, turned=RIGHT)
    if result is not NotImplemented or rows.dtype != bias.dtype:
        return result
    shape = *rows.shape[:-1], weight.shape[0]
    if not _broadcasts(bias.shape, shape):
        return NotImplemented
    return multiply(rows, weight.T, spread(bias, shape), 1, 1)


def settings() -> tuple[Any, ...]:
    """What products depend on besides their operands."""
    return allows_tf32(), *precision.Precision.wide_reductions


@on_gpu("linear_backward")
@partial(repeated, state=settings)
def linear_backward(input: Any, grad: Any, weight: Any, output_mask: Any) -> Any:
    """`grad @ weight`, `grad.T @ input` and the column sums of `grad`, where wanted."""
    if input.dtype.char not in "fdeE":
        return NotImplemented
    return _linear_gradients(input, grad, weight, output_mask)


def _linear_gradients(input: Any, grad: Any, weight: Any, wanted: Any, *, wide_input: bool = False,
                      wide: bool = False) -> Any:  # fmt: skip
    """Gradients of input, weight and bias. Of half types in float32 where they are wide: that of
    the input, those of weight and bias."""
    of_input = of_weight = of_bias = None
    if wanted[0]:
        rows = grad[None, :] if grad.ndim == 1 else grad
        of_input = multiply(rows, weight, widened=wide_input)
        if grad.ndim == 1 and of_input is not NotImplemented:
            of_input = of_input[0]
    if wanted[1] or wanted[2]:
        of_weight, of_bias = _of_parameters(input, grad, wanted, wide)
    found = of_input, of_weight, of_bias
    return NotImplemented if any(part is NotImplemented for part in found) else found


def _of_parameters(input: Any, grad: Any, wanted: Any, wide: bool) -> tuple[Any, Any]:
    """The gradients of weight and bias, at once where the library can."""
    grads = flat(grad)
    of_bias = None
    if not wanted[1]:
        return None, column_sums(grads, wide)
    inputs = flat(input)
    if wanted[2] and grads.dtype.char in HALVES and grads.size and inputs.size:
        kind = FLOAT32 if wide else grads.dtype
        of_bias = device_array.empty((grads.shape[1],), (1,), kind, Current.device)
        of_weight = multiply(grads, inputs, turned=LEFT, epilogue=numbers.BGRADB, bias=of_bias,
                             widened=wide)  # fmt: skip
        if of_weight is not NotImplemented:
            return of_weight, of_bias
    of_weight = multiply(grads, inputs, turned=LEFT, widened=wide)
    return of_weight, column_sums(grads, wide) if wanted[2] else None


@on_gpu("_linear_of_halves", "_linear_of_halves_no_bias", "_linear_of_halves_nd",
        "_linear_of_halves_nd_no_bias")  # fmt: skip
def linear_of_halves(input: Any, weight: Any, bias: Any, half_input: Any, half_weight: Any,
                     half_bias: Any) -> Any:  # fmt: skip
    """`half_input @ half_weight.T + half_bias`."""
    return linear(half_input, half_weight, half_bias)


@on_gpu("_linear_of_halves_backward")
@partial(repeated, state=settings)
def linear_of_halves_backward(input: Any, grad: Any, weight: Any, output_mask: Any,
                              widened: bool) -> Any:  # fmt: skip
    """The gradients of half types; of parameters, and of the input where it is `widened`, in
    float32."""
    return _linear_gradients(input, grad, weight, output_mask, wide_input=widened, wide=True)


def flat(data: Any) -> Any:
    """[*, K] as [N, K]."""
    return data if data.ndim == 2 else data.reshape(math.prod(data.shape[:-1]), data.shape[-1])


# ---- sums as products


ONES: dict[tuple[str, int], Any] = {}


def ones(length: int, dtype: np.dtype[Any]) -> Any:
    """[N] of ones, the beginning of a longer array that is kept; while a graph is captured, of an
    array of its own, which is written when the graph is replayed."""
    key = dtype.char, Current.device
    held = ONES.get(key)
    if held is None or held.size < length:
        size = max(4096, 1 << (length - 1).bit_length())
        kind, place = from_numpy_dtype(dtype), device_array.CUDA[Current.device]
        if capturing():
            return ops.ones((length,), dtype=kind, device=place)._data
        held = ONES[key] = kept(lambda: ops.ones((size,), dtype=kind, device=place)._data)
    return kept(lambda: held)[:length]


def column_sums(data: Any, wide: bool = False) -> Any:
    """The sums of the columns of [N, M]: a row of ones times the matrix, in full precision; of half
    types in float32 where they are wide."""
    if not len(data):
        kind = FLOAT32 if wide else data.dtype
        return zeroed(device_array.empty((data.shape[1],), (1,), kind, Current.device))
    row = ones(len(data), data.dtype)[None, :]
    result = multiply(row, data, tf32=False, widened=wide)
    return result if result is NotImplemented else device_array.alone(result, result.shape[1:])
