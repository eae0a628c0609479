"""What users see of what a node keeps: `grad_fn._saved_self`, `grad_fn._raw_saved_self`.

The first is the tensor (or the plain value) under its name in the row; the second a `SavedTensor`,
which can be given a pair of hooks after the fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from flambeau._core.layout import contiguous_strides
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd.graph import (
    FREED,
    Node,
    Packed,
    PackedResult,
    SavedOfView,
    SavedResult,
    alias_of,
    check_result,
    modified_error,
    short_title,
    tools,
    unpack,
)
from flambeau.autograd.history import edge_of
from flambeau.autograd.versions import cut_off, version_of

FREED_BEFORE = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values "
    "of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to "
    "access saved variables after calling backward."
)
HOOKED = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
    "pair of hooks is allowed at a time."
)
NOTHING = "Calling register_hooks on a saved tensor with value None is forbidden"
ARGUMENTS = (
    "register_hooks(): incompatible function arguments. The following argument types are "
    "supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, "
    "arg1: collections.abc.Callable) -> None\n\nInvoked with: "
)


class SavedTensor:
    """One tensor that a node keeps. Nodes make these.

    >>> import flambeau as torch
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> saved = (x ** 2).grad_fn._raw_saved_self
    >>> type(saved).__name__
    'SavedTensor'
    """

    __slots__ = ("_node", "_place")
    _node: Node
    _place: tuple[int, int | None]

    def __init__(self, *args: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    def register_hooks(self, *hooks: Any) -> None:
        """Let the tensor go through `pack_hook` now, and through `unpack_hook` when it is used."""
        if len(hooks) != 2 or not all(callable(hook) for hook in hooks):
            raise TypeError(ARGUMENTS + ", ".join(map(repr, (self, *hooks))))
        node, (position, index) = self._node, self._place
        if node.saved is None:
            raise RuntimeError(FREED_BEFORE)
        field, versions = node.saved[position], node.versions[position]
        kept: Any
        if index is None:
            kept = _packed(node, field, versions, hooks)
        else:
            kept = list(field)
            kept[index] = _packed(node, field[index], versions[index], hooks)
        node.saved = (*node.saved[:position], kept, *node.saved[position + 1 :])


def _packed(node: Node, kept: Any, version: int, hooks: Sequence[Any]) -> Packed:
    """What a node keeps, after it went through hooks."""
    if kept is None:
        raise RuntimeError(NOTHING)
    if isinstance(kept, Packed):
        raise RuntimeError(HOOKED)
    if isinstance(kept, SavedResult):
        check_result(kept, version, short_title(node))
        return PackedResult(kept.data, kept.counter, kept.index, *hooks)
    if version_of(kept) != version:
        raise modified_error(kept, version)
    packed = Packed(alias_of(kept), *hooks)
    packed.edge = edge_of(kept)
    return packed


def saved_tensor(node: Node, position: int, index: int | None = None) -> SavedTensor:
    """The public face of what a node keeps at a position (of a list, at an index of it)."""
    found = SavedTensor.__new__(SavedTensor)
    found._node, found._place = node, (position, index)
    return found


class OfInput(NamedTuple):
    """A fact that follows from an input that may learn: its size, that of one dim, or its strides
    (none of an input that does not); `absent` where it was not given."""

    name: str
    dim: int | None = None
    strides: bool = False
    absent: Any = None


def sizes(*names: str) -> dict[str, OfInput]:
    """The facts "x_sym_sizes" of inputs x."""
    return {f"{name}_sym_sizes": OfInput(name) for name in names}


def layouts(*names: str) -> dict[str, OfInput]:
    """The facts "x_sym_sizes" and "x_sym_strides" of inputs x."""
    strides = {f"{name}_sym_strides": OfInput(name, strides=True) for name in names}
    return {**sizes(*names), **strides}


def fields(tensors: Sequence[str], lists: set[str], values: Sequence[str], types: dict[str, str],
           facts: dict[str, Any], names: dict[str, str | None],
           inputs: Sequence[str]) -> dict[str, property]:  # fmt: skip
    """The properties of a class of nodes that keeps these tensors and plain values, of the types of
    a schema; `facts` hold for all its nodes, unless one was told something else, and follow from
    one of the `inputs` or a plain value. `names`: what is shown by another name, or not (None)."""
    found: dict[str, property] = {}
    for position, name in enumerate(tensors):
        read, raw = (_list, _raw_list) if name in lists else (_tensor, saved_tensor)
        found[f"_saved_{names.get(name, name)}"] = property(_at(read, position))
        found[f"_raw_saved_{names.get(name, name)}"] = property(_at(raw, position))
    for position, name in enumerate(values):
        of_tensor = name.endswith("_shape") and name not in types
        shown = names.get(name, name.removesuffix("_shape") + "_sym_sizes" if of_tensor else name)
        read = partial(_shown, types.get(name, ""))
        found.setdefault(f"_saved_{shown}", property(_at(read, position)))
    for name, fact in facts.items():
        if isinstance(fact, OfInput):
            saved = tensors.index(fact.name) if fact.name in tensors else None
            read_fact: Any = partial(_of_input, fact, inputs.index(fact.name), saved)
        elif callable(fact):
            read_fact = partial(_of_values, fact, values)
        else:
            read_fact = partial(_told, name, fact)
        found[f"_saved_{name}"] = property(read_fact)
    for hidden in ("_saved_None", "_raw_saved_None"):
        found.pop(hidden, None)
    return found


def _of_input(fact: OfInput, slot: int, saved: int | None, node: Any) -> Any:
    """A fact about the input of a node at a slot, which it may have saved at a position."""
    if node.metas[slot] is None:
        return fact.absent
    shape: tuple[int, ...] = node.metas[slot][0]
    if fact.strides and node.edges[slot] is None:
        return ()
    if fact.strides:
        kept = None if saved is None or node.saved is None else unpack(node, saved)
        return contiguous_strides(shape) if kept is None else tuple(kept.stride())
    return shape if fact.dim is None else shape[fact.dim]


def _of_values(fact: Callable[..., Any], values: Sequence[str], node: Any) -> Any:
    """A fact that follows from the plain values of a node, which it is given by their names."""
    return fact(dict(zip(values, node.values, strict=True)))


def tell(node: Any, name: str, value: Any) -> None:
    """Note on a node what one of its facts is."""
    node.__dict__[name] = value


def _told(name: str, fact: Any, node: Node) -> Any:
    return node.__dict__.get(name, fact)


def _at(read: Callable[..., Any], position: int) -> Callable[[Node], Any]:
    return lambda node: read(node, position)


def _shown(kind: str, node: Any, position: int) -> Any:
    """A plain value as torch shows it: integers as ones of 64 bits without a sign, an integer in
    the place of a list as a list of its length."""
    value = node.values[position]
    if isinstance(value, list):
        value = tuple(value)
    if kind == "float" and isinstance(value, int):
        return float(value)
    if not kind.startswith("int"):
        return value
    repeats = REPEATED.match(kind)
    if repeats and isinstance(value, int):
        value = (value,) * int(repeats[1])
    return tuple(map(_unsigned, value)) if isinstance(value, tuple) else _unsigned(value)


REPEATED = re.compile(r"int\[(\d+)\]")


def _unsigned(value: Any) -> Any:
    return value % 2**64 if type(value) is int else value


def _tensor(node: Node, position: int) -> Tensor | None:
    """A saved tensor; of a number, which many nodes share, a copy. What was None is so once all is
    freed."""
    if node.saved is None and node.versions[position] is None:
        return None
    kept = node.saved and node.saved[position]
    if isinstance(kept, Tensor) and id(kept) in cut_off.numbers:
        return kept  # which formulas are refused
    found: Tensor | None = unpack(node, position)
    if type(kept) in (SavedResult, SavedOfView) and found is not None:
        found._counter = kept.counter  # so that `_version` tells of writes to the memory
    if found is None or not tools.is_number(found):
        return found
    return wrap(found._data.copy())


def _list(node: Node, position: int) -> tuple[Any, ...]:
    """A saved list of tensors."""
    if node.saved is None:
        raise RuntimeError(FREED)
    count = len(node.saved[position] or ())
    single = Node()
    single.saved, single.versions = node.saved[position], node.versions[position]
    return tuple(_tensor(single, index) for index in range(count))


def _raw_list(node: Node, position: int) -> tuple[Any, ...]:
    if node.saved is None:
        raise RuntimeError(FREED)
    return tuple(saved_tensor(node, position, i) for i in range(len(node.saved[position] or ())))
