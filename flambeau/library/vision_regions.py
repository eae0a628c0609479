"""Operators of torchvision on regions of interest: what lies in boxes, as grids of one size.

A region is a row (index in the batch, x1, y1, x2, y2) in the picture's own coordinates;
`spatial_scale` takes these to the features'.
"""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops

ELEMENTS = 1 << 23
"""How many elements are taken from the features at a time."""


def roi_align(input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int,
              sampling_ratio: int, aligned: bool) -> Any:  # fmt: skip
    """The mean of points in each bin of each region, interpolated between the four around.

    Args:
        input: features (N, C, H, W).
        rois: regions (K, 5).
        sampling_ratio: points along each side of a bin; 0 or less: as many as it has pixels.
        aligned: whether pixels' centres lie at halves; else a region has at least one pixel.

    Returns:
        (K, C, pooled_height, pooled_width).
    """
    _check(input, rois)
    shift = 0.5 if aligned else 0.0
    corners = rois[:, 1:] * spatial_scale - shift
    extents = corners[:, 2:] - corners[:, :2]
    if not aligned:
        extents = extents.clamp(min=1)
    sides = []
    for axis, bins, size in ((1, pooled_height, input.shape[2]), (0, pooled_width, input.shape[3])):
        sides.append(_taps(corners[:, axis], extents[:, axis], bins, size, sampling_ratio))
    (rows, row_weights), (columns, column_weights) = sides
    batch = rois[:, 0].long()
    each = input.shape[1] * rows.shape[1] * rows.shape[2] * columns.shape[1] * columns.shape[2]
    step = max(1, ELEMENTS // max(each, 1))
    features = input.permute(0, 2, 3, 1)
    parts = [
        _gathered(features, batch[some], rows[some], columns[some], row_weights[some],
                  column_weights[some])
        for some in (slice(first, first + step) for first in range(0, len(rois), step))
    ]  # fmt: skip
    if not parts:
        return input.new_zeros(0, input.shape[1], pooled_height, pooled_width)
    return ops.cat(parts)


def _check(input: Any, rois: Any) -> None:
    if rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError("rois must have shape as Tensor[K, 5]")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; "
            f"but type {input.dtype} does not equal {rois.dtype}"
        )


def _taps(start: Any, extent: Any, bins: int, size: int, sampling_ratio: int) -> tuple[Any, Any]:
    """Along one side: the positions that each bin takes, and with which weights, (K, bins, taps).

    A point takes two positions; one that lies more than a pixel outside has no weight.
    """
    bin_size = extent / bins
    count = ops.full_like(extent, sampling_ratio) if sampling_ratio > 0 else bin_size.ceil()
    count = count.clamp(min=0)
    most = int(count.max().item()) if len(count) else 0
    numbers = ops.arange(max(most, 1), dtype=start.dtype, device=start.device)
    within = (numbers + 0.5) / count.clamp(min=1)[:, None]
    firsts = ops.arange(bins, dtype=start.dtype, device=start.device)
    points = start[:, None, None] + (firsts[:, None] + within[:, None]) * bin_size[:, None, None]
    share = (numbers < count[:, None]) / count.clamp(min=1)[:, None]
    share = share[:, None] * ((points >= -1) & (points <= size))
    points = points.clamp(0, size - 1)
    low = points.floor()
    upper = points - low
    places = ops.stack([low, (low + 1).clamp(max=size - 1)], -1).flatten(2).long()
    return places, ops.stack([share * (1 - upper), share * upper], -1).flatten(2)


def _gathered(features: Any, batch: Any, rows: Any, columns: Any, row_weights: Any,
              column_weights: Any) -> Any:  # fmt: skip
    """The weighted sums of the features (N, H, W, C) at rows and columns of some regions."""
    taken = features[
        batch[:, None, None, None, None], rows[:, :, :, None, None], columns[:, None, None]
    ]
    over_columns = (taken * column_weights[:, None, None, :, :, None]).sum(4)
    summed = (over_columns * row_weights[:, :, :, None, None]).sum(2)
    return summed.permute(0, 3, 1, 2)


def ps_roi_align(input: Any, rois: Any, spatial_scale: float, pooled_height: int,
                 pooled_width: int, sampling_ratio: int) -> tuple[Any, Any]:  # fmt: skip
    """`roi_align` where each bin has channels of its own.

    Returns:
        (K, C / bins, pooled_height, pooled_width), and from which channel each of these comes.
    """
    bins = pooled_height * pooled_width
    channels = input.shape[1]
    if channels % bins:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    whole = roi_align(
        input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned=True
    )
    own = whole.reshape(len(rois), channels // bins, bins, bins).diagonal(dim1=2, dim2=3)
    shape = (len(rois), channels // bins, pooled_height, pooled_width)
    mapping = ops.arange(channels, device=input.device).int().reshape(1, *shape[1:])
    return own.reshape(shape), mapping.expand(shape).contiguous()


def roi_pool(input: Any, rois: Any, spatial_scale: float, pooled_height: int,
             pooled_width: int) -> tuple[Any, Any]:  # fmt: skip
    """The largest feature in each bin of each region; 0 in bins without pixels.

    Returns:
        (K, C, pooled_height, pooled_width), and where in the picture it lies (-1: nowhere).
    """
    _check(input, rois)
    height, width = input.shape[2:]
    found, places = [], []
    for region in rois:
        corners = (region[1:] * spatial_scale).detach()
        left, top, right, bottom = [_rounded(corner) for corner in corners.tolist()]
        picture = input[int(region[0].item())]
        for y0, y1 in _spans(top, bottom, pooled_height, height):
            for x0, x1 in _spans(left, right, pooled_width, width):
                if y1 <= y0 or x1 <= x0:
                    found.append(picture.new_zeros(len(picture)))
                    places.append(ops.full_like(found[-1], -1).int())
                    continue
                value, place = picture[:, y0:y1, x0:x1].flatten(1).max(1)
                found.append(value)
                across = x1 - x0
                row, column = place // across + y0, place % across + x0
                places.append((row * width + column).int())
    shape = (len(rois), pooled_height, pooled_width, input.shape[1])
    if not found:
        empty = input.new_zeros(0, input.shape[1], pooled_height, pooled_width)
        return empty, empty.int()
    return tuple(
        ops.stack(part).reshape(shape).permute(0, 3, 1, 2).contiguous() for part in (found, places)
    )  # type: ignore[return-value]


def _rounded(number: float) -> int:
    """The nearest integer; halves away from zero."""
    return int(number + 0.5) if number >= 0 else -int(0.5 - number)


def _spans(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Where each bin of a side begins and ends, cut to the picture."""
    length = max(last - first + 1, 1)
    return [
        (
            min(max(first + number * length // bins, 0), size),
            min(max(first - (-(number + 1) * length // bins), 0), size),
        )
        for number in range(bins)
    ]
