"""Adaptive and fractional pools, and `max_unpool`, which puts maxima back where they came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.programs import EAGER
from flambeau._core.settings import alert_not_deterministic, alert_on_gpus
from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.images import planes
from flambeau._ops.launching.memory_formats import in_format_of
from flambeau._ops.pooling import (
    choice as pooling,
)
from flambeau._ops.pooling import (
    fractional as fractional_pool,
)
from flambeau._ops.pooling import (
    numpy_adaptive as adaptive_pool,
)
from flambeau._ops.pooling.windows import precision
from flambeau._ops.reductions.sums import refuse
from flambeau._ops.table.binder import without_public_attribute
from flambeau._ops.table.call_text import repeated
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Folded, alias, composite, internal, kernel

Array = np.ndarray


# ---- adaptive average pools


def _adaptive_avg_rows(spatial: int) -> None:
    name = f"adaptive_avg_pool{spatial}d"
    node = f"AdaptiveAvgPool{spatial}DBackward0"

    @kernel(f"_{name}(Tensor self, int[{spatial}] output_size) -> Tensor",
            batch=Folded(spatial + 1), node=node, saved_names={"self_shape": None},
            method=False, backward={
        "self": lambda grad, self, self_shape: beside(
            getattr(ops, f"_{name}_backward")(grad, self_shape[-spatial:]), self),
    })  # fmt: skip
    def pool(data: Array, output_size: Any) -> Array:
        """The mean of each of `output_size` segments along every spatial dim."""
        shape = adaptive_pool.adaptive_output_shape(name, data.shape, output_size)
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        found = pooling.adaptive_avg_pool(data, tuple(output_size))
        return in_format_of(found, data) if spatial == 2 else found

    @kernel(f"_{name}_backward(Tensor grad_output, int[] size) -> Tensor",
            batch=Folded(spatial + 1), function=False, nondeterministic=f"{name}_backward_cuda",
            node=node.replace("0", "Backward0"), backward={
        "grad_output": lambda grad, grad_output_shape: getattr(ops, f"_{name}")(
            grad, grad_output_shape[-spatial:]),
    })  # fmt: skip
    def backward(grad_output: Array, size: Any) -> Array:
        """Gradients spread evenly over their segments."""
        adaptive_pool.refuse_empty(f"{name}_backward", "grad_output", [*grad_output.shape])
        return pooling.adaptive_avg_pool_backward(grad_output, tuple(size))

    @composite(f"{name}(Tensor self, int[{spatial}] output_size) -> Tensor",
               autocast=precision(spatial), method=False, function=False)  # fmt: skip
    def averaged(input: Any, output_size: Any) -> Any:
        """The mean of each of `output_size` segments, one size for each dim."""
        return _adaptive_average(name, spatial, input, output_size)

    @composite(f"{name}(Tensor input, int[{spatial}] output_size) -> Tensor",
               autocast=precision(spatial), namespace="nn.functional")  # fmt: skip
    def adaptive_avg_pool(input: Any, output_size: Any) -> Any:
        """The mean of each of `output_size` segments along every spatial dim; None keeps a size.

        Shapes (N, C, *spatial) or (C, *spatial); the result has `output_size` for the last.

        >>> import flambeau as torch
        >>> torch.nn.functional.adaptive_avg_pool2d(torch.arange(8.).reshape(1, 2, 4), (None, 2))
        tensor([[[0.5000, 2.5000],
                 [4.5000, 6.5000]]])
        """
        if EAGER:
            output_size = _with_defaults(output_size, input, spatial)
        else:
            assert input.dim() > len(output_size)
        return averaged.body(input, output_size)


def _adaptive_average(name: str, spatial: int, input: Any, output: Any) -> Any:
    if set(output) != {1}:
        adaptive_pool.adaptive_output_shape(name, input._data.shape, output)
        return getattr(ops, f"_{name}")(input, output)
    adaptive_pool.check_average_size(name, input._data.shape, output)
    if input._data.ndim not in (spatial + 1, spatial + 2):  # a mean is that of any tensor
        return ops.mean(input, tuple(range(-1, -spatial - 1, -1)), True)
    if input._data.size or spatial == 3:
        result = ops.mean(input, tuple(range(-spatial, 0)), True)
        result._data = in_format_of(result._data, input._data)  # nobody else has its memory yet
        return result
    return getattr(ops, f"_{name}")(input, output)


def _with_defaults(output_size: Any, input: Any, spatial: int) -> tuple[int, ...]:
    """One size for each dim: a single one counts for all, None stands for the input's."""
    if isinstance(output_size, (int, np.integer)):
        return (int(output_size),) * spatial
    try:
        shape = input._data.shape
    except AttributeError:
        without_public_attribute("size", input)
        raise
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    have = shape[-len(output_size) :]
    return tuple(
        size if wanted is None else wanted for wanted, size in zip(output_size, have, strict=False)
    )


