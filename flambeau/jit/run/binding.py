"""From a call in Python to runtime values, and back: what is passed is checked by the schema.

Lists and dictionaries are copied on the way in and out, as in torch: a program does not change what
its caller holds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from flambeau._core.device import device
from flambeau._tensor.symbolic_numbers import SymInt, is_symbolic
from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.values import ScriptObject, enumeration_number, named_tuple, type_of
from flambeau.jit.operators.matching import spelled
from flambeau.jit.operators.type_variables import shown


class CannotCast(Exception):
    """Why a Python value is not of a type."""


def _failure(value: Any) -> CannotCast:
    return CannotCast(
        f"Unable to cast Python instance of type {type(value)} to C++ type '?' (#define "
        "PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )


# ---- from Python

Convert = Callable[[Any], Any]


def _tensor(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value
    raise CannotCast(f"Unable to cast {value} to Tensor")


def _int(value: Any) -> int:
    if type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise _failure(value)
        return value
    if isinstance(value, SymInt):
        return value  # type: ignore[return-value]
    number = enumeration_number(value)
    if number is not None:
        return number
    if isinstance(value, Tensor) and (value._data.size != 1 or value._data.dtype.kind not in "iu"):
        raise _failure(value)
    if hasattr(value, "__index__"):
        return value.__index__()  # type: ignore[no-any-return]
    raise _failure(value)


def _float(value: Any) -> float:
    if type(value) is float or is_symbolic(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, complex) or not (
        hasattr(value, "__float__") or hasattr(value, "__index__")
    ):
        raise _failure(value)
    try:
        return float(value)
    except ValueError:  # a tensor of several elements
        raise _failure(value) from None


def _complex(value: Any) -> complex:
    if isinstance(value, (int, float, complex)) or hasattr(value, "__complex__"):
        return complex(value)
    raise _failure(value)


def _number(value: Any) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, Tensor) and value.ndim == 0:
        return value._data.item()
    raise _failure(value)


def _bool(value: Any) -> bool:
    if value is None or hasattr(value, "__bool__"):
        return bool(value)
    raise _failure(value)


def _of_class(*classes: type) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(value, classes):
            return value
        raise _failure(value)

    return convert


def _device(value: Any) -> device:
    if isinstance(value, (device, str, int)) and not isinstance(value, bool):
        return value if isinstance(value, device) else device(value)
    raise _failure(value)


def _any(value: Any) -> Any:
    """A value of any type, with its own lists."""
    if isinstance(value, list):
        return [_any(item) for item in value]
    if isinstance(value, dict):
        return {key: _any(item) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(map(_any, value))
    number = enumeration_number(value)
    if number is not None:
        return number
    try:
        type_of(value)
    except TypeError:
        raise _failure(value) from None
    return value


SIMPLE: dict[T.Type, Convert] = {
    T.TENSOR: _tensor, T.INT: _int, T.FLOAT: _float, T.COMPLEX: _complex, T.NUMBER: _number,
    T.BOOL: _bool, T.STRING: _of_class(str), T.NONE: _of_class(type(None)),
    T.DEVICE: _device, T.ANY: _any, T.ANY_LIST: _any, T.ANY_TUPLE: _any,
}  # fmt: skip


@cache
def converter(type: T.Type) -> Convert:
    """What makes runtime values of a type; it raises CannotCast for others."""
    found = SIMPLE.get(type)
    if found is not None:
        return found
    if isinstance(type, T.OptionalType):
        inner = converter(type.inner)
        return lambda value: None if value is None else inner(value)
    if isinstance(type, T.ListType):
        return _list_converter(type)
    if isinstance(type, T.DictType):
        return _dict_converter(type)
    if isinstance(type, T.TupleType):
        return _tuple_converter(type)
    if isinstance(type, T.UnionType):
        return _union_converter(type)
    return _object_converter(type)


def _list_converter(type: T.ListType) -> Convert:
    element = converter(type.element)

    def convert(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise _failure(value)
        try:
            return [element(item) for item in value]
        except CannotCast:
            if type.element in (T.INT, T.FLOAT, T.BOOL):
                raise _failure(value) from None
            raise

    return convert


def _dict_converter(type: T.DictType) -> Convert:
    key, element = converter(type.key), converter(type.value)

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _failure(value)
        return {key(k): element(v) for k, v in value.items()}

    return convert


def _tuple_converter(type: T.TupleType) -> Convert:
    elements = [converter(part) for part in type.elements]
    build = named_tuple(type)._make if type.qualified_name else tuple

    def convert(value: Any) -> Any:
        if not isinstance(value, (tuple, list)):
            raise CannotCast("Object is not a tuple")
        if len(value) != len(elements):
            raise CannotCast(
                f"Object {value!r} had a different number of elements than type {type.annotation}"
            )
        return build([part(item) for part, item in zip(elements, value, strict=True)])

    return convert


def _union_converter(type: T.UnionType) -> Convert:
    def convert(value: Any) -> Any:
        exact = [m for m in type.members if _is_exactly(value, m)]
        for member in exact or type.members:
            try:
                return converter(member)(value)
            except CannotCast:
                continue
        raise CannotCast(
            f"Expected a member of {type.annotation} but instead found type {_named(value)}"
        )

    return convert


def _is_exactly(value: Any, type: T.Type) -> bool:
    try:
        return type_of(value) == type
    except TypeError:
        return False


def _member(value: Any, type: T.EnumType) -> Any:
    """A member of an enumeration; that of an archive is known by its name."""
    if isinstance(value, type.python):
        return value
    kind = builtin_type(value)
    home = "" if kind.__module__ == "__main__" else f"{kind.__module__}."
    if isinstance(value, enum.Enum) and f"__torch__.{home}{kind.__name__}" == type.qualified_name:
        return type.python[value.name]
    raise _failure(value)


def _object_converter(type: T.Type) -> Convert:
    def convert(value: Any) -> Any:
        if isinstance(type, T.EnumType):
            return _member(value, type)
        declared = getattr(value, "_type", None)
        if isinstance(declared, T.Type):
            if declared.is_subtype_of(type):
                return value
            raise CannotCast(f"Object of type {declared} is not an instance of {type}")
        if isinstance(type, T.ClassType) and isinstance(type.python, builtin_type):
            return _scripted(value, type)
        if isinstance(type, T.FutureType) and hasattr(value, "wait"):
            return value
        if type == T.GENERATOR and hasattr(value, "manual_seed"):
            return value
        raise _failure(value)

    return convert


builtin_type = type


def _scripted(value: Any, type: T.ClassType) -> ScriptObject:
    """An object of a Python class as one of the script class that was made of it."""
    if not isinstance(value, type.python):
        raise _failure(value)
    made = ScriptObject(type)
    for name, attribute in type.attributes.items():
        if not hasattr(value, name):
            raise CannotCast(f"Object {value!r} is missing attribute {name}")
        made.__dict__[name] = converter(attribute.type)(getattr(value, name))
    return made


# ---- to Python


@cache
def needs_copy(type: T.Type) -> bool:
    """Whether values of a type hold lists or dictionaries, or may."""
    if isinstance(type, (T.ListType, T.DictType)) or type in (T.ANY, T.ANY_LIST, T.ANY_TUPLE):
        return True
    if isinstance(type, T.ClassType):
        return not type.is_module and type.python is not None
    return any(map(needs_copy, type.parts))


def outward(value: Any) -> Any:
    """The value with lists and dictionaries of its own."""
    if isinstance(value, list):
        return [outward(item) for item in value]
    if isinstance(value, dict):
        return {key: outward(item) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(map(outward, value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(outward, value))
    if isinstance(value, ScriptObject) and value._type.python is not None:
        return as_python(value)
    return value


def as_python(value: ScriptObject) -> Any:
    """An object of a program as one of the Python class that its class was made of."""
    made = object.__new__(value._type.python)
    for name in value._type.attributes:
        made.__dict__[name] = outward(value.__dict__[name])
    return made


# ---- arguments


class Binder:
    """Arguments of one function, in the order of its schema."""

    def __init__(self, name: str, schema: FunctionSchema) -> None:
        self.name = name
        self.schema = schema
        self.converters = [converter(p.type) for p in schema.arguments]
        self.names = [p.name for p in schema.arguments]

    @property
    def declaration(self) -> str:
        """The schema as errors show it."""
        return spelled(self.schema)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The runtime values; RuntimeError in torch's words if the call does not fit."""
        arguments = self.schema.arguments
        if len(args) > len(arguments):
            raise RuntimeError(
                f"{self.name}() expected at most {len(arguments)} argument(s) but received "
                f"{len(args) + len(kwargs)} argument(s). Declaration: {self.declaration}"
            )
        values = [self.one(index, value) for index, value in enumerate(args)]
        used = 0
        for index in range(len(args), len(arguments)):
            parameter = arguments[index]
            if parameter.name in kwargs:
                values.append(self.one(index, kwargs[parameter.name]))
                used += 1
            elif parameter.default is not REQUIRED:
                values.append(outward(parameter.default))
            else:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{parameter.name}'. "
                    f"Declaration: {self.declaration}"
                )
        if used < len(kwargs):
            raise self.keyword_error(len(args), kwargs)
        return values

    def keyword_error(self, positional: int, kwargs: dict[str, Any]) -> RuntimeError:
        """Which keyword is unknown or given twice."""
        for name in kwargs:
            if name not in self.names:
                return RuntimeError(
                    f"Unknown keyword argument '{name}' for operator '{self.name}'. "
                    f"Schema: {self.declaration}"
                )
        twice = next(name for name in self.names[:positional] if name in kwargs)
        return RuntimeError(
            f"Argument '{twice}' specified both as positional and keyword argument. "
            f"Schema: {self.declaration}"
        )

    def one(self, index: int, value: Any) -> Any:
        """One argument."""
        try:
            return self.converters[index](value)
        except CannotCast as reason:
            parameter = self.schema.arguments[index]
            raise RuntimeError(self.mismatch(parameter, index, value, str(reason))) from None

    def mismatch(self, parameter: Parameter, index: int, value: Any, reason: str) -> str:
        """Torch's text for a value of the wrong type."""
        inferred = (
            f"Inferred '{parameter.name}' to be of type 'Tensor' because it was not annotated with "
            "an explicit type.\n" if getattr(parameter.type, "inferred", False) else ""
        )  # fmt: skip
        return (
            f"{self.name}() Expected a value of type '{shown(parameter.type)}' for argument "
            f"'{parameter.name}' but instead found type '{_named(value)}'.\n{inferred}"
            f"Position: {index}\nValue: {value!r}\nDeclaration: {self.declaration}\n"
            f"Cast error details: {reason}"
        )


def _named(value: Any) -> str:
    return type(value).__name__
