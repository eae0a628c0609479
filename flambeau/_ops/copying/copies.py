"""Copies, casts and plain writes: `clone`, `to`, `contiguous`, `copy_`, `fill_`, `detach`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core import modes
from flambeau._core.device import META, check_available
from flambeau._core.doc_text import with_example
from flambeau._core.parts import part_type, real_part
from flambeau._core.settings import warn_once
from flambeau._ops.copying.to_arguments import parse_to
from flambeau._ops.launching import copies
from flambeau._ops.table import outputs, pointwise
from flambeau._ops.table.binder import no_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.pointwise import FLOAT32, LIMIT
from flambeau._ops.table.scalars import checked_number, filling
from flambeau._runtime import choice, cpu
from flambeau._tensor.bits import Unresolved, awaits_bits, reading, set_bits, share, writing
from flambeau._tensor.conversion import HALF_LOST
from flambeau._tensor.examples import Example
from flambeau._tensor.meta import NO_DATA, Meta
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import (
    Tensor,
    constructors,
    memory_of,
    method,
    provides,
    shown,
    storage_of,
    without_memory,
    wrap,
)
from flambeau.autograd.batches import TOO_SMALL, innermost
from flambeau.autograd.graph import next_sequence_number
from flambeau.autograd.history import alias_of, begin_anew, bump, check_inplace, is_inference
from flambeau.autograd.refitted import before_other_memory
from flambeau.autograd.tangents import overwrite
from flambeau.autograd.versions import cut_off, stop_requiring_grad

COMPLEX64 = np.dtype(np.complex64)
FLOAT16, INT32 = np.dtype(np.float16), np.dtype(np.int32)


def copy_in_format(data: np.ndarray, numpy_dtype: Any, memory_format: Any) -> np.ndarray:
    """New memory with the values of `data` in another type and memory format."""
    token = cpu.enter_quiet(cpu.QUIET)
    try:
        return _copied(data, numpy_dtype, memory_format)
    finally:
        cpu.leave_quiet(token)


def _copied(data: np.ndarray, numpy_dtype: Any, memory_format: Any) -> np.ndarray:
    """The same for rows, in which NumPy warns of nothing."""
    if memory_format is None or memory_format is lay.preserve_format:
        plain = data.base is None and data.flags.c_contiguous
        strides = None if plain else cpu.preserved_strides(data)
    else:
        strides = format_strides(data.shape, memory_format)
    if strides is None:
        return _row_major(data, numpy_dtype)
    result = cpu.empty_strided(data.shape, strides, numpy_dtype)
    assign(result, data)
    return result


def _row_major(data: np.ndarray, numpy_dtype: Any) -> np.ndarray:
    """The values in new row-major memory."""
    steps = _steps(data.dtype, numpy_dtype)
    if data.size >= steps.limit or (choice.Learning.thread and choice.learns()):
        result = copies.converted(data, numpy_dtype)
        if result is not None:
            return result
    return steps.taken(data).astype(numpy_dtype, "C")


def assign(target: np.ndarray, source: np.ndarray) -> None:
    """Write values, converted as torch does: complex drops its imaginary part."""
    if target.size >= LIMIT and copies.convert(target, source):
        return
    if source.dtype == target.dtype:
        cpu.put(target, source)
        return
    np.copyto(target, _steps(source.dtype, target.dtype).taken(source), casting="unsafe")


class Steps(NamedTuple):
    """How values of one type become values of another."""

    limit: int  # elements from which on a compiled loop is faster
    real: bool  # the imaginary part is dropped
    through: tuple[np.dtype[Any], ...]  # the types that NumPy has to go through on the way

    def taken(self, source: np.ndarray) -> np.ndarray:
        """The values in the last type from which NumPy converts as torch does."""
        if self.real:
            source = real_part(source)
        for numpy_dtype in self.through:
            source = source.astype(numpy_dtype)
        return source


@lru_cache(1024)
def _steps(have: np.dtype[Any], want: np.dtype[Any]) -> Steps:
    """What becomes float16 is rounded to float32 first, as in torch, whose halves are made of
    floats; small integer types take the low bits of the 32-bit value, as on x86."""
    real = have.kind in "cW" and want.kind not in "cbW"
    halves = have != want and FLOAT16 in (have, want)
    limit = choice.limit("pointwise float16" if halves else "pointwise")
    if real:
        have = part_type(have)
    through: list[np.dtype[Any]] = [COMPLEX64] if have.kind in "W" and want.kind == "b" else []
    if have.kind == "V" and want.kind in "biu":
        through.append(FLOAT32)
    if have.kind in "fV" and want.kind in "iu" and want.itemsize < INT32.itemsize:
        through.append(INT32)
    if want == FLOAT16 and have.itemsize > FLOAT32.itemsize:
        through.append(FLOAT32)
    return Steps(limit, real, tuple(through))


def format_strides(shape: Any, memory_format: Any) -> tuple[int, ...] | None:
    """Strides of new memory in a format; None for row-major."""
    if memory_format is lay.contiguous_format:
        return None
    needed = {lay.channels_last: 4, lay.channels_last_3d: 5}.get(memory_format)
    if needed is None:
        raise TypeError("argument 'memory_format' must be torch.memory_format, not "
                        f"{type(memory_format).__name__}")  # fmt: skip
    if len(shape) != needed:
        raise RuntimeError(f"required rank {needed} tensor to use {memory_format.name} format")
    return lay.channels_last_strides(shape)


@kernel("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        regular=True, elementwise=True, inline="alike",
        backward={"self": lambda grad: grad})  # fmt: skip
def clone(data: np.ndarray, memory_format: Any) -> np.ndarray:
    """A copy in new memory; gradients flow through.

    >>> import flambeau as torch
    >>> x = torch.zeros(2)
    >>> y = torch.clone(x).add_(1)
    >>> x
    tensor([0., 0.])
    """
    return _copied(data, data.dtype, memory_format)


@kernel("_to_copy(Tensor self, *, ScalarType? dtype=None, MemoryFormat? memory_format=None)"
        " -> Tensor",
        devices="any", batch="elements", node="ToCopyBackward0", method=False, inline="alike",
        backward={
    "self": lambda grad: grad,
})  # fmt: skip
def to_copy(data: np.ndarray, dtype: dt.dtype | None, memory_format: Any) -> np.ndarray:
    """A copy in another type."""
    wanted = data.dtype if dtype is None else dtype.numpy_dtype
    if data.dtype.kind in "cW" and wanted.kind not in "cbW":
        warn_once(HALF_LOST, 4)
    return _copied(data, wanted, memory_format)


@method
@shown("to")
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """This tensor in another type, device or memory format; itself where nothing changes.

    Called as `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(other)`, which takes both from
    another tensor. The shape stays, and gradients go back through it.

    non_blocking: return before a copy between pinned memory and a GPU is done.
    copy: make a copy in any case.
    memory_format: how the result lies in memory, as in `contiguous`.

    >>> import flambeau as torch
    >>> x = torch.tensor([1.5, -1.5])
    >>> x.to(torch.int32)
    tensor([ 1, -1], dtype=torch.int32)
    >>> x.to("cpu") is x, x.to(torch.float64).to(x).dtype
    (True, torch.float32)
    """
    if len(args) == 1 and args[0].__class__ is dt.dtype and not kwargs:
        dtype = args[0]
        return self if dtype is self.dtype else ops._to_copy(self, dtype=dtype)  # type: ignore[no-any-return]
    dtype, place, copy, memory_format = parse_to(args, kwargs)
    if place is not None and place is not self.device:
        if META in (place, self.device):
            return _to_other(self, place, dtype, memory_format)
        return constructors["to_device"](self, place, dtype, copy, memory_format)  # type: ignore[no-any-return]
    same_type = dtype is None or dtype is self.dtype
    same_format = memory_format is None or memory_format is lay.preserve_format
    if same_type and not copy and (same_format or _suggested(self._data) is memory_format):
        return self
    return ops._to_copy(self, dtype=dtype or self.dtype, memory_format=memory_format)  # type: ignore[no-any-return]


def _to_other(tensor: Tensor, place: Any, dtype: Any, memory_format: Any) -> Tensor:
    """A tensor on the device "meta" for one that has memory; the other way there is none.

    Raises:
        NotImplementedError: the tensor has no data.
    """
    if place is not META:
        raise NotImplementedError(NO_DATA)
    twin = wrap(without_memory(tensor._data))
    result = ops._to_copy(twin, dtype=dtype or tensor.dtype, memory_format=memory_format)
    if tensor.requires_grad and modes.grad.enabled:
        to_copy.recorder.call(tensor, dtype, memory_format, result)
    return result  # type: ignore[no-any-return]


def _suggested(data: np.ndarray) -> Any:
    """The format that a tensor's strides look like: what is not channels-last counts as rows."""
    if not lay.is_channels_last(data.shape, cpu.element_strides(data)):
        return lay.contiguous_format
    return lay.channels_last if data.ndim == 4 else lay.channels_last_3d


