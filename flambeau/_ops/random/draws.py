"""Random tensors from torch's streams: the same seed gives the same numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes, random_fill, random_numbers
from flambeau._core.device import CPU, META, Cuda, Defaults, refuse_pinned, thread
from flambeau._core.device import device as Device  # noqa: N812  a parameter is called so
from flambeau._core.doc_text import with_example
from flambeau._core.generator import Generator as CoreGenerator
from flambeau._core.generator import default_generator
from flambeau._core.layout import contiguous_format
from flambeau._ops.elementwise.arithmetic import zero_like
from flambeau._ops.factories.filled import (
    _like,
    filled,
    finish,
    made,
    memory,
    of_out,
    options,
    room,
    shape_of,
)
from flambeau._ops.table import outputs
from flambeau._ops.table.binder import type_name
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, default_title, kernel
from flambeau._ops.table.pointwise import broadcast_shape, wants_grad
from flambeau._ops.table.schema import REQUIRED
from flambeau._runtime import choice
from flambeau._tensor.bits import writes
from flambeau._tensor.device_array import DeviceArray, to_host, written
from flambeau._tensor.numberless import Numberless
from flambeau._tensor.tensor import Tensor, constructors, method, shown, wrap
from flambeau.autograd.batches import NOT_BATCHED, REFUSED, check_alone, innermost
from flambeau.autograd.graph import Node
from flambeau.autograd.history import bump, check_inplace, edge_of, rebase
from flambeau.autograd.saved_fields import sizes
from flambeau.autograd.tangents import overwrite

_OPTIONS = ("*, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, "
            "Device? device=None, bool? pin_memory=None, bool? requires_grad=None")  # fmt: skip


class Generator(CoreGenerator):
    """A random stream; `torch.Generator`. States are uint8 tensors in torch's format.

    `Generator("cuda")` is of the class that `of_device` holds for that kind of device.

    >>> import flambeau as torch
    >>> one, two = torch.Generator().manual_seed(0), torch.Generator().manual_seed(0)
    >>> bool(torch.rand(1, generator=one) == torch.rand(1, generator=two))
    True
    """

    __slots__ = ()

    of_device: ClassVar[dict[str, type[Generator]]] = {}

    def __new__(cls, device: Any = None) -> Generator:
        made = cls
        if cls is Generator and device is not None and Generator.of_device:
            made = Generator.of_device.get(Device(device).type, cls)
        return super().__new__(made)

    def get_offset(self) -> int:
        """How many words a thread of a CUDA device has had. RuntimeError: the CPU has no such."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Go to an offset of a CUDA device's stream. RuntimeError: the CPU has no such."""
        raise RuntimeError("CPU Generator does not use offset")

    def get_state(self) -> Any:
        return wrap(super().get_state())

    def set_state(self, state: Any) -> Generator:
        super().set_state(state._data if isinstance(state, Tensor) else state)
        return self

    def __reduce__(self) -> Any:
        return type(self), (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: Any) -> None:
        """The state as files hold it: the seed, an offset that only CUDA has, and all the rest."""
        self.set_state(state[2])


def _kernels(out: np.ndarray, work: str = "random") -> Any:
    """The compiled kernels where they fill such an array faster, else None."""
    if not choice.compiled(work, out.size):
        return None
    kernels = _templates()
    return kernels if kernels.fits(out) else None


@cache
def _templates() -> Any:
    from flambeau._ops.random import launch as kernels

    return kernels


random_fill.Compiled.kernels = staticmethod(_kernels)


def _rewound(*args: Any) -> Callable[[], Any]:
    """What takes a stream, the last argument of all that draws, back to where it is now."""
    stream = args[-1]
    return functools.partial(CoreGenerator.set_state, stream, CoreGenerator.get_state(stream))


if choice.FROM_LIBRARY:
    CoreGenerator.numbers = SimpleNamespace(**{
        name: choice.guarded(getattr(random_numbers, name), False, _rewound)
        for name in random_numbers.__all__
    })  # fmt: skip


