"""Random numbers written into tensors: `uniform_`, `bernoulli_`, `random_`, ..."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from flambeau._core import modes
from flambeau._core.doc_text import with_example
from flambeau._ops.random.draws import fill_bernoulli, stream_of
from flambeau._ops.table import outputs
from flambeau._ops.table.binder import type_name
from flambeau._ops.table.op import default_title
from flambeau._ops.table.pointwise import wants_grad
from flambeau._ops.table.schema import REQUIRED
from flambeau._tensor.bits import writes
from flambeau._tensor.tensor import Tensor, method, shown
from flambeau._tensor.wrappers import has_numbers
from flambeau.autograd.batches import NOT_BATCHED, check_alone, innermost
from flambeau.autograd.graph import Node
from flambeau.autograd.history import bump, check_inplace, edge_of, rebase
from flambeau.autograd.tangents import overwrite


class Overwritten(Node):
    """The history of a tensor filled with random numbers: zeros for all that came before."""

    __slots__ = ("kinds",)

    def __init__(self, inputs: list[Tensor]) -> None:
        super().__init__(*[edge_of(tensor) for tensor in inputs])
        self.kinds = [(tensor._data.shape, tensor.dtype) for tensor in inputs]

    def apply(self, grad: Tensor) -> tuple[Any, ...]:
        zeros = grad.new_zeros  # type: ignore[attr-defined]
        return tuple([zeros(shape, dtype=dtype) for shape, dtype in self.kinds])


def _overwrite_examples(level: Any, target: Tensor, title: str,
                        fill: Callable[[np.ndarray], Any], *rest: Any) -> Tensor:  # fmt: skip
    """The same in a function that is mapped over a batch: each example anew, or all alike."""
    found = level.example(target)
    whole, is_batched = found.value, found.is_batched
    if level.randomness == "different" and not is_batched:
        raise RuntimeError(NOT_BATCHED)
    with level.apart():
        if level.randomness == "different" or not is_batched:
            _overwrite(whole, title, fill, *rest)
        else:
            first = whole.select(0, 0).clone()
            whole.copy_(_overwrite(first, title, fill, *rest))
    bump(target)
    return target


@writes
def _overwrite(target: Tensor, title: str, fill: Callable[[np.ndarray], Any], *rest: Any) -> Tensor:
    """Fill the first input's memory, and record that as `title`."""
    if modes.watch.results and modes.stacks.levels:
        found = innermost(target)
        if found is not None:
            return _overwrite_examples(found, target, title, fill, *rest)
        check_alone(target)
    inputs = (target, *rest)
    tensors = [value for value in inputs if isinstance(value, Tensor)]
    recorded = wants_grad(tensors)
    check_inplace(target, recorded)
    _check_written(target._data, fill)
    if has_numbers(target._data):
        fill(target._data)
    if modes.watch.results and modes.stacks.levels:
        overwrite(target, None)
    if not recorded:
        bump(target)
        return target
    node = type(title, (Overwritten,), {"__slots__": (), "title": title})(tensors)
    bump(target)
    rebase(target, node)
    return target


def _check_written(data: np.ndarray, fill: Callable[[np.ndarray], Any]) -> None:
    """Torch's error where elements share memory; parameters are looked at before that."""
    try:
        outputs.check_overlap(data)
    except RuntimeError:
        fill(np.empty(0, data.dtype))
        raise


def _inplace(name: str, parameters: dict[str, Any], doc: str) -> None:
    title = default_title(name)
    fill = attrgetter(name)

    def method_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        values = _bound(name, parameters, args, kwargs)
        stream = stream_of(generator, name, self)
        return _overwrite(self, title, lambda data: fill(stream.numbers)(data, *values, stream))

    method_.__name__ = name
    method_.__doc__ = doc
    shown(name)(method_)
    setattr(Tensor, name, method_)


def _bound(name: str, parameters: dict[str, Any], args: Any, kwargs: Any) -> list[Any]:
    """The values of all parameters, or torch's error for arguments that do not fit."""
    if len(args) > len(parameters):
        raise TypeError(f"{name}() takes from 0 to {len(parameters)} positional arguments but "
                        f"{len(args)} were given")  # fmt: skip
    values = {**parameters, **dict(zip(parameters, args, strict=False))}
    for key, value in kwargs.items():
        if key not in parameters:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        if key in list(parameters)[: len(args)]:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        values[key] = value
    for position, (key, value) in enumerate(values.items(), 1):
        if value is REQUIRED:
            raise TypeError(f'{name}() missing 1 required positional arguments: "{key}"')
        if isinstance(value, (str, list, tuple)):
            raise TypeError(f"{name}(): argument '{key}' (position {position}) must be float, not "
                            f"{type(value).__name__}")  # fmt: skip
        if isinstance(value, Tensor) and not value._data.ndim:
            values[key] = value.item()
    return list(values.values())


