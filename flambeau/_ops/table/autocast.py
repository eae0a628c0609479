"""Autocast: in its regions, a row with a word chooses the type of its floating-point tensors.

    @kernel("mm(Tensor self, Tensor mat2) -> Tensor", autocast="lower", ...)

* `lower`: the region's type, bfloat16 or float16;
* `float32`;
* `float32_or_dtype`: float32, unless the call names a `dtype`;
* `widest`: the widest type among them, at least the region's;
* `banned`: torch's error, since the operator is unsafe in the region's type;
* `outside`: a composite whose operators keep out, since torch has it as one.

float64 stays what it is, and what is written in place or to `out=` has no choice. Inside a row no
other row chooses. `autocast="cpu=float32 cuda=widest"` gives devices words of their own; without
names a word holds for all of them. Only regions for the device of a row's tensors count: `cuda` for
those on an emulated GPU (`flambeau.cuda.emulation`), `cpu` for all others.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import modes
from flambeau._core.autocast import settings
from flambeau._core.device import Cuda
from flambeau._core.settings import PACKAGE, users_level
from flambeau._ops.table import dispatch
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Op
from flambeau._ops.table.ranks import Rank
from flambeau._tensor.tensor import Tensor

Policy = Callable[[tuple[Any, ...], str], list[Any]]


def watch(
    op: Op, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None
) -> Any:
    """A row's call in a region; NotImplemented where autocast has nothing to say."""
    kind = device_of(values)
    policy = policy_now(op, kind) if functional else None
    if policy is None:
        return NotImplemented
    given, values = values, tuple(policy(values, kind))
    both = GIVEN_BOTH.get(op.full_name) if kind == "cuda" else None
    with Suspended(kind):
        if both is not None and both[0](given, values):
            return getattr(ops, both[1])(*given, *values)
        return dispatch.watched(op, plain, values)


GIVEN_BOTH: dict[str, tuple[Callable[..., bool], str]] = {}
"""Rows on GPUs that have another form -> whether a call is for it, and its name. It takes what the
row was given and what that was cast to: its gradients come in the types of the former."""


dispatch.add_watcher(watch, Rank.AUTOCAST)


def around(op: Op) -> Callable[..., Any]:
    """The public function of a composite that has a word of its own."""
    body = op.body
    words = [word_for(op.autocast or "", kind) for kind in DEVICES]
    if not any(words[: 1 if not Cuda.count else 2]):
        return body
    state = modes.watch

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not state.active or kwargs.get("out") is not None:
            return body(*args, **kwargs)
        given = (*args, *kwargs.values())
        kind = device_of(given)
        policy = policy_now(op, kind)
        if policy is None:
            return body(*args, **kwargs)
        values = policy(given, kind)
        named = dict(zip(kwargs, values[len(args) :], strict=True))
        with Suspended(kind):
            return body(*values[: len(args)], **named)

    return call


class Suspended:
    """While a row runs, the rows that it is made of choose nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __enter__(self) -> None:
        settings.set_enabled(self.kind, False)

    def __exit__(self, *exc: object) -> None:
        settings.set_enabled(self.kind, True)


# ---- policies

DEVICES = ("cpu", "cuda")
"""The devices whose regions operators look at."""


def device_of(values: tuple[Any, ...]) -> str:
    """The kind of device that a row works on: CUDA if a tensor is there."""
    if not Cuda.count:
        return "cpu"
    return "cuda" if any(tensor.is_cuda for tensor in tensors_in(values)) else "cpu"


def policy_now(op: Op, kind: str) -> Policy | None:
    """What to do with a row's arguments here and now, on a kind of device."""
    if op.autocast is None or not settings.enabled[kind]:
        return None
    word = word_for(op.autocast, kind)
    return None if word is None else POLICIES[word]


@functools.cache
def word_for(text: str, device_type: str) -> str | None:
    """The word of a row for a device."""
    if "=" not in text:
        return text or None
    words = dict(part.split("=") for part in text.split())
    return words.get(device_type)


def lower(values: tuple[Any, ...], kind: str) -> list[Any]:
    """In the type of the region."""
    target = settings.lower_types[kind]
    if target is dt.bfloat16 and kind == "cpu" and not Told.done:
        _tell(values)
    return cast_all(values, target, kind)