def stream_of(generator: Any, name: str = "", filled: Tensor | None = None) -> CoreGenerator:
    """The random stream of a call of `name`: the one that is given, or that of the place where its
    numbers are wanted; `filled` is the tensor that it fills, if any.

    Raises:
        RuntimeError: the stream that is given is one of another kind of device.
    """
    if modes.stacks.refusals:
        raise RuntimeError(REFUSED)
    if Defaults.elsewhere and (thread.makes_on is META or thread.on_zeros):
        return CoreGenerator()  # nobody will see the numbers
    if Defaults.elsewhere:
        place = thread.works_on or thread.makes_on
        if filled is not None:
            place = filled.device if filled.is_cuda else None
        if generator is None:
            return default_generator if place is None else constructors["cuda_stream"](place)
        if isinstance(generator, CoreGenerator):
            constructors["check_stream"](generator, str(place or CPU))
    if generator is None:
        return default_generator
    if isinstance(generator, CoreGenerator):
        return generator
    name = name or sys._getframe(1).f_code.co_name
    raise TypeError(
        f"{name}(): argument 'generator' must be torch.Generator, not {type(generator).__name__}"
    )


# ---- the default stream


def manual_seed(seed: int) -> CoreGenerator:
    """Start the default streams of the CPU and of all devices anew; returns the CPU's.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(1)
    tensor([0.4963])
    """
    for stream in _streams_of_devices():
        stream.manual_seed(int(seed))
    return default_generator.manual_seed(int(seed))


def _streams_of_devices() -> Any:
    return constructors["cuda_streams"]() if Cuda.count else ()


def seed() -> int:
    """Start all default streams from one seed of the system's randomness; returns the seed.

    >>> import flambeau as torch
    >>> seed = torch.seed()
    >>> seed == torch.initial_seed()
    True
    """
    value = default_generator.seed()
    for stream in _streams_of_devices():
        stream.manual_seed(value)
    return value


def initial_seed() -> int:
    """The seed that the default stream was started with.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(7)
    >>> torch.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default stream, a uint8 tensor.

    >>> import flambeau as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(1)
    >>> torch.set_rng_state(state)
    >>> bool(torch.rand(1) == x)
    True
    """
    return wrap(CoreGenerator.get_state(default_generator))


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default stream from a state.

    >>> import flambeau as torch
    >>> state = torch.get_rng_state()
    >>> x = torch.rand(2)
    >>> torch.set_rng_state(state)
    >>> torch.equal(torch.rand(2), x)
    True
    """
    if not isinstance(new_state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
    CoreGenerator.set_state(default_generator, new_state._data)


# ---- new tensors


def _target(name: str, size: Any, out: Any, dtype: Any, layout: Any, device: Any) -> np.ndarray:
    """The memory to fill: new, or that of `out`, in its own type and order."""
    if out is None:
        numpy_dtype = options(dtype, layout, device)
        if Defaults.elsewhere:
            return made(shape_of(size, name), numpy_dtype, None)
        return memory(shape_of(size, name), numpy_dtype)
    options(of_out(name, out, dtype, layout, device), layout, device)
    data = room(out, shape_of(size, name))
    outputs.check_overlap(data)
    return data


def _finished(data: np.ndarray, out: Any, requires_grad: bool) -> Tensor:
    return finish(data, requires_grad) if out is None else filled(out, requires_grad)


@composite(f"rand(int[] size, {_OPTIONS}) -> Tensor", batch="draws", method=False)
def rand(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None,
         layout: Any = None, device: Any = None, pin_memory: bool = False,
         requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Uniform numbers from [0, 1).

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.rand(2, 3).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("rand", pin_memory)
    data = _target("rand", sizes if size is None else (size,), out, dtype, layout, device)
    stream = stream_of(generator, filled=out)
    stream.numbers.uniform_(data, 0.0, 1.0, stream)
    return _finished(data, out, requires_grad)


@composite(f"randn(int[] size, {_OPTIONS}) -> Tensor", batch="draws", method=False)
def randn(*sizes: Any, size: Any = None, generator: Any = None, out: Any = None, dtype: Any = None,
          layout: Any = None, device: Any = None, pin_memory: bool = False,
          requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers with mean 0 and standard deviation 1.

    Its shape is given as numbers, or as one sequence.

    >>> import flambeau as torch
    >>> torch.randn(2, 3).dtype
    torch.float32
    """
    if pin_memory is not False:
        refuse_pinned("randn", pin_memory)
    data = _target("randn", sizes if size is None else (size,), out, dtype, layout, device)
    stream = stream_of(generator, filled=out)
    stream.numbers.normal_(data, 0.0, 1.0, stream)
    return _finished(data, out, requires_grad)


