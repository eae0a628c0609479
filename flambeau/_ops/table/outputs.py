"""`out=` and in-place results: checks, resizing, casting, in torch's words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.layout import contiguous_strides, is_dense
from flambeau._core.promotion import FLOAT, category
from flambeau._core.settings import users_level
from flambeau._ops.table import out_learning
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.op import Op
from flambeau._runtime.cpu import address, element_strides, write
from flambeau._tensor import device_array, meta
from flambeau._tensor.bits import among, on_memory, put
from flambeau._tensor.device_array import DeviceArray
from flambeau._tensor.meta import Meta
from flambeau._tensor.tensor import Tensor, constructors, memory_of, wrap
from flambeau.autograd.history import bump, check_inplace


def can_cast(source: dt.dtype, target: dt.dtype) -> bool:
    """Whether a result of one type may be written to a tensor of another (`torch.can_cast`)."""
    return category(source) <= category(target)


def check_cast(source: Any, target: Any) -> None:
    """Torch's error where a result cannot be stored in a lower category."""
    if source == target:
        return
    have, want = dt.from_numpy_dtype(source), dt.from_numpy_dtype(target)
    if not can_cast(have, want):
        raise RuntimeError(
            f"result type {have.scalar_name} can't be cast to the desired output type "
            f"{want.scalar_name}"
        )


def check_out(op: Op, out: Tensor, *inputs: Any) -> None:
    """`out=` and automatic differentiation do not go together."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.public}(): argument 'out' must be Tensor, not {plain_type_name(out)}")


def _refuse(op: Op, tensors: Sequence[Tensor]) -> None:
    """Torch's error where functions are being transformed that know one of the tensors."""
    for level in modes.stacks.levels:
        words = level.refuses_out(tensors)
        if words:
            kind = NotImplementedError if "forward AD" in words else RuntimeError
            raise kind(words.format(op.public))


def write_out(op: Op, out: Any, result: Any, inputs: Any = ()) -> Any:
    """Store a result in `out`, resizing it if it has another shape; returns `out`.

    `inputs`: the arguments of the call; `out` may not lie partly in their memory.
    """
    if isinstance(result, tuple) and isinstance(out, (tuple, list)):
        names = getattr(result, "_fields", ["result"] * len(result))
        for target, part, name in zip(out, result, names, strict=True):
            check_type(target, part, op, str(op.out_type or EXACT), name)
            write_out(op, target, part, inputs)
        return result.__class__(*out) if hasattr(result, "_fields") else tuple(out)
    if isinstance(result, tuple):
        raise TypeError(f"{op.public}(): argument 'out' must be tuple of Tensors, not "
                        f"{plain_type_name(out)}")  # fmt: skip
    check_out(op, out)
    if modes.watch.results and modes.stacks.levels:
        _refuse(op, (*tensors_in(inputs), out))
    if out._stored is not None and result is not out and among([out]):
        return _write_under_bits(op, out, result, inputs)
    if modes.grad.enabled and (result.requires_grad or out.requires_grad):
        out_learning.refuse(op, out, result, inputs)
    if out._data.__class__ is not result._data.__class__ and out.device is not result.device:
        first, second = sorted((out.device, result.device), key=lambda place: place.type == "cpu")
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two "
                           f"devices, {first} and {second}!")  # fmt: skip
    if op.follows_out:
        result = _in_type_of(out, op, result, inputs)
    elif op.out_type:
        text = op.out_type if isinstance(op.out_type, str) else op.out_type(inputs)
        check_type(out, result, op, text)
    if op.elementwise:  # what `out` is before it is resized counts
        check_overlap(out._data)
        check_partial_overlap(out, inputs)
        _check_operand(out, result, inputs)
    if op.out_type not in (TRUTH, ANY):
        check_cast(result._data.dtype, out._data.dtype)
    if op.out_apart:
        check_overlap(out._data)
        check_no_overlap(out._data, [tensor._data for tensor in tensors_in(inputs)])
    resize_output(out, result._data.shape, _strides_of(op, result._data))
    check_overlap(out._data)
    if modes.watch.saving or modes.watch.active:
        check_inplace(out, False, leaf=False)
    if modes.stacks.dispatch_modes or hasattr(type(out), "__torch_dispatch__"):
        return out.copy_(result)  # shown to the mode or class as a write
    if modes.grad.enabled and out_learning.is_copied(op, out, result):
        return out.copy_(result)
    store(out, result._data)
    bump(out)
    if modes.grad.enabled:
        out_learning.record(op, out, result, inputs)
    return out


def _check_operand(out: Tensor, result: Tensor, inputs: Any) -> None:
    """Torch's error where `out` is an operand that the others broadcast: it can't be resized while
    it is read."""
    if out._data.shape != result._data.shape and any(value is out for value in inputs):
        raise RuntimeError(f"output with shape {list(out._data.shape)} doesn't match the "
                           f"broadcast shape {list(result._data.shape)}")  # fmt: skip


