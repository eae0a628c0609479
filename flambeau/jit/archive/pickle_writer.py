"""Values of programs as pickles, in the words that libtorch's reader understands.

Types are needed beside values: a list of ints is written as a call of `build_intlist`, other
lists and dictionaries as a call of `restore_type_tag` with their type as text, objects by the names
of their classes (protocol 2 of Python's pickle format).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from flambeau._tensor.tensor import Tensor, storage_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.values import type_of
from flambeau.serialization.pickler import SavedStorages
from flambeau.serialization.reducers import StorageReference
from flambeau.serialization.storages import STORAGE_TYPES

PROTO, STOP, MARK = b"\x80\x02", b".", b"("
TUPLES = {0: b")", 1: b"\x85", 2: b"\x86", 3: b"\x87"}
BUILDERS: dict[T.Type, str] = {
    T.INT: "build_intlist", T.FLOAT: "build_doublelist", T.BOOL: "build_boollist",
    T.TENSOR: "build_tensorlist",
}  # fmt: skip
"""Functions of `torch.jit._pickle` that stand for lists of a type."""
INT64 = (-(2**63), 2**63 - 1)


class ValuePickler:
    """Writes one pickle. `storages` collects what tensors lie in; `class_name` gives the qualified
    name under which a class is in the archive.
    """

    def __init__(self, storages: SavedStorages, class_name: Callable[[T.Type], str]) -> None:
        self.storages = storages
        self.class_name = class_name
        self.parts: list[bytes] = []
        self.memo: dict[Any, int] = {}
        self.kept: list[Any] = []  # what the memo knows by identity stays alive

    def dump(self, value: Any, type: T.Type) -> bytes:
        """The pickle of a value."""
        self.parts = [PROTO]
        self._value(value, type)
        self.parts.append(STOP)
        return b"".join(self.parts)

    # ---- small words

    def _emit(self, *parts: bytes) -> None:
        self.parts += parts

    def _remember(self, key: Any) -> None:
        slot = self.memo[key] = len(self.memo)
        self._emit(b"q" + bytes((slot,)) if slot < 256 else b"r" + struct.pack("<I", slot))

    def _recall(self, key: Any) -> bool:
        slot = self.memo.get(key)
        if slot is None:
            return False
        self._emit(b"h" + bytes((slot,)) if slot < 256 else b"j" + struct.pack("<I", slot))
        return True

    def _global(self, name: str) -> None:
        """`torch.jit._pickle.build_intlist`."""
        if not self._recall(("global", name)):
            module, _, last = name.rpartition(".")
            self._emit(f"c{module}\n{last}\n".encode())
            self._remember(("global", name))

    def _text(self, text: str) -> None:
        if not self._recall(("text", text)):
            raw = text.encode("utf-8", "surrogatepass")
            self._emit(b"X", struct.pack("<I", len(raw)), raw)
            self._remember(("text", text))

    def _int(self, value: int) -> None:
        if 0 <= value < 256:
            self._emit(b"K", bytes((value,)))
        elif 0 <= value < 65536:
            self._emit(b"M", struct.pack("<H", value))
        elif -(2**31) <= value < 2**31:
            self._emit(b"J", struct.pack("<i", value))
        elif INT64[0] <= value <= INT64[1]:
            self._emit(b"\x8a\x08", struct.pack("<q", value))
        else:
            raise RuntimeError(f"integer {value} is out of the range of 64 bits")

    def _tuple(self, count: int, items: Iterable[Callable[[], None]]) -> None:
        code = TUPLES.get(count)
        if code is None:
            self._emit(MARK)
        for item in items:
            item()
        self._emit(b"t" if code is None else code)

    # ---- values

    def _value(self, value: Any, type: T.Type) -> None:
        if isinstance(type, (T.OptionalType, T.UnionType)) or type in (T.ANY, T.NUMBER):
            type = self._held(value, type)
        write = self.SIMPLE.get(type)
        if write is not None:
            write(self, value)
        elif isinstance(type, T.ListType):
            self._list(value, type)
        elif isinstance(type, T.DictType):
            self._dict(value, type)
        elif isinstance(type, T.TupleType):
            pairs = list(zip(value, type.elements, strict=True))
            self._tuple(len(pairs), [partial(self._value, v, t) for v, t in pairs])
        elif isinstance(type, T.EnumType):
            self._global(self.class_name(type))
            self._value(value.value, type.value_type)
            self._emit(b"R")
        elif isinstance(type, (T.ClassType, T.InterfaceType)):
            self._object(value)
        else:
            raise RuntimeError(f"Cannot serialize a value of type {type.annotation}")

    def _held(self, value: Any, type: T.Type) -> T.Type:
        """The member of a union that a value is of."""
        if value is None:
            return T.NONE
        if isinstance(type, T.OptionalType):
            return type.inner
        found = type_of(value)
        for member in T.alternatives(type):
            if found.is_subtype_of(member):
                return member
        return found

    def _float(self, value: float) -> None:
        self._emit(b"G", struct.pack(">d", value))

    def _complex(self, value: complex) -> None:
        self._global("builtins.complex")
        self._float(value.real)
        self._float(value.imag)
        self._emit(TUPLES[2], b"R")

    def _device(self, value: Any) -> None:
        self._global("torch.device")
        self._text(str(value))
        self._emit(TUPLES[1], b"R")

    SIMPLE: dict[T.Type, Callable[[ValuePickler, Any], None]] = {
        T.NONE: lambda self, value: self._emit(b"N"),
        T.BOOL: lambda self, value: self._emit(b"\x88" if value else b"\x89"),
        T.INT: lambda self, value: self._int(int(value)),
        T.FLOAT: lambda self, value: self._float(value),
        T.COMPLEX: lambda self, value: self._complex(value),
        T.STRING: lambda self, value: self._text(value),
        T.TENSOR: lambda self, value: self._tensor(value),
        T.DEVICE: lambda self, value: self._device(value),
    }

    def _list(self, items: list[Any], type: T.ListType) -> None:
        if self._recall(("list", id(items))):
            return
        builder = BUILDERS.get(type.element)
        self._global(f"torch.jit._pickle.{builder or 'restore_type_tag'}")
        self._emit(*([MARK] if builder else []), b"]", MARK)
        for item in items:
            self._value(item, type.element)
        self._emit(b"e")
        if builder:
            self._emit(b"t", b"R")
        else:
            self._tagged(type)
        self.kept.append(items)
        self._remember(("list", id(items)))

    def _dict(self, items: dict[Any, Any], type: T.DictType) -> None:
        if self._recall(("dict", id(items))):
            return
        self._global("torch.jit._pickle.restore_type_tag")
        self._emit(b"}", MARK)
        for key, value in items.items():
            self._value(key, type.key)
            self._value(value, type.value)
        self._emit(b"u")
        self._tagged(type)
        self.kept.append(items)
        self._remember(("dict", id(items)))

    def _tagged(self, type: T.Type) -> None:
        self._text(type.annotation)
        self._emit(TUPLES[2], b"R")

    def _object(self, value: Any) -> None:
        if self._recall(("object", id(value))):
            return
        type = value._type
        self._global(self.class_name(type))
        self._emit(b")", b"\x81")
        getter = type.methods.get("__getstate__")
        if getter is not None:
            self._value(getter(value), getter.schema.returns[0].type)
        else:
            self._emit(b"}", MARK)
            for name, attribute in type.attributes.items():
                self._text(name)
                self._value(attribute_value(value, attribute), attribute.type)
            self._emit(b"u")
        self._emit(b"b")
        self.kept.append(value)
        self._remember(("object", id(value)))

    # ---- tensors

    def _tensor(self, tensor: Tensor | None) -> None:
        if tensor is None:
            self._emit(b"N")
            return
        if self._recall(("tensor", id(tensor))):
            return
        plain: Any = tensor.detach()  # type: ignore[attr-defined]
        if plain.is_sparse:
            raise RuntimeError("Cannot serialize sparse tensors in a TorchScript archive")
        self._global("torch._utils._rebuild_tensor_v2")
        self._emit(MARK)
        self._storage(tensor)
        self._int(tensor.storage_offset())  # type: ignore[attr-defined]
        for sizes in (plain.shape, plain.stride()):
            self._emit(MARK)
            for size in sizes:
                self._int(size)
            self._emit(b"t")
        self._emit(b"\x88" if tensor.requires_grad else b"\x89")  # type: ignore[attr-defined]
        self._global("collections.OrderedDict")
        self._emit(TUPLES[0], b"R", b"t", b"R")
        self.kept.append(tensor)
        self._remember(("tensor", id(tensor)))

    def _storage(self, tensor: Any) -> None:
        reference = StorageReference(storage_of(tensor), STORAGE_TYPES[tensor.dtype])
        _, _, key, location, numel = self.storages.identity(reference)[:5]
        if self._recall(("storage", key)):  # libtorch shares what is named once
            return
        self._emit(MARK)
        self._text("storage")
        self._global(f"torch.{STORAGE_TYPES[tensor.dtype].name}")
        self._text(key)
        self._text(location)
        self._int(numel)
        self._emit(b"t", b"Q")
        self._remember(("storage", key))


def attribute_value(owner: Any, attribute: T.Attribute) -> Any:
    """What an object or module holds under an attribute's name."""
    tables = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}
    table = tables.get(attribute.kind)
    fields = owner.__dict__
    return fields[attribute.name] if table is None else fields[table][attribute.name]