_inplace(
    "uniform_",
    {"from": 0.0, "to": 1.0},
    with_example(
        "Overwrite with uniform numbers from [from, to); the shape stays.",
        "x = torch.empty(100).uniform_(-1, 1)\n>>> bool((x >= -1).all() and (x < 1).all())",
        "True",
    ),
)
_inplace(
    "normal_",
    {"mean": 0.0, "std": 1.0},
    with_example(
        "Overwrite with normal numbers; the shape stays.",
        "torch.empty(2, 3).normal_(mean=5.0, std=0.0)",
        "tensor([[5., 5., 5.],\n        [5., 5., 5.]])",
    ),
)
_inplace(
    "exponential_",
    {"lambd": 1.0},
    with_example(
        "Overwrite with numbers from the exponential distribution with rate `lambd`.\n\n"
        "The shape stays.",
        "bool((torch.empty(100).exponential_(2.0) >= 0).all())",
        "True",
    ),
)
_inplace(
    "cauchy_",
    {"median": 0.0, "sigma": 1.0},
    with_example(
        "Overwrite with numbers from the Cauchy distribution; the shape stays.",
        "torch.empty(2, 3).cauchy_(median=1.0).shape",
        "torch.Size([2, 3])",
    ),
)
_inplace(
    "log_normal_",
    {"mean": 1.0, "std": 2.0},
    with_example(
        "Overwrite with numbers whose logarithm is normal, with `mean` and `std`; the shape stays.",
        "bool((torch.empty(100).log_normal_() >= 0).all())",
        "True",
    ),
)
_inplace(
    "geometric_",
    {"p": REQUIRED},
    with_example(
        "Overwrite with the number of trials until the first success, of probability `p` each.\n\n"
        "The shape stays.",
        "bool((torch.empty(100).geometric_(0.5) >= 1).all())",
        "True",
    ),
)


@method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite with 0 or 1, each 1 with probability `p` (a number or a tensor that broadcasts).

    >>> import flambeau as torch
    >>> torch.empty(3).bernoulli_(1.0)
    tensor([1., 1., 1.])
    """
    title = "BernoulliBackward1" if isinstance(p, Tensor) else "BernoulliBackward2"
    stream = stream_of(generator, "bernoulli_", self)
    return _overwrite(self, title, lambda data: fill_bernoulli(data, p, stream), p)


shown("bernoulli_")(bernoulli_)


def _bounds(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """The bounds that `random_` is given: none, `to`, or `from` and `to`."""
    names = ("from", "to")[: len(args) + len(named)] if len(args) + len(named) == 2 else ("to",)
    bounds = [*args, *[named[name] for name in names[len(args) :] if name in named]]
    if len(bounds) != len(args) + len(named) or len(bounds) > 2:
        listed = [*map(type_name, args), *[f"{k}={type_name(v)}" for k, v in named.items()]]
        raise TypeError("random_() received an invalid combination of arguments - got "
                        f"({', '.join(listed)}), but expected one of:\n * ()\n * (int to)\n"
                        " * (int from, int to)")  # fmt: skip
    return bounds


@method
def random_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
    """Overwrite with integers, all equally likely; the shape stays.

    `random_(to)` draws from 0 up to `to`, `random_(from, to)` from `from` on, both without `to`
    itself; `random_()` draws whatever the type can hold exactly.

    >>> import flambeau as torch
    >>> x = torch.zeros(100).random_(3, 6)
    >>> x.min(), x.max()
    (tensor(3.), tensor(5.))
    """
    bounds = _bounds(args, kwargs)
    stream = stream_of(generator, "random_", self)
    if not bounds:
        return _overwrite(
            self, "RandomBackward2", lambda data: stream.numbers.random_(data, stream)
        )
    title = "RandomBackward1" if len(bounds) == 1 else "RandomBackward0"
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    return _overwrite(
        self, title, lambda data: stream.numbers.random_from_to_(data, low, high, stream)
    )
