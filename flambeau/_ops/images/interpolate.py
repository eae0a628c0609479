"""Resizing, sampling at grid positions, and sliding blocks as columns (`unfold`, `fold`).

Resizing, `fold` and `unfold` are linear: each comes as a pair of rows, adjoint to each other.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from flambeau._core.programs import EAGER
from flambeau._ops.images import fold as blocks
from flambeau._ops.images import numpy_interpolate as kernels
from flambeau._ops.images import resample
from flambeau._ops.images.interpolate_bytes import interpolate_bytes
from flambeau._ops.launching.memory_formats import in_format_of
from flambeau._ops.launching.precision import refuse
from flambeau._ops.table import binder
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import BY_NAME, Folded, Op, composite, internal
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
    "_upsample_lanczos2d_aa": ("lanczos", 2, True, "UpsampleLanczos2DAa"),
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

    @internal(f"{name}(Tensor self, int[{spatial}] output_size, {parameters}) -> Tensor",
              batch=Folded(spatial + 1), also_saved=("output_size",),
              saved_names=dict.fromkeys(hidden), saved_facts=_shown_scales(spatial),
              autocast="cuda=float32",
              node=f"{title}Backward0", backward={
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
        compiled = resample.interpolate_bytes if integers else resample.interpolate
        numbers = (mode, output, align_corners, scale_factors, antialias)
        result = compiled(data, *numbers)
        if result is not None:
            return in_format_of(result, data)
        function = interpolate_bytes if integers else kernels.interpolate
        result = function(data, *numbers)
        if np.may_share_memory(result, data):
            return result.copy()
        return in_format_of(np.ascontiguousarray(result), data)

    @internal(f"{name}_backward(Tensor grad_output, int[] input_size, {parameters}) -> Tensor",
            batch=Folded(spatial + 1), nondeterministic=_unsettled(mode, spatial, antialias, name),
              node=f"{title}BackwardBackward0", backward={
        "grad_output": lambda grad, grad_output_shape, align_corners, scale_factors: getattr(
              ops, name)(grad, grad_output_shape[2:], align_corners, scale_factors),
    })  # fmt: skip
    def backward(grad_output: Array, input_size: Any, align_corners: bool,
                 scale_factors: Any) -> Array:  # fmt: skip
        """The transposed map of the resizing."""
        shape = (*grad_output.shape[:2], *input_size)
        if grad_output.size == 0:
            return np.zeros(shape, grad_output.dtype)
        numbers = (mode, tuple(input_size), align_corners, scale_factors, antialias)
        result = resample.interpolate(grad_output, *numbers, backward=True)
        if result is not None:
            return np.ascontiguousarray(result)
        result = kernels.interpolate_backward(grad_output, *numbers)
        shared = np.may_share_memory(result, grad_output)
        return result.copy() if shared else np.ascontiguousarray(result)


for _name, _options in UPSAMPLE.items():
    _upsample_rows(_name, *_options)


# ---- the overloads that take sizes or factors, whichever there are


def _by_factors(name: str, mode: str) -> Op:
    has_corners = mode not in NEAREST
    corners = "bool align_corners, " if has_corners else ""

    @composite(f"{name}.vec(Tensor input, int[]? output_size, {corners}float[]? scale_factors)"
               " -> Tensor", public=f"_{name}_by_factors", method=False,
               function=False)  # fmt: skip
    def resized(input: Any, output_size: Any, *rest: Any) -> Any:
        """The input `(N, C, *spatial)` resized to `output_size` or by factors."""
        factors = rest[-1]
        if (output_size is None) == (factors is None):
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        sizes = _rescaled(input, factors) if output_size is None else output_size
        try:
            return getattr(ops, name)(input, sizes, has_corners and rest[0], factors)
        except TypeError:
            raise _no_overload(name, input, sizes, factors) from None

    return resized


def _no_overload(name: str, input: Any, sizes: Any, factors: Any) -> TypeError:
    return binder.no_overload_error(name, BY_NAME[name], (input, sizes, factors), {})


BY_FACTORS = {name: _by_factors(name, options[0]) for name, options in UPSAMPLE.items()}
nearest1d, nearest2d, nearest3d, exact1d, exact2d, exact3d, *_interpolating = BY_FACTORS.values()
(linear1d, bilinear2d, trilinear3d, bicubic2d,
 bilinear2d_aa, bicubic2d_aa, lanczos2d_aa) = _interpolating  # fmt: skip


# ---- interpolate: what follows is read by scripts, too


SIZE_OR_SIZES = ("Optional[int]", "Optional[List[int]]")
FACTORS_OR_FACTOR = ("Optional[List[float]]", "Optional[float]")
EITHER = {"scale_factor": FACTORS_OR_FACTOR, "size": SIZE_OR_SIZES}


@composite("interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, "
           "str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, "
           "bool antialias=False) -> Tensor", namespace="nn.functional",
           choices=EITHER)  # fmt: skip
def interpolate(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Any:  # fmt: skip
    """Resize `(N, C, *spatial)` to a size or by a factor.

    Modes: nearest, nearest-exact, linear (3-D input), bilinear, bicubic and lanczos (4-D),
    trilinear (5-D) and area. `align_corners` puts the corner elements' centres onto each other;
    `antialias` (bilinear, bicubic, always with lanczos) averages where the image shrinks;
    `recompute_scale_factor` derives the factor anew from the rounded size.

    >>> import flambeau as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if align_corners is not None:
        _check_corners(mode)
    if (size is None) == (scale_factor is None):
        raise ValueError("either size or scale_factor should be defined" if size is None else
                         "only one of size or scale_factor should be defined")  # fmt: skip
    if EAGER:
        if not hasattr(input, "_data"):
            binder.without_public_attribute("dim", input)
        size, scale_factor = _plain(size), _plain(scale_factor)
    dims = input._data.ndim - 2
    sizes: list[int] | None = None
    factors: list[float] | None = None
    if size is not None:
        if isinstance(size, (tuple, list)):
            sizes = size
        else:
            sizes = [size] * dims
    if scale_factor is not None:
        if isinstance(scale_factor, (tuple, list)):
            factors = scale_factor
        else:
            factors = [scale_factor] * dims
    sizes, factors = _checked(input, sizes, factors)
    anew = recompute_scale_factor is not None and recompute_scale_factor
    corners = align_corners is not None and align_corners
    return _resized(input, sizes, factors, mode, corners, anew, antialias)