def _cast_method(name: str, element: dt.dtype) -> None:
    def cast(self: Tensor, *, memory_format: Any = lay.preserve_format) -> Tensor:
        if self.dtype is not element:  # as `to` does, which has more to ask
            return ops._to_copy(self, dtype=element, memory_format=memory_format)  # type: ignore[no-any-return]
        if memory_format is lay.preserve_format:
            return self
        return to(self, element, memory_format=memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = with_example(
        f"This tensor as {element}, itself where it is so already; the shape stays.",
        f"torch.ones(2, dtype=torch.bool).{name}().dtype",
        f"{element}",
    )
    setattr(Tensor, name, cast)


for _name, _element in dt.CASTS.items():
    _cast_method(_name, _element)


@method
def is_contiguous(self: Tensor, *, memory_format: Any = lay.contiguous_format) -> bool:
    """Whether the elements lie in memory in the order of a format.

    >>> import flambeau as torch
    >>> x = torch.ones(2, 3)
    >>> x.is_contiguous(), x.t().is_contiguous()
    (True, False)
    """
    if memory_format is lay.contiguous_format or memory_format is lay.preserve_format:
        return self._data.flags.c_contiguous
    data = self._data
    if data.ndim != {lay.channels_last: 4, lay.channels_last_3d: 5}[memory_format]:
        return False
    wanted = lay.channels_last_strides(data.shape)
    have = cpu.element_strides(data)
    pairs = zip(data.shape, wanted, have, strict=True)
    return all(size == 1 or w == h for size, w, h in pairs)


@method
def contiguous(self: Tensor, *, memory_format: Any = lay.contiguous_format) -> Tensor:
    """A tensor of the same shape and values whose memory is in order; itself if it is already.

    memory_format: `torch.contiguous_format` (row by row), or `torch.channels_last` for (N, C, H, W)
        and `torch.channels_last_3d` for (N, C, D, H, W).

    `view` and code that reads memory itself need it after `t`, `permute` or a slice.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if is_contiguous(self, memory_format=memory_format):
        return self
    if memory_format is lay.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return ops.clone(self, memory_format=memory_format)  # type: ignore[no-any-return]


@method
@shown("detach")
def detach(self: Tensor) -> Tensor:
    """A tensor over the same memory that autograd does not watch: no history, no gradient.

    Its shape is the same, and what is written to one is seen in the other: `detach().clone()` is
    a copy. Of an inference tensor, outside of the mode, it has a version of its own.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = (x * 2).detach()
    >>> y, y.requires_grad
    (tensor([2., 2.]), False)
    """
    if self._inference and not modes.grad.inference:
        return self.data
    return alias_of(self)


@method
def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off from its history; its shape and values stay. Views cannot be cut off.

    Raises RuntimeError for a view: `detach` makes a tensor that is cut off.

    >>> import flambeau as torch
    >>> x = torch.ones(2, requires_grad=True) * 2
    >>> x.detach_().requires_grad
    False
    """
    if modes.grad.inference and not is_inference(self):
        return self  # inference mode leaves histories as they are
    if self._base is not None and not is_inference(self):
        raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using "
                           "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view"
                           " is set as True, gradients are views of DDP buckets, and hence "
                           "detach_() cannot be called on these gradients. To fix this error, "
                           "please refer to the Optimizer.zero_grad() function in "
                           "torch/optim/optimizer.py as the solution.")  # fmt: skip
    if self._node is not None:
        cut_off.add(self, next_sequence_number())
    self._node = None
    stop_requiring_grad(self)
    if self._tangents is not None:
        for level in modes.stacks.levels:
            level.put(self, None)
    return self


