"""Pooling to a given size, pooling of powers, and max pooling undone."""

from __future__ import annotations

# ---- to a given size


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)


def _adaptive_max_pool1d(
    input: Tensor, output_size: BroadcastingList1[int], return_indices: bool = False
) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    assert input.dim() > len(output_size)
    return torch.adaptive_max_pool2d(input, output_size)


def _adaptive_max_pool2d(
    input: Tensor, output_size: BroadcastingList2[int], return_indices: bool = False
) -> Tensor:
    return adaptive_max_pool2d_with_indices(input, output_size)[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    assert input.dim() > len(output_size)
    return torch.adaptive_max_pool3d(input, output_size)


def _adaptive_max_pool3d(
    input: Tensor, output_size: BroadcastingList3[int], return_indices: bool = False
) -> Tensor:
    return adaptive_max_pool3d_with_indices(input, output_size)[0]


def adaptive_avg_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    assert input.dim() > len(output_size)
    return torch.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    assert input.dim() > len(output_size)
    return torch.adaptive_avg_pool3d(input, output_size)


# ---- of powers: with p = ±inf the largest or smallest magnitude


def _root_of_mean(mean: Tensor, count: int, norm_type: Union[int, float]) -> Tensor:
    return (torch.sign(mean) * torch.relu(torch.abs(mean)) * count).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: Union[int, float], kernel_size: int,
              stride: Optional[BroadcastingList1[int]] = None, ceil_mode: bool = False
              ) -> Tensor:  # fmt: skip
    if norm_type == float("inf"):
        return _max_pool1d(input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    if norm_type == -float("inf"):
        return -_max_pool1d(-input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    step = kernel_size if stride is None else stride[0]
    mean = torch.avg_pool1d(input.pow(norm_type), kernel_size, step, 0, ceil_mode)
    return _root_of_mean(mean, kernel_size, norm_type)


def lp_pool2d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList2[int],
              stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False
              ) -> Tensor:  # fmt: skip
    if norm_type == float("inf"):
        return _max_pool2d(input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    if norm_type == -float("inf"):
        return -_max_pool2d(-input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    step = kernel_size if stride is None else stride
    mean = torch.avg_pool2d(input.pow(norm_type), kernel_size, step, 0, ceil_mode)
    return _root_of_mean(mean, kernel_size[0] * kernel_size[1], norm_type)


def lp_pool3d(input: Tensor, norm_type: Union[int, float], kernel_size: BroadcastingList3[int],
              stride: Optional[BroadcastingList3[int]] = None, ceil_mode: bool = False
              ) -> Tensor:  # fmt: skip
    if norm_type == float("inf"):
        return _max_pool3d(input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    if norm_type == -float("inf"):
        return -_max_pool3d(-input.abs(), kernel_size, stride, ceil_mode=ceil_mode)
    step = kernel_size if stride is None else stride
    mean = torch.avg_pool3d(input.pow(norm_type), kernel_size, step, 0, ceil_mode)
    return _root_of_mean(mean, kernel_size[0] * kernel_size[1] * kernel_size[2], norm_type)


# ---- max pooling undone


def _smallest_unpooled(input: Tensor, kernel_size: List[int], stride: List[int],
                       padding: List[int]) -> List[int]:  # fmt: skip
    pooled = input.size()[-len(kernel_size) :]
    return [
        (size - 1) * step + kernel - 2 * margin
        for size, step, kernel, margin in zip(pooled, stride, kernel_size, padding)
    ]  # fmt: skip


def _check_unpooled(wanted: List[int], sizes: List[int], stride: List[int]) -> None:
    for dim, size in enumerate(wanted):
        low, high = sizes[dim] - stride[dim], sizes[dim] + stride[dim]
        if size <= low or high <= size:
            raise ValueError(
                f'invalid output_size "{wanted}" (dim {dim} must be between {low} and {high})'
            )


def _unpool_output_size(input: Tensor, kernel_size: List[int], stride: List[int],
                        padding: List[int], output_size: Optional[List[int]]
                        ) -> List[int]:  # fmt: skip
    sizes = _smallest_unpooled(input, kernel_size, stride, padding)
    if output_size is not None:
        dims = len(kernel_size)
        if len(output_size) != dims and len(output_size) != dims + 2:
            raise ValueError(
                f"output_size should be a sequence containing {dims} or {dims + 2} elements, "
                f"but it has a length of '{len(output_size)}'"
            )
        wanted = output_size[-dims:]
        _check_unpooled(wanted, sizes, stride)
        sizes = wanted
    for dim, size in enumerate(sizes):
        if size < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, "
                f"but got output_size[{dim}]={size}"
            )
    return sizes


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int],
                 stride: Optional[BroadcastingList1[int]] = None,
                 padding: BroadcastingList1[int] = 0,
                 output_size: Optional[BroadcastingList1[int]] = None) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    size = _unpool_output_size(input, kernel_size, step, padding, output_size)
    columns = torch.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [size[0], 1])
    return columns.squeeze(-1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int],
                 stride: Optional[BroadcastingList2[int]] = None,
                 padding: BroadcastingList2[int] = 0,
                 output_size: Optional[BroadcastingList2[int]] = None) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    size = _unpool_output_size(input, kernel_size, step, padding, output_size)
    return torch.max_unpool2d(input, indices, size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int],
                 stride: Optional[BroadcastingList3[int]] = None,
                 padding: BroadcastingList3[int] = 0,
                 output_size: Optional[BroadcastingList3[int]] = None) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    size = _unpool_output_size(input, kernel_size, step, padding, output_size)
    return torch.max_unpool3d(input, indices, size, step, padding)
