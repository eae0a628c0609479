"""Values while a program runs, and their types.

| type | value |
|---|---|
| Tensor, int, float, complex, bool, str, NoneType | Python's, and flambeau's Tensor |
| dtypes, layouts, memory formats | int: torch's numbers (`dtype_number`) |
| Device, Generator | flambeau's |
| List, Dict, Tuple | list, dict, tuple |
| NamedTuple | an instance of `named_tuple(type)` |
| a module | its `RecursiveScriptModule` |
| an object of another class | a `ScriptObject`: attributes are in its `__dict__` |
| Enum | the member of `EnumType.python` |
| Future | `jit.Future` |

A module has parameters, buffers and submodules where every Module has them, in `_parameters`,
`_buffers` and `_modules`; other attributes are in its `__dict__`; `_type` is its class type.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache, partial
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.generator import Generator
from flambeau._core.layout import layout, memory_format
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T

DTYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool "
    "qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 "
    "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()
"""Element types by torch's numbers (c10::ScalarType)."""
ELEMENTS = (
    "Byte Char Short Int Long Half Float Double ComplexHalf ComplexFloat ComplexDouble Bool "
    "QInt8 QUInt8 QInt32 BFloat16 QUInt4x2 QUInt2x4 Bits1x8 Bits2x4 Bits4x2 Bits8 Bits16 "
    "Float8_e5m2 Float8_e4m3fn Float8_e5m2fnuz Float8_e4m3fnuz UInt16 UInt32 UInt64"
).split()
"""What the texts of graphs call them."""
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr",
           "sparse_bsc", "jagged")  # fmt: skip
MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")


class ScriptObject:
    """An object of a script class. Its attributes are in `__dict__`."""

    _type: T.ClassType

    def __init__(self, type: T.ClassType) -> None:
        self.__dict__["_type"] = type

    def __getattr__(self, name: str) -> Any:
        type = self.__dict__["_type"]
        if name in type.properties:
            return type.properties[name][0](self)
        if name in type.methods:
            return partial(type.methods[name], self)
        raise AttributeError(f"'{type}' object has no attribute '{name}'", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<ScriptObject {self._type.qualified_name}>"


@cache
def dtype_number(element: dt.dtype) -> int:
    """Torch's number of an element type: 6 for float32."""
    return DTYPES.index(element.name)


@cache
def dtype_of(number: int) -> dt.dtype:
    """The element type of torch's number; ValueError for one that flambeau does not have."""
    name = DTYPES[number] if 0 <= number < len(DTYPES) else str(number)
    found = dt.BY_NAME.get(name)
    if found is None:
        raise ValueError(f"no element type {name}")
    return found


@cache
def named_tuple(type: T.TupleType) -> Any:
    """The class of the values of a NamedTuple type."""
    name = type.qualified_name.rpartition(".")[2]
    return namedtuple(name, type.fields, defaults=type.defaults)  # noqa: PYI024


def facts_of(tensor: Any) -> T.Type:
    """Tensor, with what the texts of graphs tell: element type, shape, strides, gradients."""
    element = ELEMENTS[dtype_number(tensor.dtype)]
    if tensor.layout is not layout.table["strided"]:
        return T.TENSOR
    told = [str(size) for size in tensor.shape]
    if told:
        told.append(f"strides={[*tensor.stride()]}")
    told += [f"requires_grad={int(tensor.requires_grad)}", f"device={tensor.device}"]
    return T.tensor_with(f"{element}({', '.join(told)})")


def enumeration_number(value: Any) -> int | None:
    """Torch's number of a dtype, layout or memory format; None for anything else."""
    if isinstance(value, dt.dtype):
        return dtype_number(value)
    if isinstance(value, layout):
        return LAYOUTS.index(str(value).removeprefix("torch."))
    if isinstance(value, memory_format):
        return MEMORY_FORMATS.index(str(value).removeprefix("torch."))
    return None


SIMPLE: dict[Any, T.Type] = {
    bool: T.BOOL, int: T.INT, float: T.FLOAT, complex: T.COMPLEX, str: T.STRING,
    type(None): T.NONE, device: T.DEVICE, Generator: T.GENERATOR,
}  # fmt: skip


def type_of(value: Any) -> T.Type:
    """The type of a value as it stands in a running program; TypeError if it has none.

    The elements of a list or dictionary have one type; empty ones hold tensors.
    """
    if isinstance(value, Tensor):
        return T.TENSOR
    found = SIMPLE.get(type(value))
    if found is not None:
        return found
    if isinstance(value, tuple):
        return T.TupleType(tuple(map(type_of, value)))
    if isinstance(value, list):
        return T.ListType(_common(value) if value else T.TENSOR)
    if isinstance(value, dict):
        if not value:
            return T.DictType(T.STRING, T.TENSOR)
        return T.DictType(_common(value), _common(value.values()))
    declared = getattr(value, "_type", None)  # a ScriptObject or a RecursiveScriptModule
    if isinstance(declared, T.Type):
        return declared
    raise TypeError(f"no TorchScript type for an object of type {type(value).__name__}")


def _common(values: Any) -> T.Type:
    found: T.Type | None = None
    for value in values:
        one = type_of(value)
        found = one if found is None else T.unify(found, one)
        if found is None:
            raise TypeError("elements of a list or dictionary have different types")
    assert found is not None
    return found
