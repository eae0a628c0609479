"""Which rows have kernels for GPUs.

    @on_gpu("softmax.int")
    def softmax(x, dim, dtype): ...

A kernel takes the row's arguments, DeviceArrays (or None) for tensors, and gives a DeviceArray or a
tuple of them; NotImplemented says that it does not know this case: the host computes it then. Those
of rows that write in place write to the first argument. Pointwise rows are not listed, nor are
reductions of the kind `rows`: their own bodies become kernels (`pointwise.py`, `reductions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from flambeau._core.tables import entering
from flambeau._ops.table.op import REGISTRY, Op

Kernel = Callable[..., Any]
Made = TypeVar("Made", bound=Kernel)
MODULES = (
    "fills",
    "reductions",
    "softmaxes",
    "losses",
    "indexing",
    "arranging",
    "channels",
    "pooling",
    "scans",
    "sorting",
    "masks",
)
"""The modules of this package whose functions are kernels of rows."""
LATER = ("products", "conv", "attention", "reshaping")
"""The same; each is there if its libraries are."""


class Kernels(dict[str, "Kernel | None"]):
    """Row (`Op.full_name`) -> the function that computes it on a device, or None."""

    def __init__(self, of_row: Callable[[Op], Kernel | None]) -> None:
        super().__init__()
        self.of_row = of_row  # what the kernel of a row is that is not listed

    def get(self, name: str, default: Any = None) -> Any:
        """The kernel of a row; the first question loads all of them."""
        try:
            return self[name]
        except KeyError:
            pass
        load()
        if name not in self:
            op = _legible(name)
            self[name] = None if op is None else self.of_row(op)
        return self[name]


def _pointwise(op: Op) -> Any:
    from flambeau._ops.cuda.pointwise import row_of

    return row_of(op)


def _computing(op: Op) -> Any:
    from flambeau._ops.cuda.reductions import of_formula

    return of_formula(op.formula) if op.reduces else _pointwise(op)


KERNELS = Kernels(_computing)
"""Row (`Op.full_name`) -> the function that computes it on a device."""
WRITING = Kernels(lambda op: None if op.reduces else _pointwise(op).write)
"""Row -> the function that writes its result to the row's first argument."""


def _legible(name: str) -> Op | None:
    """The row of a name whose body becomes a kernel."""
    found = [op for op in REGISTRY.values()
             if op.full_name == name and (op.kind == "pointwise" or op.reduces)]  # fmt: skip
    return found[0] if len(found) == 1 else None


class Loaded:
    """Whether the modules of kernels are."""

    all = False


def load() -> None:
    """Import all modules of kernels."""
    if Loaded.all:
        return
    Loaded.all = True
    for name in (*MODULES, *LATER):
        full = f"{__package__}.{name}"
        if name in MODULES or find_spec(full) is not None:
            import_module(full)


on_gpu = entering(KERNELS)
"""Register a function as what computes these rows on GPUs."""


writing_on_gpu = entering(WRITING)
"""Register a function as what computes these rows in place."""


def checked(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """NotImplemented where something on the way has no kernel for a type."""

    def call(*values: Any) -> Any:
        try:
            return kernel(*values)
        except NotImplementedError:
            return NotImplemented

    return call
