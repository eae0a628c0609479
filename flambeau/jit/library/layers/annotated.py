"""Layers whose attributes are annotated in torch. Who annotates any of his own has none of those
of `Module`, so that `_is_full_backward_hook` is of type None in their classes.
"""

from __future__ import annotations


class AdaptiveAvgPool1d:
    output_size: Any


class AdaptiveAvgPool2d:
    output_size: Any


class AdaptiveAvgPool3d:
    output_size: Any


class AvgPool1d:
    kernel_size: Any


class AvgPool2d:
    kernel_size: Any


class AvgPool3d:
    kernel_size: Any


class LPPool1d:
    norm_type: float


class LPPool2d:
    norm_type: float


class LPPool3d:
    norm_type: float


class Fold:
    output_size: Any


class Unfold:
    kernel_size: Any


class Upsample:
    mode: str
