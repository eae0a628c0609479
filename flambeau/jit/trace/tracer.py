"""A trace: the graph of what operators do to example inputs.

Each public operator that the program calls becomes a node; while it runs, what it is made of is
not looked at. Functions without an operator of their own in the table (`F.normalize`) run openly,
and what they call is recorded.
"""

from __future__ import annotations

import linecache
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from flambeau._core.device import CPU, device
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.errors import TracerWarning
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.ir.source import Source, SourceRange
from flambeau.jit.ir.values import enumeration_number, facts_of
from flambeau.jit.operators import table
from flambeau.jit.trace.arguments import choose
from flambeau.jit.trace.scopes import Scope
from flambeau.jit.trace.sizes import TracedInt
from flambeau.jit.trace.words import WORDS

RECIPES = frozenset(
    f"{__name__.rpartition('.')[0]}.{name}"
    for name in ("recipes", "recipes_of_functional", "recipes_of_nn", "indexing", "sizes")
)
"""Modules whose variables are no variables of the program."""


class Running(threading.local):
    """The trace that runs in this thread."""

    trace: Trace | None = None


running = Running()


class Trace:
    """A trace that is being made.

    listening: whether the next operator is recorded; not while one runs.
    """

    def __init__(self, root: Any = None, strict: bool = True) -> None:
        self.graph = Graph()
        self.values: dict[int, tuple[Any, Value]] = {}  # by identity; what is known stays alive
        self.listening = True
        self.strict = strict
        self.frame: FrameType | None = None  # where the program calls
        self.scopes: list[Scope] = []
        if root is not None:
            self.scopes.append(Scope(root, self.graph.block))

    # ---- what is called while the trace runs

    def handle(self, name: str, itself: Callable[..., Any], args: tuple[Any, ...],
               kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """A public function is called."""
        if not self.listening or running.trace is not self:
            return itself(*args, **kwargs)
        from flambeau.jit.trace import recipes_of_functional, recipes_of_nn, regions  # noqa: F401

        saved, frame = self.frame, sys._getframe(2)
        if str(frame.f_globals.get("__name__", "")) not in RECIPES:
            self.frame = frame
        try:
            return regions.call(self, name.removeprefix("Tensor."), itself, args, kwargs)
        finally:
            self.frame = saved

    def operator(self, aten: str, itself: Callable[..., Any], args: Sequence[Any],
                 kwargs: dict[str, Any], *, given: Sequence[Any] | None = None,
                 named: dict[str, Any] | None = None, overload: str | None = None
                 ) -> Any:  # fmt: skip
        """Record `aten::<aten>` and run the function that does the same.

        given, named: the operator's arguments, where they are not those of the function.
        overload: its name, where the arguments do not tell.
        """
        into = kwargs.get("out")
        if into is not None:
            return self._into(aten, itself, args, kwargs, into)
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        given = args if given is None else given
        found = choose(aten, given, kwargs if named is None else named, overload)
        if found is None:
            return self.openly(aten, itself, args, kwargs)
        node = self.emit(*found)
        result = self.silently(itself, *args, **kwargs)
        self.attach(node, result)
        return result

    def _into(self, aten: str, itself: Any, args: Any, kwargs: Any, into: Any) -> Any:
        """With `out=`: the result is computed, then written."""
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        result = self.operator(aten, itself, args, kwargs)
        with self.paused():
            if into.shape != result.shape:
                into.resize_(result.shape)
        return self.operator("copy_", lambda a, b: a.copy_(b), (into, result), {})

    def silently(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run something without recording it."""
        with self.paused():
            return function(*args, **kwargs)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing."""
        before, self.listening = self.listening, False
        try:
            yield
        finally:
            self.listening = before

    def openly(self, name: str, itself: Callable[..., Any], args: Sequence[Any],
               kwargs: dict[str, Any]) -> Any:  # fmt: skip
        """Run a function whose operators are recorded one by one."""
        result = itself(*args, **kwargs)
        if any(self.knows(tensor) for tensor in tensors_in((args, kwargs))):
            for tensor in tensors_in(result):
                if not self.knows(tensor) and not self._is_state(tensor):
                    raise NotImplementedInFlambeau(f"torch.jit.trace through '{name}'")
        return result

    def warn(self, what: str) -> None:
        """Warn that something of Python's cannot be followed."""
        frame = self.frame or sys._getframe(1)
        while frame.f_back is not None and _inside_package(frame):
            frame = frame.f_back
        warnings.warn_explicit(WORDS[what], TracerWarning, frame.f_code.co_filename,
                               frame.f_lineno)  # fmt: skip

    # ---- nodes

    def emit(self, schema: FunctionSchema, values: Sequence[Any]) -> Node:
        """A node for an operator, not yet with results."""
        with self.graph.at(self.place()):
            factory = not any(holds_tensors(p.type) for p in schema.arguments)
            values = [
                False if value is REQUIRED and parameter.name == "pin_memory" else value
                for parameter, value in zip(schema.arguments, values, strict=True)
            ]
            inputs = [
                self.argument(parameter, value, factory)
                for parameter, value in zip(schema.arguments, values, strict=True)
            ]
            node = self.graph.insert(schema.name, inputs, ())
        node.schema = schema
        return node

    def attach(self, node: Node, result: Any) -> None:
        """Give a node its results: tensors are known by them from now on."""
        returns = node.schema.returns
        results = [result] if len(returns) == 1 else list(result)
        for parameter, item in zip(returns, results, strict=True):
            value = node.add_output(parameter.type)
            if isinstance(parameter.type, T.ListType) and isinstance(item, (list, tuple)):
                self._unpack(value, parameter.type.element, item)
            elif isinstance(item, Tensor):
                self.know(item, value)

    def _unpack(self, value: Value, element: T.Type, items: Sequence[Any]) -> None:
        node = self.graph.insert("prim::ListUnpack", [value], [element] * len(items))
        for output, item in zip(node.outputs, items, strict=True):
            if isinstance(item, Tensor):
                self.know(item, output)

    def insert(self, kind: str, inputs: Sequence[Value], types: Sequence[T.Type] = (T.TENSOR,),
               **attributes: Any) -> Node:  # fmt: skip
        """A node that comes from where the program is now."""
        with self.graph.at(self.place()):
            return self.graph.insert(kind, inputs, types, **attributes)

    def place(self) -> SourceRange | None:
        """The program's line."""
        if self.frame is None:
            return None
        filename, line = self.frame.f_code.co_filename, self.frame.f_lineno
        text = linecache.getline(filename, line).rstrip("\n")
        return SourceRange(Source(text, filename, line), 0, len(text))

    # ---- arguments

    def argument(self, parameter: Parameter, value: Any, factory: bool = False) -> Value:
        """The value of the graph that an argument is."""
        wanted = parameter.type
        if value is REQUIRED:
            value = parameter.default
        if factory and value is None:
            value = {"device": CPU, "pin_memory": False}.get(parameter.name)
        if isinstance(wanted, T.OptionalType):
            if value is None:
                return self.graph.constant(None, T.NONE)
            wanted = wanted.inner
        if isinstance(wanted, T.ListType):
            return self._list(wanted, value, parameter.length)
        return self._single(wanted, value)

    def _list(self, wanted: T.ListType, items: Any, length: int | None) -> Value:
        if not isinstance(items, (list, tuple)):
            items = [items] * (length or 1)
        inputs = [self.argument(Parameter("", wanted.element), item) for item in items]
        return self.graph.insert("prim::ListConstruct", inputs, [wanted]).output

    def _single(self, wanted: T.Type, value: Any) -> Value:
        if wanted == T.TENSOR:
            if isinstance(value, Tensor):
                return self.value_of(value)
            if isinstance(value, TracedInt):
                return self.value_of(value.tensor)
            number = np.array(value, np.int64 if type(value) is int else None)
            return self.graph.constant(wrap(number), T.TENSOR)
        if isinstance(value, (TracedInt, Tensor)):
            return self._number_of(wanted, value.tensor if isinstance(value, TracedInt) else value)
        if wanted == T.INT and enumeration_number(value) is not None:
            value = enumeration_number(value)
        if wanted == T.FLOAT and isinstance(value, int):
            value = float(value)
        if wanted == T.DEVICE:
            value = device(value)
        if wanted == T.GENERATOR:
            return self.graph.constant(None, T.NONE)
        return self.graph.constant(value)

    def _number_of(self, wanted: T.Type, tensor: Tensor) -> Value:
        """A number that a tensor holds, taken right after the tensor is made."""
        kind: dict[T.Type, str] = {
            T.INT: "aten::Int", T.FLOAT: "aten::Float", T.BOOL: "aten::Bool"
        }  # fmt: skip
        source = self.value_of(tensor)
        with self.graph.inserting(source.node.after if source.node else self.graph.point):  # type: ignore[arg-type]
            node = self.graph.insert(kind.get(wanted, "aten::ScalarImplicit"), [source], [wanted])
        node.schema = next(
            s for s in table.overloads(node.kind)
            if s.arguments[0].type == T.TENSOR and len(s.arguments) == 1
        )  # fmt: skip
        return node.output

    # ---- what is known

    def know(self, tensor: Any, value: Value) -> None:
        """A tensor (or a module, a future) is what a value stands for."""
        if value.type == T.TENSOR and isinstance(tensor, Tensor):
            with self.paused():
                value.type = facts_of(tensor)
        self.values[id(tensor)] = (tensor, value)

    def knows(self, tensor: Any) -> bool:
        """Whether the graph made it, or was given it."""
        return id(tensor) in self.values

    def value_of(self, tensor: Tensor) -> Value:
        """The value of a tensor: computed here, of a module, or else a constant."""
        known = self.values.get(id(tensor))
        if known is not None:
            value = known[1]
            if not value.name:
                value.name = self._variable(tensor)
            return value
        for scope in reversed(self.scopes):
            found = scope.state(tensor)
            if found is not None:
                return found
        if tensor.requires_grad:  # type: ignore[attr-defined]
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                "parameter or input, or detaching the gradient\nTensor:\n" + repr(tensor)
            )
        value = self.graph.constant(tensor, T.TENSOR)
        self.know(tensor, value)
        return value

    def name(self, tensors: dict[str, Any], *, as_parameter: bool = False) -> None:
        """Call tensors that have no name yet what a function's parameters are called, unless the
        program has a variable for them.
        """
        for name, tensor in tensors.items():
            known = self.values.get(id(tensor)) if isinstance(tensor, Tensor) else None
            if known is not None and not known[1].name:
                variable = "" if as_parameter else self._variable(tensor)
                known[1].name = variable or name

    def _is_state(self, tensor: Tensor) -> bool:
        return any(scope.holds(tensor) for scope in self.scopes)

    def _variable(self, tensor: Any) -> str:
        """What the program calls a tensor where it uses it."""
        if self.frame is None:
            return ""
        for name, value in self.frame.f_locals.items():
            if value is tensor:
                return "" if name == "self" or not name.isidentifier() else name
        return ""


def holds_tensors(type: T.Type) -> bool:
    """Whether tensors are among what a value of a type is made of."""
    return type == T.TENSOR or any(holds_tensors(part) for part in type.parts)


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors in nested lists, tuples and dictionaries."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for item in values:
            yield from tensors_in(item)
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))


def _inside_package(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == __name__.partition(".")[0]