_adaptive_avg_rows(2)
_adaptive_avg_rows(3)


def _signal_size(function: str, shape: tuple[int, ...], output_size: Any) -> tuple[int, ...]:
    output_size = repeated(output_size, 1)
    if len(output_size) != 1:
        if len(shape) not in (2, 3):
            adaptive_pool.adaptive_output_shape(function, shape, (1,))  # which says so
        raise RuntimeError(
            f"{function}() argument 'output_size' should contain one int (got {len(output_size)})"
        )
    return tuple(output_size)


@composite(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", builtin=True, method=False
)
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """The mean of each of `output_size` segments of a signal `(N, C, L)` or `(C, L)`.

    >>> import flambeau as torch
    >>> torch.adaptive_avg_pool1d(torch.tensor([[1., 3., 5., 7.]]), 2)
    tensor([[2., 6.]])
    """
    output = _signal_size("adaptive_avg_pool1d", input._data.shape, output_size)
    if output[0] >= 0:  # of images, torch looks at negative sizes first
        adaptive_pool.adaptive_output_shape("adaptive_avg_pool1d", input._data.shape, output)
    plane = ops.unsqueeze(input, -2)
    return ops.squeeze(_adaptive_average("adaptive_avg_pool2d", 2, plane, (1, *output)), -2)


alias("nn.functional.adaptive_avg_pool1d", "adaptive_avg_pool1d")


# ---- adaptive max pools


def _filled(name: str, grad: Any) -> Any:
    """A gradient, unless it is empty."""
    adaptive_pool.refuse_empty(f"{name}_backward", "grad_output", [*grad._data.shape])
    if name == "adaptive_max_pool2d":
        alert_on_gpus("adaptive_max_pool2d_backward_cuda", grad)
    return grad


def _adaptive_max_rows(spatial: int) -> None:
    name = f"adaptive_max_pool{spatial}d"

    @internal(f"{name}(Tensor self, int[{spatial}] output_size) -> (Tensor, Tensor)",
              batch=Folded(spatial + 1),
              node=f"AdaptiveMaxPool{spatial}DBackward0",
              saved_names={"self_shape": None},
              autocast=precision(spatial), nondifferentiable=("result1",), backward={
        "self": lambda grad, self, result1, self_shape: beside(ops._scatter_planes(
              _filled(name, grad), result1, self_shape[-spatial:], False), self),
    })  # fmt: skip
    def pool(data: Array, output_size: Any) -> tuple[Array, Array]:
        """The maximum of each segment and its position in its flattened plane."""
        output = tuple(output_size)
        shape = adaptive_pool.adaptive_output_shape(name, data.shape, output)
        if 0 in shape:
            return np.zeros(shape, data.dtype), np.zeros(shape, np.int64)
        values, indices = pooling.adaptive_max_pool(data, output)
        if spatial == 3:  # torch lays out volumes in the one way only
            return np.ascontiguousarray(values), np.ascontiguousarray(indices)
        return in_format_of(values, data), in_format_of(indices, data)


_adaptive_max_rows(2)
_adaptive_max_rows(3)


@composite("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
           method=False)  # fmt: skip
def adaptive_max_pool1d(input: Any, output_size: Any) -> tuple[Any, Any]:
    """The maximum of each segment of a signal `(N, C, L)` or `(C, L)`, and its position.

    >>> import flambeau as torch
    >>> torch.adaptive_max_pool1d(torch.tensor([[1., 3., 7., 5.]]), 2)
    (tensor([[3., 7.]]), tensor([[1, 2]]))
    """
    output = _signal_size("adaptive_max_pool1d", input._data.shape, output_size)
    adaptive_pool.adaptive_output_shape("adaptive_max_pool1d", input._data.shape, output)
    values, indices = ops.adaptive_max_pool2d(ops.unsqueeze(input, -2), (1, *output))
    return ops.squeeze(values, -2), ops.squeeze(indices, -2)