def _check_corners(mode: str) -> None:
    if mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: "
            "linear | bilinear | bicubic | trilinear"
        )


def _checked(input: Any, sizes: list[int] | None, factors: list[float] | None
             ) -> tuple[list[int] | None, list[float] | None]:  # fmt: skip
    """The sizes or the factors: as many as there are dims."""
    spatial = input._data.shape[2:]
    if sizes is not None:
        if len(sizes) != len(spatial):
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(spatial)} and output size of {sizes}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in "
                "(o1, o2, ...,oK) format."
            )
        if EAGER:
            sizes = _whole_numbers(sizes)
    if factors is not None and len(factors) != len(spatial):
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(spatial)} and scale_factor of shape {factors}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    return sizes, factors


def _resized(input: Any, sizes: list[int] | None, factors: list[float] | None, mode: str,
             corners: bool, anew: bool, antialias: bool) -> Any:  # fmt: skip
    """The result; the factors are derived from rounded sizes where they are to be told `anew`."""
    rank = input._data.ndim
    if anew and sizes is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (anew or mode == "area"):
        sizes, factors = _rescaled(input, factors), None
    if antialias and not (rank == 4 and mode in ("bilinear", "bicubic", "lanczos")):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes "
                         "and requires a 4-D tensor as input")  # fmt: skip
    if mode in ("nearest", "nearest-exact", "area") and rank in (3, 4, 5):
        return _from_neighbours(input, sizes, factors, mode)
    if antialias:
        return _smoothed(input, sizes, factors, mode, corners)
    if rank == 3 and mode == "linear":
        return linear1d.body(input, sizes, corners, factors)
    if rank == 4 and mode == "bilinear":
        return bilinear2d.body(input, sizes, corners, factors)
    if rank == 4 and mode == "bicubic":
        return bicubic2d.body(input, sizes, corners, factors)
    if rank == 5 and mode == "trilinear":
        return trilinear3d.body(input, sizes, corners, factors)
    if rank == 4 and mode == "lanczos":
        raise ValueError("Lanczos mode does not support align_corners=True" if corners else
                         "Lanczos mode requires antialias=True")  # fmt: skip
    raise NotImplementedError(_no_mode(rank, mode))


