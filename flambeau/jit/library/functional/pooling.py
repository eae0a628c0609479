"""Pooling: of the largest values, at places drawn by chance, and of powers."""

from __future__ import annotations

# ---- the largest of each window


def max_pool1d_with_indices(
    input: Tensor, kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool1d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


def _max_pool1d(
    input: Tensor, kernel_size: BroadcastingList1[int],
    stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0,
    dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool1d(input, kernel_size, step, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool2d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


def _max_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int],
    stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0,
    dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool2d(input, kernel_size, step, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor, kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool3d_with_indices(input, kernel_size, step, padding, dilation, ceil_mode)


def _max_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int],
    stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0,
    dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False, return_indices: bool = False,
) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    return torch.max_pool3d(input, kernel_size, step, padding, dilation, ceil_mode)


# ---- windows drawn by chance


def _size_by_ratio(name: str, input: Tensor, ratios: Optional[List[float]]) -> List[int]:
    if ratios is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    sizes = input.size()[-len(ratios) :]
    return [int(size * ratio) for size, ratio in zip(sizes, ratios)]


def _window_places(input: Tensor, dims: int) -> Tensor:
    sizes = [1] + list(input.size())
    return torch.rand(sizes[-dims - 2], sizes[-dims - 1], dims, dtype=input.dtype,
                      device=input.device)  # fmt: skip


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    if output_size is None:
        if output_ratio is not None and len(output_ratio) > 2:
            raise ValueError(
                "fractional_max_pool2d requires output_ratio to either be a single Int or tuple "
                "of Ints."
            )
        output_size = _size_by_ratio("fractional_max_pool2d", input, output_ratio)
    places = _window_places(input, 2) if _random_samples is None else _random_samples
    return torch.fractional_max_pool2d(input, kernel_size, output_size, places)


def _fractional_max_pool2d(
    input: Tensor, kernel_size: BroadcastingList2[int],
    output_size: Optional[BroadcastingList2[int]] = None,
    output_ratio: Optional[BroadcastingList2[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]  # fmt: skip


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    if output_size is None:
        output_size = _size_by_ratio("fractional_max_pool3d", input, output_ratio)
    places = _window_places(input, 3) if _random_samples is None else _random_samples
    return torch.fractional_max_pool3d(input, kernel_size, output_size, places)


def _fractional_max_pool3d(
    input: Tensor, kernel_size: BroadcastingList3[int],
    output_size: Optional[BroadcastingList3[int]] = None,
    output_ratio: Optional[BroadcastingList3[float]] = None, return_indices: bool = False,
    _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )[0]  # fmt: skip
