"""`torch.fx.proxy`: what stands for a value while a program is traced."""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from flambeau._core.layout import Size
from flambeau._tensor.tensor import Tensor
from flambeau.fx.code_generation import INFIX
from flambeau.fx.graph import Graph, reflectable_magic_methods
from flambeau.fx.immutable_collections import immutable_dict, immutable_list
from flambeau.fx.node import Node, base_types, map_aggregate

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError"]


class TraceError(ValueError):
    """A program does what cannot be traced: it asks for a value, which is not there yet."""


class TracerBase:
    """What turns calls into nodes of `self.graph`."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node to the graph."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node for a call with any arguments, and return what stands for its value."""
        made_args, made_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, made_args, made_kwargs, name, type_expr)
        proxy = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        if self.record_stack_traces:
            node.stack_trace = _user_frames()
        return proxy

    def create_arg(self, a: Any) -> Any:
        """A value of the program as an argument of a node.

        Raises:
            NotImplementedError: values of this type cannot be arguments.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and not isinstance(a, Size):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            return immutable_dict({self._key(k): self.create_arg(v) for k, v in a.items()})
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if is_dataclass(a) and not isinstance(a, type):
            parts = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), parts)
        if isinstance(a, (*base_types, Size)) or a is ... or _is_constant(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        """A key of a dict, in which no value of the program may be."""
        made = self.create_arg(key)

        def check(leaf: Any) -> Any:
            if isinstance(leaf, Node):
                raise RuntimeError(
                    "Keys for dictionaries used as an argument cannot contain a Node. "
                    f"Got key: {key}"
                )
            return leaf

        return map_aggregate(made, check)

    def to_bool(self, obj: Proxy) -> bool:
        """The truth of a value, which nobody knows yet. Raises TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """The items of a value, whose number is known only if the program unpacks it.

        Raises:
            TraceError: it is not known.
        """
        frame = sys._getframe(2)
        count = _unpacked(frame)
        if count is not None:
            return (obj[i] for i in range(count))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a value, as it is handed on by `**`."""
        return Attribute(obj, "keys")()


def _is_constant(value: Any) -> bool:
    """Devices, layouts, functions, types and the like stand in generated code by name."""
    from flambeau._core.device import device
    from flambeau._core.layout import layout, memory_format

    constants = (device, layout, memory_format, type)
    return isinstance(value, constants) or inspect.isroutine(value)


def _unpacked(frame: Any) -> int | None:
    """How many items the statement that runs in a frame unpacks, if it unpacks."""
    for step in dis.get_instructions(frame.f_code):
        if step.offset == frame.f_lasti:
            return step.argval if step.opname == "UNPACK_SEQUENCE" else None
    return None


def _user_frames() -> str:
    import traceback

    frames = traceback.extract_stack()
    own = [frame for frame in frames if "/flambeau/" not in frame.filename.replace("\\", "/")]
    return "".join(traceback.StackSummary.from_list(own).format())


NO_ATTRIBUTES = frozenset((
    "tracer", "node", "root", "attr", "_node",  # of an object that is half made
    "_data", "_storage", "_version_counter", "__array__", "__array_interface__",
    "__array_struct__", "__fx_create_arg__", "__index__",
))  # fmt: skip
"""By these, operators and NumPy tell tensors and arrays: a proxy is neither."""


class GraphAppendingTracer(TracerBase):
    """Adds to a graph that is there already."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value; whatever is done with it becomes a node."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in NO_ATTRIBUTES:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{k}'", name=k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        import copy

        made.__dict__.update({key: copy.deepcopy(v, memo) for key, v in self.__dict__.items()})
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """The keys of a value, as it is handed on by `**`."""
        return self.tracer.keys(self)

    def __contains__(self, item: Any) -> bool:
        return self.tracer.to_bool(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracer = _tracer_in((args, kwargs))
        name = getattr(orig_method, "__name__", "")
        is_function = getattr(sys.modules["flambeau"], name, None) is orig_method
        if getattr(Tensor, name, None) is orig_method and not is_function:
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _tracer_in(arguments: Any) -> TracerBase:
    found: list[TracerBase] = []
    map_aggregate(
        arguments, lambda leaf: found.append(leaf.tracer) if isinstance(leaf, Proxy) else None
    )
    return found[0]


class Attribute(Proxy):
    """`x.name`: a node only when it is used as a value; a call of it is one of a method."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            args = (self.root, self.attr)
            self._node = self.tracer.create_proxy("call_function", getattr, args, {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter: its shape and number of dims are known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"


for _name in ("shape", "ndim", "size", "dim", "numel", "nelement"):
    setattr(ParameterProxy, _name, property(operator.attrgetter(f"param.{_name}")))


def _operation(name: str) -> Callable[..., Any]:
    target = getattr(operator, name)

    def method(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    return method


def _reflected(name: str) -> Callable[..., Any]:
    target = getattr(operator, f"{name}_" if name in {"and", "or"} else name)

    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    return method


for _name in (*INFIX, "abs"):
    setattr(Proxy, f"__{_name.strip('_')}__", _operation(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name}__", _reflected(_name))
Proxy.__rmatmul__ = _reflected("matmul")  # type: ignore[attr-defined]