class Told:
    """Whether this process was told that bfloat16 saves it no time."""

    done = False


class SlowPrecision(UserWarning):
    """A precision that the processor has no instructions for."""


LARGE = 1 << 16
"""Elements from which on a product's time is worth a warning."""


def _tell(values: tuple[Any, ...]) -> None:
    """Warn, once, where products of bfloat16 have to be computed in float32."""
    if max((tensor.numel() for tensor in tensors_in(values)), default=0) < LARGE:
        return
    Told.done = True
    from flambeau._ops.products.tiles import bfloat16_dots

    if not bfloat16_dots():
        warnings.warn(
            "This processor has no instructions for products of bfloat16: under autocast they are "
            "computed in float32 and rounded, which saves memory, but no time.",
            SlowPrecision,
            stacklevel=users_level(ours=PACKAGE),
        )


def float32(values: tuple[Any, ...], kind: str) -> list[Any]:
    """In float32."""
    return cast_all(values, dt.float32, kind)


def float32_or_dtype(values: tuple[Any, ...], kind: str) -> list[Any]:
    """In float32, unless the call says which type it wants."""
    if any(isinstance(value, dt.dtype) for value in values):
        return list(values)
    return float32(values, kind)


def widest(values: tuple[Any, ...], kind: str) -> list[Any]:
    """In float32 if a tensor is of that type, else in the type of the region."""
    target = settings.lower_types[kind]
    for tensor in tensors_in(values):
        if target is dt.float32 or not is_eligible(tensor, kind):
            continue
        if tensor.dtype is dt.float32:
            target = dt.float32
        elif tensor.dtype is not target:  # the other half type, before any float32
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return cast_all(values, target, kind)


def outside(values: tuple[Any, ...], kind: str) -> list[Any]:
    """As they are."""
    return list(values)


def banned(values: tuple[Any, ...], kind: str) -> list[Any]:
    """Raises RuntimeError: the logarithms of this loss overflow in float16."""
    raise RuntimeError(BANNED)


BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using "
    "torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)
POLICIES: dict[str, Policy] = {
    "lower": lower,
    "float32": float32,
    "float32_or_dtype": float32_or_dtype,
    "widest": widest,
    "outside": outside,
    "banned": banned,
}


def tensors_in(values: Any) -> Iterator[Any]:
    """The tensors among arguments, those in lists included."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


# ---- casts


def is_eligible(tensor: Any, kind: str) -> bool:
    """Whether autocast for a kind of device may change a tensor's type."""
    if not tensor.dtype.is_floating_point or tensor.dtype is dt.float64:
        return False
    return not Cuda.count or tensor.device.type == kind


def cast_all(values: tuple[Any, ...], target: dt.dtype, kind: str) -> list[Any]:
    """Arguments in another type. The last is cast first, as by torch: in backward the first one's
    gradient arrives first."""
    return [cast(value, target, kind) for value in reversed(values)][::-1]


def cast(value: Any, target: dt.dtype, kind: str) -> Any:
    """A tensor, or the tensors of a list, in another type; anything else as it is."""
    if isinstance(value, Tensor):
        if value.dtype is target or not is_eligible(value, kind):
            return value
        return cast_cached(value, target) if is_weight(value, target, kind) else value.to(target)
    if type(value) in (list, tuple):
        return type(value)([cast(item, target, kind) for item in value])
    return value


def is_weight(tensor: Any, target: dt.dtype, kind: str) -> bool:
    """Whether a tensor is a parameter, which many calls of one region may share."""
    return (
        settings.cache_enabled and not modes.grad.inference
        and target is settings.lower_types[kind] and tensor.dtype is dt.float32
        and tensor._requires_grad and tensor._node is None and tensor._base is None
    )  # fmt: skip


def cast_cached(weight: Any, target: dt.dtype) -> Any:
    """The weight in another type, kept until the outermost region ends.

    One cast is kept for a weight, whatever its type: a region of another type within gets it, too,
    as in torch. A cast that was not recorded is no use where gradients are wanted.
    """
    known = settings.cache.get(id(weight))
    if known is not None and (known[1]._requires_grad or not modes.grad.enabled):
        return known[1]
    made = weight.to(target)
    settings.cache[id(weight)] = (weight, made)  # the weight is kept, and so its id
    return made
