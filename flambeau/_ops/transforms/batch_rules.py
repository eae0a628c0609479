"""How a call with batches is made of one with examples: see `batching`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._ops.table import pointwise
from flambeau._ops.table.namespace import ops
from flambeau._ops.table.op import Folded, Op
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.transforms.batched_call import Call, Parts
from flambeau._tensor.examples import NO_SHAPE
from flambeau._tensor.tensor import Tensor

NO_EXAMPLES = "vmap: the fallback path does not support vmap over dims of size 0"
NO_RULE = "Batching rule not implemented for aten::{}. We could not generate a fallback."
NO_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to "
    "batch over indexing with a boolean mask."
)
NO_CLOSE = (
    "vmap over torch.allclose isn't supported yet. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues if you need this feature."
)
DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "dimension"))
"""What parameters are called that name dims."""
SIZES = frozenset(("size", "sizes", "input_sizes", "shape"))
"""What parameters are called that give the sizes of all dims."""


def apply(call: Call) -> Parts:
    """The results of a call."""
    if not any(map(call.is_batched, call.values)):
        return Parts(call.results(call.wholes()), False)
    values = arguments_of(call)
    if values is None:
        return Parts(_one_by_one(call), True)
    if isinstance(call.op.batch, Folded):
        return Parts(_folded(call, values), True)
    return Parts(call.results(values), True)


def write(call: Call) -> None:
    """The same in place: into the batch that the first argument stands for."""
    if not any(map(call.is_batched, call.values)):
        call.results(call.wholes(), functional=False)
        return
    values = None if isinstance(call.op.batch, Folded) else arguments_of(call)
    if values is not None and values[0] is call.whole(call.values[0]):
        call.results(values, functional=False)
        return
    for number in range(call.size):
        call.results(call.example(number), functional=False)


def arguments_of(call: Call) -> list[Any] | None:
    """The arguments of one call for the whole batch; None where there is no such call."""
    kind = kind_of(call.op)
    return None if kind is None else KINDS[kind](call)


def kind_of(op: Op) -> str | None:
    """Which rule is a row's."""
    if isinstance(op.batch, str):
        return op.batch
    if isinstance(op.batch, tuple):
        return "folded" if isinstance(op.batch, Folded) else "items"
    if op.kind == "pointwise" or op.elementwise:
        return "elements"
    if op.kind in ("view", "rows"):
        return "dims"
    tensors = [a for a in op.schema.arguments if a.is_tensor]
    names_dims = any(a.name in DIMS and a.type == "int" for a in op.schema.arguments)
    return "dims" if names_dims and len(tensors) == 1 and not tensors[0].is_list else None


# ---- one call for all examples


def _elements(call: Call) -> list[Any]:
    """Operands are lined up, in the type that one example has."""
    rank = call.rank()
    values = [call.lined_up(v, rank) if isinstance(v, Tensor) else v for v in call.values]
    if call.op.kind != "pointwise":
        return values
    operands = [v for v in call.values if isinstance(v, (Tensor, int, float, complex))]
    given = [v for v in values if isinstance(v, (Tensor, int, float, complex))]
    element = pointwise.compute_dtype(call.op, operands)
    if pointwise.compute_dtype(call.op, given) is element:
        return values
    return [v.to(element) if isinstance(v, Tensor) and v.dtype is not element else v
            for v in values]  # fmt: skip


def _dims(call: Call) -> list[Any] | None:
    """Operands with the examples in front; dims are counted from the next one on. Those of several
    ranks are lined up at the last dim, or passed over, which batches of them would not be."""
    rank = call.rank()
    if not rank and call.op.kind != "view":
        return None
    if any(tensor._data.ndim != rank for tensor in tensors_in(call.values)):
        return None
    values = []
    for argument, value in zip(call.arguments, call.values, strict=True):
        if argument.is_tensor:
            values.append(call.batch(value))
        elif argument.name in SIZES and argument.is_list:
            values.append([call.size, *value])
            rank = max(rank, len(value))
        else:
            values.append(value)
    rank += call.op.batch == "new dim"
    for place, argument in enumerate(call.arguments):
        if argument.name in DIMS and argument.type == "int":
            if call.op.kind == "view" and argument.is_list and not values[place]:
                return None if values[place] is None else _of_view(call, values)
            moved = _moved(values[place], rank, call, argument)
            if moved is None:
                return None
            values[place] = moved
    return _of_view(call, values) if call.op.kind == "view" else values