def _no_mode(rank: int, mode: str) -> str:
    if mode in ("linear", "bilinear", "trilinear") and rank in (3, 4, 5):
        needed = 3 if mode == "linear" else 4 if mode == "bilinear" else 5
        return f"Got {rank}D input, but {mode} mode needs {needed}D input"
    return (
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact "
        f"(got {mode})"
    )


def _from_neighbours(input: Any, sizes: list[int] | None, factors: list[float] | None,
                     mode: str) -> Any:  # fmt: skip
    rank = input._data.ndim
    if mode == "nearest":
        if rank == 3:
            return nearest1d.body(input, sizes, factors)
        if rank == 4:
            return nearest2d.body(input, sizes, factors)
        return nearest3d.body(input, sizes, factors)
    if mode == "nearest-exact":
        if rank == 3:
            return exact1d.body(input, sizes, factors)
        if rank == 4:
            return exact2d.body(input, sizes, factors)
        return exact3d.body(input, sizes, factors)
    assert sizes is not None
    if rank == 3:
        return ops.nn.functional.adaptive_avg_pool1d(input, sizes)
    if rank == 4:
        return ops.nn.functional.adaptive_avg_pool2d(input, sizes)
    return ops.nn.functional.adaptive_avg_pool3d(input, sizes)


def _smoothed(input: Any, sizes: list[int] | None, factors: list[float] | None, mode: str,
              corners: bool) -> Any:  # fmt: skip
    if mode == "bilinear":
        return bilinear2d_aa.body(input, sizes, corners, factors)
    if mode == "bicubic":
        return bicubic2d_aa.body(input, sizes, corners, factors)
    if corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    return lanczos2d_aa.body(input, sizes, corners, factors)


def _rescaled(input: Any, factors: list[float]) -> list[int]:
    spatial = input._data.shape[2:]
    if EAGER:
        _check_numbers(input, factors)
    return [math.floor(float(spatial[i]) * factors[i]) for i in range(len(spatial))]


# ---- what only Python's calls can be given


def _plain(value: Any) -> Any:
    """NumPy's numbers, and tensors of one, as Python's; anything else as it is."""
    if value is None or value.__class__ is int or value.__class__ is float:
        return value
    if isinstance(value, (tuple, list)):
        return [each.item() if isinstance(each, np.generic) else each for each in value]
    return value.item() if isinstance(value, (np.generic, Tensor)) else value  # type: ignore[union-attr]


def _is_size(value: Any) -> bool:
    """Whether a value is an integer, or a tensor of integers."""
    if isinstance(value, Tensor):
        return not (value.is_floating_point() or value.is_complex())  # type: ignore[attr-defined]
    return isinstance(value, (int, np.integer))


def _whole_numbers(sizes: Any) -> list[int]:
    if not all(map(_is_size, sizes)):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or "
            f"Tuple[int, int, int], but got size with types {[type(n) for n in sizes]}"
        )
    return [int(n) for n in sizes]


def _check_numbers(input: Any, factors: Any) -> None:
    if not all(isinstance(factor, (int, float)) for factor in factors):
        raise _no_overload(f"upsample_nearest{len(factors)}d", input, None, factors)


# ---- the older names


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=3,
    )


@composite("upsample(Tensor input, int[]? size=None, float[]? scale_factor=None, "
           "str mode='nearest', bool? align_corners=None) -> Tensor",
           namespace="nn.functional",
           choices={"scale_factor": ("Optional[float]",), "size": SIZE_OR_SIZES})  # fmt: skip
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
           namespace="nn.functional",
           choices={"scale_factor": ("Optional[float]",), "size": SIZE_OR_SIZES})  # fmt: skip
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
           " -> Tensor", namespace="nn.functional",
           choices={"scale_factor": ("Optional[float]", "Optional[List[float]]"),
                    "size": SIZE_OR_SIZES})  # fmt: skip
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


@internal(f"im2col(Tensor self, {NUMBERS}) -> Tensor",
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


@internal(f"col2im(Tensor self, int[2] output_size, {NUMBERS}) -> Tensor",
          node="Col2ImBackward0", backward={
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

    kernel_size: height and width of a block; `kernel` above is their product. An int is both.
    dilation: the distance of the places that a block reads.
    padding: zeros added on both sides.
    stride: steps from one block to the next.

    Blocks are counted along rows first. A convolution is a product with these columns; `fold` adds
    them up again where they were read. Also without a batch, (C, H, W) to (C * kernel, blocks).

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
