"""Resizing, sampling at grid positions, and sliding blocks as columns (`unfold`, `fold`).

Resizing, `fold` and `unfold` are linear: each comes as a pair of rows, adjoint to each other.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from flambeau._ops.images import fold as blocks
from flambeau._ops.images import numpy_interpolate as kernels
from flambeau._ops.images.interpolate_bytes import interpolate_bytes
from flambeau._ops.launching.memory_formats import in_format_of
from flambeau._ops.launching.precision import refuse
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME, Folded, composite, kernel
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.saved_fields import OfInput

Array = np.ndarray

# row: (mode of the kernels, spatial dims, antialias, title of its node)
UPSAMPLE = {
    "upsample_nearest1d": ("nearest", 1, False, "UpsampleNearest1D"),
    "upsample_nearest2d": ("nearest", 2, False, "UpsampleNearest2D"),
    "upsample_nearest3d": ("nearest", 3, False, "UpsampleNearest3D"),
    "_upsample_nearest_exact1d": ("nearest-exact", 1, False, "UpsampleNearestExact1D"),
    "_upsample_nearest_exact2d": ("nearest-exact", 2, False, "UpsampleNearestExact2D"),
    "_upsample_nearest_exact3d": ("nearest-exact", 3, False, "UpsampleNearestExact3D"),
    "upsample_linear1d": ("linear", 1, False, "UpsampleLinear1D"),
    "upsample_bilinear2d": ("bilinear", 2, False, "UpsampleBilinear2D"),
    "upsample_trilinear3d": ("trilinear", 3, False, "UpsampleTrilinear3D"),
    "upsample_bicubic2d": ("bicubic", 2, False, "UpsampleBicubic2D"),
    "_upsample_bilinear2d_aa": ("bilinear", 2, True, "UpsampleBilinear2DAa"),
    "_upsample_bicubic2d_aa": ("bicubic", 2, True, "UpsampleBicubic2DAa"),
}
NEAREST = ("nearest", "nearest-exact")


def _shown_scales(spatial: int) -> dict[str, Any]:
    """How torch shows the factors of a node: one value for each dim."""
    names = ["scales"] if spatial == 1 else [f"scales_{dim}" for dim in "dhw"[-spatial:]]

    def factor(dim: int) -> Any:
        return lambda values: values["scale_factors"] and values["scale_factors"][dim]

    return {name: factor(dim) for dim, name in enumerate(names)}


def _unsettled(mode: str, spatial: int, antialias: bool, name: str) -> str:
    """PyTorch's kernel on GPUs for the gradient where that adds up in any order. It has others for
    the nearest elements, for volumes, and for images between four elements."""
    if mode in NEAREST or spatial == 3 or (mode == "bilinear" and not antialias):
        return ""
    return f"{name.removeprefix('_')}_backward_out_cuda"


def _upsample_rows(name: str, mode: str, spatial: int, antialias: bool, title: str) -> None:
    parameters = "bool align_corners=False, float[]? scale_factors=None"
    hidden = ("scale_factors", "align_corners") if mode in NEAREST else ("scale_factors",)

    @kernel(f"{name}(Tensor self, int[{spatial}] output_size, {parameters}) -> Tensor",
            batch=Folded(spatial + 1), also_saved=("output_size",),
            saved_names=dict.fromkeys(hidden), saved_facts=_shown_scales(spatial),
            autocast="cuda=float32",
            method=False, function=False, node=f"{title}Backward0", backward={
        "self": lambda grad, self_shape, align_corners, scale_factors: getattr(
            ops, f"{name}_backward")(grad, self_shape[2:], align_corners, scale_factors),
    })  # fmt: skip
    def upsample(data: Array, output_size: Any, align_corners: bool,
                 scale_factors: Any) -> Array:  # fmt: skip
        """The input `(N, C, *spatial)` resized to `output_size`."""
        output = tuple(output_size)
        shape = kernels.upsample_output_shape(data.shape, output)
        if 0 in shape:
            return np.zeros(shape, data.dtype)
        integers = data.dtype == np.uint8 and mode not in NEAREST
        if integers and spatial != 2:
            raise refuse("compute_indices_weights_linear", data.dtype)
        function = interpolate_bytes if integers else kernels.interpolate
        result = function(data, mode, output, align_corners, scale_factors, antialias)
        if np.may_share_memory(result, data):
            return result.copy()
        return in_format_of(np.ascontiguousarray(result), data)

    @kernel(f"{name}_backward(Tensor grad_output, int[] input_size, {parameters}) -> Tensor",
            batch=Folded(spatial + 1), nondeterministic=_unsettled(mode, spatial, antialias, name),
            method=False, function=False, node=f"{title}BackwardBackward0", backward={
        "grad_output": lambda grad, grad_output_shape, align_corners, scale_factors: getattr(
            ops, name)(grad, grad_output_shape[2:], align_corners, scale_factors),
    })  # fmt: skip
    def backward(grad_output: Array, input_size: Any, align_corners: bool,
                 scale_factors: Any) -> Array:  # fmt: skip
        """The transposed map of the resizing."""
        shape = (*grad_output.shape[:2], *input_size)
        if grad_output.size == 0:
            return np.zeros(shape, grad_output.dtype)
        result = kernels.interpolate_backward(
            grad_output, mode, tuple(input_size), align_corners, scale_factors, antialias
        )
        shared = np.may_share_memory(result, grad_output)
        return result.copy() if shared else np.ascontiguousarray(result)


for _name, _options in UPSAMPLE.items():
    _upsample_rows(_name, *_options)


# ---- interpolate


ROWS = {
    ("nearest", 1): "upsample_nearest1d", ("nearest", 2): "upsample_nearest2d",
    ("nearest", 3): "upsample_nearest3d", ("nearest-exact", 1): "_upsample_nearest_exact1d",
    ("nearest-exact", 2): "_upsample_nearest_exact2d",
    ("nearest-exact", 3): "_upsample_nearest_exact3d", ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d", ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}  # fmt: skip
NEEDED_RANK = {"linear": 3, "bilinear": 4, "trilinear": 5}
SIZE_WORDS = ("Please provide input tensor in (N, C, d1, d2, ...,dK) format and {} in "
              "({}1, {}2, ...,{}K) format.")  # fmt: skip


@composite("interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, "
           "str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, "
           "bool antialias=False) -> Tensor", namespace="nn.functional")  # fmt: skip
def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Any:  # fmt: skip
    """Resize `(N, C, *spatial)` to a size or by a factor.

    Modes: nearest, nearest-exact, linear (3-D input), bilinear, bicubic (4-D), trilinear (5-D) and
    area. `align_corners` puts the corner elements' centres onto each other; `antialias` (bilinear,
    bicubic) averages where the image shrinks; `recompute_scale_factor` derives the factor anew
    from the rounded size.

    >>> import flambeau as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    _check_corners(mode, align_corners)
    spatial = input._data.ndim - 2
    sizes, factors = _sizes_and_factors(input, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        sizes, factors = _output_sizes(input, factors), None
    if antialias and not (mode in ("bilinear", "bicubic") and spatial == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
                         "and requires a 4-D tensor as input")  # fmt: skip
    if mode == "area" and 1 <= spatial <= 3:
        output = _output_sizes(input, factors) if sizes is None else sizes
        return getattr(ops.nn.functional, f"adaptive_avg_pool{spatial}d")(input, output)
    row = _row_for(mode, spatial, antialias)
    values = (input, _output_sizes(input, factors) if sizes is None else sizes,
              bool(align_corners), factors)  # fmt: skip
    try:
        return getattr(ops, row)(*values)
    except TypeError:
        raise _no_overload(row, input, sizes, factors) from None


def _no_overload(row: str, input: Any, sizes: Any, factors: Any) -> TypeError:
    return binder.no_overload_error(row, BY_NAME[row], (input, sizes, factors), {})


def _check_corners(mode: str, align_corners: bool | None) -> None:
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )


def _row_for(mode: str, spatial: int, antialias: bool) -> str:
    if (mode, spatial) in ROWS:
        return f"_{ROWS[mode, spatial]}_aa" if antialias else ROWS[mode, spatial]
    rank = spatial + 2
    if 3 <= rank <= 5 and mode in NEEDED_RANK:
        raise NotImplementedError(
            f"Got {rank}D input, but {mode} mode needs {NEEDED_RANK[mode]}D input"
        )
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def _sizes_and_factors(input: Any, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """The size or the factors for each dim, whichever was given."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    spatial = list(input._data.shape[2:])
    if size is not None:
        return _sizes(size, spatial), None
    if not isinstance(scale_factor, (tuple, list)):
        return None, [_plain(scale_factor)] * len(spatial)
    if len(scale_factor) != len(spatial):
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {spatial} and scale_factor of shape {scale_factor}. "
            + SIZE_WORDS.format("scale_factor", "s", "s", "s")
        )
    return None, [_plain(factor) for factor in scale_factor]


def _plain(factor: Any) -> Any:
    """NumPy's numbers as Python's; anything else as it is."""
    return factor.item() if isinstance(factor, np.generic) else factor


def _is_size(value: Any) -> bool:
    """Whether a value is an integer, or a tensor of integers."""
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex())  # type: ignore[attr-defined]
    return isinstance(value, (int, np.integer))


def _sizes(size: Any, spatial: list[int]) -> list[Any]:
    if not isinstance(size, (tuple, list)):
        return [int(size.item()) if isinstance(size, Tensor) else size] * len(spatial)
    if len(size) != len(spatial):
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {spatial} and output size of {size}. "
            + SIZE_WORDS.format("output size", "o", "o", "o")
        )
    if not all(map(_is_size, size)):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {[type(n) for n in size]}"
        )
    return [int(n) for n in size]


def _output_sizes(input: Any, factors: Any) -> list[int]:
    sizes = input._data.shape[2:]
    if not all(isinstance(factor, (int, float)) for factor in factors):
        raise _no_overload(f"upsample_nearest{len(sizes)}d", input, None, factors)
    return [math.floor(float(size) * factor) for size, factor in zip(sizes, factors, strict=True)]


# ---- the older names


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        UserWarning, stacklevel=3,
    )  # fmt: skip


@composite("upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, "
           "str mode='nearest', bool? align_corners=None) -> Tensor",
           namespace="nn.functional")  # fmt: skip
def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Any:  # fmt: skip
    """`interpolate` under its older name.

    From shape (N, C, *spatial) to (N, C, *size).

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     x = torch.nn.functional.upsample(torch.tensor([[[1., 2.]]]), scale_factor=2)
    >>> x
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample")
    return interpolate.body(input, size, scale_factor, mode, align_corners)


@composite("upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
           namespace="nn.functional")  # fmt: skip
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode 'nearest'.

    From shape (N, C, *spatial) to (N, C, *size).

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     x = torch.nn.functional.upsample_nearest(torch.tensor([[[1., 2.]]]), scale_factor=2)
    >>> x
    tensor([[[1., 1., 2., 2.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate.body(input, size, scale_factor, mode="nearest")


@composite("upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None)"
           " -> Tensor", namespace="nn.functional")  # fmt: skip
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` with mode 'bilinear' and `align_corners`.

    From shape (N, C, H, W) to (N, C, *size).

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     x = torch.nn.functional.upsample_bilinear(torch.tensor([[[[1., 2.]]]]), size=(1, 3))
    >>> x
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate.body(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- unfold and fold


NUMBERS = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"


@kernel(f"im2col(Tensor self, {NUMBERS}) -> Tensor", function=False, method=False,
        node="Im2ColBackward0", saved_names={"self_shape": None}, saved_facts={
    "self_sym_argsize_minus_1": OfInput("self", -1),
    "self_sym_argsize_minus_2": OfInput("self", -2),
}, backward={
    "self": lambda grad, self_shape, kernel_size, dilation, padding, stride: ops.col2im(
        grad, self_shape[-2:], kernel_size, dilation, padding, stride),
})  # fmt: skip
def im2col(data: Array, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    """Every window of `(N, C, H, W)` as a column of `(N, C * kernel, blocks)`; N may be absent."""
    numbers = (kernel_size, dilation, padding, stride)
    shape = blocks.unfold_output_shape(data.shape, *numbers)
    if data.dtype.kind in "iu":
        raise refuse("im2col_out_cpu", data.dtype)
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    images = data if data.ndim == 4 else data[None]
    return blocks.unfold(images, *numbers).reshape(shape)


@kernel(f"col2im(Tensor self, int[2] output_size, {NUMBERS}) -> Tensor", function=False,
        method=False, node="Col2ImBackward0", backward={
    "self": lambda grad, kernel_size, dilation, padding, stride: ops.im2col(
        grad, kernel_size, dilation, padding, stride=stride),
})  # fmt: skip
def col2im(data: Array, output_size: Any, kernel_size: Any, dilation: Any, padding: Any,
           stride: Any) -> Array:  # fmt: skip
    """Columns `(N, C * kernel, blocks)` added up where their windows lie: `(N, C, H, W)`."""
    numbers = (kernel_size, dilation, padding, stride)
    shape = blocks.fold_output_shape(data.shape, output_size, *numbers)
    if data.dtype.kind in "iu":
        raise refuse("col2im_out_cpu", data.dtype)
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    columns = data if data.ndim == 3 else data[None]
    return blocks.fold(columns, tuple(output_size), *numbers).reshape(shape)


@composite("unfold(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
           "int[2] stride=1) -> Tensor", namespace="nn.functional")  # fmt: skip
def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
           stride: Any = 1) -> Any:  # fmt: skip
    """Every sliding block of images `(N, C, H, W)` as a column of `(N, C * kernel, blocks)`.

    >>> import flambeau as torch
    >>> torch.nn.functional.unfold(torch.ones(1, 3, 4, 4), 2).shape
    torch.Size([1, 12, 9])
    """
    return ops.im2col(input, kernel_size, dilation, padding, stride)


@composite("fold(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, "
           "int[2] padding=0, int[2] stride=1) -> Tensor", namespace="nn.functional")  # fmt: skip
def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
         stride: Any = 1) -> Any:  # fmt: skip
    """The transposed map of `unfold`: columns added up where their blocks lie.

    From shape (N, C * product of the kernel, blocks) to (N, C, *output_size).

    >>> import flambeau as torch
    >>> columns = torch.ones(1, 4, 4)
    >>> torch.nn.functional.fold(columns, (3, 3), 2)
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)
