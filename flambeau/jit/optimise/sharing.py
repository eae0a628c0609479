"""What shares memory: results of an optimised call may do so with nothing that the plain program's
results would not share with.

Operators that make new memory (`stack`, `cat`, arithmetic) give a tensor that can be written to
without anything else changing, that is nobody's view and has never been written to. An optimised
form often has the same numbers in a tensor that is an argument, a part of one, a constant, another
result, or what autograd has saved. Whoever hands such a tensor out asks here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from flambeau._core.layout import contiguous_format
from flambeau._ops.table.namespace import ops
from flambeau._runtime.cpu import element_strides
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.values import ScriptObject

HOLDERS = ("_parameters", "_buffers", "_modules")
"""Where modules keep what is not in their `__dict__`."""


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in a value: within lists, tuples, dicts, objects and modules, too."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, Tensor):
            yield one
            continue
        inner = _held(one)
        if inner and id(one) not in seen:
            seen.add(id(one))
            waiting.extend(reversed(list(inner)))


def _held(value: Any) -> Iterable[Any]:
    """What a value that is no tensor holds."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, ScriptObject) or hasattr(value, HOLDERS[0]):
        return list(vars(value).values())
    return ()


def shares_memory(tensor: Tensor, *values: Any) -> bool:
    """Whether a write to a tensor could be seen in one of the values, or the other way round."""
    data = tensor._data
    for value in values:
        # One tensor is the usual case; benchmarks/torchscript.py, "batch_gather".
        for other in (value,) if isinstance(value, Tensor) else tensors_in(value):
            if other is tensor:
                return True
            if not other.is_sparse and may_share_memory(other._data, data):
                return True
    return False


may_share_memory = np.may_share_memory


def is_new(tensor: Tensor) -> bool:
    """Whether a tensor could come from an operator that makes new memory: row-major, nobody's view,
    never written to.
    """
    if tensor._base is not None or tensor._root is not None or tensor._version_count:
        return False
    data = tensor._data
    if data.flags.c_contiguous and 1 not in data.shape and data.size:
        return True
    return element_strides(data) == row_major(data.shape)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of new memory; dims of size 0 count as 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def own_memory(tensor: Tensor, *values: Any) -> Tensor:
    """The tensor, if it is as new and apart from all values; else a copy, through which gradients
    flow. Where an operator has been recorded, what it gives may be saved for its gradient: then
    ask for `copied`.
    """
    if is_new(tensor) and not shares_memory(tensor, *values):
        return tensor
    return copied(tensor)


def copied(tensor: Tensor) -> Tensor:
    """The same elements in new memory, row by row."""
    return ops.clone(tensor, memory_format=contiguous_format)  # type: ignore[no-any-return]
