"""`x[i, 1:, None, mask]` as the operators that it is made of: select, slice, unsqueeze, index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.device import CPU
from flambeau._tensor.conversion import tensor
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T

END = 9223372036854775807  # what a slice without an end gets
MASKS = ("torch.bool", "torch.uint8")


def get(trace: Any, itself: Callable[..., Any], x: Tensor, index: Any) -> Any:
    """Record and run `x[index]`."""
    if isinstance(index, Tensor) and index.dim() == 0 and trace.knows(index) and _whole(index):  # type: ignore[attr-defined]
        return trace.operator("select", lambda x, d, i: itself(x, index), (x, 0, index), {})
    result, tensors = _views(trace, itself, x, index)
    if not tensors:
        if result is x:
            return trace.operator("alias", lambda x: itself(x, index), (x,), {})
        return result
    return trace.operator(
        "index", lambda *_: itself(result, _positions(tensors)), (result, tensors), {}
    )


def set(trace: Any, itself: Callable[..., Any], x: Any, index: Any, value: Any) -> None:
    """Record and run `x[index] = value`."""
    getter = _plain_get
    target, tensors = _views(trace, getter, x, index)
    with trace.paused():
        whole: Any = value if isinstance(value, Tensor) else None
    if tensors:
        value = _as_tensor(trace, value, target)

        def write(*_: Any) -> Tensor:
            itself(target, _positions(tensors), value)
            return target  # type: ignore[no-any-return]

        trace.operator("index_put_", write, (target, tensors, value, False), {})
        return
    if whole is None:
        value = _as_tensor(trace, value, target)
        trace.operator("fill_", lambda t, v: t.fill_(v), (target, value), {})
        return
    with trace.paused():
        sizes = list(target.shape)
        while len(whole.shape) > len(sizes) and whole.shape[0] == 1:
            whole = whole.squeeze(0)
    if list(whole.shape) != sizes:
        whole = trace.operator("expand", lambda v, s: v.expand(s), (whole, sizes), {})
    trace.operator("copy_", lambda t, v: t.copy_(v), (target, whole), {})


def _plain_get(x: Tensor, index: Any) -> Any:
    return x[index]  # type: ignore[index]


def _whole(index: Any) -> bool:
    return not index.dtype.is_floating_point and str(index.dtype) not in MASKS


def _positions(tensors: list[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if t is None else t for t in tensors)


def _as_tensor(trace: Any, value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    with trace.paused():
        made = like.new_full((), value)  # type: ignore[attr-defined]
    trace.know(made, trace.graph.constant(made, T.TENSOR))
    return made


def _views(trace: Any, itself: Callable[..., Any], x: Tensor, index: Any) -> tuple[Any, list[Any]]:
    """The views that numbers, slices and None make, and the tensors that index what is left."""
    items = list(index) if isinstance(index, tuple) else [index]
    taken = sum(_dims(item) for item in items)
    dim = 0
    tensors: list[Any] = []
    for position, item in enumerate(items):
        x, dim = _one(trace, itself, x, dim, item, taken, items[position + 1 :], tensors)
    while tensors and tensors[-1] is None:
        tensors.pop()
    return x, tensors


def _dims(item: Any) -> int:
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and str(item.dtype) in MASKS:  # type: ignore[attr-defined]
        return item.dim()  # type: ignore[attr-defined,no-any-return]
    return 1


def _one(trace: Any, itself: Any, x: Any, dim: int, item: Any, taken: int, rest: list[Any],
         tensors: list[Any]) -> tuple[Any, int]:  # fmt: skip
    if item is Ellipsis:
        skipped = x.dim() - dim - sum(_dims(other) for other in rest)
        tensors += [None] * skipped
        return x, dim + skipped
    if item is None:
        tensors.append(None)
        return trace.operator("unsqueeze", lambda x, d: x.unsqueeze(d), (x, dim), {}), dim + 1
    if isinstance(item, slice):
        tensors.append(None)
        return _sliced(trace, itself, x, dim, item), dim + 1
    if isinstance(item, (int, Tensor)) and not isinstance(item, bool) and _is_number(item):
        return trace.operator(
            "select", lambda x, d, i: itself(x, (*[slice(None)] * dim, int(i))), (x, dim, item), {}
        ), dim
    tensors.append(_index_tensor(trace, item, x))
    return x, dim + _dims(item)


def _is_number(item: Any) -> bool:
    if isinstance(item, Tensor):
        return item.dim() == 0 and _whole(item)  # type: ignore[attr-defined,no-any-return]
    return True


def _sliced(trace: Any, itself: Any, x: Any, dim: int, item: slice) -> Any:
    start = 0 if item.start is None else item.start
    stop = END if item.stop is None else item.stop
    step = 1 if item.step is None else item.step
    if dim and item == slice(None):
        return x
    plain = slice(*(None if part is None else int(part)
                    for part in (item.start, item.stop, item.step)))  # fmt: skip
    return trace.operator("slice", lambda *_: itself(x, (*[slice(None)] * dim, plain)),
                          (x, dim, start, stop, step), {})  # fmt: skip


def _index_tensor(trace: Any, item: Any, x: Tensor) -> Tensor:
    if isinstance(item, Tensor):
        return item
    with trace.paused():
        made: Any = tensor(item)
        kept = made.clone()
    trace.know(made, trace.graph.constant(made, T.TENSOR))
    return trace.operator("to", lambda *_: kept, (made, CPU, made.dtype, False, False, None), {})  # type: ignore[no-any-return]
