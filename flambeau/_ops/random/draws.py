"""Random tensors from torch's streams: the same seed gives the same numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core import modes, random_fill, random_numbers
from flambeau._core.device import CPU, META, Cuda, Defaults, refuse_pinned, thread
from flambeau._core.device import device as Device  # noqa: N812  a parameter is called so
from flambeau._core.generator import Generator as CoreGenerator
from flambeau._core.generator import default_generator
from flambeau._core.layout import contiguous_format
from flambeau._ops.elementwise.arithmetic import zero_like
from flambeau._ops.factories.like import _like
from flambeau._ops.factories.making import (
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
from flambeau._ops.table.binder import plain_type_name
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, kernel
from flambeau._ops.table.pointwise import broadcast_shape
from flambeau._runtime import choice
from flambeau._tensor.device_array import DeviceArray, to_host, written
from flambeau._tensor.tensor import Tensor, constructors, wrap
from flambeau._tensor.wrappers import has_numbers
from flambeau.autograd.batches import REFUSED
from flambeau.autograd.saved_fields import sizes

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


default_generator.__class__ = Generator  # made below tensors, it gives its states as these now


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
        f"{name}(): argument 'generator' must be torch.Generator, not {plain_type_name(generator)}"
    )


# ---- the default stream


def manual_seed(seed: int) -> Generator:
    """Start the default streams of the CPU and of all devices anew; returns the CPU's.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(1)
    tensor([0.4963])
    """
    for stream in _streams_of_devices():
        stream.manual_seed(int(seed))
    return default_generator.manual_seed(int(seed))  # type: ignore[return-value]


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
    return finish(data, requires_grad) if out is None else filled(out, requires_grad)


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
    return finish(data, requires_grad) if out is None else filled(out, requires_grad)


@composite(
    f"randint(int low, int high, int[] size, {_OPTIONS}) -> Tensor", batch="draws", method=False
)
def randint(*args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Any = None,
            out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
            pin_memory: bool = False, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers from [low, high): `randint(high, size)` or `randint(low, high, size)`.

    low: the least, 0 by default; high: the first that is too large.
    size: the shape, a tuple.
    generator: whose numbers are taken; by default those that `manual_seed` starts.
    dtype: int64 by default; floats hold whole numbers.

    All are equally likely. Raises RuntimeError where `low` is not below `high`, or where the type
    cannot hold them.

    >>> import flambeau as torch
    >>> torch.randint(5, (2, 3)).dtype
    torch.int64
    """
    if pin_memory is not False:
        refuse_pinned("randint", pin_memory)
    if args and isinstance(args[-1], (tuple, list)):
        size, args = args[-1], args[:-1]
    bounds = args if low is None else (low, *args)
    if high is not None:
        bounds = (*bounds, high)
    if size is None or not 1 <= len(bounds) <= 2:
        raise TypeError("randint() received an invalid combination of arguments")
    first, last = (0, int(bounds[0])) if len(bounds) == 1 else (int(bounds[0]), int(bounds[1]))
    wanted = dt.int64 if dtype is None and out is None else dtype
    data = _target("randint", (size,), out, wanted, layout, device)
    stream = stream_of(generator, filled=out)
    stream.numbers.random_from_to_(data, first, last, stream)
    return finish(data, requires_grad) if out is None else filled(out, requires_grad)


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
    several=True,
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


NUMBERS = {0: (float, int), 1: (float, int)}
"""What `normal` takes for means and deviations besides tensors."""


@composite(f"normal.float_float(float mean, float std, int[] size, {_OPTIONS}) -> Tensor",
           takes=NUMBERS,
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
    return finish(data, requires_grad) if out is None else filled(out, requires_grad)


@composite(
    "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
    takes=NUMBERS,
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
    takes=NUMBERS,
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
           takes=NUMBERS, shape="zeros", batch="elements",
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
    if has_numbers(result._data):
        fill_bernoulli(result._data, p, stream_of(generator))
    return result  # type: ignore[no-any-return]


def fill_bernoulli(data: np.ndarray, p: Any, stream: CoreGenerator) -> None:
    if isinstance(p, Tensor):
        if not data.size:
            return  # nothing is looked at, not even the shape
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
