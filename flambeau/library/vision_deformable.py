"""Deformable convolution: one whose taps lie where offsets say."""

from __future__ import annotations

from typing import Any

from flambeau._ops.table.namespace import ops

BILINEAR = ZEROS = 0
"""`grid_sampler_2d`'s words for how it reads, and what lies outside."""


def deform_conv2d(input: Any, weight: Any, offset: Any, mask: Any, bias: Any, stride_h: int,
                  stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
                  groups: int, offset_groups: int, use_mask: bool) -> Any:  # fmt: skip
    """The convolution of features (N, C, H, W) by weights (M, C / groups, h, w).

    Args:
        offset: (N, 2 · offset_groups · h · w, H', W'): for each tap, down and to the right.
        mask: (N, offset_groups · h · w, H', W'): factors of the taps, with `use_mask`.
        bias: (M,).

    Returns:
        (N, M, H', W').
    """
    number, channels, height, width = input.shape
    taps_h, taps_w = weight.shape[2:]
    out_h, out_w = offset.shape[2:]
    taps = taps_h * taps_w
    if offset.shape[1] != 2 * offset_groups * taps:
        raise RuntimeError(
            f"offset.shape[1] is not valid: got: {offset.shape[1]} expected: "
            f"{2 * offset_groups * taps}"
        )
    moved = offset.reshape(number * offset_groups, taps, 2, out_h, out_w)
    rows = _places(out_h, stride_h, pad_h, taps_h, dilation_h, offset)
    columns = _places(out_w, stride_w, pad_w, taps_w, dilation_w, offset)
    y = moved[:, :, 0] + rows.repeat_interleave(taps_w, 0)[:, :, None]
    x = moved[:, :, 1] + columns.repeat(taps_h, 1)[:, None, :]
    grid = ops.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    features = input.reshape(number * offset_groups, -1, height, width)
    taken = ops.grid_sampler_2d(features, grid.flatten(1, 2), BILINEAR, ZEROS, False)
    taken = taken.reshape(number, offset_groups, -1, taps, out_h, out_w)
    if use_mask:
        taken = taken * mask.reshape(number, offset_groups, 1, taps, out_h, out_w)
    taken = taken.reshape(number, groups, channels // groups * taps, out_h * out_w)
    kernels = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = (kernels @ taken).reshape(number, weight.shape[0], out_h, out_w)
    return result + bias.reshape(1, -1, 1, 1)


def _places(results: int, stride: int, padding: int, taps: int, dilation: int, like: Any) -> Any:
    """Where the taps lie along one side without offsets: (taps, results)."""
    start = ops.arange(results, dtype=like.dtype, device=like.device) * stride - padding
    return ops.arange(taps, dtype=like.dtype, device=like.device)[:, None] * dilation + start
