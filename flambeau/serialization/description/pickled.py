"""Following a pickle without making anything: every class stays a name, every tensor an entry.

The interpreter is the one that loads. Only its table of globals differs: rebuild functions give
entries, and what a safe load would refuse becomes an `Instance` instead of an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pickle import UnpicklingError
from typing import Any

from flambeau._core import dtype as dt
from flambeau.serialization.allowed import STANDARD_ROWS, AllowedGlobals, modern_name
from flambeau.serialization.checks import brief, expect
from flambeau.serialization.description.entries import (
    Instance,
    Named,
    StorageEntry,
    TensorEntry,
)
from flambeau.serialization.homes import public_packages
from flambeau.serialization.opcodes import HANDLERS
from flambeau.serialization.rebuild import REBUILD_ROWS, SAFE_ROWS, ParameterName
from flambeau.serialization.storages import LARGEST, StorageType
from flambeau.serialization.unpickler import SafeUnpickler

MAX_DIMS = 64
KNOWN_ROWS = {**STANDARD_ROWS, **SAFE_ROWS}


class DescribedGlobals(AllowedGlobals):
    """The table of globals of a description; `refused` collects what no safe load accepts."""

    def __init__(self) -> None:
        self.refused: dict[str, Named] = {}
        self._rows = {id(row.value): row for row in KNOWN_ROWS.values()}

    def find(self, module: str, name: str, *, old_names: bool) -> Any:
        """The value of a known row, or the name itself."""
        if old_names:
            module, name = modern_name(module, name)
        for package in (module, *public_packages(module)):
            row = KNOWN_ROWS.get(f"{package}.{name}")
            if row is not None:
                return row.value
        full_name = f"{module}.{name}"
        return self.refused.setdefault(full_name, Named(full_name))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """An entry for a tensor, the real thing for plain containers, else an Instance."""
        describe = DESCRIBED.get(id(function))
        if describe is not None:
            return _guarded(describe, arguments)
        row = self._rows.get(id(function))
        if row is not None and row.call is not None and id(function) not in REBUILT:
            return _guarded(row.call, arguments)
        return Instance(_name(function), arguments)

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """An entry for a Parameter, else an Instance."""
        if cls is ParameterName and not keywords:
            return _guarded(_new_parameter, arguments)
        return Instance(_name(cls), (*arguments, keywords) if keywords else arguments)

    def build(self, instance: Any, state: Any) -> None:
        """Note the state; that of tensors and plain containers is left out."""
        if isinstance(instance, Instance):
            instance.state = state


def _append(machine: SafeUnpickler) -> None:
    _extend(machine, [machine.pop()])


def _appends(machine: SafeUnpickler) -> None:
    _extend(machine, machine.pop_mark())


def _extend(machine: SafeUnpickler, items: list[Any]) -> None:
    """An object of an unknown class, say a subclass of list, takes items too."""
    target = machine.top()
    if isinstance(target, Instance):
        target.items.extend(items)
        return
    _again(machine, b"e", items)


def _set_item(machine: SafeUnpickler) -> None:
    value = machine.pop()
    _set_pairs(machine, [machine.pop(), value])


def _set_items(machine: SafeUnpickler) -> None:
    _set_pairs(machine, machine.pop_mark())


def _set_pairs(machine: SafeUnpickler, items: list[Any]) -> None:
    target = machine.top()
    if isinstance(target, Instance):
        target.pairs.extend(zip(items[::2], items[1::2], strict=False))
        return
    _again(machine, b"u", items)


def _again(machine: SafeUnpickler, code: bytes, items: list[Any]) -> None:
    """Hand the items back and let the ordinary handler take them."""
    machine.marks.append(len(machine.stack))
    machine.stack.extend(items)
    HANDLERS[code[0]](machine)


class DescribingUnpickler(SafeUnpickler):
    """Follows one pickle; objects of unknown classes take items as lists and dicts do."""

    handlers = {
        **HANDLERS,
        b"a"[0]: _append,
        b"e"[0]: _appends,
        b"s"[0]: _set_item,
        b"u"[0]: _set_items,
    }


def storage_entry(identity: tuple[Any, ...], size_of: Callable[[str], int] | None) -> Any:
    """The entry for a persistent id; `size_of` gives the bytes that the file has for a key.

    Without it, the entry has as many bytes as the pickle says.
    """
    word = _text(identity[0]) if identity else None
    if word == "module":  # legacy files wrap classes, to compare their source
        return identity[1] if len(identity) > 1 else None
    expect(word == "storage" and len(identity) >= 5, f"{brief(word)} is no id of a storage")
    kind, key, location, numel = identity[1], *map(_text, identity[2:4]), identity[4]
    expect(type(key) is str and type(location) is str, "key and location of a storage are texts")
    is_count = type(numel) is int and 0 <= numel <= LARGEST
    expect(is_count, f"a storage cannot have {brief(numel)} elements")
    dtype, itemsize = _name(kind), None
    if isinstance(kind, StorageType):
        dtype, itemsize = kind.dtype.name, kind.dtype.itemsize
    nbytes = numel * (itemsize or 1) if size_of is None else size_of(key)
    return StorageEntry(key, dtype, itemsize, numel, location, nbytes)


def _text(value: Any) -> Any:
    return value.decode("latin1") if type(value) is bytes else value


def _name(value: Any) -> str:
    if isinstance(value, Named):
        return value.name
    for full_name, row in KNOWN_ROWS.items():
        if row.value is value:
            return full_name
    return f"a {type(value).__name__}"


def _guarded(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UnpicklingError(f"arguments in the pickle do not fit: {error}") from error


# ---- rebuild functions


def _counts(values: Any, what: str) -> tuple[int, ...]:
    expect(isinstance(values, tuple | list), f"the {what} of a tensor must be a tuple")
    expect(len(values) <= MAX_DIMS, f"a tensor cannot have {len(values)} dims")
    for value in values:
        is_count = type(value) is int and 0 <= value <= LARGEST
        expect(is_count, f"{brief(value)} is no {what} of a tensor")
    return tuple(values)


def _tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any = False, *rest: Any
) -> TensorEntry:
    expect(isinstance(storage, StorageEntry), f"a tensor needs a storage, got {brief(storage)}")
    entry = _typed_tensor(storage, offset, size, stride, requires_grad)
    return replace(entry, dtype=storage.dtype, itemsize=storage.itemsize or 0)


def _tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any,
    *rest: Any,
) -> TensorEntry:  # fmt: skip
    entry = _typed_tensor(storage, offset, size, stride, requires_grad)
    name, itemsize = _dtype(dtype)
    return replace(entry, dtype=name, itemsize=itemsize)


def _typed_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any
) -> TensorEntry:
    shape, steps = _counts(size, "size"), _counts(stride, "stride")
    (start,) = _counts((offset,), "offset")
    expect(len(shape) == len(steps), f"sizes {shape} and strides {steps} differ in length")
    is_storage = storage is None or isinstance(storage, StorageEntry)
    expect(is_storage, f"a tensor needs a storage, got {brief(storage)}")
    return TensorEntry("", 0, shape, steps, start, storage, requires_grad is True)


def _meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> TensorEntry:
    name, itemsize = _dtype(dtype)
    entry = _typed_tensor(None, 0, size, stride, requires_grad)
    return replace(entry, dtype=name, itemsize=itemsize)


def _dtype(value: Any) -> tuple[str, int]:
    if isinstance(value, dt.dtype):
        return value.name, value.itemsize
    expect(isinstance(value, Named), f"{brief(value)} is no dtype")
    return value.name, 0


def _parameter(data: Any, requires_grad: Any, *rest: Any) -> TensorEntry:
    expect(isinstance(data, TensorEntry), f"a Parameter needs a tensor, got {brief(data)}")
    return replace(data, kind="Parameter", requires_grad=requires_grad is True)


def _new_parameter(data: Any, requires_grad: Any = True) -> TensorEntry:
    return _parameter(data, requires_grad)


def _from_type(function: Any, new_type: Any, arguments: Any, state: Any) -> Any:
    describe = DESCRIBED.get(id(function))
    is_known = describe is not None and describe is not _from_type
    expect(is_known and type(arguments) is tuple, "the call that rebuilds a tensor is malformed")
    entry = describe(*arguments)  # type: ignore[misc]
    if new_type is KNOWN_ROWS["torch.Tensor"].value:
        return entry
    return replace(entry, kind=_name(new_type))


DESCRIBERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor_v3,
    "torch._utils._rebuild_parameter": _parameter,
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch._utils._rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._tensor._rebuild_from_type_v2": _from_type,
}
DESCRIBED = {id(REBUILD_ROWS[name].value): function for name, function in DESCRIBERS.items()}
REBUILT = frozenset(
    id(row.value) for name, row in SAFE_ROWS.items() if name.startswith("torch._utils.")
)
