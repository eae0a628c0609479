"""`torch._dynamo`: what programs tell and ask the compiler of Python, which flambeau has not.

Nothing is ever being compiled. Marks on tensors and functions are kept as PyTorch keeps them; they
change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flambeau._core.missing import lazily
from flambeau._dynamo import config, eval_frame, exc
from flambeau._dynamo.eval_frame import OptimizedModule
from flambeau._tensor.tensor import Tensor
from flambeau.compiler import allow_in_graph, assume_constant_result, disable, reset

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
    "eval_frame", "exc", "graph_break", "is_compiling", "is_dynamo_supported", "list_backends",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "reset",
]  # fmt: skip


def is_compiling() -> bool:
    """Whether a function is being compiled: never."""
    return False


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled: they cannot."""
    return False


def list_backends(exclude_tags: Iterable[str] = ("debug", "experimental")) -> list[str]:
    """The compilers that there are: none."""
    return []


def graph_break(msg: str = "") -> None:
    """End what is being compiled: nothing is."""


def mark_dynamic(t: Tensor, index: Any, **bounds: Any) -> None:
    """Note that some dims of a tensor change from call to call."""
    _note(t, "_dynamo_dynamic_indices", index)


def maybe_mark_dynamic(t: Tensor, index: Any) -> None:
    """Note that some dims of a tensor may change from call to call."""
    _note(t, "_dynamo_weak_dynamic_indices", index)


def mark_static(t: Any, index: Any = None) -> None:
    """Note that some dims of a tensor stay as they are; all, without `index`."""
    if isinstance(t, Tensor):
        _note(t, "_dynamo_static_indices", range(t.ndim) if index is None else index)


def mark_static_address(t: Tensor, guard: bool = False) -> None:
    """Note that the memory of a tensor stays where it is.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t).__name__}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]


def _note(tensor: Any, name: str, index: Any) -> None:
    dims = [index] if isinstance(index, int) else list(index)
    vars(tensor).setdefault(name, set()).update(dims)


__getattr__ = lazily(__name__)
