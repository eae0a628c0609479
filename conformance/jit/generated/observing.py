"""What can be seen of tensors and other values, the same for both libraries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Seen:
    """A tensor as it was when it was looked at."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    values: np.ndarray
    version: int = -1


@dataclass
class Outcome:
    """All that came of a call."""

    raised: str = ""
    """The class of an error, and where: `call`, `write`, `gradients`."""
    text: str = ""
    """What the error said."""
    kinds: list[str] = field(default_factory=list)
    """The results' structure."""
    others: list[Any] = field(default_factory=list)
    """Results that are no tensors."""
    results: list[Seen] = field(default_factory=list)
    arguments: list[Seen] = field(default_factory=list)
    shared: list[tuple[int, int]] = field(default_factory=list)
    """For each tensor, arguments first, which is the first with the same memory, and its offset."""
    written: list[np.ndarray] = field(default_factory=list)
    """All values after the writes."""
    gradients: list[Seen | None] = field(default_factory=list)
    second: list[Seen | None] = field(default_factory=list)
    printed: str = ""
    random: bytes = b""


def seen(tensor: Any) -> Seen:
    """Look at a tensor."""
    return Seen(
        str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), tuple(tensor.stride()),
        bool(tensor.requires_grad), values_of(tensor), _version(tensor),
    )  # fmt: skip


def values_of(tensor: Any) -> np.ndarray:
    """The numbers in a tensor, half precision as single."""
    plain = tensor.detach()
    if plain.is_complex():
        plain = plain.resolve_conj()
    if str(plain.dtype).endswith("bool") and plain.is_neg():  # PyTorch makes such, and reads none
        return np.zeros(tuple(plain.shape), bool)
    plain = plain.resolve_neg()
    if str(plain.dtype).endswith(("bfloat16", "float16")):
        plain = plain.float()
    if str(plain.dtype).endswith("complex32"):
        plain = plain.cfloat()
    return np.array(plain.clone().numpy(force=True))  # a clone: NumPy pins the memory it sees


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:  # an inference tensor has none
        return -1


def flattened(value: Any, tensor_type: type) -> tuple[str, list[Any], list[Any]]:
    """The structure of a value, the tensors in it, and what else is in it."""
    tensors: list[Any] = []
    others: list[Any] = []

    def visit(item: Any) -> str:
        if isinstance(item, tensor_type):
            tensors.append(item)
            return "T"
        if isinstance(item, (list, tuple)):
            inner = ", ".join(visit(part) for part in item)
            return f"[{inner}]" if isinstance(item, list) else f"({inner})"
        if isinstance(item, dict):
            pairs = ", ".join(f"{key}: {visit(part)}" for key, part in item.items())
            return f"{{{pairs}}}"
        others.append(item)
        return type(item).__name__

    return visit(value), tensors, others


def _is_left_behind(tensor: Any) -> bool:
    """Whether a view of the tensor has grown: ours then look at other memory than it."""
    storage = tensor.untyped_storage()
    start = storage.data_ptr()
    return not start <= tensor.data_ptr() < start + max(storage.nbytes(), 1)


def shared_memory(tensors: list[Any]) -> list[tuple[int, int]]:
    """For each tensor, the first one that lies in the same storage, and where it begins."""
    known: dict[int, int] = {}
    found = []
    for position, tensor in enumerate(tensors):
        if not tensor.numel() or _is_left_behind(tensor):
            found.append((position, 0))
            continue
        storage = tensor.untyped_storage().data_ptr()
        first = known.setdefault(storage, position)
        offset = tensor.storage_offset() if first != position else 0
        found.append((first, offset))
    return found
