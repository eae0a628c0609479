"""Conjugate and negative views: tensors whose values are those in their memory, conjugated or
negated.

`z.conj()` is such a view of `z`, `z.conj().imag` is a negative one. They keep the array of the
memory as `_stored`, and what is to be done with it as two bits. They are of a class of their own,
whose tensors have no `_data` for the generated call paths: those of dense tensors pay nothing for
it. Where the array is not found, `flambeau._ops.table.bits` runs the operator

* on the values, computed into new memory (`reading`);
* on the values, and writes them back afterwards, where it works in place (`writing`);
* on the memory as it is, where it makes a view, which gets the bits in turn (`on_memory`).

All other code that looks for `_data` gets the values in new memory, which cannot be written to.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import Size
from flambeau._runtime.cpu import empty_strided, preserved_strides
from flambeau._tensor import overriding
from flambeau._tensor.attributes import fields_of
from flambeau._tensor.device_array import DeviceArray, assigned, from_host, to_host
from flambeau._tensor.meta import Meta
from flambeau._tensor.sparse import NotStrided, _shown_as
from flambeau._tensor.tensor import Tensor, class_of, memory_of, provides


class Unresolved(NotStrided):
    """Raised where a generated call path looks for the array of a tensor with a bit."""


_shown_as(Unresolved, NotImplementedError)


class Opened(threading.local):
    """The arrays that stand for tensors with a bit in regions of this thread, by their ids."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}


class Bits:
    """Whether this process ever made a tensor with a bit: operators need not look before."""

    exist = False


opened = Opened()
QUIET_CALLERS = ("<flambeau record ", "<flambeau backward ")
"""Generated text that looks for shapes and types only, and has nowhere to go without them."""


prepared: set[Any] = set()
"""The code of functions that are prepared for `Unresolved`."""
stand_ins: dict[int, tuple[Any, Callable[[Any], np.ndarray | None]]] = {}
"""By the ids of code, which take less time than hashes: the code, and what it sees in place of
values; None where it needs those."""


def awaits_bits(function: Any) -> Any:
    """Note that a function is prepared for `Unresolved`. This stands below all other decorators:
    what makes it a method may exchange its code."""
    prepared.add(function.__code__)
    return function


def without_values(function: Any, seen: Callable[[Any], np.ndarray | None]) -> None:
    """Let a function see something else in place of the values of tensors with a bit."""
    code = function.__code__
    stand_ins[id(code)] = code, seen


class BitTensor(Tensor):
    """A tensor with a bit; see the module's text."""

    __torch_function__ = staticmethod(overriding.disabled)

    @property
    def _data(self) -> np.ndarray:  # type: ignore[override]
        found = opened.arrays.get(id(self))
        if found is not None:
            return found
        caller = sys._getframe(1).f_code
        stand_in = stand_ins.get(id(caller))
        if stand_in is not None and (found := stand_in[1](self)) is not None:
            return found
        name = caller.co_filename
        generated = name.startswith("<flambeau") and not name.startswith(QUIET_CALLERS)
        if generated or caller in prepared:
            raise Unresolved("a tensor with its conjugate or negative bit set has no array")
        return locked(resolved(self))

    @_data.setter
    def _data(self, array: np.ndarray) -> None:
        self._stored = array
        if id(self) in opened.arrays:
            opened.arrays[id(self)] = array

    @property
    def dtype(self) -> dt.dtype:
        """The element type."""
        return dt.BY_NUMPY[memory_of(self).dtype]

    @property
    def shape(self) -> Size:
        """The size of every dim."""
        return tuple.__new__(Size, memory_of(self).shape)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return memory_of(self).ndim

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return memory_of(self).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        data = memory_of(self)
        return data.size * data.itemsize


_shown_as(BitTensor, Tensor)


@cache
def with_bit_of(kind: Any) -> Any:
    """The class of the tensors with a bit of a class."""
    if kind is Tensor:
        return BitTensor
    body = {"__torch_function__": classmethod(lambda _, *call: kind.__torch_function__(*call))}
    made: Any = type(kind.__name__, (BitTensor, kind), body)
    _shown_as(made, kind)
    made.without_bit = kind
    return made


BitTensor.without_bit = Tensor  # type: ignore[attr-defined]


def method_of_bits(name: str) -> Callable[[Callable[..., Any]], None]:
    """Give tensors with a bit a method of this name, in place of Tensor's."""

    def give(function: Callable[..., Any]) -> None:
        function.__name__ = name
        function.__doc__ = f"`Tensor.{name}`, for a tensor with a bit."
        setattr(BitTensor, name, function)

    return give


def set_bits(tensor: Any, conjugated: bool, negated: bool) -> Any:
    """Let a tensor that was just made have these bits; its memory stays as it is."""
    if tensor._stored is None and (conjugated or negated):
        Bits.exist = True
        fields = fields_of(tensor)
        fields["_stored"] = fields.pop("_data")
        kind: Any = type(tensor)
        tensor.__class__ = with_bit_of(kind)
    if conjugated or negated:
        tensor._conjugated, tensor._negated = conjugated, negated
    elif tensor._stored is not None:
        tensor.__class__ = class_of(tensor)
        fields = fields_of(tensor)
        fields["_data"] = fields.pop("_stored")
        del fields["_conjugated"], fields["_negated"]
    return tensor


@provides("share")
def share(source: Tensor, tensor: Any) -> Any:
    """Let a new tensor look at the memory of another one, with the same bits."""
    if source._stored is None:
        tensor._data = source._data
        return tensor
    fields_of(tensor)["_data"] = source._stored
    return set_bits(tensor, source._conjugated, source._negated)


