"""Max, average and power-average pools over sliding windows.

Average pools are linear: the backward of their backward is the pool again. Max pools pick elements,
so their gradients scatter and gather by the picked positions.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from flambeau._core.modes import grad as grad_state
from flambeau._core.programs import EAGER
from flambeau._core.settled import settled
from flambeau._ops.elementwise.bounds import beside
from flambeau._ops.images import planes
from flambeau._ops.pooling import choice as pooling
from flambeau._ops.pooling import numpy_form as pool
from flambeau._ops.pooling import shapes as pool_check
from flambeau._ops.reductions.sums import refuse
from flambeau._ops.table.binder import require_tensor
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Folded, alias, composite, kernel
from flambeau._ops.table.outputs import EXACT

Array = np.ndarray
Ints = tuple[int, ...]


@settled
def _numbers(function: str, spatial: int, kernel_size: Any, stride: Any, padding: Any,
             dilation: Any = 1) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Kernel, stride, padding and dilation for each dim; no stride means the kernel's."""
    kernel_ = pool_check.pool_numbers(function, "kernel_size", kernel_size, spatial)
    return (
        kernel_,
        pool_check.pool_numbers(function, "stride", () if stride is None else stride, spatial,
                                kernel_),
        pool_check.pool_numbers(function, "padding", padding, spatial),
        pool_check.pool_numbers(function, "dilation", dilation, spatial),
    )  # fmt: skip


# ---- picking by position: what max pools differentiate to


@kernel("_scatter_planes(Tensor self, Tensor indices, int[] size, bool unique) -> Tensor",
        function=False, node="MaxPoolBackwardBackward0", backward={
    "self": lambda grad, indices, size: ops._gather_planes(grad, indices, len(size)),
})  # fmt: skip
def _scatter_planes(data: Array, indices: Array, size: Any, unique: bool) -> Array:
    """Values added into zero planes `(..., *size)` at flat positions within each plane."""
    return pooling.scatter_planes(data, indices, size, unique)


@kernel("_gather_planes(Tensor self, Tensor indices, int rank) -> Tensor", function=False,
        node="MaxUnpoolBackwardBackward0", backward={
    "self": lambda grad, indices, self_shape, rank: ops._scatter_planes(
        grad, indices, self_shape[-rank:], False),
})  # fmt: skip
def _gather_planes(data: Array, indices: Array, rank: int) -> Array:
    """The values at flat positions within each plane (the last `rank` dims)."""
    return planes.gather_planes(data, indices, rank)


# ---- max pools


def _max_numbers(data: Array, name: str, spatial: int, *numbers: Any) -> Any:
    """The numbers for each dim, and last the spatial shape of the result."""
    found = _max_windows(name, spatial, data.shape, *numbers)
    refuse(data, "int float", name)
    return found


@settled
def _max_windows(name: str, spatial: int, shape: Ints, kernel_size: Any, stride: Any, padding: Any,
                 dilation: Any, ceil_mode: bool) -> tuple[Ints, ...]:  # fmt: skip
    each = _numbers(name, spatial, kernel_size, stride, padding, dilation)
    output = pool_check.max_pool_output_shape(shape, *each, ceil_mode)
    return *each, output[-spatial:]


def precision(spatial: int) -> str | None:
    """The word for autocast: pools of volumes run in float32."""
    return "cpu=float32" if spatial == 3 else None


