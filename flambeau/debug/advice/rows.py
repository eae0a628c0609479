"""What the rows behind an operator's name say about it."""

from __future__ import annotations

from functools import cache

from flambeau._ops.table.op import BY_NAME, Op


@cache
def rows_of(name: str) -> tuple[Op, ...]:
    """The rows of a name as calls are reported: `clamp_low` is the row `_clamp_low`, too."""
    names = (name, f"_{name}", f"nn.functional.{name}")
    return tuple([op for one in names for op in BY_NAME.get(one, ())])


def tensors(op: Op) -> int:
    """How many tensors a row takes."""
    return sum(argument.is_tensor for argument in op.schema.arguments)


@cache
def is_elementwise(name: str) -> bool:
    """Whether the result of one operand has its shape."""
    return name in ("detach", "to_copy") or any(op.elementwise for op in rows_of(name))


@cache
def is_pairwise(name: str) -> bool:
    """Whether two operands broadcast, element by element: losses of elements do, too."""
    return any((op.elementwise or op.module == "losses.elementwise") and tensors(op) == 2  # noqa: PLR2004
               for op in rows_of(name))  # fmt: skip


@cache
def is_reduction(name: str) -> bool:
    """Whether dims are reduced to one element, or kept with the size 1."""
    return any(op.module.startswith("reductions.")
               and any(argument.name == "keepdim" for argument in op.schema.arguments)
               for op in rows_of(name))  # fmt: skip


@cache
def is_loss(name: str) -> bool:
    """Whether an operator is a loss, of elements or of classes."""
    return any(op.module.startswith("losses.")
               and any(argument.name == "reduction" for argument in op.schema.arguments)
               for op in rows_of(name))  # fmt: skip


@cache
def is_wide(name: str) -> bool:
    """Whether autocast computes an operator in float32, as its results leave float16's range."""
    return any("float32" in (op.autocast or "") for op in rows_of(name))
