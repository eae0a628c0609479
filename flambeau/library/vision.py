"""Operators of boxes that torchvision expects: its compiled part, which has them, cannot load."""

from __future__ import annotations

import numpy as np

from flambeau._tensor.conversion import from_numpy
from flambeau._tensor.tensor import Tensor
from flambeau.library.libraries import Library

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


LIBRARY = Library(NAMESPACE, "FRAGMENT")
LIBRARY.define(f"nms{SUPPRESSION}")
LIBRARY.define(f"qnms{SUPPRESSION}")
LIBRARY.impl("nms", nms, "CPU")