def _write_under_bits(op: Op, out: Any, result: Tensor, inputs: Any) -> Any:
    """The same where `out` has a bit: its memory gets what stands for the result there."""
    with on_memory([out]):
        write_out(op, out, result, inputs)
    memory = memory_of(out)
    put(memory, memory, out._conjugated, out._negated)
    return out


def _in_type_of(out: Tensor, op: Op, result: Tensor, inputs: Any) -> Tensor:
    """The result computed in the type of `out`, unless another type was asked for."""
    names = [argument.name for argument in op.schema.arguments]
    position = names.index("dtype")
    if op.name == "prod" and inputs[1] is None:  # its form with `out=` is that along a dim
        raise TypeError('prod() missing 1 required positional arguments: "dim"')
    if out.dtype is result.dtype:
        return result
    if inputs[position] is not None:
        check_type(out, result, op, str(op.out_type or EXACT))
    if op.name == "mean" and category(out.dtype) < FLOAT:  # where the quotient is to be stored
        check_cast(dt.default_dtype().numpy_dtype, out._data.dtype)
    unwanted = inputs[position] is None and category(out.dtype) < FLOAT <= category(inputs[0].dtype)
    if op.name == "nansum" and unwanted:
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.scalar_name}'")
    from flambeau._ops.table.dispatch import Plain

    again = [*inputs[:position], out.dtype, *inputs[position + 1 :]]
    return Plain(op)(*again)  # type: ignore[no-any-return]


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors among arguments, those in lists included."""
    found = []
    for value in values:
        kind = value.__class__
        if kind is Tensor or isinstance(value, Tensor):
            found.append(value)
        elif kind is int or kind is float:
            continue
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, Tensor)]
    return found


NORM_TYPE = "linalg.{name} expected out tensor dtype {want} but got: {have}"
CASTABLE = "to be safely castable from"


def castable(name: str, part: str = "{part}") -> str:
    """The error of operators that write to any tensor of the result's category or a higher one."""
    return f"{name}: Expected {part} {CASTABLE} {{want}} dtype, but got {part} with dtype {{have}}"


JOINED = "torch.cat(): input types can't be cast to the desired output type {have}"
EXACT = "Expected out tensor to have dtype {c_want}, but got {c_have} instead"
FOUND = "Found dtype {have} but expected {want}"
INPUT = "result dtype {have} does not match input dtype {want}"
NOT_BOOL = "{name} does not support non-boolean outputs."
SAME = "{name}(): self and result must have the same scalar type"
MATCH = ("Expected the dtype for input and out to match, but got {want} for input's dtype and "
         "{have} for out's dtype.")  # fmt: skip
SCALAR = "expected scalar_type {want} but found {have}"
TRUTH = "{name} only supports bool tensor for result, got: {have}"
ANY = "{name} writes to every type"
NANSUM = "nansum: provided dtype must match dtype of result. Got {have} and {want}."
"""Errors for `out=` of another type than the result's: what rows give as `out_type`. `TRUTH` lets
uint8 pass, `ANY` everything."""


def check_type(out: Tensor, result: Tensor, op: Op, text: str, part: str = "result") -> None:
    """Some operators only write to tensors of just the result's type; `text` is their error.

    `part`: the name of a result among several.
    """
    if not text or not isinstance(out, Tensor) or out.dtype is result.dtype:
        return
    if text == ANY or (text == TRUTH and out.dtype in (dt.bool_, dt.uint8)):
        return
    if (CASTABLE in text or text == JOINED) and can_cast(result.dtype, out.dtype):
        return
    want, have = result.dtype.scalar_name, out.dtype.scalar_name
    kind = TypeError if text == JOINED else RuntimeError
    raise kind(
        text.format(
            name=op.public, want=want, have=have, c_want=result.dtype.c_name,
            c_have=out.dtype.c_name, part=part,
        )
    )  # fmt: skip


def _strides_of(op: Op, result: np.ndarray) -> Any:
    """The strides that `out` takes on when it is resized; None: row-major ones."""
    if op.namespace != "linalg" and not op.elementwise:
        return None
    strides = element_strides(result)
    return strides if is_dense(result.shape, strides) else None


def resize_output(out: Tensor, shape: tuple[int, ...], strides: Any = None) -> None:
    """Give `out` a shape; a warning if it held elements in another one."""
    if out._data.shape == shape:
        return
    if out._data.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape "
            f"{list(out._data.shape)}, which does not match the required output shape "
            f"{list(shape)}. This behavior is deprecated, and in a future PyTorch release outputs "
            "will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=users_level(2),
        )
    _resize(out, shape, strides)