def _max_pool_rows(spatial: int) -> None:
    name = f"max_pool{spatial}d"
    node = f"MaxPool{spatial}DWithIndicesBackward0"
    size = f"int[{spatial}]"
    numbers = (f"{size} kernel_size, {size}? stride=None, {size} padding=0, {size} dilation=1, "
               "bool ceil_mode=False")  # fmt: skip
    pool_backward = f"_max_pool{spatial}d_backward"
    pick = f"_max_pool{spatial}d_pick"

    def indexed_backward(grad: Any, self: Any, result1: Any, self_shape: Any, kernel_size: Any,
                         stride: Any, dilation: Any) -> Any:  # fmt: skip
        numbers = _numbers(name, spatial, kernel_size, stride, 0, dilation)
        apart = pool.windows_apart(numbers[0], numbers[1], numbers[3])
        return beside(ops._scatter_planes(grad, result1, self_shape[-spatial:], apart), self)

    @kernel(f"{name}_with_indices(Tensor self, {numbers}) -> (Tensor, Tensor)", inline=True,
            batch=Folded(spatial + 1), node=node, also_saved=("padding", "ceil_mode"),
            method=False, nondifferentiable=("result1",), function=spatial == 1,
            saved_names={"self_shape": None},
            backward={"self": indexed_backward})  # fmt: skip
    def with_indices(data: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                     ceil_mode: bool) -> tuple[Array, Array]:  # fmt: skip
        """The largest value of every window, and its position in its flattened plane."""
        given = (kernel_size, stride, padding, dilation, ceil_mode)
        return pooling.max_pool_with_indices(data, *_max_numbers(data, name, spatial, *given))

    def compare(grad: Any, self: Any, result: Any, kernel_size: Any, stride: Any, padding: Any,
                dilation: Any, ceil_mode: bool) -> Any:  # fmt: skip
        numbers = (kernel_size, stride, padding, dilation)
        if result is None:
            result = getattr(ops, name)(self.detach(), *numbers, ceil_mode)
        return getattr(ops, pool_backward)(grad, self, result, *numbers, ceil_mode)

    # Positions are needed only backwards, and there comparing with the maxima finds them faster:
    # benchmarks/pool_kernels.py.
    @kernel(f"{name}(Tensor self, {numbers}) -> Tensor", inline=True,
            batch=Folded(spatial + 1), node=node, method=False,
            autocast=precision(spatial), dispensable=("result",),
            decomposition=lambda *values: getattr(ops, f"{name}_with_indices")(*values)[0],
            backward={"self": compare})  # fmt: skip
    def max_pool(data: Array, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 ceil_mode: bool) -> Array:  # fmt: skip
        """The largest value of every window; NaN wins over numbers.

        Shapes (N, C, *spatial) or (C, *spatial).

        >>> import flambeau as torch
        >>> torch.max_pool2d(torch.arange(16.).reshape(1, 4, 4), 2)
        tensor([[[ 5.,  7.],
                 [13., 15.]]])
        """
        given = (kernel_size, stride, padding, dilation, ceil_mode)
        return pooling.max_pool(data, *_max_numbers(data, name, spatial, *given))

    def pick_again(grad: Any, self: Any, kernel_size: Any, stride: Any, padding: Any,
                   dilation: Any, ceil_mode: bool) -> Any:  # fmt: skip
        return getattr(ops, pick)(grad, self, kernel_size, stride, padding, dilation, ceil_mode)

    @kernel(f"{pool_backward}(Tensor grad_output, Tensor self, Tensor output, {numbers})"
            " -> Tensor",
            batch=Folded(spatial + 1), function=False, node=node.replace("0", "Backward0"),
            nondeterministic=f"{name}_with_indices_backward_cuda" if spatial == 3 else "",
            backward={
        "grad_output": pick_again, "self": lambda grad: ops.zeros_like(grad),
    })  # fmt: skip
    def backward(grad_output: Array, data: Array, result: Array, kernel_size: Any, stride: Any,
                 padding: Any, dilation: Any, ceil_mode: bool) -> Array:  # fmt: skip
        """Gradients put where each window's maximum lies."""
        numbers = _numbers(name, spatial, kernel_size, stride, padding, dilation)
        return pooling.max_pool_backward(grad_output, data, result, *numbers)

    @kernel(f"{pick}(Tensor self, Tensor source, {numbers}) -> Tensor",
            batch=Folded(spatial + 1), function=False,
            node=node.replace("0", "BackwardBackward0"), backward={
        "self": lambda grad, source, kernel_size, stride, padding, dilation, ceil_mode: (
            getattr(ops, pool_backward)(
                grad, source, getattr(ops, name)(source.detach(), kernel_size, stride, padding,
                                                dilation, ceil_mode),
                kernel_size, stride, padding, dilation, ceil_mode)),
    })  # fmt: skip
    def picked(data: Array, input: Array, kernel_size: Any, stride: Any, padding: Any,
               dilation: Any, ceil_mode: bool) -> Array:  # fmt: skip
        """The elements of one tensor where the maxima of another lie."""
        _, indices = with_indices.body(input, kernel_size, stride, padding, dilation, ceil_mode)
        return planes.gather_planes(data, indices, spatial)