def _cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """A copy on the CPU, of the same shape; the tensor itself if it is there already.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x.cpu() is x
    True
    """
    if memory_format is None and self.is_cpu:
        return self
    return to(self, "cpu", memory_format=memory_format)


Tensor.cpu = _cpu  # type: ignore[attr-defined]
_cpu.__name__ = _cpu.__qualname__ = "cpu"


@method
@shown("cuda")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False,
         memory_format: Any = None) -> Tensor:  # fmt: skip
    """A copy on a GPU, of the same shape; this tensor itself if it is there.

    Raises RuntimeError where there is no GPU: `x.to(device)` with a device that the program
    chooses runs on either.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x = x.cuda() if torch.cuda.is_available() else x
    >>> x.shape
    torch.Size([2])
    """
    place = check_available("cuda" if device is None else device)
    if place.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    return self.to(place, memory_format=memory_format)  # type: ignore[attr-defined, no-any-return]


@provides("set_data")
def set_data(tensor: Tensor, other: Tensor) -> None:
    """`tensor.data = other`: another memory, the same history."""
    if not isinstance(other, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
    if isinstance(other, SparseTensor) != isinstance(tensor, SparseTensor):
        raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and "
                           "`tensor` have incompatible tensor type.")  # fmt: skip
    if tensor._requires_grad and memory_of(other).dtype.kind not in "fcVW":
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or "
                           "complex dtype")  # fmt: skip
    if tensor._node is None and memory_of(other).dtype != memory_of(tensor).dtype:
        begin_anew(tensor)
    before_other_memory(tensor, memory_of(other))
    set_bits(tensor, False, False)
    share(other, tensor)
    tensor._storage = storage_of(other)
    if other._inference and not tensor._inference:
        tensor._inference = tensor._counts = True


