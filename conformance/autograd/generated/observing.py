"""What can be seen of a program, the same for both libraries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformance.jit.generated.observing import values_of

BACKWARD = ("backward(", "autograd.grad(")
"""What statements have that send gradients."""


@dataclass
class Seen:
    """A tensor as it was when it was looked at."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    is_leaf: str
    version: int
    values: np.ndarray
    offset: int = 0
    memory: int = 0
    """The first of the tensors seen that lies in the same storage."""
    name: str = ""
    """Of the node; only where it is asked for."""
    bits: str = ""
    """Whether it is a conjugate or a negative view."""


@dataclass
class Line:
    """What a statement did."""

    text: str
    error: str = ""
    """The class of what it raised."""
    said: str = ""
    """The first line of what that said."""
    weighed: bool = False
    """Whether that must be the same; in autograd checks come in another order, but for those of
    backward."""
    values: dict[str, Any] = field(default_factory=dict)
    """What it gave names to."""
    notes: list[Any] = field(default_factory=list)
    warned: list[Any] = field(default_factory=list)
    """Warnings, where a language listens to them."""
    lent: bool = False
    """Whether a leaf's gradient has the memory of another variable since then. PyTorch keeps what
    it is given now and then; here it is copied."""


@dataclass
class Outcome:
    """All that came of a program."""

    lines: list[Line] = field(default_factory=list)
    final: dict[str, Any] = field(default_factory=dict)
    """Every variable at the end, and the gradients of those that have one."""


def seen(tensor: Any, memories: dict[int, int] | None = None, named: bool = False) -> Seen:
    """Look at a tensor."""
    return Seen(
        str(tensor.dtype).rpartition(".")[2], tuple(tensor.shape), tuple(tensor.stride()),
        bool(tensor.requires_grad), _asked(tensor, "is_leaf"), _version(tensor), values_of(tensor),
        tensor.storage_offset(), _memory(tensor, memories),
        _asked(tensor, "grad_fn") if named else "",
        "conj " * tensor.is_conj() + "neg" * tensor.is_neg(),
    )  # fmt: skip


def _version(tensor: Any) -> int:
    try:
        return int(tensor._version)
    except RuntimeError:  # an inference tensor has none
        return -1


def _memory(tensor: Any, memories: dict[int, int] | None) -> int:
    if memories is None or not tensor.numel():
        return -1
    try:
        address = tensor.untyped_storage().data_ptr()
    except RuntimeError:  # zeros that PyTorch has not made yet
        address = -len(memories)
    return memories.setdefault(address, len(memories))


def _asked(tensor: Any, attribute: str) -> str:
    """What a tensor says of itself; stale views of some kinds refuse."""
    try:
        found = getattr(tensor, attribute)
    except RuntimeError as error:
        return f"raises {str(error)[:60]}"
    return str(found.name() if hasattr(found, "name") else found)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor that has memory, or will have when it is asked for it."""
    kind = type(value)
    return hasattr(kind, "storage_offset") and not hasattr(kind, "materialize")


def plain(value: Any) -> Any:
    """A value as data: tensors are looked at, other objects are told by their type."""
    if is_tensor(value):
        return seen(value)
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (type(None), bool, int, float, complex, str)):
        return value
    return type(value).__name__