@composite(
    f"randint(int low, int high, int[] size, {_OPTIONS}) -> Tensor", batch="draws", method=False
)
def randint(*args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Any = None,
            out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
            pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers from [low, high): `randint(high, size)` or `randint(low, high, size)`.

    >>> import flambeau as torch
    >>> torch.randint(5, (2, 3)).dtype
    torch.int64
    """
    if pin_memory is not False:
        refuse_pinned("randint", pin_memory)
    if args and isinstance(args[-1], (tuple, list)):
        *args, size = args  # type: ignore[assignment]
    bounds = [int(a) for a in args]
    if high is not None:
        bounds.append(int(high))
    if low is not None:
        bounds.insert(0, int(low))
    if size is None or not 1 <= len(bounds) <= 2:
        raise TypeError("randint() received an invalid combination of arguments")
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
    wanted = dt.int64 if dtype is None and out is None else dtype
    data = _target("randint", (size,), out, wanted, layout, device)
    stream = stream_of(generator, filled=out)
    stream.numbers.random_from_to_(data, first, last, stream)
    return _finished(data, out, requires_grad)


@composite(f"randperm(int n, {_OPTIONS}) -> Tensor", bare=True, batch="draws", method=False)
def randperm(n: int, *, generator: Any = None, out: Any = None, dtype: Any = None,
             layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The integers from 0 to n - 1 in random order.

    Shape [n].

    >>> import flambeau as torch
    >>> torch.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("randperm", pin_memory)
    wanted = of_out("randperm", out, dtype, layout, device)
    numpy_dtype = options(dt.int64 if wanted is None else wanted, layout, device)
    stream = stream_of(generator, filled=out)
    return finish(stream.numbers.randperm(n, numpy_dtype, stream), requires_grad, out)


_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None".replace("Generator? generator=None, ", "")


@composite(
    f"rand_like(Tensor self, {_LIKE}) -> Tensor",
    bare=True,
    batch="draws like",
    method=False,
)
def rand_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
              device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
              memory_format: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers from [0, 1) in the shape of a tensor.

    >>> import flambeau as torch
    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("rand_like", pin_memory)
    data = _like(input, dtype, layout, device, memory_format, fills=True)
    stream = stream_of(generator)
    return finish(stream.numbers.uniform_(data, 0.0, 1.0, stream), requires_grad)


@composite(
    f"randn_like(Tensor self, {_LIKE}) -> Tensor",
    bare=True,
    batch="draws like",
    method=False,
)
def randn_like(input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None,
               device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
               memory_format: Any = None) -> Tensor:  # fmt: skip
    """Normal numbers in the shape of a tensor.

    >>> import flambeau as torch
    >>> torch.randn_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("randn_like", pin_memory)
    data = _like(input, dtype, layout, device, memory_format, fills=True)
    stream = stream_of(generator)
    return finish(stream.numbers.normal_(data, 0.0, 1.0, stream), requires_grad)


@composite(
    f"randint_like(Tensor self, int low, int high, {_LIKE}) -> Tensor",
    batch="draws like",
    method=False,
)
def randint_like(input: Tensor, *args: Any, low: Any = None, high: Any = None,
                 generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
                 pin_memory: bool = False, requires_grad: bool = False,
                 memory_format: Any = None) -> Tensor:  # fmt: skip
    """Integers from [low, high) in the shape of a tensor.

    >>> import flambeau as torch
    >>> torch.randint_like(torch.zeros(3), 1)
    tensor([0., 0., 0.])
    """
    if pin_memory is not False:
        refuse_pinned("randint_like", pin_memory)
    given = [a for a in (low, *args, high) if a is not None]
    for bound in given:
        if isinstance(bound, Tensor) and bound._data.ndim:
            raise RuntimeError("high must be a scalar tensor and on CPU")
    bounds = [int(a) for a in given]
    first, last = (0, bounds[0]) if len(bounds) == 1 else bounds
    data = _like(input, dtype, layout, device, memory_format, fills=True)
    stream = stream_of(generator)
    stream.numbers.random_from_to_(data, first, last, stream)
    return finish(data, requires_grad)


@composite(f"normal.float_float(float mean, float std, int[] size, {_OPTIONS}) -> Tensor",
           batch="draws",
           method=False)  # fmt: skip
def normal(mean: float, std: float, size: Any, *, generator: Any = None, out: Any = None,
           dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers of one mean and standard deviation; not on the default device.

    Its shape is `size`, or that of the means and deviations, which broadcast.

    >>> import flambeau as torch
    >>> torch.normal(0.0, 1.0, (2, 3)).shape
    torch.Size([2, 3])
    """
    if pin_memory is not False:
        refuse_pinned("normal", pin_memory)
    data = _target("normal", (size,), out, dtype, layout, device or CPU)
    stream = stream_of(generator, filled=out)
    stream.numbers.normal_(data, float(mean), float(std), stream)
    return _finished(data, out, requires_grad)


@composite(
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    shape="zeros",
    batch="elements",
    method=False,
    out=True,
    order=3,  # a 0-dim tensor is a number, too
    node="NormalBackward1",
    saved_facts=sizes("mean"),
    backward={"mean": zero_like},
)
def normal_means(mean: Tensor, std: float, generator: Any) -> Tensor:
    """Normal numbers, each with its own mean."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    return _noise(mean, mean._data.shape, generator).mul_(std).add_(mean)


@composite(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    shape="zeros",
    batch="elements",
    method=False,
    out=True,
    order=2,
    node="NormalBackward2",
    saved_facts=sizes("std"),
    backward={"std": zero_like},
)
def normal_deviations(mean: float, std: Tensor, generator: Any) -> Tensor:
    """Normal numbers, each with its own standard deviation."""
    _check_deviations(std)
    return _noise(std, std._data.shape, generator).mul_(std).add_(mean)


@composite("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    shape="zeros",
           batch="elements",
           method=False, out=True, order=1, node="NormalBackward3",
           saved_facts=sizes("mean", "std"),
           backward={"mean": zero_like, "std": zero_like})  # fmt: skip
def normal_each(mean: Tensor, std: Tensor, generator: Any) -> Tensor:
    """Normal numbers, each with its own mean and standard deviation; the means give the type."""
    _check_deviations(std)
    shape = broadcast_shape([mean._data.shape, std._data.shape])
    return _noise(mean, shape, generator).mul_(std).add_(mean)


def _check_deviations(std: Tensor) -> None:
    if std._data.dtype.kind in "cW":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std._data.size and (std._data < 0).any():
        raise RuntimeError("normal expects all elements of std >= 0.0")


def _noise(like: Tensor, shape: tuple[int, ...], generator: Any) -> Any:
    data = np.empty(shape, like._data.dtype)
    stream = stream_of(generator)
    return wrap(stream.numbers.normal_(data, 0.0, 1.0, stream))


@composite(
    "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    shape="zeros",
    batch="elements",
    out=True,
    out_type=outputs.ANY,
    backward={"self": zero_like},
)
def bernoulli(input: Tensor, generator: Any) -> Tensor:
    """0 or 1, each 1 with the probability that the tensor has in its place.

    >>> import flambeau as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    result = ops.empty_like(input, memory_format=contiguous_format)
    stream = stream_of(generator)
    stream.numbers.bernoulli_tensor_(result._data, input._data, stream)
    return result  # type: ignore[no-any-return]


@composite(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    shape="zeros",
    batch="elements",
    order=1,
    underived=True,
)
def bernoulli_one(input: Tensor, p: float, generator: Any) -> Tensor:
    """0 or 1 in the shape of a tensor, 1 with probability `p`."""
    if isinstance(p, Tensor):
        if p._data.ndim:
            raise TypeError("bernoulli(): argument 'p' (position 1) must be float, not Tensor")
        p = float(p)
    result = ops.empty_like(input, memory_format=contiguous_format)
    if not isinstance(result._data, Numberless):
        _fill_bernoulli(result._data, p, stream_of(generator))
    return result  # type: ignore[no-any-return]


def _fill_bernoulli(data: np.ndarray, p: Any, stream: CoreGenerator) -> None:
    if isinstance(p, Tensor):
        chances: Any = p if p._data.shape == data.shape else p.expand(data.shape)  # type: ignore[attr-defined]
        _fill_by_chances(data, chances._data, stream)
    else:
        stream.numbers.bernoulli_(data, float(p), stream)


def _fill_by_chances(data: np.ndarray, chances: np.ndarray, stream: CoreGenerator) -> None:
    if not isinstance(data, DeviceArray):
        stream.numbers.bernoulli_tensor_(data, chances, stream)
        return
    here = to_host(chances) if isinstance(chances, DeviceArray) else chances
    written(data, lambda target: stream.numbers.bernoulli_tensor_(target, here, stream))


@kernel("multinomial(Tensor self, int num_samples, bool replacement=False, *, "
        "Generator? generator=None) -> Tensor", shape="ones", out=True,
        out_type="multinomial expects {want} tensor out, got: {have}")  # fmt: skip
def multinomial(
    weights: np.ndarray, num_samples: int, replacement: bool, generator: Any
) -> np.ndarray:
    """Indices drawn with probability proportional to the weights in each row.

    From shape [M] to [num_samples], from [N, M] to [N, num_samples].

    >>> import flambeau as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    stream = stream_of(generator)
    return stream.numbers.multinomial(weights, num_samples, replacement, stream)  # type: ignore[no-any-return]


@kernel("poisson(Tensor self, Generator? generator=None) -> Tensor",
        batch="elements", method=False, backward={
    "self": lambda grad: ops.zeros_like(grad)})  # fmt: skip
def poisson(rates: np.ndarray, generator: Any) -> np.ndarray:
    """Counts with the given rates.

    Takes any shape; the result has the same.

    >>> import flambeau as torch
    >>> torch.poisson(torch.zeros(3))
    tensor([0., 0., 0.])
    """
    stream = stream_of(generator)
    return stream.numbers.poisson(rates, stream)  # type: ignore[no-any-return]


# ---- in place


class Overwritten(Node):
    """The history of a tensor filled with random numbers: zeros for all that came before."""

    __slots__ = ("shapes",)

    def __init__(self, inputs: list[Tensor]) -> None:
        super().__init__(*[edge_of(tensor) for tensor in inputs])
        self.shapes = [tensor._data.shape for tensor in inputs]

    def apply(self, grad: Tensor) -> tuple[Any, ...]:
        return tuple([grad.new_zeros(shape) for shape in self.shapes])  # type: ignore[attr-defined]


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
    if not isinstance(target._data, Numberless):
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
        "Overwrite with numbers from the exponential distribution with rate `lambd`.",
        "bool((torch.empty(100).exponential_(2.0) >= 0).all())",
        "True",
    ),
)
_inplace(
    "cauchy_",
    {"median": 0.0, "sigma": 1.0},
    with_example(
        "Overwrite with numbers from the Cauchy distribution.",
        "torch.empty(2, 3).cauchy_(median=1.0).shape",
        "torch.Size([2, 3])",
    ),
)
_inplace(
    "log_normal_",
    {"mean": 1.0, "std": 2.0},
    with_example(
        "Overwrite with numbers whose logarithm is normal, with `mean` and `std`.",
        "bool((torch.empty(100).log_normal_() >= 0).all())",
        "True",
    ),
)
_inplace(
    "geometric_",
    {"p": REQUIRED},
    with_example(
        "Overwrite with the number of trials until the first success, of probability `p` each.",
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
    return _overwrite(self, title, lambda data: _fill_bernoulli(data, p, stream), p)


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
    """Overwrite with integers: `random_()`, `random_(to)`, `random_(from, to)`, without `to`.

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
