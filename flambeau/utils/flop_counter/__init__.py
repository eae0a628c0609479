"""`torch.utils.flop_counter`: floating-point operations, counted by operator and module.

with FlopCounterMode() as counter:
    model(x).sum().backward()
counter.get_total_flops()
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any

from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.flop_counter.formulas import (
    addmm_flop,
    baddbmm_flop,
    bmm_flop,
    conv_backward_flop,
    conv_flop,
    conv_flop_count,
    flop_registry,
    mm_flop,
    of_shapes,
    register_flop_formula,
    sdpa_backward_flop,
    sdpa_backward_flop_count,
    sdpa_flop,
    sdpa_flop_count,
)
from flambeau.utils.flop_counter.table import (
    convert_num_with_suffix,
    convert_to_percent_str,
    get_suffix_str,
    suffixes,
    text_of,
)
from flambeau.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]
NAMES = (addmm_flop, baddbmm_flop, bmm_flop, conv_backward_flop, conv_flop, conv_flop_count,
         mm_flop, sdpa_backward_flop, sdpa_backward_flop_count, sdpa_flop, sdpa_flop_count,
         suffixes)  # fmt: skip
"""Further names of PyTorch's module."""

Counts = dict[str, dict[Any, int]]
TOTAL = "Global"


def _no_counts() -> Any:
    return defaultdict(lambda: defaultdict(int))


class FlopCounterMode:
    """Counts the floating-point operations of a region, by operator and by module.

    `depth`: how many levels of modules the table shows (None: all); `display`: whether it is
    printed at the end. `custom_mapping` has further formulas, or other ones, by operator.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:  # fmt: skip
        self.flop_counts: Counts = _no_counts()
        self.depth = depth
        self.display = display
        self.mode: Any = None
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it",
                          stacklevel=2)  # fmt: skip
        own = {
            packet: formula if getattr(formula, "_get_raw", False) else of_shapes(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All operations of the region."""
        return sum(self.flop_counts[TOTAL].values())

    def get_flop_counts(self) -> Counts:
        """Module -> operator -> count; "Global" stands for all modules."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, to so many levels of modules."""
        levels = self.depth if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)

        def rows_of(name: str) -> list[tuple[str, str, str]]:
            counts = self.flop_counts[name]
            named = [(name, sum(counts.values()))]
            named += [(f"- {operator}", count) for operator, count in counts.items()]
            return [
                (title, convert_num_with_suffix(count, suffix),
                 convert_to_percent_str(count, total))
                for title, count in named
            ]  # fmt: skip

        inner = [name for name in sorted(self.flop_counts) if name != TOTAL]
        shown = [name for name in inner if levels is None or name.count(".") < levels]
        is_one = any(sum(self.flop_counts[name].values()) == total for name in inner)
        if not (total and is_one):
            shown = [TOTAL, *shown]
        return text_of([row for name in shown for row in rows_of(name)])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Watching(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.mode.__exit__(*exc)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def add(self, operator: Any, flops: int) -> None:
        """Count operations of an operator in every module that is being called."""
        for module in set(self.mod_tracker.parents):
            self.flop_counts[module][operator] += flops


class _Watching(TorchDispatchMode):
    """Tells a counter what the calls below autograd cost."""

    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        operator = func.overloadpacket
        if operator in self.counter.flop_registry:
            formula = self.counter.flop_registry[operator]
            self.counter.add(operator, formula(*args, **named, out_val=result))
        return result