_max_pool_rows(2)
_max_pool_rows(3)


def _max_values(spatial: int, input: Any, numbers: Any, ceil_mode: bool) -> Any:
    """The maxima alone, by the row whose gradient costs less.

    The gradient of overlapping windows needs positions, which cost less on the way forward.
    """
    name = f"max_pool{spatial}d"
    if input._requires_grad and grad_state.enabled and not pool.suits_taps(
        *_numbers(name, spatial, *numbers)
    ):  # fmt: skip
        return getattr(ops, f"{name}_with_indices")(input, *numbers, ceil_mode)[0]
    return getattr(ops, name)(input, *numbers, ceil_mode)


KINDS_1D = {
    "kernel_size": "an int, list of ints or", "stride": "None, an int, list of ints, or",
    "padding": "an int, list of ints, or", "dilation": "an int, list of ints or",
}  # fmt: skip
NOT_ONE = "{function}() {name} must be {kinds} tuple of ints of size 1 but got size {count}"
NOT_ONE_WITH_INDICES = "{function}() argument '{name}' should contain one int (got {count})"


def _one(function: str, name: str, value: Any, words: str = NOT_ONE) -> Any:
    """The one number of a one-dimensional pool."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            kinds = KINDS_1D[name]
            raise RuntimeError(
                words.format(function=function, name=name, kinds=kinds, count=len(value))
            )
        return value[0]
    return value


def _max_numbers_1d(kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                    words: str = NOT_ONE) -> list[Any]:  # fmt: skip
    one = partial(_one, "max_pool1d", words=words)
    kernel_size = one("kernel_size", kernel_size)
    no_stride = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    return [
        kernel_size,
        kernel_size if no_stride else one("stride", stride),
        one("padding", padding),
        one("dilation", dilation),
    ]


def _as_plane(function: str, input: Any) -> Any:
    """A signal `(..., L)` as a plane `(..., 1, L)`."""
    ndim = input._data.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' "
            f"(while checking arguments for {function})"
        )
    return ops.unsqueeze(input, -2)


NUMBERS_1D = "int[1] kernel_size, int[1]? stride=None, int[1] padding=0"


@composite(f"max_pool1d(Tensor self, {NUMBERS_1D}, int[1] dilation=1, bool ceil_mode=False)"
           " -> Tensor", method=False)  # fmt: skip
def max_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               dilation: Any = 1, ceil_mode: bool = False) -> Any:  # fmt: skip
    """The largest value of every window of a signal `(N, C, L)` or `(C, L)`.

    >>> import flambeau as torch
    >>> torch.max_pool1d(torch.tensor([[1., 3., 7., 5.]]), 2)
    tensor([[3., 7.]])
    """
    if input._data.ndim not in (2, 3):
        raise RuntimeError("max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                           f"batch size for input, but got:{list(input._data.shape)}")  # fmt: skip
    numbers: Any = _max_numbers_1d(kernel_size, stride, padding, dilation)
    pool_check.max_pool1d_output_size(input._data.shape, *[*numbers, ceil_mode])
    pairs = [(fill, number) for fill, number in zip((1, 1, 0, 1), numbers, strict=True)]
    plane = _as_plane("max_pool1d", input)
    if input._requires_grad and grad_state.enabled:
        return ops.squeeze(_max_values(2, plane, pairs, ceil_mode), -2)
    refuse(input._data, "float", "max_pool1d_impl")
    return ops.squeeze(_max_values(2, plane, pairs, ceil_mode), -2).contiguous()


@composite(f"max_pool1d_with_indices(Tensor self, {NUMBERS_1D}, int[1] dilation=1, "
           "bool ceil_mode=False) -> (Tensor, Tensor)", method=False)  # fmt: skip
def max_pool1d_with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                            dilation: Any = 1,
                            ceil_mode: bool = False) -> tuple[Any, Any]:  # fmt: skip
    """`max_pool1d` and the positions of the maxima.

    Both results have the shape of `max_pool1d`'s.

    >>> import flambeau as torch
    >>> torch.max_pool1d_with_indices(torch.tensor([[1., 3., 7., 5.]]), 2)
    (tensor([[3., 7.]]), tensor([[1, 2]]))
    """
    plane = _as_plane("max_pool1d", input)
    numbers: Any = _max_numbers_1d(kernel_size, stride, padding, dilation, NOT_ONE_WITH_INDICES)
    pairs = [(fill, number) for fill, number in zip((1, 1, 0, 1), numbers, strict=True)]
    values, indices = ops.max_pool2d_with_indices(plane, *pairs, ceil_mode)
    return ops.squeeze(values, -2), ops.squeeze(indices, -2)


def _functional_max_pool(spatial: int) -> None:
    name = f"max_pool{spatial}d"
    size = f"int[{spatial}]"
    parameters = (f"Tensor input, {size} kernel_size, {size}? stride=None, {size} padding=0, "
                  f"{size} dilation=1, bool ceil_mode=False, "
                  "bool return_indices=False")  # fmt: skip

    @composite(f"{name}({parameters}) -> Tensor", namespace="nn.functional")
    def max_pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 dilation: Any = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> Any:  # fmt: skip
        """The largest value of every window; with `return_indices` its position too.

        Shapes (N, C, *spatial) or (C, *spatial). Sizes are one int, or one for each spatial dim.

        kernel_size: how many places a window spans.
        stride: steps from one window to the next; `kernel_size` by default.
        padding: places at both ends that count as minus infinity, at most half a window.
        dilation: the distance of the places that a window reads.
        ceil_mode: whether a window that reaches beyond the end gives a value, too.

        A size n becomes (n + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded
        down, or up with `ceil_mode`. Positions count the elements of the flattened spatial dims of
        each image and channel: what `max_unpool` takes.

        >>> import flambeau as torch
        >>> torch.nn.functional.max_pool2d(torch.ones(1, 1, 4, 4), 2).shape
        torch.Size([1, 1, 2, 2])
        """
        steps = kernel_size if stride is None else stride
        if return_indices:
            return getattr(ops, f"{name}_with_indices")(
                input, kernel_size, steps, padding, dilation, ceil_mode
            )
        if EAGER and spatial > 1:
            try:
                numbers = (kernel_size, steps, padding, dilation)
                return _max_values(spatial, input, numbers, ceil_mode)
            except AttributeError:
                require_tensor(name, "input", 1, input)
                raise
        return getattr(ops, name)(input, kernel_size, steps, padding, dilation, ceil_mode)

    @composite(f"{name}_with_indices({parameters}) -> (Tensor, Tensor)",
               namespace="nn.functional")  # fmt: skip
    def with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                     dilation: Any = 1, ceil_mode: bool = False,
                     return_indices: bool = False) -> Any:  # fmt: skip
        """The largest value of every window and its position in its plane.

        Shapes (N, C, *spatial) or (C, *spatial).

        >>> import flambeau as torch
        >>> torch.nn.functional.max_pool1d_with_indices(torch.tensor([[1., 3., 7., 5.]]), 2)
        (tensor([[3., 7.]]), tensor([[1, 2]]))
        """
        return max_pool.body(input, kernel_size, stride, padding, dilation, ceil_mode, True)


for _spatial in (1, 2, 3):
    _functional_max_pool(_spatial)


# ---- average pools


@settled
def _avg_windows(name: str, spatial: int, shape: Ints, kernel_size: Any, stride: Any, padding: Any,
                 ceil_mode: bool, divisor_override: int | None) -> tuple[Ints, ...]:  # fmt: skip
    """Kernel, stride and padding for each dim and the spatial shape of the result."""
    numbers = _numbers(name, spatial, kernel_size, stride, padding)[:3]
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    output = pool_check.avg_pool_output_shape(shape, *numbers, ceil_mode)
    return *numbers, output[-spatial:]


def _told_stride(stride: Any, spatial: int) -> tuple[int, ...]:
    """A stride as users see it: an empty one where none was given."""
    if stride is None:
        return ()
    return (stride,) * spatial if isinstance(stride, int) else tuple(stride)


def _avg_pool_rows(spatial: int) -> None:
    name = f"avg_pool{spatial}d"
    node = f"AvgPool{spatial}DBackward0"
    size = f"int[{spatial}]"
    numbers = (f"{size} kernel_size, {size}? stride=None, {size} padding=0, bool ceil_mode=False, "
               "bool count_include_pad=True, int? divisor_override=None")  # fmt: skip

    @kernel(f"{name}(Tensor self, {numbers}) -> Tensor", inline=True,
            batch=Folded(spatial + 1), node=node, method=False, function=False, builtin=True,
            out=True, out_type=EXACT, saved_names={"self_shape": None}, saved_facts={
                "stride": lambda values: _told_stride(values["stride"], spatial)},
            autocast=precision(spatial), backward={
        "self": lambda grad, self, self_shape, kernel_size, stride, padding, ceil_mode,
        count_include_pad, divisor_override: beside(getattr(ops, f"_{name}_backward")(
            grad, self_shape[-spatial:], kernel_size, stride, padding, ceil_mode,
            count_include_pad, divisor_override), self),
    })  # fmt: skip
    def avg_pool(data: Array, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                 count_include_pad: bool, divisor_override: int | None) -> Array:  # fmt: skip
        """The mean of every window, or its sum over `divisor_override`.

        Shapes (N, C, *spatial) or (C, *spatial). `stride` is `kernel_size` where it is not given.
        `padding` adds zeros at both ends, which count in the mean with `count_include_pad`. Each
        size becomes (size + 2 padding - kernel) / stride + 1, rounded down, or up with `ceil_mode`.

        >>> import flambeau as torch
        >>> torch.nn.functional.avg_pool2d(torch.ones(1, 1, 4, 4), 2).shape
        torch.Size([1, 1, 2, 2])
        """
        kernel, step, margin, output = _avg_windows(
            name, spatial, data.shape, kernel_size, stride, padding, ceil_mode, divisor_override
        )
        if data.dtype.kind in "buic" and data.dtype != np.int64:
            refuse(data, "none", name)
        return pooling.avg_pool(
            data, kernel, step, margin, output, count_include_pad, divisor_override
        )

    def pool_again(grad: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
                   count_include_pad: bool, divisor_override: Any) -> Any:  # fmt: skip
        return getattr(ops, name)(
            grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    @kernel(f"_{name}_backward(Tensor grad_output, int[] size, {numbers}) -> Tensor",
            batch=Folded(spatial + 1),
            function=False, node=node.replace("0", "Backward0"),
            nondeterministic=f"{name}_backward_cuda" if spatial == 3 else "",
            backward={"grad_output": pool_again})  # fmt: skip
    def backward(grad_output: Array, size: Any, kernel_size: Any, stride: Any, padding: Any,
                 ceil_mode: bool, count_include_pad: bool,
                 divisor_override: int | None) -> Array:  # fmt: skip
        """Gradients spread evenly over their windows."""
        numbers = _numbers(name, spatial, kernel_size, stride, padding)[:3]
        return pooling.avg_pool_backward(
            grad_output, size, *numbers, count_include_pad, divisor_override
        )

    alias(f"nn.functional.{name}", name)


_avg_pool_rows(2)
_avg_pool_rows(3)


@composite(f"avg_pool1d(Tensor self, {NUMBERS_1D}, bool ceil_mode=False, "
           "bool count_include_pad=True) -> Tensor", builtin=True, method=False)  # fmt: skip
def avg_pool1d(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               ceil_mode: bool = False, count_include_pad: bool = True) -> Any:  # fmt: skip
    """The mean of every window of a signal `(N, C, L)` or `(C, L)`.

    >>> import flambeau as torch
    >>> torch.avg_pool1d(torch.tensor([[1., 3., 5., 7.]]), 2)
    tensor([[2., 6.]])
    """
    plane = _as_plane("avg_pool1d", input)
    kernel_size = _single("avg_pool1d", "kernel_size", kernel_size)
    no_stride = stride is None or (isinstance(stride, (tuple, list)) and not stride)
    stride = kernel_size if no_stride else _single("avg_pool1d", "stride", stride)
    padding = _single("avg_pool1d", "padding", padding)
    result = ops.avg_pool2d(
        plane, (1, kernel_size), (1, stride), (0, padding), ceil_mode, count_include_pad
    )
    return ops.squeeze(result, -2)


def _single(function: str, name: str, value: Any) -> Any:
    if not isinstance(value, (tuple, list)):
        return value
    if len(value) != 1:
        raise RuntimeError(
            f"{function}() argument '{name}' should contain one int (got {len(value)})"
        )
    return value[0]


alias("nn.functional.avg_pool1d", "avg_pool1d")


# ---- power-average pools


def _lp_pool_row(spatial: int) -> None:
    size = f"int[{spatial}]"

    @composite(f"lp_pool{spatial}d(Tensor input, Scalar norm_type, {size} kernel_size, "
               f"{size}? stride=None, bool ceil_mode=False) -> Tensor",
               namespace="nn.functional")  # fmt: skip
    def lp_pool(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
                ceil_mode: bool = False) -> Any:  # fmt: skip
        """`(sum of x ** p) ** (1 / p)` over every window; the largest or smallest `|x|` for an
        infinite `p`.

        Shapes (N, C, *spatial) or (C, *spatial).

        >>> import flambeau as torch
        >>> torch.nn.functional.lp_pool1d(torch.tensor([[3., 4., 6., 8.]]), 2, 2)
        tensor([[ 5., 10.]])
        """
        steps = kernel_size if stride is None else stride
        count = _window_size(kernel_size, spatial) if EAGER else math.prod(kernel_size)
        if math.isinf(norm_type):
            sizes = ops.abs(input) if norm_type > 0 else -ops.abs(input)
            largest = getattr(ops, f"max_pool{spatial}d")(
                sizes, kernel_size, steps, 0, 1, ceil_mode
            )
            return largest if norm_type > 0 else -largest
        power = getattr(ops, f"avg_pool{spatial}d")(
            input.pow(norm_type), kernel_size, steps, 0, ceil_mode
        )
        total = (ops.sign(power) * ops.relu(ops.abs(power))).mul(count)
        return total.pow(1.0 / norm_type)


def _window_size(kernel_size: Any, spatial: int) -> Any:
    """How many elements a window has, if there is a size for each dim."""
    if spatial == 1 or not isinstance(kernel_size, (tuple, list)):
        return kernel_size if spatial == 1 else kernel_size**spatial
    found, wanted = len(kernel_size), spatial
    if found < wanted:
        raise ValueError(f"not enough values to unpack (expected {wanted}, got {found})")
    if found > wanted:
        raise ValueError(f"too many values to unpack (expected {wanted})")
    return math.prod(kernel_size)


for _spatial in (1, 2, 3):
    _lp_pool_row(_spatial)