def _moved(value: Any, rank: int, call: Call, argument: Any) -> Any:
    """Dims of an example as those of a batch, where they are all there."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value % rank + 1 if rank and -rank <= value < rank else None
    if not value:
        return list(range(1, rank + 1)) if _means_all(call, argument) else None
    moved = [_moved(dim, rank, call, argument) for dim in value]
    return None if None in moved else moved


def _means_all(call: Call, argument: Any) -> bool:
    """Whether no dims, or None, are all of them: to reductions."""
    reduces = argument.optional or any(a.name == "keepdim" for a in call.arguments)
    return bool(argument.is_list and argument.name == "dim" and reduces)


def _of_view(call: Call, values: list[Any]) -> list[Any]:
    """Sizes and steps of a view of a batch."""
    named = {a.name: place for place, a in enumerate(call.arguments)}
    if call.op.name == "permute":
        values[named["dims"]] = [0, *values[named["dims"]]]
    elif "stride" in named:  # from a place in memory on
        values[named["stride"]] = [values[0].stride(0), *values[named["stride"]]]
    elif call.op.name == "expand":
        values[0] = call.lined_up(call.values[0], len(values[named["size"]]) - 1)
    return values


def _items(call: Call) -> list[Any] | None:
    """Items of a fixed number of dims: what lies before these broadcasts."""
    dims: Any = iter(call.op.batch)  # type: ignore[arg-type]
    tensors: list[tuple[int, Any, int]] = []
    for place, (argument, value) in enumerate(zip(call.arguments, call.values, strict=True)):
        if not argument.is_tensor:
            continue
        item = next(dims, None)
        if value is None:
            continue
        if item is None or value._data.ndim < item:
            if item is None and not call.is_batched(value):
                continue
            return None
        tensors.append((place, value, item))
    before = max(value._data.ndim - item for _, value, item in tensors)
    values = call.wholes()
    for place, value, item in tensors:
        values[place] = call.lined_up(value, before + item)
        if len(tensors) > 1 and not call.op.factors and not call.is_batched(value):
            shape = values[place].shape
            ones = [1] * (before + item - len(shape))
            values[place] = values[place].expand([call.size, *ones, *shape])
    return values


def _fold_arguments(call: Call) -> list[Any] | None:
    """Batches of images, put into one batch where an example is a batch itself."""
    folded: Any = call.op.batch
    rank = call.values[0]._data.ndim
    if folded.dims >= 0 and rank not in (folded.dims, folded.dims + 1):
        return None
    values = []
    for argument, value in zip(call.arguments, call.values, strict=True):
        if argument.name in folded.kept:
            if call.is_batched(value):
                return None
            value = call.whole(value)
        elif argument.is_tensor and value is not None:
            value = call.batch(value)
            value = value.flatten(0, 1) if rank > folded.dims else value
        elif argument.name in (*SIZES, "input_size") and argument.is_list and len(value) == rank:
            many = rank > folded.dims
            value = [call.size * value[0], *value[1:]] if many else [call.size, *value]
        values.append(value)
    return values


def _folded(call: Call, values: list[Any]) -> list[Any]:
    results = call.results(values)
    folded: Any = call.op.batch
    if call.values[0]._data.ndim == folded.dims:
        return results
    return [None if r is None else r.unflatten(0, (call.size, -1)) for r in results]


def _index(call: Call) -> list[Any] | None:
    """Indices of examples, and before them the examples' own number where they need one."""
    *others, indices = call.values
    given = [place for place, index in enumerate(indices) if index is not None]
    tensors = [indices[place] for place in given]
    masks = [t for t in tensors if t._data.dtype.kind == "b" or t._data.dtype == np.uint8]
    if any(map(call.is_batched, masks)):
        raise RuntimeError(NO_MASK)
    rest = [call.batch(v) if isinstance(v, Tensor) else [call.size, *v] for v in others]
    in_a_row = given[-1] - given[0] == len(given) - 1
    if in_a_row and not any(map(call.is_batched, tensors)):
        return [*rest, [None, *call.whole(indices)]]
    if masks or (in_a_row and given[0]):
        return None
    rank = max(t._data.ndim for t in tensors)
    numbers = ops.arange(call.size).view([call.size, *[1] * rank])
    lined_up = [None if t is None else call.lined_up(t, rank) for t in indices]
    return [*rest, [numbers, *lined_up]]


KINDS: dict[str, Callable[[Call], list[Any] | None]] = {
    "elements": _elements, "dims": _dims, "new dim": _dims, "items": _items,
    "folded": _fold_arguments, "index": _index, "examples": lambda call: None,
}  # fmt: skip


# ---- one example after the other


def _one_by_one(call: Call) -> list[Any]:
    if not call.size:
        raise RuntimeError(NO_EXAMPLES)
    rows = [call.results(call.example(number)) for number in range(call.size)]
    _check_alike(call.op, rows)
    return call.stacked(rows)


def _check_alike(op: Op, rows: Sequence[list[Any]]) -> None:
    for parts in zip(*rows, strict=True):
        if any(part is not None and not isinstance(part, Tensor) for part in parts):
            raise RuntimeError((NO_CLOSE if op.name == "allclose" else NO_RULE).format(op.name))
        if len({part.shape for part in parts if part is not None}) > 1:
            raise RuntimeError(NO_SHAPE.format(op.name.lstrip("_")))
