"""Whether all rounds of a loop are like its first: ranks, sizes, element types, gradients.

A batch computes all rounds as if they were one; nothing in it would notice that a program's round
gives tensors of other dims, or that it is refused. So the first round of each kind of arguments is
run by the plain operators, and the form of everything in it is noted. A batched value has to agree
with it, in every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flambeau._core import modes
from flambeau._tensor.tensor import Tensor
from flambeau.jit.optimise.batching.values import Batched, NotBatchable, Rounds
from flambeau.jit.optimise.exact import exact

SHORT = 16
"""Items of a list of numbers that are part of a kind; of longer ones, how many there are."""


def kind_of(inputs: Sequence[Any]) -> Any:
    """A key for arguments with which a first round is probably of the same forms. Where it is not,
    as with sizes read from tensors, the forms tell, and are noted anew.
    """
    return modes.grad.enabled, *[_kind(value) for value in inputs]


def _kind(value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.is_sparse:
            raise NotBatchable("a tensor that is not strided")
        data = value._data
        return data.dtype.num, data.shape, data.strides, value.requires_grad
    if value.__class__ is int or value.__class__ is bool:
        return value.__class__, value
    if isinstance(value, (list, tuple)):
        items = value if len(value) <= SHORT else value[:1]
        return value.__class__, len(value), *[_kind(item) for item in items]
    return value if value.__class__ is str else value.__class__


def form_of(value: Any) -> Any:
    """What a batched value has to agree with, of a value of the first round."""
    if isinstance(value, Tensor):
        if value.is_sparse:
            raise NotBatchable("a tensor that is not strided")
        data = value._data
        return Tensor, data.dtype, data.shape, value.requires_grad
    if isinstance(value, (list, tuple)):
        return value.__class__, [form_of(item) for item in value]
    if isinstance(value, (int, bool, str)):
        return exact(value)
    return value.__class__, None


def agrees(value: Any, form: Any) -> bool:
    """Whether a value of a batch is, in every round, of the form that the first round has."""
    if value.__class__ is Batched:
        tensor = value.tensor
        return form[0] is Tensor and form[1:] == (
            tensor._data.dtype, tensor._data.shape[1:], tensor.requires_grad)  # fmt: skip
    if isinstance(value, Rounds):
        return form[0] is int
    if isinstance(value, (list, tuple)):
        items = form[1]
        if not isinstance(form[0], type) or not issubclass(form[0], (list, tuple)):
            return False
        return len(items) == len(value) and all(map(agrees, value, items))
    return bool(form_of(value) == form)


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> Any:
    """How elements lie, as far as it decides how results of operators lie: the dims from the one
    with the longest steps on, without those of size 1, and which of them are broadcast.
    """
    dims = sorted((k for k, n in enumerate(shape) if n != 1), key=lambda k: -strides[k])
    return dims, [k for k in dims if not strides[k]]


def same_form(items: Sequence[Tensor]) -> bool:
    """Whether tensors that rounds take one by one are alike in all that a round may see of them:
    their strides, too, which decide where `view` is refused.
    """
    forms = {(item._data.dtype, item._data.shape, item._data.strides, item.requires_grad)
             for item in items}  # fmt: skip
    return len(forms) == 1
