"""New tensors in functions that are mapped over a batch, and random numbers there.

What is made like a batch is one. Random numbers are refused, the same for all examples, or drawn
for each, as `vmap(randomness=...)` says. Rows say with `batch=` which of these they are: "like" (a
tensor is the pattern), "new" (a tensor gives the type), "draws" and "draws like". A composite that
has to look at numbers says "examples", and is called for one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from flambeau._core import modes
from flambeau._core.once import Once
from flambeau._ops.table import gates
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import LISTENERS, REGISTRY, Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.ranks import Rank
from flambeau._tensor.examples import Example
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.batches import REFUSED, Batch

KINDS = ("examples", "like", "new", "new strided", "draws", "draws like")


@Once
def ask_all() -> None:
    """From the first batch on, factories ask whether they are called for examples."""
    if _ask not in LISTENERS:
        LISTENERS.append(_ask)
    for op in list(REGISTRY.values()):
        _ask(op)


def _ask(op: Op) -> None:
    if op.batch in KINDS and isinstance(op.body, FunctionType):
        gates.add(op.body, Rank.LEVELS, partial(_through, op), with_twins=True)


def _through(op: Op, before: Callable[..., Any], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """A factory's call: for the innermost batch that it has to do with, or as ever."""
    for level in reversed(modes.stacks.levels):
        if isinstance(level, Batch):
            made = WAYS[op.batch](level, op.body, before, args, kwargs)
            if made is not NotImplemented:
                return made
            entry = None if op.batch == "examples" else _entry(level, args, kwargs)
            if entry is not None:  # the same for all: batches further out have to do with that
                args, kwargs = _with_pattern(entry.value, args, kwargs)
    return before(*args, **kwargs)


def _entry(level: Batch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Example | None:
    """What the tensor that a factory is given stands for."""
    given = args[0] if args else kwargs.get("input", kwargs.get("self"))
    return level.example(given) if isinstance(given, Tensor) else None


def _pattern(level: Batch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Example | None:
    """The same, if that is a batch."""
    entry = _entry(level, args, kwargs)
    return entry if entry is not None and entry.is_batched else None


def _with_pattern(value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments with another tensor in the pattern's place."""
    if args:
        return (value, *args[1:]), kwargs
    return (value,), {k: v for k, v in kwargs.items() if k not in ("input", "self")}


def _made(level: Batch, body: Any, args: Any, kwargs: Any) -> Any:
    with level.apart():
        made = body(*args, **kwargs)
    return level.standing_for(made)


def _like(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    entry = _pattern(level, args, kwargs)
    if entry is None:
        return NotImplemented
    args, kwargs = _with_pattern(entry.value, args, kwargs)
    return _made(level, body, args, kwargs)


def _new(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    entry = _pattern(level, args, kwargs)
    if entry is None:
        return NotImplemented
    args, kwargs = _with_pattern(entry.value, args, kwargs)
    args, kwargs = _with_examples(level.size, args[1:], kwargs, args[:1])
    return _made(level, body, args, kwargs)


def _new_strided(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    entry = _pattern(level, args, kwargs)
    if entry is None:
        return NotImplemented

    def make(input: Any, size: Any, stride: Any, **options: Any) -> Any:
        reach = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        with level.apart():
            return body(entry.value, [level.size, *size], [max(reach, 1), *stride], **options)

    return level.standing_for(make(*args, **kwargs))


def _with_examples(size: int, sizes: Any, kwargs: Any, head: Any = ()) -> Any:
    """The arguments of a factory with a further size in front."""
    if "size" in kwargs:
        return (*head, *sizes), {**kwargs, "size": [size, *kwargs["size"]]}
    if sizes and isinstance(sizes[0], (list, tuple)):
        return (*head, [size, *sizes[0]], *sizes[1:]), kwargs
    return (*head, size, *sizes), kwargs


def _examples(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    """A composite that looks at numbers: one example after the other."""
    given = [*args, *kwargs.values()]
    tensors = tensors_in(given)
    if not any(found is not None and found.is_batched for found in map(level.example, tensors)):
        return NotImplemented
    results = []
    with level.apart():
        for number in range(level.size):
            values = [_of_example(level, value, number) for value in given]
            named = dict(zip(kwargs, values[len(args) :], strict=True))
            results.append(body(*values[: len(args)], **named))
        return _standing(level, results)


def _of_example(level: Batch, value: Any, number: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [_of_example(level, item, number) for item in value]
    found = level.example(value) if isinstance(value, Tensor) else None
    if found is None:
        return value
    return found.value.select(0, number) if found.is_batched else found.value


def _standing(level: Batch, results: Sequence[Any]) -> Any:
    first = results[0]
    if isinstance(first, Tensor):
        return level.standing_for(ops.stack(list(results)))
    parts = [_standing(level, parts) for parts in zip(*results, strict=True)]
    return type(first)(parts) if hasattr(first, "_fields") else tuple(parts)


# ---- random numbers


def _draws(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    if level.randomness != "different":
        return NotImplemented
    with level.apart():
        if body.__name__ in ("rand", "randn"):
            args, kwargs = _with_examples(level.size, args, kwargs)
            return level.standing_for(body(*args, **kwargs))
        drawn = [body(*args, **kwargs) for _ in range(level.size)]
        return level.standing_for(ops.stack(drawn))


def _draws_like(level: Batch, body: Any, before: Any, args: Any, kwargs: Any) -> Any:
    entry = _pattern(level, args, kwargs)
    if level.randomness == "error":
        raise RuntimeError(REFUSED)
    if level.randomness == "same":
        if entry is None:
            return NotImplemented
        args, kwargs = _with_pattern(entry.value.select(0, 0), args, kwargs)
        with level.apart():
            return body(*args, **kwargs)
    if entry is not None:
        return _like(level, body, before, args, kwargs)
    with level.apart():
        given = args[0] if args else kwargs.get("input", kwargs.get("self"))
        whole = given.unsqueeze(0).expand([level.size, *given.shape])
        args, kwargs = _with_pattern(whole, args, kwargs)
        return level.standing_for(body(*args, **kwargs))


WAYS = {
    "examples": _examples,
    "like": _like,
    "new": _new,
    "new strided": _new_strided,
    "draws": _draws,
    "draws like": _draws_like,
}
