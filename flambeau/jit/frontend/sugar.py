"""Sugared values: what an expression of a program stands for, which need not be a value of a graph.

`torch.add`, `range(n)`, `self.layers` and `x.append` have meanings only for the compiler: they can
be called, looped over, or asked for attributes, and become nodes when that happens. A kind of thing
that programs can name is a subclass of `SugaredValue`; what is not overridden is refused with a
message that names `kind`.

`sugar_of` says what a Python object means to programs that reach it through a global name. Packages
that know more kinds of objects add a handler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau.jit.ir.graph import Graph, Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.ir.types import Type
from flambeau.jit.operators.matching import Argument


class SugaredValue:
    """The meaning of an expression. New nodes go to the insertion point of `graph`; `where` is the
    expression that asks, for errors.
    """

    kind = "value"  # what errors call it: "cannot call a module"
    unrolled = False  # whether a loop over it is compiled as one copy of the body for each element

    def as_value(self, graph: Graph, where: SourceRange) -> Value:
        """The value of the graph that it stands for."""
        raise ScriptError(f"{self.kind} cannot be used as a value", where)

    def bound_to(self, value: Value) -> SugaredValue:
        """What the first parameter of a method means, whose value of the graph is known now."""
        return self

    def as_type(self, where: SourceRange) -> Type | None:
        """The type that it names, if it names one."""
        return None

    def attr(self, graph: Graph, where: SourceRange, name: str) -> SugaredValue:
        """What `value.name` means."""
        raise ScriptError(f"attribute lookup is not defined on {self.kind}", where)

    def has_attr(self, graph: Graph, where: SourceRange, name: str) -> bool:
        """Whether `value.name` means something."""
        raise ScriptError(f"attribute lookup is not defined on {self.kind}", where)

    def set_attr(self, graph: Graph, where: SourceRange, name: str, value: Value) -> None:
        """Put `value.name = …` into the graph."""
        raise ScriptError(f"attribute assignment is not defined on {self.kind}", where)

    def call(self, graph: Graph, where: SourceRange, args: Sequence[Argument],
             kwargs: Sequence[Argument], n_binders: int = 1) -> SugaredValue:  # fmt: skip
        """Put `value(*args, **kwargs)` into the graph.

        args, kwargs: values of the graph or constants, and where they stand; kwargs have names.
        n_binders: to how many variables the result will be assigned.
        """
        raise ScriptError(f"cannot call a {self.kind}", where)

    def as_tuple(self, graph: Graph, where: SourceRange, size: int | None = None
                 ) -> list[SugaredValue]:  # fmt: skip
        """The elements, for `a, b = value` and `f(*value)`. size: how many there should be."""
        raise ScriptError(f"{self.kind} cannot be used as a tuple", where)

    def as_tuple_value(self, graph: Graph, where: SourceRange) -> SugaredValue:
        """Its elements as a tuple, which may be sliced."""
        raise ScriptError(f"{self.kind} cannot be used as a tuple", where)

    def iterate(self, graph: Graph, where: SourceRange) -> SugaredValue:
        """What `for x in value` goes through: it has `length` and `getitem`, or is `unrolled`."""
        raise ScriptError(f"{self.kind} cannot be used as an iterable", where)

    def static_length(self) -> int | None:
        """The number of elements, if it is known now."""
        return None

    def length(self, graph: Graph, where: SourceRange) -> Value:
        """The number of elements."""
        raise ScriptError(f"'{self.kind}' object is not iterable", where)

    def getitem(self, graph: Graph, where: SourceRange, index: Value, wanted: Type | None = None
                ) -> SugaredValue:  # fmt: skip
        """What `value[index]` means. wanted: the type that is annotated where it goes to."""
        raise ScriptError(f"'{self.kind}' object is not subscriptable", where)


Handler = Callable[[Any, SourceRange], "SugaredValue | None"]
_handlers: list[Handler] = []


def sugar_handler(handler: Handler) -> Handler:
    """Let a function say what Python objects mean; it returns None for those it does not know.

    Later handlers are asked first.
    """
    _handlers.insert(0, handler)
    return handler


def sugar_of(value: Any, where: SourceRange) -> SugaredValue:
    """What a Python object means to a program that names it.

    Raises:
        ScriptError: programs cannot use it.
    """
    from flambeau.jit.frontend.python_values import PythonValue  # brings the first handlers

    for handler in _handlers:
        found = handler(value, where)
        if found is not None:
            return found
    return PythonValue(value)
