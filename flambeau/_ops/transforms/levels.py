"""Who works on a call while functions are transformed: the innermost level that is concerned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._ops.table import dispatch
from flambeau._ops.table.op import Op
from flambeau._ops.table.ranks import Rank
from flambeau._ops.transforms import batched_factories, batching, meta, tangents
from flambeau._tensor.tensor import provides
from flambeau.autograd.batches import Batch


def watch(
    op: Op, plain: Callable[..., Any], values: tuple[Any, ...], functional: bool | None
) -> Any:
    """A row's call where an operand belongs to a level; NotImplemented where none does."""
    for level in reversed(modes.stacks.levels):
        work = batching.run if isinstance(level, Batch) else tangents.run
        result = work(level, op, plain, values, functional)
        if result is not NotImplemented:
            return result
    return NotImplemented


@provides("carry_tangents")
def carry_tangents() -> None:
    """From now on calls are looked at."""
    dispatch.add_watcher(watch, Rank.LEVELS)


@provides("expect_meta")
def expect_meta() -> None:
    """From now on there may be tensors without memory."""
    if meta.without_numbers not in dispatch.WITHOUT_NUMBERS:
        dispatch.WITHOUT_NUMBERS.append(meta.without_numbers)
    dispatch.add_watcher(meta.watch, Rank.META)


@provides("expect_batches")
def expect_batches() -> None:
    """From now on new tensors may be made for examples of a batch."""
    batched_factories.ask_all()
