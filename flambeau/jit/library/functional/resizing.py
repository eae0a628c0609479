"""Resizing: sizes are settled, then the mode chooses the operator."""

from __future__ import annotations

from typing import overload


@overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...


@overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[List[float]] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...


@overload
def interpolate(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...


@overload
def interpolate(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
    recompute_scale_factor: Optional[bool] = None,
    antialias: bool = False,
) -> Tensor: ...


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the "
            "interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    sizes: Optional[List[int]] = None
    factors: Optional[List[float]] = None
    dims = input.dim() - 2
    if size is not None:
        if isinstance(size, int):
            sizes = [size] * dims
        else:
            sizes = size
    if scale_factor is not None:
        if isinstance(scale_factor, float):
            factors = [scale_factor] * dims
        else:
            factors = scale_factor
    again = recompute_scale_factor is not None and recompute_scale_factor
    sizes, factors = _settled(input, sizes, factors, mode == "area", again)
    if antialias and (input.dim() != 4 or mode not in ("bilinear", "bicubic", "lanczos")):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and "
            "requires a 4-D tensor as input"
        )
    corners = align_corners is not None and align_corners
    return _resized(input, sizes, factors, mode, corners, antialias)


def _settled(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]], area: bool,
             again: bool) -> Tuple[Optional[List[int]], Optional[List[float]]]:  # fmt: skip
    given = input.size()[2:]
    if sizes is not None:
        if len(sizes) != len(given):
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {given} and output size of {sizes}. Please "
                "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, "
                "...,oK) format."
            )
        if again:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return sizes, None
    if factors is None:
        raise ValueError("either size or scale_factor should be defined")
    if len(factors) != len(given):
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but "
            f"got input with spatial dimensions of {given} and scale_factor of shape {factors}. "
            "Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in "
            "(s1, s2, ...,sK) format."
        )
    if not area and not again:
        return None, factors
    return [math.floor(length * factor) for length, factor in zip(given, factors)], None


def _resized(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]], mode: str,
             corners: bool, antialias: bool) -> Tensor:  # fmt: skip
    if input.dim() >= 3 and input.dim() <= 5:
        if mode == "nearest":
            return _nearest(input, sizes, factors)
        if mode == "nearest-exact":
            return _nearest_exact(input, sizes, factors)
        if mode == "area":
            return _averaged(input, torch.jit._unwrap_optional(sizes))
        if mode == "linear" or mode == "bilinear" or mode == "trilinear":
            return _linear(input, sizes, factors, mode, corners, antialias)
        if input.dim() == 4 and (mode == "bicubic" or mode == "lanczos"):
            return _smooth(input, sizes, factors, mode, corners, antialias)
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported"
        f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear"
        f" | lanczos | area | nearest-exact (got {mode})"
    )


def _nearest(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]]
             ) -> Tensor:  # fmt: skip
    if input.dim() == 3:
        return torch.upsample_nearest1d(input, sizes, factors)
    if input.dim() == 4:
        return torch.upsample_nearest2d(input, sizes, factors)
    return torch.upsample_nearest3d(input, sizes, factors)


def _nearest_exact(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]]
                   ) -> Tensor:  # fmt: skip
    if input.dim() == 3:
        return torch._upsample_nearest_exact1d(input, sizes, factors)
    if input.dim() == 4:
        return torch._upsample_nearest_exact2d(input, sizes, factors)
    return torch._upsample_nearest_exact3d(input, sizes, factors)


def _averaged(input: Tensor, sizes: List[int]) -> Tensor:
    if input.dim() == 3:
        return torch.adaptive_avg_pool1d(input, sizes)
    if input.dim() == 4:
        return torch.adaptive_avg_pool2d(input, sizes)
    return torch.adaptive_avg_pool3d(input, sizes)


def _linear(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]], mode: str,
            corners: bool, antialias: bool) -> Tensor:  # fmt: skip
    wanted = 3 if mode == "linear" else 4 if mode == "bilinear" else 5
    if input.dim() != wanted:
        raise NotImplementedError(
            f"Got {input.dim()}D input, but {mode} mode needs {wanted}D input"
        )
    if antialias:
        return torch._upsample_bilinear2d_aa(input, sizes, corners, factors)
    if mode == "linear":
        return torch.upsample_linear1d(input, sizes, corners, factors)
    if mode == "bilinear":
        return torch.upsample_bilinear2d(input, sizes, corners, factors)
    return torch.upsample_trilinear3d(input, sizes, corners, factors)


def _smooth(input: Tensor, sizes: Optional[List[int]], factors: Optional[List[float]], mode: str,
            corners: bool, antialias: bool) -> Tensor:  # fmt: skip
    if mode == "lanczos":
        if corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        return torch._upsample_lanczos2d_aa(input, sizes, corners, factors)
    if antialias:
        return torch._upsample_bicubic2d_aa(input, sizes, corners, factors)
    return torch.upsample_bicubic2d(input, sizes, corners, factors)


@overload
def upsample(
    input: Tensor,
    size: Optional[int] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor: ...


@overload
def upsample(
    input: Tensor,
    size: Optional[List[int]] = None,
    scale_factor: Optional[float] = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor: ...


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


@overload
def upsample_nearest(
    input: Tensor, size: Optional[int] = None, scale_factor: Optional[float] = None
) -> Tensor: ...


@overload
def upsample_nearest(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[float] = None
) -> Tensor: ...


def upsample_nearest(input, size=None, scale_factor=None):
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, mode="nearest")


@overload
def upsample_bilinear(
    input: Tensor, size: Optional[int] = None, scale_factor: Optional[float] = None
) -> Tensor: ...


@overload
def upsample_bilinear(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[float] = None
) -> Tensor: ...


@overload
def upsample_bilinear(
    input: Tensor, size: Optional[int] = None, scale_factor: Optional[List[float]] = None
) -> Tensor: ...


@overload
def upsample_bilinear(
    input: Tensor, size: Optional[List[int]] = None, scale_factor: Optional[List[float]] = None
) -> Tensor: ...


def upsample_bilinear(input, size=None, scale_factor=None):
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead."
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
