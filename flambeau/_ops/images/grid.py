"""`grid_sample`: reading images at any positions, and `affine_grid`, which makes positions."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._ops.images import numpy_grid as kernels
from flambeau._ops.images.grid_curves import curves
from flambeau._ops.launching.modules import launcher
from flambeau._ops.table.dims import size_at
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import composite, functional, kernel
from flambeau._runtime import choice

Array = np.ndarray
OPTIONS = "int interpolation_mode, int padding_mode, bool align_corners"


def _check(input: Array, grid: Array, interpolation_mode: int,
           spatial: int = 0) -> tuple[int, ...]:  # fmt: skip
    size_at(input, 0), size_at(grid, 0)  # they have to be there
    known = 0 <= interpolation_mode < len(kernels.MODES)
    mode = kernels.MODES[interpolation_mode] if known else ""
    shape = kernels.grid_sample_output_shape(input.shape, grid.shape, mode, spatial)
    if input.dtype != grid.dtype:
        names = [dt.from_numpy_dtype(array.dtype).scalar_name for array in (input, grid)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    return shape


def _engine(input: Array, count: int) -> Any:
    """The module that reads so many numbers of images: kernels, or NumPy's form of them."""
    if choice.compiled("grid", count):
        launch = launcher("images.grid_launch")
        if launch.suits(input.dtype, prod(input.shape[2:])):
            return launch
    return kernels


def _rows(spatial: int) -> None:
    name = f"grid_sampler_{spatial}d"
    title = f"GridSampler{spatial}D"

    def gradients(grad: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
                  align_corners: bool, wanted: tuple[bool, ...]) -> Any:  # fmt: skip
        return getattr(ops, f"{name}_backward")(
            grad, input, grid, interpolation_mode, padding_mode, align_corners
        )

    @kernel(f"{name}(Tensor input, Tensor grid, {OPTIONS}) -> Tensor", node=f"{title}Backward0",
            autocast="cpu=float32", backward={("input", "grid"): gradients})  # fmt: skip
    def sample(input: Array, grid: Array, interpolation_mode: int, padding_mode: int,
               align_corners: bool) -> Array:  # fmt: skip
        """The input `(N, C, *spatial)` at the grid's positions: `(N, C, *output)`.

        >>> import flambeau as torch
        >>> grid = torch.tensor([[[[-1., -1.], [0., 0.]]]])
        >>> torch.grid_sampler_2d(torch.tensor([[[[1., 2.], [3., 4.]]]]), grid, 0, 0, True)
        tensor([[[[1.0000, 2.5000]]]])
        """
        shape = _check(input, grid, interpolation_mode, spatial)
        if 0 in shape:
            return np.zeros(shape, input.dtype)
        mode, padding = kernels.MODES[interpolation_mode], kernels.PADDING_MODES[padding_mode]
        engine = _engine(input, prod(shape))
        return engine.grid_sample(input, grid, mode, padding, align_corners)  # type: ignore[no-any-return]

    def gradients_again(grads: Any, given: Any, grad_output: Any, input: Any, grid: Any,
                        interpolation_mode: int, padding_mode: int, align_corners: bool,
                        wanted: tuple[bool, ...]) -> Any:  # fmt: skip
        """What is linear in the input's gradient is a sample again; the grid's needs curves."""
        of_input, of_grid = grads
        options = interpolation_mode, padding_mode, align_corners
        sampled = getattr(ops, name)(of_input, grid, *options)
        slope = getattr(ops, f"{name}_backward")(grad_output, of_input, grid, *options)[1]
        if kernels.MODES[interpolation_mode] == "nearest":
            return sampled if given[0] is not None else None, None, slope
        of_grad, of_read, bend = curves(grad_output, input, grid, of_grid, options)
        return sampled + of_grad, of_read, slope + bend

    @kernel(f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {OPTIONS})"
            " -> (Tensor, Tensor)", function=False, node=f"{title}BackwardBackward0",
            nondeterministic=f"{name}_backward_cuda",
            backward={("grad_output", "input", "grid"): gradients_again})  # fmt: skip
    def backward(grad_output: Array, input: Array, grid: Array, interpolation_mode: int,
                 padding_mode: int, align_corners: bool) -> tuple[Array, Array]:  # fmt: skip
        """The gradients with respect to input and grid."""
        if grad_output.size == 0 or input.size == 0:
            return np.zeros(input.shape, input.dtype), np.zeros(grid.shape, grid.dtype)
        mode, padding = kernels.MODES[interpolation_mode], kernels.PADDING_MODES[padding_mode]
        engine = _engine(input, grad_output.size)
        return engine.grid_sample_backward(  # type: ignore[no-any-return]
            grad_output, input, grid, mode, padding, align_corners
        )


