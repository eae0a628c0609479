"""Random tensors from torch's streams: the same seed gives the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import random_fill, random_integer, random_sample
from flambeau._core.generator import Generator as CoreGenerator
from flambeau._core.generator import default_generator
from flambeau._ops import outputs
from flambeau._ops.factories import _like, finish, options, shape_of
from flambeau._ops.namespace import ops
from flambeau._ops.op import composite, kernel
from flambeau._tensor.tensor import Tensor, method, wrap
from flambeau.autograd.history import bump, check_inplace

_OPTIONS = ("*, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, "
            "Device? device=None, bool pin_memory=False, bool requires_grad=False")  # fmt: skip


class Generator(CoreGenerator):
    """A random stream; `torch.Generator`. States are uint8 tensors in torch's format."""

    __slots__ = ()

    def get_state(self) -> Any:
        return wrap(super().get_state())

    def set_state(self, state: Any) -> Generator:
        super().set_state(state._data if isinstance(state, Tensor) else state)
        return self


def _stream(generator: Any) -> CoreGenerator:
    return default_generator if generator is None else generator  # type: ignore[no-any-return]


# ---- the default stream


def manual_seed(seed: int) -> CoreGenerator:
    """Start the default stream anew; returns its generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default stream from the system's randomness; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default stream was started with."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream, a uint8 tensor."""
    return wrap(CoreGenerator.get_state(default_generator))


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default stream from a state."""
    CoreGenerator.set_state(default_generator, new_state._data)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **unused: Any) -> Iterator[None]:
    """Leave the default stream as it was before the block."""
    if not enabled:
        yield
        return
    state = CoreGenerator.get_state(default_generator)
    try:
        yield
    finally:
        CoreGenerator.set_state(default_generator, state)


# ---- new tensors


def _new(size: Any, dtype: Any, layout: Any, device: Any) -> np.ndarray:
    return np.empty(shape_of(size), options(dtype, layout, device))


@composite(f"rand(int[] size, {_OPTIONS}) -> Tensor", method=False)
def rand(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
         device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
         names: Any = None) -> Tensor:
    """Uniform numbers from [0, 1)."""
    data = _new(size, dtype, layout, device)
    return finish(random_fill.uniform_(data, 0.0, 1.0, _stream(generator)), requires_grad, out)


@composite(f"randn(int[] size, {_OPTIONS}) -> Tensor", method=False)
def randn(*size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
          device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
          names: Any = None) -> Tensor:
    """Normal numbers with mean 0 and standard deviation 1."""
    data = _new(size, dtype, layout, device)
    return finish(random_fill.normal_(data, 0.0, 1.0, _stream(generator)), requires_grad, out)


@composite(f"randint(int low, int high, int[] size, {_OPTIONS}) -> Tensor", method=False)
def randint(*args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Any = None,
            out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
            pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Integers from [low, high): `randint(high, size)` or `randint(low, high, size)`."""
    bounds = [int(a) for a in args if not isinstance(a, (tuple, list))]
    size = next((a for a in args if isinstance(a, (tuple, list))), size)
    if high is not None:
        bounds.append(int(high))
    if low is not None:
        bounds.insert(0, int(low))
    if size is None or not 1 <= len(bounds) <= 2:
        raise TypeError("randint() received an invalid combination of arguments")
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
    data = _new((size,), dtype or dt.int64, layout, device)
    return finish(_integers(data, first, last, generator), requires_grad, out)


def _integers(data: np.ndarray, low: int, high: int, generator: Any) -> np.ndarray:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= "
                           f"to={high}")  # fmt: skip
    return random_integer.random_from_to_(data, low, high, _stream(generator))


@composite(f"randperm(int n, {_OPTIONS}) -> Tensor", method=False)
def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None,
             layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:
    """The integers from 0 to n - 1 in random order."""
    numpy_dtype = options(dtype or dt.int64, layout, device)
    return finish(random_sample.randperm(n, numpy_dtype, _stream(generator)), requires_grad, out)


_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None".replace("Generator? generator=None, ", "")


@composite(f"rand_like(Tensor self, {_LIKE}) -> Tensor", method=False)
def rand_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:
    """Uniform numbers from [0, 1) in the shape of a tensor."""
    data = _like(input, dtype, layout, device, memory_format)
    return finish(random_fill.uniform_(data, 0.0, 1.0, _stream(generator)), requires_grad)


@composite(f"randn_like(Tensor self, {_LIKE}) -> Tensor", method=False)
def randn_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
               device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:
    """Normal numbers in the shape of a tensor."""
    data = _like(input, dtype, layout, device, memory_format)
    return finish(random_fill.normal_(data, 0.0, 1.0, _stream(generator)), requires_grad)