def _functional_adaptive_max(spatial: int) -> None:
    name = f"adaptive_max_pool{spatial}d"
    parameters = f"Tensor input, int[{spatial}] output_size, bool return_indices=False"

    @composite(f"{name}({parameters}) -> Tensor", namespace="nn.functional")
    def adaptive_max_pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        """The maximum of each of `output_size` segments; with `return_indices` its position too.

        Shapes (N, C, *spatial) or (C, *spatial); the spatial ones become `output_size`.

        >>> import flambeau as torch
        >>> torch.nn.functional.adaptive_max_pool1d(torch.tensor([[1., 3., 7., 5.]]), 2)
        tensor([[3., 7.]])
        """
        if spatial > 1:
            if EAGER:
                output_size = _with_defaults(output_size, input, spatial)
            else:
                assert input.dim() > len(output_size)
        values, indices = getattr(ops, name)(input, output_size)
        return (values, indices) if return_indices else values

    @composite(f"{name}_with_indices({parameters}) -> (Tensor, Tensor)",
               namespace="nn.functional")  # fmt: skip
    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        """The maximum of each segment and its position in its plane.

        Shapes (N, C, *spatial) or (C, *spatial); the spatial ones become `output_size`.

        >>> import flambeau as torch
        >>> x = torch.tensor([[1., 3., 7., 5.]])
        >>> torch.nn.functional.adaptive_max_pool1d_with_indices(x, 2)
        (tensor([[3., 7.]]), tensor([[1, 2]]))
        """
        return adaptive_max_pool.body(input, output_size, True)


for _spatial in (1, 2, 3):
    _functional_adaptive_max(_spatial)


# ---- fractional max pools


def _fractional_rows(spatial: int) -> None:
    name = f"fractional_max_pool{spatial}d"
    size = f"int[{spatial}]"
    parameters = (f"Tensor input, {size} kernel_size, {size}? output_size=None, "
                  f"float[{spatial}]? output_ratio=None, bool return_indices=False, "
                  "Tensor? _random_samples=None")  # fmt: skip

    ints = "three Ints" if spatial == 3 else "Ints"

    def spread(grad: Any, self: Any, places: Any, shape: Any) -> Any:
        alert_on_gpus(f"{name}_backward_cuda", grad)
        return beside(ops._scatter_planes(grad, places, shape[-spatial:], False), self)

    @internal(f"{name}(Tensor self, {size} kernel_size, {size} output_size, Tensor random_samples)"
              " -> (Tensor, Tensor)", node=f"FractionalMaxPool{spatial}DBackward0",
              nondifferentiable=("result1",), autocast="cpu=float32",
              also_saved=("kernel_size", "output_size"), saved_names={"self_shape": None},
              constants={"random_samples": name}, backward={
        "self": lambda grad, self, result1, self_shape: spread(grad, self, result1, self_shape),
    })  # fmt: skip
    def pool(data: Array, kernel_size: Any, output_size: Any,
             random_samples: Array) -> tuple[Array, Array]:  # fmt: skip
        """The maximum of windows at random places and its position in its flattened plane."""
        for argument, value in (("kernel_size", kernel_size), ("output_size", output_size)):
            if len(value) != spatial:
                raise RuntimeError(
                    f"{name}: {argument} must either be a single Int or tuple of {ints}"
                )
        output = tuple(output_size)
        shape = fractional_pool.fractional_output_shape(data.shape, kernel_size, output)
        batched = data.ndim == spatial + 2
        images = data if batched else data[None]
        _check_samples(images, random_samples, spatial)
        values, indices = pooling.fractional_max_pool(
            images, tuple(kernel_size), output, random_samples[: len(images)]
        )
        return values.reshape(shape), indices.reshape(shape)

    @composite(f"{name}({parameters}) -> Tensor", namespace="nn.functional")
    def fractional(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                   return_indices: bool = False, _random_samples: Any = None) -> Any:  # fmt: skip
        """Max pool over windows at random places (Graham 2014); sizes given or as a ratio.

        >>> import flambeau as torch
        >>> image = torch.ones(1, 4, 8, 8)
        >>> torch.nn.functional.fractional_max_pool2d(image, 2, output_size=3).shape
        torch.Size([1, 4, 3, 3])
        """
        sizes = _fractional_size(name, spatial, input, output_size, output_ratio)
        samples = _window_places(spatial, input) if _random_samples is None else _random_samples
        values, indices = getattr(ops, name)(input, kernel_size, sizes, samples)
        return (values, indices) if return_indices else values

    @composite(f"{name}_with_indices({parameters}) -> (Tensor, Tensor)",
               namespace="nn.functional")  # fmt: skip
    def with_indices(input: Any, kernel_size: Any, output_size: Any = None,
                     output_ratio: Any = None, return_indices: bool = False,
                     _random_samples: Any = None) -> Any:  # fmt: skip
        """`fractional_max_pool` and the positions of the maxima.

        Shapes (N, C, *spatial) or (C, *spatial).

        >>> import flambeau as torch
        >>> image = torch.ones(1, 4, 8, 8)
        >>> pool = torch.nn.functional.fractional_max_pool2d_with_indices
        >>> pooled, places = pool(image, 2, output_size=3)
        >>> pooled.shape, places.shape
        (torch.Size([1, 4, 3, 3]), torch.Size([1, 4, 3, 3]))
        """
        return fractional.body(input, kernel_size, output_size, output_ratio, True, _random_samples)


