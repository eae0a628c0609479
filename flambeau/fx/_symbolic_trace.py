"""`torch.fx.symbolic_trace`: the graph of a function or module, from one run with proxies."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._tensor.assertions import _assert
from flambeau._tensor.tensor import Tensor
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.patching import Patches, find_proxy, wrap
from flambeau.fx.proxy import ParameterProxy, Proxy, TracerBase
from flambeau.nn.containers import Sequential
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter

__all__ = ["PH", "PHBase", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

_module_call = Module.__call__
_module_getattr = Module.__getattr__


class PHBase:
    """Marks a place among concrete arguments that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()

is_tracing = [0]
"""How many traces run now."""


def is_fx_tracing() -> bool:
    """Whether a program is being traced."""
    return is_tracing[0] > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being traced with proxies: the same here."""
    return is_fx_tracing()


class Tracer(TracerBase):
    """Traces functions and modules; subclass it to decide what becomes one node.

    autowrap_modules: calls of functions of these modules become nodes.
    autowrap_functions: so do calls of these.
    param_shapes_constant: shapes of parameters are numbers, not nodes.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        found = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_function_ids = frozenset(map(id, [*found, *autowrap_functions]))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root: Module
        self.tensor_attrs: dict[Any, str] = {}
        self.submodule_paths: dict[Module, str] | None = None

    # ---- what a subclass may decide

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of a module is one node: of those of torch.nn, except Sequential."""
        ours = m.__module__.startswith(("flambeau.nn.", "torch.nn.", "torch.ao.nn."))
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of a submodule.

        Raises:
            NameError: the root does not hold it.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, held in self.root.named_modules() if held is mod), None)
        if path is None:
            raise NameError(f"module {mod._get_name()} is not installed as a submodule")
        return path

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """A call of a module: one node if it is a leaf, else what it does."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """An attribute of a module: parameters, and buffers if asked for, become nodes."""
        if isinstance(attr_val, Parameter):
            return self._held(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._held(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _held(self, value: Any, named: Any, cache: dict[str, Any]) -> Any:
        for name, held in named:
            if held is value:
                if name not in cache:
                    cache[name] = self._parameter_proxy(name, value)
                return cache[name]
        return value

    def _parameter_proxy(self, name: str, value: Any) -> Proxy:
        if not self.param_shapes_constant:
            return self.create_proxy("get_attr", name, (), {})
        make = lambda node: ParameterProxy(self, node, name, value)  # noqa: E731
        return self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)

    def create_arg(self, a: Any) -> Any:
        """A value as an argument; tensors and modules of the root become `get_attr` nodes."""
        if isinstance(a, Parameter):
            name = _name_of(a, self.root.named_parameters())
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            name = _name_of(a, self.root.named_buffers())
            if name is not None:
                return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _constant(self, value: Any, prefix: str) -> str:
        """The name under which the root keeps a tensor that the program brought along."""
        found = self.tensor_attrs.get(value)
        if found is None:
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            found = self.tensor_attrs[value] = f"{prefix}{number}"
            setattr(self.root, found, value)
        return found

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root has not yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # ---- tracing

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module's forward, or of a function.

        concrete_args: values for arguments that are no inputs then.
        """
        if isinstance(root, Module):
            function = getattr(type(root), self.traced_func_name)
            self.root = root
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = dict(_tensors_of(self.root))
        if not isinstance(function, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        function, inputs = self._inputs(function, isinstance(root, Module), concrete_args or {})
        is_tracing[0] += 1
        try:
            with Patches() as patches:
                self._patch(patches, function)
                result = self.create_arg(function(*inputs))
        finally:
            is_tracing[0] -= 1
            self.submodule_paths = None
        kind = _annotation(function, "return")
        self.create_node("output", "output", (result,), {}, type_expr=kind)
        return self.graph

    def _patch(self, patches: Patches, function: FunctionType) -> None:
        cache: dict[str, Any] = {}

        def get(mod: Module, name: str) -> Any:
            return self.getattr(name, _module_getattr(mod, name), cache)

        def call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _module_call(mod, *args, **kwargs)

            patches.visit(getattr(mod.forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patches.attribute(Module, "__getattr__", get)
        patches.attribute(Module, "__call__", call)
        patches.all_wrapped()
        patches.visit(function.__globals__, self._autowrap_function_ids)
        for module in self._autowrap_search:
            patches.visit(vars(module), self._autowrap_function_ids)

    # ---- inputs

    def _inputs(
        self, function: FunctionType, bound: bool, concrete: dict[str, Any]
    ) -> tuple[FunctionType, list[Any]]:
        """The function, taking everything by position, and what it is called with."""
        plain = inspect.unwrap(function)
        code = plain.__code__
        stars = [
            mark
            for mark, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS))
            if code.co_flags & flag
        ]
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[1 if bound else 0 : count]
        starred = zip(stars, code.co_varnames[count : count + len(stars)], strict=True)
        inputs: list[Any] = [self.root] if bound else []
        for name in (*names, *(mark + name for mark, name in starred)):
            inputs.append(self._input(plain, name, concrete))
        if stars or code.co_kwonlyargcount:
            function = _all_by_position(function, len(inputs))
        return function, inputs

    def _input(self, function: Any, name: str, concrete: dict[str, Any]) -> Any:
        default = inspect.Parameter.empty
        if not name.startswith("*"):
            default = inspect.signature(function).parameters[name].default
        if name in concrete:
            return self._specialise(name, default, concrete[name])
        args = () if default is inspect.Parameter.empty else (default,)
        kind = _annotation(function, name)
        return self.create_proxy("placeholder", name, args, {}, type_expr=kind)

    def _specialise(self, name: str, default: Any, value: Any) -> Any:
        """A value that is given: the input stays, and is compared with the value."""
        if isinstance(value, tuple | list | dict):
            raise NotImplementedInFlambeau(
                f"concrete_args with a {type(value).__name__} for {name!r} is not implemented in "
                "flambeau: give single values"
            )
        args = () if default is inspect.Parameter.empty else (default,)
        made = self.create_proxy("placeholder", f"{name}_1", args, {})
        if isinstance(value, PHBase):
            return made
        told = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, bool | int | float):
            same: Any = made == value  # type: ignore[comparison-overlap]
            _assert(same, told)
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (made, told), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized "
                "function. It is up to the user to make sure that your inputs match the inputs "
                "you specialized the function with.",
                stacklevel=2,
            )
        return value


def _all_by_position(function: FunctionType, count: int) -> FunctionType:
    """The same function with plain parameters: what stands for `*args` is a proxy, too."""
    code = function.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    changed = code.replace(
        co_flags=code.co_flags & ~stars,
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )
    return FunctionType(
        changed, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip


def _name_of(value: Any, named: Any) -> str | None:
    return next((name for name, held in named if held is value), None)


def _annotation(function: Any, name: str) -> Any:
    """What a user's function says of an argument; layers of torch.nn have no annotations there."""
    is_ours = (function.__module__ or "").startswith("flambeau.")
    return None if is_ours else function.__annotations__.get(name)


def _assert_is_none(value: Any, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _tensors_of(root: Module) -> Any:
    """Tensors that modules keep as plain attributes, with their paths."""
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield value, f"{path}.{name}" if path else name


class ProxyableClassMeta(type):
    """Classes whose constructor, called with proxies, becomes a node."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A GraphModule of a module or function, traced once with proxies for its inputs.

    concrete_args: values for arguments, by which control flow may go.

    Raises:
        TraceError: the program needs the value of an input.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