_rows(2)
_rows(3)


@composite(f"grid_sampler(Tensor input, Tensor grid, {OPTIONS}) -> Tensor", method=False,
           autocast="cpu=float32 cuda=widest")  # fmt: skip
def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Any:  # fmt: skip
    """`grid_sample` with its modes as numbers, in the order in which torch's words list them.

    Shapes: input (N, C, *spatial), grid (N, *output, rank), result (N, C, *output).

    >>> import flambeau as torch
    >>> grid = torch.tensor([[[[-1., -1.], [0., 0.]]]])
    >>> torch.grid_sampler(torch.tensor([[[[1., 2.], [3., 4.]]]]), grid, 0, 0, True)
    tensor([[[[1.0000, 2.5000]]]])
    """
    _check(input._data, grid._data, interpolation_mode)
    function = ops.grid_sampler_2d if input._data.ndim == 4 else ops.grid_sampler_3d
    return function(input, grid, interpolation_mode, padding_mode, align_corners)


def _default_corners(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since "
            "1.3.0. Please specify align_corners=True if the old behavior is desired. See the "
            "documentation of grid_sample for details.", stacklevel=3,
        )  # fmt: skip
    return align_corners is not None and align_corners


@functional()
def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Any:  # fmt: skip
    """Read `(N, C, *spatial)` at positions from -1 to 1 given in `grid` `(N, *output, rank)`.

    Modes: bilinear, nearest, bicubic; outside there are zeros, the border or a reflection.

    >>> import flambeau as torch
    >>> image = torch.tensor([[[[1., 2.], [3., 4.]]]])
    >>> grid = torch.tensor([[[[-1., -1.], [0., 0.]]]])
    >>> torch.nn.functional.grid_sample(image, grid, align_corners=True)
    tensor([[[[1.0000, 2.5000]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' "
                         f"or 'bicubic', but got: '{mode}'")  # fmt: skip
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', "
                         f"'border', or 'reflection', but got: '{padding_mode}'")  # fmt: skip
    between = 0 if mode == "bilinear" else 1 if mode == "nearest" else 2
    outside = 0 if padding_mode == "zeros" else 1 if padding_mode == "border" else 2
    return ops.grid_sampler(input, grid, between, outside, _default_corners(align_corners))


# ---- affine grids


@kernel("affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
        autocast="lower", backward={
    "theta": lambda grad, size, align_corners: ops._affine_grid_backward(
        grad, size, align_corners=align_corners),
})  # fmt: skip
def affine_grid_generator(theta: Array, size: Any, align_corners: bool) -> Array:
    """The positions `(N, *spatial, rank)` of an image of a size under affine maps `theta`.

    >>> import flambeau as torch
    >>> theta = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.affine_grid_generator(theta, [1, 1, 2, 2], align_corners=True).shape
    torch.Size([1, 2, 2, 2])
    """
    return kernels.affine_grid(theta, tuple(size), align_corners)


@kernel("_affine_grid_backward(Tensor grad_output, int[] size, bool align_corners) -> Tensor",
        function=False, node="AffineGridGeneratorBackwardBackward0", autocast="lower", backward={
    "grad_output": lambda grad, size, align_corners: ops.affine_grid_generator(
        grad, size, align_corners=align_corners),
})  # fmt: skip
def _affine_grid_backward(grad_output: Array, size: Any, align_corners: bool) -> Array:
    """The transposed map of `affine_grid_generator`."""
    return kernels.affine_grid_backward(grad_output, tuple(size), align_corners)


UNIT_SIZE = (
    "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
    "align_corners=True. This is not an intended use case of affine_grid. See the documentation "
    "of affine_grid for details."
)


@composite("affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor",
           namespace="nn.functional")  # fmt: skip
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Positions for `grid_sample` under affine maps theta `(N, rank, rank + 1)`.

    `size` is that of the images to make, `(N, C, H, W)` or `(N, C, D, H, W)`.

    >>> import flambeau as torch
    >>> turned = torch.tensor([[[0., 1., 0.], [1., 0., 0.]]])
    >>> torch.nn.functional.affine_grid(turned, (1, 1, 2, 2), align_corners=True).shape
    torch.Size([1, 2, 2, 2])
    """
    align = _default_corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    rank = len(size) - 2
    if theta._data.ndim != 3 or theta.size(1) != rank or theta.size(2) != rank + 1:
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align and min(size[2:]) == 1:
        warnings.warn(UNIT_SIZE, stacklevel=3)
    return ops.affine_grid_generator(theta, list(size), align)
