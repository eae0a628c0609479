"""Where torch has the classes of `torch.nn`: the names of its files."""

from __future__ import annotations

from .missing import as_torch_name

FILES = {
    "activation": ("layers.activation", "layers.attention"),
    "adaptive": ("layers.adaptive",),
    "batchnorm": ("layers.batchnorm", "layers.lazy_batchnorm"),
    "channelshuffle": ("layers.rearrange",),
    "container": ("containers", "parameter_containers"),
    "conv": ("layers.conv", "layers.lazy_conv"),
    "distance": ("layers.distance",),
    "dropout": ("layers.dropout",),
    "flatten": ("layers.rearrange",),
    "fold": ("layers.rearrange",),
    "instancenorm": ("layers.batchnorm", "layers.lazy_batchnorm"),
    "lazy": ("layers.lazy",),
    "linear": ("layers.linear",),
    "linear_cross_entropy": ("layers.linear_cross_entropy",),
    "linear_cross_entropy_options": ("layers.linear_cross_entropy",),
    "loss": ("layers.loss", "layers.margin_loss", "layers.linear_cross_entropy"),
    "module": ("module", "module_hooks", "module_state", "every_module"),
    "normalization": ("layers.normalization",),
    "padding": ("layers.padding",),
    "pixelshuffle": ("layers.rearrange",),
    "pooling": ("layers.pooling",),
    "rnn": ("layers.rnn", "layers.rnn_cells"),
    "sparse": ("layers.sparse",),
    "transformer": ("layers.transformer", "layers.transformer_layers"),
    "upsampling": ("layers.upsampling",),
    "utils": ("layers.sizes",),
}
"""Torch's file names and where our classes are."""

ELSEWHERE = {
    "ChannelShuffle": "channelshuffle", "Flatten": "flatten", "Unflatten": "flatten",
    "Fold": "fold", "Unfold": "fold", "PixelShuffle": "pixelshuffle",
    "PixelUnshuffle": "pixelshuffle", "LinearCrossEntropyLoss": "loss",
}  # fmt: skip
"""Layers that stand in one file here and in several in torch."""


def file_in_torch(module: str, name: str) -> str | None:
    """Torch's file of a layer: `linear` for `flambeau.nn.layers.linear.Linear`; None for what is
    no layer.
    """
    if not module.startswith("flambeau.nn."):
        return None
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if "InstanceNorm" in name:
        return "instancenorm"
    ours = module.removeprefix("flambeau.nn.")
    if ours.startswith("modules."):
        return ours.removeprefix("modules.")
    return next((file for file, places in FILES.items() if ours in places), None)


def module_in_torch(kind: type) -> str:
    """The module that a class has in torch: `torch.nn.modules.linear` for Linear."""
    file = file_in_torch(kind.__module__, kind.__name__)
    return as_torch_name(kind.__module__) if file is None else f"torch.nn.modules.{file}"


def shown_class(kind: type) -> str:
    """A class as torch prints it: `<class 'torch.nn.modules.linear.Linear'>`."""
    if not kind.__module__.startswith("flambeau.nn."):
        return repr(kind)
    return f"<class '{module_in_torch(kind)}.{kind.__qualname__}'>"