# ---- writes


@composite("copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
           inplace=False,
           function=False, method=False)  # fmt: skip
def copy(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """`src` broadcast and cast to the shape and type of `input`."""
    return ops.expand(src, input.shape).to(input.dtype, copy=True)


@kernel("_copied(Tensor self, Tensor src) -> Tensor", devices="any",
        batch="elements", node="CopyBackwards", method=False, backward={
    "self": lambda grad: ops.zeros_like(grad),
    "src": lambda grad, src_shape: ops.sum_to_size(grad, src_shape),
})  # fmt: skip
def copied(data: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The row that `copy_` is recorded as."""
    return source


@method
@shown("copy_")
@awaits_bits
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite with the values of `other`, which broadcasts and is cast.

    >>> import flambeau as torch
    >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
    tensor([[1., 2.],
            [1., 2.]])
    """
    src = other if isinstance(other, Tensor) else _number_to_copy(other)
    try:
        shape, given = self._data.shape, src._data.shape
    except Unresolved:
        with writing([self]), reading([src]):
            return copy_(self, src)
    recorded = False
    if self._requires_grad or src._requires_grad or self._root is not None or (
        self._inference or modes.watch.results
    ):  # fmt: skip
        recorded = self._data.dtype.kind in "fcVW" and pointwise.wants_grad((self, src))
        check_inplace(self, recorded)
    _check_copy_shape(shape, given)
    if self._data.__class__ is Example or src._data.__class__ is Example:
        return _copy_examples(self, src, recorded)
    if src._data.__class__ is Meta and self._data.__class__ is not Meta:
        raise NotImplementedError(NO_DATA)
    if self._data.flags.c_contiguous:
        outputs.check_partial_overlap(self, (src,))
    elif not outputs.same_elements(self._data, src._data):
        outputs.check_overlap(self._data)
        outputs.check_partial_overlap(self, (src,))
    if src._data.dtype.kind in "cW" and self._data.dtype.kind not in "cbW":
        warn_once(HALF_LOST, 3)
    token = cpu.enter_quiet(cpu.QUIET)
    try:
        if self._data.__class__ is src._data.__class__ is np.ndarray:
            assign(self._data, src._data)
        elif self._data.__class__ is not Meta:
            constructors["assign_across"](self, src)
    finally:
        cpu.leave_quiet(token)
    if modes.watch.results and modes.stacks.levels:
        overwrite(self, src)
    if recorded:
        _record_copy(self, src)
    else:
        bump(self)
    return self


def _copy_examples(target: Any, src: Any, recorded: bool) -> Any:
    """The same in a function that is mapped over a batch, and in what it is made of."""
    level = innermost(target, src)
    given = level.example(src)
    many = given is not None and given.is_batched
    if not many:
        level.take_in(target)
    whole = level.example(target)
    if many and (whole is None or not whole.is_batched):
        raise RuntimeError(TOO_SMALL.format("inplace arithmetic"))
    with level.apart():
        values = src if given is None else given.value
        if many:
            for _ in range(target._data.ndim - src._data.ndim):
                values = values.unsqueeze(1)
        whole.value.copy_(values)
    if modes.stacks.levels[-1] is not level:
        overwrite(target, src)
    if recorded:
        _record_copy(target, src)
    else:
        bump(target)
    return target


def _number_to_copy(value: Any) -> Tensor:
    """A number as the 0-dim tensor that `copy_` takes it for."""
    number = pointwise.number_of(value)
    if number is None:
        raise no_tensor("copy_", "other", 1, value)
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        raise OverflowError("int too big to convert")
    return wrap(np.array(number))


def _record_copy(target: Tensor, src: Tensor) -> None:
    from flambeau._ops.table.dispatch import Recorder
    from flambeau._ops.table.op import REGISTRY

    Recorders.copied = Recorders.copied or Recorder(REGISTRY["_copied"])
    Recorders.copied.inplace(target, src, target)


class Recorders:
    """Recorders of rows that only exist in place, made when first needed."""

    copied: Any = None
    filled: Any = None


def _check_copy_shape(mine: tuple[int, ...], theirs: tuple[int, ...]) -> None:
    if mine == theirs:
        return
    shape = pointwise.broadcast_shape([mine, theirs])
    if shape != mine:
        raise RuntimeError(
            f"output with shape {list(mine)} doesn't match the broadcast shape {list(shape)}"
        )


@kernel("fill.Scalar(Tensor self, Scalar value) -> Tensor", devices="numbers",
        batch="elements", inplace=True, node="FillBackward0",
        node_inplace="FillBackward2", order=0, backward={
    "self": lambda grad: ops.zeros_like(grad),
})  # fmt: skip
def fill(data: np.ndarray, value: Any) -> np.ndarray:
    """Every element set to a number.

    >>> import flambeau as torch
    >>> torch.fill(torch.zeros(2), 7)
    tensor([7., 7.])
    """
    strides = cpu.preserved_strides(data)
    result = cpu.empty_strided(data.shape, strides, data.dtype) if strides else (
        np.empty(data.shape, data.dtype))  # fmt: skip
    write_number(result, value)
    return result


def write_number(data: np.ndarray, value: Any) -> None:
    """Fill memory with a number, which has to fit into its type."""
    if data.size < LIMIT and value.__class__ is float and data.dtype in FLOATS and (
        -LARGEST <= value <= LARGEST or value - value != 0  # infinite or not a number
    ):  # fmt: skip
        data.fill(value)
        return
    # torch fills one element as it assigns a number: what is beyond half types becomes infinite
    number = (filling if data.size == 1 else checked_number)(value, data.dtype)
    if data.size < LIMIT or not copies.convert(data, number):
        data[...] = number


LARGEST = float(np.finfo(np.float32).max)
FLOATS = frozenset((FLOAT32, np.dtype(np.float64)))
"""Types that NumPy's own `fill` converts a float to as torch does."""


fill.write = write_number


@kernel("fill.Tensor(Tensor self, Tensor value) -> Tensor",
        devices="numbers", inplace=True, node="FillBackward1",
        node_inplace="FillBackward3",
        order=1, backward={"self": lambda grad: ops.zeros_like(grad),
                           "value": lambda grad: grad.sum()})  # fmt: skip
def fill_tensor(data: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Every element set to the value of a 0-dim tensor."""
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with "
                           f"{value.ndim} dimensions.")  # fmt: skip
    result = np.empty_like(data)
    assign(result, value)
    return result


@kernel("zero(Tensor self) -> Tensor",
        batch="elements", inplace=True, function=False, node="ZeroBackward0",
        backward={"self": lambda grad: ops.zeros_like(grad)})  # fmt: skip
def zero(data: np.ndarray) -> np.ndarray:
    """Every element set to 0.

    The shape stays.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> torch.zero_(x)
    tensor([0., 0.])
    """
    return np.zeros_like(data)


zero.write = lambda data: data.fill(0) if data.size < LIMIT else write_number(data, 0)
