"""`torch._C._functorch`: what libraries ask about tensors inside of transforms of functions."""

from __future__ import annotations

from typing import Any

from flambeau._core import modes
from flambeau._core.missing import lazily
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import Tensor
from flambeau.func.batched import _add_batch_dim, _remove_batch_dim
from flambeau.func.reverse import leaves_of

NOT_A_TENSOR = (
    "is_gradtrackingtensor(): incompatible function arguments. The following argument types are "
    "supported:\n    1. (arg0: torch.Tensor) -> bool"
)


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor stands for the examples of a batch, and differs between them; no transform
    further in follows it."""
    data = getattr(tensor, "_data", None)
    is_example = data.__class__ is Example and data.is_batched  # type: ignore[union-attr]
    return is_example and not is_gradtrackingtensor(tensor)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether `grad`, `vjp`, `jvp` or their like follow a tensor, and no `vmap` further in.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{NOT_A_TENSOR}\n\nInvoked with: {tensor!r}")
    levels = modes.stacks.levels
    knowing = [depth for depth, level in enumerate(levels) if level.knows(tensor)]
    innermost = knowing[-1] if knowing else -1
    if innermost >= 0 and levels[innermost].is_transform:
        return True
    makers = (leaf._stands_for for leaf in leaves_of(tensor))
    return any(maker is not None and maker.is_open and maker.depth > innermost
               for maker in makers)  # fmt: skip


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """Whether a tensor belongs to PyTorch's first `vmap`: none does."""
    return False


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The batch that a tensor stands for, examples along the first dim.

    Raises:
        RuntimeError: it stands for none.
    """
    data: Any = tensor._data
    if not (data.__class__ is Example and data.is_batched):
        raise RuntimeError("No wrappers present!")
    return data.value  # type: ignore[no-any-return]


__all__ = ["_add_batch_dim", "_remove_batch_dim"]


__getattr__ = lazily(__name__)