def _fractional_size(name: str, spatial: int, input: Any, output_size: list[int] | None,
                     ratios: list[float] | None) -> list[int]:  # fmt: skip
    """The size that is given, or the input's by a ratio for each dim."""
    if output_size is not None:
        return output_size
    if ratios is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if not isinstance(ratios, (tuple, list)):
        ratios = [ratios] * spatial
    if len(ratios) != spatial:
        raise ValueError(
            f"{name} requires output_ratio to either be a single Int or tuple of Ints."
        )
    if EAGER and not hasattr(input, "_data"):
        without_public_attribute("size", input)
    sizes = input._data.shape[-spatial:]
    return [int(sizes[dim] * ratios[dim]) for dim in range(spatial)]


def _window_places(spatial: int, input: Any) -> Any:
    """Where windows lie, by chance: [N, C, spatial]."""
    shape = input._data.shape
    batch = 1 if len(shape) == spatial + 1 else shape[0]
    return ops.rand([batch, shape[-spatial - 1], spatial], dtype=input.dtype, device=input.device)


def _check_samples(images: Array, samples: Array, spatial: int) -> None:
    if samples.dtype != images.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    if samples.shape[0] < images.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != images.shape[1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != spatial:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {spatial}; got {samples.shape[2]}."
        )


_fractional_rows(2)
_fractional_rows(3)


# ---- max_unpool


SIDES = {2: "two elements (height, width)", 3: "three elements (depth, height, width)"}


def _check_sides(spatial: int, output_size: Any) -> None:
    if len(output_size) != spatial:
        raise RuntimeError(f"There should be exactly {SIDES[spatial]} in output_size, but got "
                           f"{len(output_size)} elements.")  # fmt: skip


