"""`torch._C._functorch`: what libraries ask about tensors inside of transforms of functions."""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import missing
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import Tensor
from flambeau.func.batched import _add_batch_dim, _remove_batch_dim


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor stands for the examples of a batch, and differs between them."""
    data = getattr(tensor, "_data", None)
    return data.__class__ is Example and data.is_batched  # type: ignore[union-attr]


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor belongs to PyTorch's first `vmap`: none does."""
    return False


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The batch that a tensor stands for, examples along the first dim.

    Raises:
        RuntimeError: it stands for none.
    """
    data: Any = tensor._data
    if not is_batchedtensor(tensor):
        raise RuntimeError("No wrappers present!")
    return data.value  # type: ignore[no-any-return]


__all__ = ["_add_batch_dim", "_remove_batch_dim"]


def __getattr__(name: str) -> Any:
    return missing(__name__, name)
