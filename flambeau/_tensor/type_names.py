"""Names of types of tensors, such as "torch.sparse.FloatTensor": the element type, and where."""

from __future__ import annotations

from typing import Any, NoReturn

from flambeau._core import dtype as dt
from flambeau._core.device import Cuda
from flambeau._core.missing import not_implemented_text

NAMES = {entry: f"torch.{entry.scalar_name}Tensor" for entry in dt.ALL}
"""The name of each element type."""

KNOWN = {name: entry for entry, name in NAMES.items()}
NO_CUDA = "Cannot initialize CUDA without ATen_cuda library."
NO_PRIVATE_USE = (
    "Please register PrivateUse1HooksInterface by `RegisterPrivateUse1HooksInterface` first."
)
MISSING = "QInt8 QUInt8 QInt32 QUInt4x2 QUInt2x4 ComplexHalf".split()
"""Element types that only PyTorch has."""


def type_called(name: str) -> tuple[Any, Any]:
    """The element type of that name, and the device, None where it is the CPU.

    A sparse type is only a name of the element type: `x.type("torch.sparse.FloatTensor")` of a
    dense tensor is dense, as PyTorch's.

    Raises:
        ValueError: there is no such type.
        RuntimeError, AssertionError: it is one of a device that is not there.
    """
    if name == "torch.Tensor":
        return dt.Defaults.dtype, None
    if name.startswith("torch.meta."):
        return KNOWN[_without(name, "meta")], "meta"
    if name.startswith("torch.cuda."):
        return _on_cuda(name)
    plain = name.replace("torch.sparse.", "torch.", 1)
    if plain in KNOWN:
        return KNOWN[plain], None
    if name.startswith("torch.xpu.") and _without(name, "xpu") in KNOWN:
        raise AssertionError("Torch not compiled with XPU enabled")
    if name.startswith("torch.privateuseone."):
        raise RuntimeError(NO_PRIVATE_USE)
    if plain in {f"torch.{each}Tensor" for each in MISSING}:
        raise NotImplementedError(not_implemented_text(plain))
    raise invalid(name)


def _on_cuda(name: str) -> tuple[Any, Any]:
    if not Cuda.devices():
        raise RuntimeError(NO_CUDA)
    plain = _without(name, "cuda")
    if plain not in KNOWN:
        raise invalid(name)
    return KNOWN[plain], "cuda"


def _without(name: str, device: str) -> str:
    return name.replace(f"torch.{device}.", "torch.", 1).replace("torch.sparse.", "torch.", 1)


def invalid(name: str) -> ValueError:
    """PyTorch's error for what names no type."""
    return ValueError(f"invalid type: '{name}'")


def refuse_class(kind: type) -> NoReturn:
    """A class that is no type of tensors, or one of tensors on a GPU."""
    if kind.__module__ == "torch.cuda" and not Cuda.devices():
        raise RuntimeError(NO_CUDA)
    raise invalid(kind.__name__)