def _resize(out: Tensor, shape: tuple[int, ...], strides: Any) -> None:
    """In the same memory where it is large enough or belongs to others; else in new memory."""
    alone = out._storage is None and out._root is None
    have = out._data
    if alone and isinstance(have, Meta):
        out._data = meta.empty(shape, contiguous_strides(shape), have.dtype)
        return
    if alone and isinstance(have, DeviceArray):
        steps = contiguous_strides(shape) if strides is None else strides
        out._data = device_array.empty(shape, steps, have.dtype, have.place.index)
        return
    if alone and strides is None and out._data.size < prod(shape):
        out._data = np.empty(shape, out._data.dtype)
        return
    from flambeau._ops.views.strided import resize_memory

    resize_memory(out, shape, contiguous_strides(shape) if strides is None else strides)


def inplace_array(target: Tensor, data: np.ndarray, *, repeatable: bool = False) -> None:
    """Overwrite a tensor with a result that broadcasts to it and casts to its type."""
    mine = target._data
    check_written(mine, data)
    if not repeatable:
        check_overlap(mine)
    store(target, data)


def store(target: Tensor, data: np.ndarray) -> None:
    """Write values, wherever they and the target lie."""
    mine = target._data
    if mine.__class__ is np.ndarray:
        write(mine, data)
    elif mine.__class__ is not Meta:
        constructors["assign_across"](target, wrap(data))


def check_written(mine: np.ndarray, data: np.ndarray) -> None:
    """Whether a result fits into a tensor: it may broadcast and be cast."""
    if data.shape != mine.shape:
        check_inplace_shape(mine.shape, data.shape)
    check_cast(data.dtype, mine.dtype)


def check_inplace_shape(mine: tuple[int, ...], result: tuple[int, ...]) -> None:
    """An in-place result may not be larger than the tensor it is written to."""
    missing = len(mine) - len(result)
    fits = missing >= 0 and all(
        size in (1, have) for have, size in zip(mine[missing:], result, strict=True)
    )
    if not fits:
        raise RuntimeError(
            f"output with shape {list(mine)} doesn't match the broadcast shape {list(result)}"
        )


def check_overlap(data: np.ndarray) -> None:
    """A tensor whose elements share memory (as after expand) cannot be written to."""
    if not data.flags.c_contiguous and _repeats(data):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def warn_overlap(data: np.ndarray, name: str, form: str) -> None:
    """Torch's warning where it writes nevertheless, each time."""
    if not data.flags.c_contiguous and _repeats(data):
        text = (f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor "
                "before performing this operation. This also applies to advanced indexing e.g. "
                f"tensor[{form}")  # fmt: skip
        warnings.warn(text, UserWarning, stacklevel=users_level(5))


def _repeats(data: np.ndarray) -> bool:
    return any(
        stride == 0 and size > 1 for size, stride in zip(data.shape, data.strides, strict=True)
    )


SHARED = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def check_partial_overlap(target: Tensor, operands: Any) -> None:
    """An operand may be the written tensor itself or apart from it, not partly the same memory.

    Tensors without a common root share memory only if they were made from a storage that both know.
    """
    for operand in operands:
        if not isinstance(operand, Tensor) or operand is target:
            continue
        if target._root is None and operand._root is None and (
            target._storage is None or operand._storage is None
        ):  # fmt: skip
            continue
        check_partly_same(target._data, operand._data)


def check_partly_same(target: np.ndarray, operand: np.ndarray) -> None:
    """The same for arrays."""
    if _partly_same(target, operand):
        raise RuntimeError(SHARED)


def check_no_overlap(target: np.ndarray, operands: Any) -> None:
    """Operators that jump about in memory take no operand from the memory they write to."""
    for operand in operands:
        if operand is not target and not np.may_share_memory(target, operand):
            continue
        same = operand is target or _same_place(target, operand)
        if same or _partly_same(target, operand):
            raise RuntimeError(SHARED)


def same_elements(mine: Any, theirs: Any) -> bool:
    """Whether two arrays show the same elements in the same order: a copy changes nothing."""
    if mine is theirs:
        return True
    if mine.__class__ is not np.ndarray or theirs.__class__ is not np.ndarray:
        return False
    alike = mine.shape == theirs.shape and mine.strides == theirs.strides
    return alike and mine.dtype == theirs.dtype and address(mine) == address(theirs)


def _same_place(mine: np.ndarray, theirs: np.ndarray) -> bool:
    if not mine.size or address(mine) != address(theirs) or mine.nbytes != theirs.nbytes:
        return False
    return is_dense(mine.shape, element_strides(mine))


def _partly_same(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Torch's rule: dense tensors whose byte ranges meet without being equal."""
    if not np.may_share_memory(mine, theirs):
        return False
    for data in (mine, theirs):
        if not is_dense(data.shape, element_strides(data)):
            return False
    same_range = address(mine) == address(theirs) and mine.nbytes == theirs.nbytes
    return not (same_range and mine.strides == theirs.strides)
