"""Custom functions under `vmap`: by a rule of their own, or one example after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import Batch
from flambeau.autograd.graph import tools

NO_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, "
    "...), it must override the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
NO_RULE = (
    "You tried to vmap over {0}, but it does not have vmap support. Please override and implement "
    "the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)
TWO_RULES = (
    "You tried to vmap over {0}, but it has both generate_vmap_rule=True and an overridden vmap "
    "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod "
    "to avoid ambiguity. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)


class VmapInfo(NamedTuple):
    """What a function's own rule is told: the size of the batch, and what random numbers do."""

    batch_size: int
    randomness: str


def apply_batched(level: Batch, cls: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The outputs for tensors that stand for examples, and the context of the call.

    The batches' history is what the calls a level further out record; the function itself is
    recorded among the tensors that stand for examples, if one of these learns.
    """
    outputs = _by_rule(level, cls, args) if _has_rule(cls) else _one_by_one(level, cls, args)
    known = type(cls.__name__, (cls,), {"forward": staticmethod(lambda *given: outputs)})
    return known._applied(args, {})  # type: ignore[attr-defined, no-any-return]


def _has_rule(cls: Any) -> bool:
    from flambeau.autograd.function import Function

    if cls.setup_context is Function.setup_context:
        raise RuntimeError(NO_SETUP)
    has_rule = cls.vmap is not Function.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(TWO_RULES.format(cls.__name__))
    if not has_rule and not cls.generate_vmap_rule:
        raise RuntimeError(NO_RULE.format(cls.__name__))
    return has_rule


def _by_rule(level: Batch, cls: Any, args: tuple[Any, ...]) -> Any:
    """What `vmap` of the function makes of the batches."""
    examples = [level.example(v) if isinstance(v, Tensor) else None for v in args]
    dims = tuple(None if e is None or not e.is_batched else 0 for e in examples)
    wholes = [v if e is None else e.value for v, e in zip(args, examples, strict=True)]
    with level.apart():
        output, out_dims = cls.vmap(VmapInfo(level.size, level.randomness), dims, *wholes)
        if not isinstance(output, tuple):
            return _standing(level, output, out_dims)
        if not isinstance(out_dims, tuple):
            out_dims = (out_dims,) * len(output)
        return tuple(_standing(level, *pair) for pair in zip(output, out_dims, strict=True))


def _standing(level: Batch, output: Any, dim: int | None) -> Any:
    if not isinstance(output, Tensor):
        return output
    whole = output if not dim else output.movedim(dim, 0)  # type: ignore[attr-defined]
    return level.standing_for(whole, dim is not None)


def _one_by_one(level: Batch, cls: Any, args: tuple[Any, ...]) -> Any:
    examples = [level.example(v) if isinstance(v, Tensor) else None for v in args]
    with level.apart():
        rows = []
        for number in range(level.size):
            output = cls.apply(*[
                v if e is None else e.value.select(0, number) if e.is_batched else e.value
                for v, e in zip(args, examples, strict=True)
            ])  # fmt: skip
            rows.append(output if isinstance(output, tuple) else (output,))
        stacked = tuple(_together(level, parts) for parts in zip(*rows, strict=True))
    return stacked if isinstance(output, tuple) else stacked[0]


def _together(level: Batch, parts: Sequence[Any]) -> Any:
    if not isinstance(parts[0], Tensor):
        return parts[0]
    return level.standing_for(tools.stack(list(parts)))