@composite(f"randint_like(Tensor self, int low, int high, {_LIKE}) -> Tensor", method=False)
def randint_like(input: Tensor, *args: Any, low: Any = None, high: Any = None,
                 generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
                 pin_memory: bool = False, requires_grad: bool = False,
                 memory_format: Any = None) -> Tensor:
    """Integers from [low, high) in the shape of a tensor."""
    bounds = [int(a) for a in (low, *args, high) if a is not None]
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
    data = _like(input, dtype, layout, device, memory_format)
    return finish(_integers(data, first, last, generator), requires_grad)


@composite("normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor", method=False)
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None,
           dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:
    """Normal numbers with given means and standard deviations (numbers with `size`, or tensors)."""
    stream = _stream(generator)
    if size is not None:
        data = _new((size,), dtype, layout, device)
        return finish(random_fill.normal_(data, float(mean), float(std), stream), requires_grad,
                      out)  # fmt: skip
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    for value in tensors[len(tensors) - 1 :]:
        if isinstance(std, Tensor) and value is std and std.numel() and (std._data < 0).any():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    shape = np.broadcast_shapes(*[t._data.shape for t in tensors])
    data = np.empty(shape, tensors[0]._data.dtype)
    noise = wrap(random_fill.normal_(data, 0.0, 1.0, stream))
    result = (noise * std + mean).detach()
    return result if out is None else outputs.write_out(ops.add.op, out, result)


@composite("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """0 or 1, each 1 with the probability in `input` (or `p`)."""
    result = ops.empty_like(input)
    if p is None:
        random_fill.bernoulli_tensor_(result._data, input._data, _stream(generator))
    else:
        _fill_bernoulli(result._data, p, generator)
    return result if out is None else outputs.write_out(ops.add.op, out, result)


def _fill_bernoulli(data: np.ndarray, p: Any, generator: Any) -> None:
    if isinstance(p, Tensor):
        probability = np.broadcast_to(p._data, data.shape)
        random_fill.bernoulli_tensor_(data, probability, _stream(generator))
    else:
        random_fill.bernoulli_(data, float(p), _stream(generator))


@kernel("multinomial(Tensor self, int num_samples, bool replacement=False, *, "
        "Generator? generator=None) -> Tensor", out=True)
def multinomial(weights: np.ndarray, num_samples: int, replacement: bool,
                generator: Any) -> np.ndarray:
    """Indices drawn with probability proportional to the weights in each row."""
    return random_sample.multinomial(weights, num_samples, replacement, _stream(generator))


@kernel("poisson(Tensor self, Generator? generator=None) -> Tensor", method=False, backward={
    "self": lambda grad: ops.zeros_like(grad)})
def poisson(rates: np.ndarray, generator: Any) -> np.ndarray:
    """Counts with the given rates."""
    return random_sample.poisson(rates, _stream(generator))


# ---- in place


def _inplace(name: str, fill: Callable[..., Any], parameters: dict[str, Any], doc: str) -> None:
    names = list(parameters)

    def method_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        values = {**parameters, **dict(zip(names, args, strict=False)), **kwargs}
        check_inplace(self, False)
        outputs.check_overlap(self._data)
        fill(self._data, *[values[n] for n in names], _stream(generator))
        bump(self)
        return self

    method_.__name__ = name
    method_.__doc__ = doc
    setattr(Tensor, name, method_)


_inplace("uniform_", random_fill.uniform_, {"from": 0.0, "to": 1.0},
         "Uniform numbers from [from, to).")
_inplace("normal_", random_fill.normal_, {"mean": 0.0, "std": 1.0},
         "Normal numbers.")
_inplace("exponential_", random_fill.exponential_, {"lambd": 1.0},
         "Numbers from the exponential distribution with rate `lambd`.")
_inplace("cauchy_", random_fill.cauchy_, {"median": 0.0, "sigma": 1.0},
         "Numbers from the Cauchy distribution.")
_inplace("log_normal_", random_fill.log_normal_, {"mean": 1.0, "std": 2.0},
         "Numbers whose logarithm is normal.")
_inplace("geometric_", random_fill.geometric_, {"p": 0.5},
         "Trials until the first success.")


@method
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """0 or 1, each 1 with probability `p` (a number or a tensor)."""
    check_inplace(self, False)
    _fill_bernoulli(self._data, p, generator)
    bump(self)
    return self


@method
def random_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
    """Integers: `random_()`, `random_(to)`, `random_(from, to)`."""
    check_inplace(self, False)
    bounds = [*args, *[kwargs[k] for k in ("from", "to") if k in kwargs]]
    if not bounds:
        random_integer.random_(self._data, _stream(generator))
    else:
        low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
        if high is None:
            random_integer.random_from_to_(self._data, low, None, _stream(generator))
        else:
            _integers(self._data, low, high, generator)
    bump(self)
    return self
