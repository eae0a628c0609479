"""`with` blocks of programs: whatever ends a function, the blocks that it is in are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.jit.ir.values import dtype_of

Enter = Callable[[Any], Any]
Leave = Callable[..., Any]


class Entered:
    """The blocks that a call of a function is in, the innermost last."""

    __slots__ = ("leaving",)

    def __init__(self) -> None:
        self.leaving: list[tuple[Callable[..., Any], Any]] = []

    def enter(self, value: Any, enter: Callable[..., Any], leave: Callable[..., Any]) -> Any:
        """Enter a block; what `__enter__` gives."""
        result = enter(value)
        self.leaving.append((leave, value))
        return result

    def leave(self) -> None:
        """Leave the innermost block."""
        leave, value = self.leaving.pop()
        leave(value, None, None, None)

    def leave_all(self) -> None:
        """Leave the blocks that an error has not left."""
        while self.leaving:
            self.leave()


def enter_autocast(region: Any) -> Any:
    """Begin a region in which operators choose the type of floating-point tensors."""
    from flambeau.amp.autocast_mode import autocast

    made = autocast(region.device, dtype_of(region.fast_dtype), region._enabled)
    made.__enter__()
    region.__dict__.setdefault("_regions", []).append(made)
    return region


def leave_autocast(region: Any, *rest: Any) -> None:
    """End it."""
    region._regions.pop().__exit__(None, None, None)


def enter_label(label: Any) -> Any:
    """Begin what the profiler shows under a name."""
    from flambeau._core.modes import labelled

    made = labelled(label.name)
    made.__enter__()
    label.__dict__.setdefault("_labels", []).append(made)
    return label


def leave_label(label: Any, *rest: Any) -> None:
    """End it."""
    label._labels.pop().__exit__(None, None, None)


REGIONS: dict[str, tuple[Enter, Leave]] = {
    **{f"__torch__.torch.{place}amp.autocast_mode.autocast": (enter_autocast, leave_autocast)
       for place in ("", "cpu.", "cuda.")},
    "__torch__.torch.autograd.profiler.record_function": (enter_label, leave_label),
}  # fmt: skip
"""Classes whose methods do nothing: torch's executor knows what they mean, and so does ours."""
