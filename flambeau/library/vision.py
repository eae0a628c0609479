"""Operators of boxes that torchvision expects: its compiled part, which has them, cannot load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._tensor.conversion import from_numpy
from flambeau._tensor.tensor import Tensor
from flambeau.library.libraries import Library
from flambeau.library.vision_deformable import deform_conv2d
from flambeau.library.vision_regions import ps_roi_align, roi_align, roi_pool

NAMESPACE = "torchvision"
SUPPRESSION = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that stay when those are left out that overlap with one of a higher score.

    Args:
        dets: boxes (x1, y1, x2, y2), shape (N, 4).
        scores: shape (N,).
        iou_threshold: the largest share of their union that two boxes may have in common.

    Returns:
        Indices (int64), the highest score first.
    """
    boxes, order = _numbers(dets), np.argsort(-_numbers(scores), kind="stable")
    low, high = boxes[:, :2], boxes[:, 2:]
    areas = np.prod(high - low, axis=1)
    kept = []
    while order.size:
        first, rest = order[0], order[1:]
        kept.append(first)
        sides = np.minimum(high[first], high[rest]) - np.maximum(low[first], low[rest])
        common = np.prod(np.maximum(sides, 0), axis=1)
        order = rest[common <= iou_threshold * (areas[first] + areas[rest] - common)]
    return from_numpy(np.array(kept, np.int64))


def _numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()  # type: ignore[attr-defined, no-any-return]


REGIONS = (
    "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width{}) -> {}"
)
CONVOLUTION = (
    "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, "
    "int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, "
    "int offset_groups, bool use_mask) -> Tensor"
)
BACKWARD = (
    "(Tensor grad, Tensor rois{}, float spatial_scale, int pooled_height, int pooled_width{}, "
    "int batch_size, int channels, int height, int width) -> Tensor"
)
SCHEMAS = {
    "nms": SUPPRESSION,
    "qnms": SUPPRESSION,
    "_cuda_version": "() -> int",
    "roi_align": REGIONS.format(", int sampling_ratio, bool aligned", "Tensor"),
    "qroi_align": REGIONS.format(", int sampling_ratio, bool aligned", "Tensor"),
    "ps_roi_align": REGIONS.format(", int sampling_ratio", "(Tensor, Tensor)"),
    "roi_pool": REGIONS.format("", "(Tensor, Tensor)"),
    "ps_roi_pool": REGIONS.format("", "(Tensor, Tensor)"),
    "deform_conv2d": CONVOLUTION,
    "_roi_align_backward": "(Tensor grad, Tensor rois, float spatial_scale, int pooled_height, "
    "int pooled_width, int batch_size, int channels, int height, int width, int sampling_ratio, "
    "bool aligned) -> Tensor",
    "_roi_pool_backward": BACKWARD.format(", Tensor argmax", ""),
    "_ps_roi_align_backward": BACKWARD.format(", Tensor channel_mapping", "").replace(
        "int pooled_width", "int pooled_width, int sampling_ratio"
    ),
    "_ps_roi_pool_backward": BACKWARD.format(", Tensor channel_mapping", ""),
    "_deform_conv2d_backward": CONVOLUTION.replace(
        "(Tensor input", "(Tensor grad, Tensor input"
    ).replace("-> Tensor", "-> (Tensor, Tensor, Tensor, Tensor, Tensor)"),
}
"""What torchvision's Python asks for by name. Gradients come from the operators that these are made
of: those of backward have schemas only, as have those without a kernel here, which say so."""


def _cuda_version() -> int:
    """That of the compiled part: it has none."""
    return -1


KERNELS: dict[str, Callable[..., Any]] = {
    "_cuda_version": _cuda_version,
    "roi_align": roi_align,
    "ps_roi_align": ps_roi_align,
    "roi_pool": roi_pool,
    "deform_conv2d": deform_conv2d,
}
LIBRARY = Library(NAMESPACE, "FRAGMENT")
for _name, _schema in SCHEMAS.items():
    LIBRARY.define(f"{_name}{_schema}")
for _name, _kernel in KERNELS.items():
    LIBRARY.impl(_name, _kernel, "CompositeImplicitAutograd")
LIBRARY.impl("nms", nms, "CPU")
