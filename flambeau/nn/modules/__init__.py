"""`torch.nn.modules`: the layers under the names of torch's files.

`torch.nn.modules.conv` and the others are made in memory, each a view of one or more of our files.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from flambeau import nn
from flambeau._core.missing import missing

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


class _Alias(ModuleType):
    """A module that looks its names up in others."""

    def __init__(self, name: str, files: tuple[str, ...]) -> None:
        super().__init__(f"{__name__}.{name}", f"The names of torch.nn.modules.{name}.")
        self._files = files

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for file in self._files:
                source = importlib.import_module(f"flambeau.nn.{file}")
                if hasattr(source, name):
                    return getattr(source, name)
        return missing(self.__name__, name)


for _name, _files in FILES.items():
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = _Alias(_name, _files)

__all__ = ["Module", *nn.HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """The same classes as `torch.nn`."""
    if name in nn.HOME or name == "Module":
        return getattr(nn, name)
    return missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *FILES})
