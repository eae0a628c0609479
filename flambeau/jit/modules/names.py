"""The names that programs give to Python's functions and classes."""

from __future__ import annotations

import enum
from typing import Any


def qualified_name(obj: Any) -> str:
    """`__torch__.models.Net` for the class `models.Net`; without module for `__main__`.

    What is defined in flambeau has the name that it has in torch.
    """
    override = getattr(obj, "_jit_override_qualname", None)
    if override is not None:
        return override  # type: ignore[no-any-return]
    name = obj.name if isinstance(obj, enum.Enum) else getattr(obj, "__name__", None)
    if name is None:
        raise RuntimeError("Could not get name of python class object")
    module = obj.__module__
    if module is None:
        raise RuntimeError(
            f"Could not get qualified name for class '{name}': __module__ can't be None."
        )
    name = "_lambda" if name == "<lambda>" else name
    file = _file_of(module, name)
    if file is not None:
        module = f"torch.nn.modules.{file}"
    head = "__torch__" if module == "__main__" else f"__torch__.{as_torch(module)}"
    return f"{head}.{name}"


ELSEWHERE = {
    "ChannelShuffle": "channelshuffle", "Flatten": "flatten", "Unflatten": "flatten",
    "Fold": "fold", "Unfold": "fold", "PixelShuffle": "pixelshuffle",
    "PixelUnshuffle": "pixelshuffle",
}  # fmt: skip
"""Layers that stand in one file here and in several in torch."""


def _file_of(module: str, name: str) -> str | None:
    """Torch's file of a layer: `linear` for `flambeau.nn.layers.linear.Linear`; None for what is
    no layer.
    """
    if not module.startswith("flambeau.nn."):
        return None
    from flambeau.nn.modules import FILES

    if name in ELSEWHERE:
        return ELSEWHERE[name]
    if "InstanceNorm" in name:
        return "instancenorm"
    ours = module.removeprefix("flambeau.nn.")
    if ours.startswith("modules."):
        return ours.removeprefix("modules.")
    return next((file for file, places in FILES.items() if ours in places), None)


def as_torch(module: str) -> str:
    """`flambeau.nn.functional` is `torch.nn.functional`."""
    first, dot, rest = module.partition(".")
    return f"torch{dot}{rest}" if first == "flambeau" else module