def like(source: Tensor, made: Any) -> Any:
    """New views of the memory of `source`, with its bits as well."""
    if isinstance(made, tuple):
        return tuple([like(source, part) for part in made])
    return set_bits(made, source._conjugated, source._negated)


def among(values: Iterable[Any]) -> list[Tensor]:
    """Tensors with a bit among arguments, those in lists included, for which no array stands."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            if value._stored is not None and id(value) not in opened.arrays:
                found.append(value)
        elif isinstance(value, (list, tuple)):
            found += among(value)
    return found


def require_array(tensor: Tensor) -> None:
    """`Unresolved` for a tensor with a bit for which no array stands."""
    if tensor._stored is not None and id(tensor) not in opened.arrays:
        raise Unresolved("a tensor with its conjugate or negative bit set has no array")


# ---- values


def resolved(tensor: Tensor) -> np.ndarray:
    """The values in new memory, which is laid out like the tensor's."""
    return values_of(memory_of(tensor), tensor._conjugated, tensor._negated)


REPEAT, ALL = slice(0, 1), slice(None)


def values_of(data: np.ndarray, conjugated: bool, negated: bool) -> np.ndarray:
    """What an array stands for under two bits, in new memory; repeated elements are one again."""
    if data.__class__ is Meta:
        return data.copy()
    if isinstance(data, DeviceArray):
        return from_host(values_of(to_host(data), conjugated, negated), data.place)  # type: ignore[no-any-return]
    repeats = [step == 0 and size > 1 for size, step in zip(data.shape, data.strides, strict=True)]
    if data.size and any(repeats):
        part = values_of(data[tuple([REPEAT if r else ALL for r in repeats])], conjugated, negated)
        steps = [0 if r else step for r, step in zip(repeats, part.strides, strict=True)]
        return np.lib.stride_tricks.as_strided(part, data.shape, steps)
    strides = preserved_strides(data)
    if strides is None:
        result = np.empty(data.shape, data.dtype)
    else:
        result = empty_strided(data.shape, strides, data.dtype)
    put(result, data, conjugated, negated)
    return result


def put(target: np.ndarray, data: np.ndarray, conjugated: bool, negated: bool) -> None:
    """Write the conjugate, the negative, or both, of an array to another one. Either is its own
    inverse, so that this leads from memory to values and back."""
    if isinstance(target, DeviceArray):
        assigned[0](target, values_of(to_host(data) if isinstance(data, DeviceArray) else data,
                                      conjugated, negated))  # fmt: skip
        return
    if conjugated and data.dtype.kind in "cW":
        np.conjugate(data, out=target)
        data = target
    if not negated:
        if data is not target:
            target[...] = data
    elif data.dtype.kind == "V":  # bfloat16: the sign is the highest of its bits
        np.bitwise_xor(data.view(np.uint16), np.uint16(0x8000), out=target.view(np.uint16))
    elif data.dtype.kind == "b":
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    else:
        np.negative(data, out=target)


def locked(data: np.ndarray) -> np.ndarray:
    """An array that refuses to be written to: what is written to a copy would be lost."""
    data.flags.writeable = False
    return data


# ---- regions


class _Region:
    """Arrays stand for tensors until it ends."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        arrays = opened.arrays
        self.tensors = {id(t): t for t in tensors if t._stored is not None and id(t) not in arrays}

    def array(self, tensor: Tensor) -> np.ndarray:
        """What stands for a tensor."""
        raise NotImplementedError

    def __enter__(self) -> None:
        opened.arrays |= {key: self.array(tensor) for key, tensor in self.tensors.items()}

    def __exit__(self, *exc: object) -> None:
        for key in self.tensors:
            del opened.arrays[key]


class standing_in:
    """Arrays, by the ids of the tensors that they stand for until it ends."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: dict[int, np.ndarray]) -> None:
        self.arrays = arrays

    def __enter__(self) -> None:
        opened.arrays.update(self.arrays)

    def __exit__(self, *exc: object) -> None:
        arrays = opened.arrays
        for key in self.arrays:
            del arrays[key]


class reading(_Region):
    """Operators read the values of these tensors."""

    def array(self, tensor: Tensor) -> np.ndarray:
        return locked(resolved(tensor))


class writing(_Region):
    """Operators write to these tensors, too: at the end, what they wrote goes to the memory."""

    def array(self, tensor: Tensor) -> np.ndarray:
        return resolved(tensor)

    def __exit__(self, kind: Any = None, *exc: object) -> None:
        written = {key: opened.arrays[key] for key in self.tensors}
        super().__exit__(kind, *exc)
        if kind is not None:
            return
        for key, tensor in self.tensors.items():
            put(memory_of(tensor), written[key], tensor._conjugated, tensor._negated)


def writes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that is no row, and writes to its first argument, do so under bits as well."""

    @wraps(function)
    def call(target: Tensor, *rest: Any, **options: Any) -> Any:
        if not (Bits.exist and among((target, *rest))):
            return function(target, *rest, **options)
        with writing([target]), reading(among(rest)):
            return function(target, *rest, **options)

    return call


def about_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that is no row, and has to do with memory alone, see no bits."""

    @wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        found = among(values) if Bits.exist else ()
        if not found:
            return function(*values, **options)
        with on_memory(found):
            return function(*values, **options)

    return call


class on_memory(_Region):
    """Operators see the memory of these tensors as if they had no bit."""

    def array(self, tensor: Tensor) -> np.ndarray:
        return memory_of(tensor)