def _check_unpool(spatial: int, data: Array, indices: Array, output_size: Any) -> None:
    name = f"max_unpooling{spatial}d"
    if indices.dtype != np.int64:
        got = f" but got: {dt.from_numpy_dtype(indices.dtype).scalar_name}" if spatial == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{got}")
    if spatial == 2:
        _check_sides(2, output_size)
    if data.ndim not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"Input to {name} should be a {spatial + 1}d or {spatial + 2}d Tensor, but got a "
            f"tensor with {data.ndim} dimensions."
        )
    _check_sides(spatial, output_size)
    if data.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(data.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    for dim in range(1 if data.ndim == spatial + 2 else 0, data.ndim):
        if data.shape[dim] == 0:
            raise RuntimeError(
                f"{name}_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(data.shape)} with dimension {dim} being empty."
            )
    refuse(data, "float", f"max_unpool{spatial}d")


def _unpool_rows(spatial: int) -> None:
    name = f"max_unpool{spatial}d"

    @internal(f"{name}(Tensor self, Tensor indices, int[{spatial}] output_size) -> Tensor",
              batch=Folded(spatial + 1),
              node=f"MaxUnpool{spatial}DBackward0",
              saved_names={"output_size": None},
              autocast="cpu=float32", linear="self", backward={
        "self": lambda grad, indices, output_size: ops._gather_planes(
              grad, indices, len(output_size)),
    })  # fmt: skip
    def unpool(data: Array, indices: Array, output_size: Any) -> Array:
        """Zeros of the given size with the values at their flat positions in each plane."""
        alert_not_deterministic(f"max_unpooling{spatial}d_forward_out")
        _check_unpool(spatial, data, indices, output_size)
        found = planes.max_unpool(data, indices, tuple(output_size))
        return in_format_of(found, data) if spatial == 2 else found


_unpool_rows(2)
_unpool_rows(3)


def _functional_unpool(spatial: int) -> None:
    size = f"int[{spatial}]"

    @composite(f"max_unpool{spatial}d(Tensor input, Tensor indices, {size} kernel_size, "
               f"{size}? stride=None, {size} padding=0, int[]? output_size=None) -> Tensor",
               namespace="nn.functional")  # fmt: skip
    def max_unpool(input: Any, indices: Any, kernel_size: Any, stride: Any = None,
                   padding: Any = 0, output_size: Any = None) -> Any:  # fmt: skip
        """Undo a max pool as far as possible: the maxima at their positions, zeros elsewhere.

        Shapes (N, C, *spatial) or (C, *spatial), the same for values and positions.

        >>> import flambeau as torch
        >>> values, places = torch.tensor([[3., 7.]]), torch.tensor([[1, 2]])
        >>> torch.nn.functional.max_unpool1d(values, places, 2)
        tensor([[0., 3., 7., 0.]])
        """
        steps = kernel_size if stride is None else stride
        if EAGER:
            kernel_size, steps, padding = (
                _each(value, spatial) for value in (kernel_size, steps, padding)
            )
        size = _unpooled_size(input, kernel_size, steps, padding, output_size)
        if spatial == 1:
            rows, places = ops.unsqueeze(input, -1), ops.unsqueeze(indices, -1)
            return ops.squeeze(ops.max_unpool2d(rows, places, [size[0], 1]), -1)
        if spatial == 2 or EAGER:
            return getattr(ops, f"max_unpool{spatial}d")(input, indices, size)
        return ops.max_unpool3d(input, indices, size, steps, padding)  # type: ignore[call-arg]


def _each(value: Any, spatial: int) -> tuple[int, ...]:
    return (value,) * spatial if isinstance(value, (int, np.integer)) else tuple(value)


def _unpooled_size(input: Any, kernel_size: list[int], stride: list[int], padding: list[int],
                   output_size: list[int] | None) -> list[int]:  # fmt: skip
    """The size before a pool: as it would be without a remainder, or one given close to that."""
    if EAGER and not hasattr(input, "_data"):
        without_public_attribute("size", input)
    sizes = input._data.shape
    spatial = len(kernel_size)
    default = [
        (sizes[d - spatial] - 1) * stride[d] + kernel_size[d] - 2 * padding[d]
        for d in range(spatial)
    ]
    if output_size is None:
        for d in range(spatial):
            if default[d] < 0:
                raise ValueError(
                    "max_unpooling: output_size must contain non-negative spatial dimensions, but "
                    f"got output_size[{d}]={default[d]}"
                )
        return default
    if len(output_size) == spatial + 2:
        output_size = output_size[2:]
    if len(output_size) != spatial:
        raise ValueError(
            f"output_size should be a sequence containing {spatial} or {spatial + 2} elements, but "
            f"it has a length of '{len(output_size)}'"
        )
    for d in range(spatial):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            shown = str(tuple(output_size)) if EAGER else f"{output_size}"
            raise ValueError(
                f'invalid output_size "{shown}" (dim {d} must be between {low} and {high})'
            )
    return list(output_size)


for _spatial in (1, 2, 3):
    _functional_unpool(_spatial)
