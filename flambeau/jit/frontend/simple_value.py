"""Values of the graph as what expressions stand for: their attributes, methods and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from flambeau._core.dtype import CASTS
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators import table
from flambeau.jit.operators.builtin_functions import builtin_functions
from flambeau.jit.operators.conversions import unpack
from flambeau.jit.operators.matching import Argument, emit_builtin
from flambeau.jit.operators.type_variables import Mismatch, bind, evaluate

PRIM = (
    "dtype device grad data is_cuda is_cpu is_xla is_xpu is_sparse is_sparse_csr is_mkldnn "
    "is_quantized is_vulkan is_ipu is_meta is_mps is_nested requires_grad layout is_maia is_mtia "
    "itemsize nbytes name"
).split()
ATEN = "is_leaf mT mH real imag retains_grad shape T H ndim".split()
PROPERTIES: dict[T.Type, dict[str, str]] = {
    T.TENSOR: {
        **{name: f"prim::{name}" for name in PRIM},
        **{name: f"aten::{name}" for name in ATEN},
    },
    T.DEVICE: {"type": "prim::type", "index": "prim::index"},
}
"""Attributes of simple types, and the operators that read them."""


def shown(type: T.Type) -> str:
    """A type as errors write it."""
    if getattr(type, "inferred", False):
        return "Tensor (inferred)"
    return type.annotation


class SimpleValue(SugaredValue):
    """A value of the graph."""

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def kind(self) -> str:  # type: ignore[override]
        """What errors call it."""
        return f"value of type '{shown(self.type)}'"

    @property
    def type(self) -> T.Type:
        """The type of the value."""
        return self.value.type

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        return self.value

    # ---- attributes

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        found = self._attr(graph, where, name)
        if found is not None:
            return found
        message = f"'{shown(self.type)}' object has no attribute or method '{name}'."
        if isinstance(self.type, T.ClassType):
            message += " Did you forget to initialize an attribute in __init__()?"
        raise ScriptError(message, where)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        type = self.type
        if isinstance(type, T.ClassType):
            known = (type.attributes, type.methods, type.constants, type.properties)
            return any(name in names for names in known)
        if isinstance(type, T.TupleType):
            if name in type.fields:
                return True
            raise (
                ScriptError("hasattr is only supported for named tuples", where)
                if not (type.fields)
                else ScriptError(f"no field {name}", where)
            )
        if type == T.TENSOR:
            return self._attr(graph, where, name) is not None
        raise ScriptError(f"hasattr's first argument must be an object, got {shown(type)}", where)

    def _attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue | None:
        type = self.type
        if type == T.TENSOR and name in CAST_DTYPES:
            return TensorCast(self.value, CAST_DTYPES[name])
        if type in PROPERTIES and name in PROPERTIES[type]:
            kind = PROPERTIES[type][name]
            return SimpleValue(emit_builtin(graph, None, kind, [Argument(self.value)]))
        if isinstance(type, T.TupleType) and name in type.fields:
            return SimpleValue(tuple_index(graph, where, self.value, type.fields.index(name)))
        if isinstance(type, (T.ClassType, T.InterfaceType)):
            return self._member(graph, where, name)
        if isinstance(type, T.EnumType) and name in ("name", "value"):
            return SimpleValue(enum_part(graph, where, self.value, name))
        return self._method(graph, where, name)

    def _member(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue | None:
        type = self.type
        assert isinstance(type, (T.ClassType, T.InterfaceType))
        if name in type.methods:
            return MethodValue(self.value, name)
        if isinstance(type, T.InterfaceType):
            return None
        if name in type.attributes:
            wanted = type.attributes[name].type
            node = graph.insert("prim::GetAttr", (self.value,), (wanted,), name=name)
            node.output.name = f"_{name}" if name.isdigit() else name
            return SimpleValue(node.output)
        if name in type.constants:
            from flambeau.jit.frontend.constants import constant_sugar

            return constant_sugar(type.constants[name])
        if name in type.properties:
            getter = MethodValue(self.value, type.properties[name][0].name)
            return getter.call(graph, where, [], [], 1)
        return None

    def _method(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue | None:
        """A method that is an operator whose `self` takes the value."""
        kind = "aten::to" if name == "type" and self.type == T.TENSOR else f"aten::{name}"
        if self.type == T.TENSOR and name in ("tolist", "__getitem__"):
            from flambeau.jit.frontend.special_forms import SpecialForm

            return SpecialForm(name, self.value)
        if takes_self(kind, self.type):
            return BuiltinFunction(kind, Argument(self.value, where))
        return None

    def set_attr(self, graph: Graph, where: SourceRange, name: str, value: Value) -> None:
        type = self.type
        if not isinstance(type, T.ClassType):
            raise ScriptError(
                f"Tried to set an attribute: {name} on a non-class: {shown(type)}", where
            )
        setter = type.properties.get(name, (None, None))[1]
        if setter is not None:
            MethodValue(self.value, setter.name).call(graph, where, [Argument(value, where)], [])
            return
        if name not in type.attributes:
            _refuse_new(where, type, name)
        from flambeau.jit.frontend.environment import convert_at

        wanted = type.attributes[name].type
        converted = convert_at(graph, where, wanted, value)
        if not converted.type.is_subtype_of(wanted):
            raise ScriptError(
                f"Wrong type for attribute assignment. Expected {shown(wanted)} but got "
                f"{shown(value.type)}", where
            )  # fmt: skip
        graph.insert("prim::SetAttr", (self.value, converted), (), name=name)

    # ---- calls and elements

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if isinstance(self.type, T.FunctionType):
            return FunctionValue(self.type.function).call(graph, where, args, kwargs, n_binders)
        if isinstance(self.type, (T.ClassType, T.InterfaceType)):
            called = self.attr(graph, where, "__call__")
            return called.call(graph, where, args, kwargs, n_binders)
        return super().call(graph, where, args, kwargs, n_binders)

    def as_tuple(self, graph: Graph, where: SourceRange, size: int | None = None
                 ) -> list[SugaredValue]:  # fmt: skip
        if isinstance(self.type, T.TupleType):
            return [SimpleValue(value) for value in unpack(graph, self.value)]
        if isinstance(self.type, T.ListType):
            if size is None:
                raise ScriptError(
                    "cannot statically infer the expected size of a list in this context", where
                )
            types = (self.type.element,) * size
            node = graph.insert("prim::ListUnpack", (self.value,), types)
            return [SimpleValue(value) for value in node.outputs]
        if self.type == T.ANY_TUPLE:
            raise ScriptError(
                "Provided tuple is not fully defined/refined including its element types, please "
                "provide a value of type like Tuple[int, int]", where
            )  # fmt: skip
        raise ScriptError(f"{shown(self.type)} cannot be used as a tuple", where)

    def as_tuple_value(self, graph: Graph, where: SourceRange) -> SugaredValue:
        return self

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        type = self.type
        if isinstance(type, T.ListType) or type in (T.STRING, T.TENSOR):
            return self
        if isinstance(type, T.DictType):
            return SimpleValue(
                emit_builtin(graph, where, "aten::keys", [Argument(self.value, where)])
            )
        if isinstance(type, T.TupleType):
            from flambeau.jit.frontend.iteration import SugaredTuple

            return SugaredTuple(self.as_tuple(graph, where))
        if isinstance(type, (T.ClassType, T.InterfaceType)) and "__iter__" in type.methods:
            return MethodValue(self.value, "__iter__").call(graph, where, [], [], 1)
        raise ScriptError(f"'{shown(type)}' object is not iterable", where)

    def length(self, graph: Graph, where: SourceRange) -> Value:
        type = self.type
        if isinstance(type, (T.ListType, T.DictType)) or type in (T.STRING, T.TENSOR):
            return emit_builtin(graph, where, "aten::len", [Argument(self.value, where)])
        raise ScriptError(f"'{shown(type)}' object is not iterable", where)

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        type, item = self.type, Argument(index, where)
        self_argument = Argument(self.value, where)
        if isinstance(type, (T.ListType, T.DictType)) or type == T.STRING:
            value = emit_builtin(graph, where, "aten::__getitem__", [self_argument, item])
            return SimpleValue(value)
        if type == T.TENSOR:
            arguments = [self_argument, Argument(0, where), item]
            return SimpleValue(emit_builtin(graph, where, "aten::select", arguments))
        if isinstance(type, T.ClassType) and type.is_module and wanted is not None:
            with graph.at(where):
                node = graph.insert("prim::ModuleContainerIndex", (self.value, index), (wanted,))
            return SimpleValue(node.output)
        if isinstance(type, (T.ClassType, T.InterfaceType)):
            return self.attr(graph, where, "__getitem__").call(graph, where, [item], [], 1)
        raise ScriptError(f"'{shown(type)}' object is not subscriptable", where)


def _refuse_new(where: SourceRange, type: T.ClassType, name: str) -> NoReturn:
    if name in type.properties:
        raise ScriptError(f"Tried to set read-only attribute: {name}", where)
    raise ScriptError(
        f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in "
        "__init__()?", where
    )  # fmt: skip


CAST_DTYPES = {name: element.name for name, element in CASTS.items() if name != "chalf"}
"""Methods of tensors that convert: `x.float()`."""


class TensorCast(SugaredValue):
    """`x.float`, to be called."""

    kind = "builtin cast method"

    def __init__(self, value: Value, dtype: str) -> None:
        self.value = value
        self.dtype = dtype

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        from flambeau.jit.ir.values import DTYPES

        number = Argument(DTYPES.index(self.dtype), where, "dtype")
        rest = [*args, *kwargs]
        if rest:
            raise ScriptError(f"{self.kind} does not take arguments", where)
        value = emit_builtin(graph, where, "aten::to", [Argument(self.value, where)], [number])
        return SimpleValue(value)


def takes_self(kind: str, type: T.Type) -> bool:
    """Whether an operator has a parameter `self` that takes a value of a type."""
    schemas = [*table.overloads(kind), *(f.schema for f in builtin_functions(kind))]
    for schema in schemas:
        for argument in schema.arguments:
            if argument.name != "self":
                continue
            try:
                bound: dict[str, T.Type] = {}
                bind(argument.type, type, bound)
                wanted = evaluate(argument.type, bound)
            except Mismatch:
                break
            if wanted is not None and type.is_subtype_of(wanted):
                return True
    return False


class BuiltinFunction(SugaredValue):
    """An operator, to be called; `self_value`: what it is a method of."""

    kind = "builtin"

    def __init__(self, name: str, self_value: Argument | None = None) -> None:
        self.name = name
        self.self_value = self_value

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        return SimpleValue(emit_builtin(graph, where, self.name, args, kwargs, self.self_value))


class FunctionValue(SugaredValue):
    """A compiled function, to be called."""

    kind = "function"

    def __init__(self, *functions: Function) -> None:
        self.functions = functions

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        function = self.functions[0]
        node = graph.insert("prim::Constant", (), (T.FunctionType(function),), name=function.name)
        return node.output

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        from flambeau.jit.frontend.calls import call_function

        return SimpleValue(call_function(graph, where, self.functions, args, kwargs))


class MethodValue(SugaredValue):
    """A method of a value of the graph, to be called."""

    kind = "method"

    def __init__(self, owner: Value, *names: str) -> None:
        self.owner = owner
        self.names = names

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        from flambeau.jit.frontend.calls import call_method

        return SimpleValue(call_method(graph, where, self.owner, self.names, args, kwargs))


def tuple_index(graph: Graph, where: SourceRange, value: Value, index: int) -> Value:
    """An element of a tuple."""
    assert isinstance(value.type, T.TupleType)
    inputs = (value, graph.constant(index, T.INT))
    return graph.insert("prim::TupleIndex", inputs, (value.type.elements[index],)).output


def enum_part(graph: Graph, where: SourceRange, value: Value, part: str) -> Value:
    """The name or the value of a member of an enumeration."""
    assert isinstance(value.type, T.EnumType)
    kind, type = ("prim::EnumName", T.STRING) if part == "name" else (
        "prim::EnumValue", value.type.value_type)  # fmt: skip
    return graph.insert(kind, (value,), (type,)).output
