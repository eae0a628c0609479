"""Modules as programs see them: attributes, calls with hooks, containers that loops unroll."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from flambeau.jit import markers
from flambeau.jit.frontend.constants import constant_sugar
from flambeau.jit.frontend.simple_value import FunctionValue, MethodValue, SimpleValue
from flambeau.jit.frontend.sugar import SugaredValue, sugar_of
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.modules.concrete import ConcreteType
from flambeau.jit.operators.matching import Argument

NO_INTEGER = (
    "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential "
    "indexing is only supported with integer literals. For example, 'i = 4; self.layers[i](x)' "
    "will fail because i is not a literal. Enumeration is supported, e.g. 'for index, v in "
    "enumerate(self): out = v(inp)'"
)
NO_TEXT = (
    "Unable to extract string literal index. ModuleDict indexing is only supported with string "
    "literals. For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a literal. "
    "Enumeration of ModuleDict is supported, e.g. 'for k, v in self.items(): out = v(inp)'"
)
NOT_ITERABLE = (
    "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be used as an iterable"
)
PARTS = frozenset(
    "children named_children modules named_modules parameters named_parameters buffers "
    "named_buffers items keys values".split()
)
"""Methods of modules and containers that list what they hold."""


class ModuleValue(SugaredValue):
    """A module. concrete: what is known of it, or the interface that it is declared to have."""

    kind = "module"

    def __init__(self, value: Value, concrete: ConcreteType | T.InterfaceType) -> None:
        self.value = value
        self.concrete = concrete

    @property
    def _container(self) -> str:
        return getattr(self.concrete, "kind", "")

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        return self.value

    # ---- attributes

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        found = self._find(graph, where, name)
        if found is not None:
            return found
        concrete = self.concrete
        hint = concrete.failed.get(name, "") if isinstance(concrete, ConcreteType) else ""
        owner = self.value.type.annotation.rpartition(".")[2]
        raise ScriptError(f"Module '{owner}' has no attribute '{name}' {hint}", where)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        return self._find(graph, where, name) is not None

    def set_attr(self, graph: Graph, where: SourceRange, name: str, value: Value) -> None:
        SimpleValue(self.value).set_attr(graph, where, name, value)

    def _find(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue | None:
        concrete = self.concrete
        type = self.value.type
        if not isinstance(concrete, ConcreteType):
            return MethodValue(self.value, name) if name in concrete.methods else None
        assert isinstance(type, T.ClassType)
        if name in concrete.modules:
            return self._submodule(graph, where, name)
        if name in concrete.overloads:
            return MethodValue(self.value, *concrete.overloads[name])
        if name in type.attributes or name in type.methods or name in type.properties:
            return SimpleValue(self.value).attr(graph, where, name)
        if name in PARTS:
            parts = self._parts(graph, where, name)
            if parts is not None:
                return _Listing(parts)
        if name in concrete.constants:
            value = constant_sugar(concrete.constants[name]).as_value(graph, where)
            return SimpleValue(value)
        if name in concrete.functions:
            return sugar_of(concrete.functions[name], where)
        return self._from_class(graph, where, name)

    def _submodule(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        assert isinstance(self.concrete, ConcreteType)
        inner = self.concrete.modules[name]
        type = getattr(inner, "type", inner)
        node = graph.insert("prim::GetAttr", (self.value,), (type,), name=name)
        node.output.name = f"_{name}" if name.isdigit() else name
        return ModuleValue(node.output, inner)

    def _from_class(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue | None:
        """A method that is compiled now, or another attribute of the Python class."""
        from flambeau.jit.modules.methods import compile_method, method_source

        owner = self.concrete.python  # type: ignore[union-attr]
        if owner is None:
            return None
        static = inspect.getattr_static(owner, name, None)
        if isinstance(static, property) and markers.should_drop(static.fget):
            raise ScriptError(f"Cannot access unused property '{name}'", where)
        if isinstance(static, staticmethod):
            return sugar_of(static.__func__, where)
        if static is not None and not inspect.isfunction(static):
            return None
        if static is not None and markers.is_ignored(static):
            from flambeau.jit.modules.python_calls import IgnoredMethod

            return IgnoredMethod(self.value, static)
        found = method_source(owner, name)
        if found is None:
            return None
        compile_method(self.concrete, found)  # type: ignore[arg-type]
        return MethodValue(self.value, name)

    # ---- calls

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        type = self.value.type
        before = getattr(type, "forward_pre_hooks", [])
        after = getattr(type, "forward_hooks", [])
        given = None
        if before or after:
            with graph.at(where):
                given = _tuple_of(graph, [a.in_graph(graph).value for a in args])
        for hook in before:
            given = self._pre_hook(graph, where, hook, given)
        if before:
            parts = SimpleValue(given).as_tuple(graph, where)  # type: ignore[arg-type]
            args = [Argument(part.as_value(graph, where), where) for part in parts]
        forward = self.attr(graph, where, "forward")
        called = forward.call(graph, where, args, kwargs, n_binders)
        if not after:
            return called
        result = called.as_value(graph, where)
        for hook in after:
            arguments = [Argument(v, where) for v in (self.value, given, result)]
            changed = FunctionValue(hook).call(graph, where, arguments, [])
            value = changed.as_value(graph, where)
            result = result if value.type == T.NONE else value
        return SimpleValue(result)

    def _pre_hook(self, graph: Graph, where: SourceRange, hook: Any, given: Any) -> Value:
        arguments = [Argument(self.value, where), Argument(given, where)]
        value = FunctionValue(hook).call(graph, where, arguments, []).as_value(graph, where)
        if value.type == T.NONE:
            return given  # type: ignore[no-any-return]
        if isinstance(value.type, T.TupleType):
            return value
        with graph.at(where):
            return _tuple_of(graph, [value])

    # ---- what containers hold

    def _entries(self, graph: Graph, where: SourceRange) -> list[tuple[str, SugaredValue]]:
        """The submodules, or the parameters of a list of parameters, with their names."""
        if self._container.startswith("parameter"):
            return self._tensors(graph, where, "parameter")
        modules = self.concrete.modules  # type: ignore[union-attr]
        return [(name, self._submodule(graph, where, name)) for name in modules]

    def _tensors(self, graph: Graph, where: SourceRange, kind: str
                 ) -> list[tuple[str, SugaredValue]]:  # fmt: skip
        owner = SimpleValue(self.value)
        attributes = self.value.type.attributes.values()  # type: ignore[attr-defined]
        names = [a.name for a in attributes if a.kind == kind and a.type == T.TENSOR]
        return [(name, owner.attr(graph, where, name)) for name in names]

    def _parts(self, graph: Graph, where: SourceRange, method: str) -> SugaredValue | None:
        """What `method()` lists; None if a module of this kind has no such method."""
        if method in ("items", "keys", "values"):
            if not self._container.endswith("dict"):
                return None
            entries = self._entries(graph, where)
            method = {"items": "named_entries", "keys": "names", "values": "entries"}[method]
        elif method.endswith("children"):
            entries = self._entries(graph, where) if not self._container.startswith("p") else []
        elif method.endswith("modules"):
            entries = list(self._tree(graph, where, ""))
        else:
            entries = []
            kind = method.removeprefix("named_").removesuffix("s")
            for prefix, module in self._tree(graph, where, ""):
                start = f"{prefix}." if prefix else ""
                pairs = module._tensors(graph, where, kind)
                entries += [(start + name, value) for name, value in pairs]
        return _listed(graph, where, entries, method)

    def _tree(self, graph: Graph, where: SourceRange, prefix: str
              ) -> list[tuple[str, ModuleValue]]:  # fmt: skip
        """This module and all below it, with their paths."""
        found = [(prefix, self)]
        if not isinstance(self.concrete, ConcreteType):
            return found
        for name in self.concrete.modules:
            inner = self._submodule(graph, where, name)
            assert isinstance(inner, ModuleValue)
            found += inner._tree(graph, where, f"{prefix}.{name}" if prefix else name)
        return found

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        kind = self._container
        if not kind:
            if "__iter__" in getattr(self.value.type, "methods", {}):
                return SimpleValue(self.value).iterate(graph, where)
            raise ScriptError(NOT_ITERABLE, where)
        entries = self._entries(graph, where)
        return _listed(graph, where, entries, "names" if kind.endswith("dict") else "entries")

    def as_tuple(self, graph: Graph, where: SourceRange, size: int | None = None
                 ) -> list[SugaredValue]:  # fmt: skip
        if not self._container:
            raise ScriptError(NOT_ITERABLE, where)
        return self.iterate(graph, where).as_tuple(graph, where, size)

    def as_tuple_value(self, graph: Graph, where: SourceRange) -> SugaredValue:
        if not self._container.endswith("list"):
            raise ScriptError("Only ModuleList and Sequential can be used as a tuple", where)
        return self.iterate(graph, where)

    def static_length(self) -> int | None:
        if not self._container:
            return None
        if self._container.startswith("parameter"):
            attributes = self.value.type.attributes.values()  # type: ignore[attr-defined]
            return sum(a.kind == "parameter" for a in attributes)
        return len(self.concrete.modules)  # type: ignore[union-attr]

    def length(self, graph: Graph, where: SourceRange) -> Value:
        size = self.static_length()
        if size is None:
            raise ScriptError(NOT_ITERABLE, where)
        with graph.at(where):
            return graph.constant(size)

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: T.Type | None = None
                ) -> SugaredValue:  # fmt: skip
        kind = self._container
        if not kind or "__getitem__" in getattr(self.value.type, "methods", {}):
            return self._own_getitem(graph, where, index)
        if isinstance(wanted, T.InterfaceType):
            return self._choose(graph, where, index, wanted)
        if kind.endswith("list"):
            if not index.is_constant or index.type != T.INT:
                raise ScriptError(NO_INTEGER, where)
            parts = self.iterate(graph, where).as_tuple(graph, where)
            if not -len(parts) <= index.constant < len(parts):
                raise ScriptError(
                    f"Index {index.constant} out of range of length {len(parts)}", where
                )
            return parts[index.constant]
        if not index.is_constant or index.type != T.STRING:
            raise ScriptError(NO_TEXT, where)
        for name, entry in self._entries(graph, where):
            if name == index.constant:
                return entry
        raise ScriptError(f"Key Error, {index.constant}", where)

    def _own_getitem(self, graph: Graph, where: SourceRange, index: Value) -> SugaredValue:
        method = self._find(graph, where, "__getitem__")
        if method is None:
            raise ScriptError(
                "Only ModuleList, Sequential, ModuleDict, ParameterList, and ParameterDict Modules "
                "are subscriptable", where
            )  # fmt: skip
        return method.call(graph, where, [Argument(index, where)], [])

    def _choose(self, graph: Graph, where: SourceRange, index: Value, wanted: T.InterfaceType
                ) -> SugaredValue:  # fmt: skip
        """One of the modules by an index that is not known now; all must have the interface."""
        for name, inner in self.concrete.modules.items():  # type: ignore[union-attr]
            from flambeau.jit.modules.recursive import compile_interface_methods

            compile_interface_methods(inner, wanted)
            if not inner.type.is_subtype_of(wanted):
                raise ScriptError(
                    f"Attribute {name} is not of annotated type {wanted.annotation}: "
                    f"Method on class '{inner.type.annotation}' is not compatible with interface "
                    f"'{wanted.annotation}'", where
                )  # fmt: skip
        with graph.at(where):
            node = graph.insert("prim::ModuleContainerIndex", (self.value, index), (wanted,))
        return SimpleValue(node.output)


class _Listing(SugaredValue):
    """`module.children`, to be called."""

    kind = "module dict method"

    def __init__(self, parts: SugaredValue) -> None:
        self.parts = parts

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        if args or kwargs:
            raise ScriptError(f"{self.kind} does not take arguments", where)
        return self.parts


def _listed(graph: Graph, where: SourceRange, entries: Sequence[tuple[str, SugaredValue]],
            method: str) -> SugaredValue:  # fmt: skip
    """The values, the names, or pairs of both, as `method` says."""
    from flambeau.jit.frontend.iteration import SugaredTuple

    if not method.startswith("name"):
        return SugaredTuple([value for _, value in entries])
    with graph.at(where):
        names = [SimpleValue(graph.constant(name)) for name, _ in entries]
    if method == "names":
        return SugaredTuple(names)
    pairs = zip(names, entries, strict=True)
    return SugaredTuple([SugaredTuple([name, value]) for name, (_, value) in pairs])


def _tuple_of(graph: Graph, values: Sequence[Value]) -> Value:
    type = T.TupleType(tuple(value.type for value in values))
    return graph.insert("prim::TupleConstruct", values, (type,)).output
