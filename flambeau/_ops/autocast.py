"""Autocast: in its regions, a row with a word chooses the type of its floating-point tensors.

    @kernel("mm(Tensor self, Tensor mat2) -> Tensor", autocast="lower", ...)

* `lower`: the region's type, bfloat16 or float16;
* `float32`;
* `widest`: the widest type among them, at least the region's;
* `outside`: a composite whose operators keep out, since torch has it as one.

float64 stays what it is, and what is written in place or to `out=` has no choice. Inside a row no
other row chooses. `autocast="cpu=float32 cuda=widest"` gives devices words of their own; without
names a word holds for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._ops import dispatch
from flambeau._ops.op import Op
from flambeau._tensor.tensor import Tensor


def watch(op: Op, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool) -> Any:
    """A row's call in a region; NotImplemented where autocast has nothing to say."""
    policy = policy_now(op) if functional else None
    if policy is None:
        return NotImplemented
    values = tuple(policy(values))
    with Suspended():
        return dispatch.watched(op, plain, values)


dispatch.WATCHERS.append(watch)


def around(op: Op) -> Callable[..., Any]:
    """The public function of a composite that has a word of its own."""
    body = op.body
    if op.autocast is None or word_for(op.autocast, "cpu") is None:
        return body
    state = modes.watch

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not state.active or kwargs.get("out") is not None:
            return body(*args, **kwargs)
        policy = policy_now(op)
        if policy is None:
            return body(*args, **kwargs)
        values = policy((*args, *kwargs.values()))
        named = dict(zip(kwargs, values[len(args) :], strict=True))
        with Suspended():
            return body(*values[: len(args)], **named)

    return call


class Suspended:
    """While a row runs, the rows that it is made of choose nothing."""

    def __enter__(self) -> None:
        settings.set_enabled("cpu", False)

    def __exit__(self, *exc: object) -> None:
        settings.set_enabled("cpu", True)


# ---- policies


def policy_now(op: Op) -> Callable[[tuple[Any, ...]], list[Any]] | None:
    """What to do with a row's arguments here and now; all tensors are on the CPU."""
    if op.autocast is None or not settings.enabled["cpu"]:
        return None
    word = word_for(op.autocast, "cpu")
    return None if word is None else POLICIES[word]


@functools.cache
def word_for(text: str, device_type: str) -> str | None:
    """The word of a row for a device."""
    if "=" not in text:
        return text
    words = dict(part.split("=") for part in text.split())
    return words.get(device_type)


def lower(values: tuple[Any, ...]) -> list[Any]:
    """In the type of the region."""
    target = settings.lower_types["cpu"]
    return [cast(value, target) for value in values]


def float32(values: tuple[Any, ...]) -> list[Any]:
    """In float32."""
    return [cast(value, dt.float32) for value in values]


def widest(values: tuple[Any, ...]) -> list[Any]:
    """In float32 if a tensor is of that type, else in the type of the region."""
    target = settings.lower_types["cpu"]
    found = {tensor.dtype for tensor in tensors_in(values) if is_eligible(tensor)}
    if dt.float32 in found:
        target = dt.float32
    elif found - {target}:
        raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return [cast(value, target) for value in values]


POLICIES: dict[str, Callable[[tuple[Any, ...]], list[Any]]] = {
    "lower": lower,
    "float32": float32,
    "widest": widest,
    "outside": list,
}


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors among arguments, those in lists included."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


# ---- casts


def is_eligible(tensor: Any) -> bool:
    """Whether autocast may change a tensor's type."""
    return tensor.dtype.is_floating_point and tensor.dtype is not dt.float64


def cast(value: Any, target: dt.dtype) -> Any:
    """A tensor, or the tensors of a list, in another type; anything else as it is."""
    if isinstance(value, Tensor):
        if value.dtype is target or not is_eligible(value):
            return value
        return cast_cached(value, target) if is_weight(value, target) else value.to(target)
    if type(value) in (list, tuple):
        return type(value)([cast(item, target) for item in value])
    return value


def is_weight(tensor: Any, target: dt.dtype) -> bool:
    """Whether a tensor is a parameter, which many calls of one region may share."""
    return (
        settings.cache_enabled and not modes.grad.inference
        and target is settings.lower_types["cpu"] and tensor.dtype is dt.float32
        and tensor._requires_grad and tensor._node is None and tensor._root is None
    )  # fmt: skip


def cast_cached(weight: Any, target: dt.dtype) -> Any:
    """The weight in another type, kept until the outermost region ends.

    A cast that was not recorded is no use where gradients are wanted.
    """
    known = settings.cache.get((id(weight), target))
    if known is not None and (known[1]._requires_grad or not modes.grad.enabled):
        return known[1]
    made = weight.to(target)
    settings.cache[id(weight), target] = (weight, made)  # the weight is kept, and so its id
    return made
