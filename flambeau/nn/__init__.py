"""Neural networks: `Module`, layers, containers, initialisation.

Layers live in `layers/`, one file per family; a family is imported when one of its names is used.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.nn.module import Module
from flambeau.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

FAMILIES = {
    "containers": "Container Sequential ModuleList ModuleDict",
    "parameter_containers": "ParameterList ParameterDict",
    "layers.linear": "Identity Linear Bilinear LazyLinear",
    "layers.conv": ("Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"),
    "layers.lazy_conv": (
        "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
        "LazyConvTranspose3d"
    ),
    "layers.pooling": (
        "MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d AvgPool2d "
        "AvgPool3d LPPool1d LPPool2d LPPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
        "FractionalMaxPool2d FractionalMaxPool3d"
    ),
    "layers.padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
        "ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d "
        "ReplicationPad1d ReplicationPad2d ReplicationPad3d"
    ),
    "layers.batchnorm": (
        "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d"
    ),
    "layers.lazy_batchnorm": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d "
        "LazyInstanceNorm3d"
    ),
    "layers.normalization": "LayerNorm GroupNorm RMSNorm LocalResponseNorm CrossMapLRN2d",
    "layers.activation": (
        "Threshold ReLU RReLU Hardtanh ReLU6 Sigmoid Tanh Hardsigmoid Hardswish SiLU Mish ELU CELU "
        "SELU GLU GELU Hardshrink LeakyReLU LogSigmoid Softplus Softshrink PReLU Softsign "
        "Tanhshrink Softmin Softmax LogSoftmax Softmax2d"
    ),
    "layers.attention": "MultiheadAttention",
    "layers.dropout": ("Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout"),
    "layers.sparse": "Embedding EmbeddingBag",
    "layers.loss": (
        "L1Loss MSELoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss BCELoss "
        "BCEWithLogitsLoss SmoothL1Loss HuberLoss CrossEntropyLoss MultiLabelSoftMarginLoss CTCLoss"
    ),
    "layers.margin_loss": (
        "HingeEmbeddingLoss MultiLabelMarginLoss SoftMarginLoss CosineEmbeddingLoss "
        "MarginRankingLoss MultiMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
    "layers.linear_cross_entropy": "LinearCrossEntropyLoss LinearCrossEntropyOptions",
    "layers.adaptive": "AdaptiveLogSoftmaxWithLoss",
    "layers.distance": "PairwiseDistance CosineSimilarity",
    "layers.upsampling": "Upsample UpsamplingNearest2d UpsamplingBilinear2d",
    "layers.rearrange": (
        "PixelShuffle PixelUnshuffle ChannelShuffle Fold Unfold Flatten Unflatten"
    ),
    "layers.rnn": "RNNBase RNN LSTM GRU",
    "layers.rnn_cells": "RNNCellBase RNNCell LSTMCell GRUCell",
    "parallel": "DataParallel",
    "layers.transformer": "Transformer TransformerEncoder TransformerDecoder",
    "layers.transformer_layers": "TransformerEncoderLayer TransformerDecoderLayer",
}
"""File below `flambeau.nn` and the classes in it."""

HOME = {name: family for family, names in FAMILIES.items() for name in names.split()}
SUBMODULES = frozenset(
    (
        "_reduction", "attention", "common_types", "functional", "grad", "init", "modules",
        "parallel", "parameter", "utils",
    )
)  # fmt: skip
FACTORY_KEYS = frozenset(("device", "dtype", "memory_format"))
__all__ = [  # noqa: PLE0604
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    *HOME,
]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The `device`, `dtype` and `memory_format` of a module's own keyword arguments.

    They may stand in `kwargs` themselves or in a dict under the key "factory_kwargs".

    Raises:
        TypeError: another key, or one given in both places.

    >>> import flambeau as torch
    >>> torch.nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    unknown = kwargs.keys() - {*FACTORY_KEYS, "factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    chosen = dict(kwargs.get("factory_kwargs", {}))
    for key in sorted(FACTORY_KEYS & kwargs.keys()):
        if key in chosen:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        chosen[key] = kwargs[key]
    return chosen


__getattr__ = lazily(__name__, HOME, SUBMODULES)


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES})
