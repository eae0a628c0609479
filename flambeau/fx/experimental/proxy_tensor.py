"""`make_fx`: the operators of `aten` that a function runs, below autograd, as a graph.

    graph = make_fx(grad(loss))(x)             # a GraphModule: print(graph.code)

A mode (`utils/_python_dispatch.py`) sees every operator and writes a node for it. What the function
gets are fake tensors (`_subclasses/fake_tensor.py`): shapes, types and devices without numbers, so
that nothing can slip into the graph as a constant that depends on an input.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flambeau._core import modes
from flambeau._core.missing import NotImplementedInFlambeau, missing
from flambeau._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeTensor,
    FakeTensorMode,
)
from flambeau._tensor.examples import Example
from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.tensor import Tensor, constructors
from flambeau._tensor.wrappers import has_numbers
from flambeau.fx.code_generation import CodeGen
from flambeau.fx.experimental._symbol_nodes import SymbolNodes
from flambeau.fx.graph import Graph
from flambeau.fx.graph_module import GraphModule
from flambeau.fx.node import Node
from flambeau.fx.passes.shape_prop import _extract_tensor_metadata
from flambeau.fx.proxy import TracerBase
from flambeau.nn.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_leaves, tree_map

__all__ = ["ProxyTorchDispatchMode", "PythonKeyTracer", "disable_proxy_modes_tracing",
           "get_proxy_mode", "make_fx"]  # fmt: skip

ASKED_FOR_NUMBERS = (
    "It appears that you're trying to get value out of a tracing tensor with {} - erroring out! "
    "It's likely that this is caused by data-dependent control flow or similar."
)
LAYOUT = (
    "make_fx: a tensor that no operator of aten has made, or to which one has given another layout "
    "(resize_, set_, unsqueeze_, t_, ...)"
)


def __getattr__(name: str) -> Any:
    return missing(__name__, name)


class PythonKeyTracer(TracerBase):
    """Writes the nodes of one trace, and keeps the tensors that the program brought along."""

    def __init__(self) -> None:
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        self.root: dict[str, Any] = {}
        self._nodes: dict[int, tuple[Tensor, Node, Any]] = {}
        self.symbols = SymbolNodes(self)
        self._names: dict[int, str] = {}

    def track(self, tensor: FakeTensor, node: Node) -> None:
        """From now on a tensor is what a node gives."""
        node.meta["tensor_meta"] = _extract_tensor_metadata(tensor)
        self._nodes[id(tensor)] = tensor, node, tensor._data
        if isinstance(tensor, FakeTensor) and tensor.fake_mode.shape_env is not None:
            node.meta["val"] = tensor
            self.symbols.note(tensor, node)

    def forget(self) -> None:
        """Let the tensors go: while there are any of a class of their own, calls are looked at."""
        self._nodes.clear()

    def create_arg(self, a: Any) -> Any:
        """A value of the program as an argument of a node.

        Raises:
            NotImplementedInFlambeau: a tensor that was made, or given another layout, by what
                has no operator in `aten`.
        """
        if id(a) in self._nodes:
            _, node, data = self._nodes[id(a)]
            if a._data is not data:
                raise NotImplementedInFlambeau(LAYOUT)
            return node
        if isinstance(a, Tensor):
            if not has_numbers(a._data) or isinstance(a._data, Example):
                raise NotImplementedInFlambeau(LAYOUT)
            return self.create_node("get_attr", self._kept(a), (), {})
        if is_symbolic(a):
            return self.symbols.node_of(a)
        return super().create_arg(a)

    def _kept(self, tensor: Tensor) -> str:
        """The name of a tensor that belongs to the program and not to the trace."""
        if id(tensor) not in self._names:
            kind = "_param_constant" if isinstance(tensor, Parameter) else "_tensor_constant"
            number = sum(name.startswith(kind) for name in self.root)
            self._names[id(tensor)] = name = f"{kind}{number}"
            self.root[name] = tensor
        return self._names[id(tensor)]


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Writes a node for every operator of its region.

    Args:
        tracer: where the nodes go.
        decompositions: functions that stand for operators; theirs are recorded instead.
    """

    def __init__(
        self, tracer: PythonKeyTracer, decompositions: Mapping[Any, Callable[..., Any]]
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.decompositions = decompositions

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The operator's result, and a node for it.

        Raises:
            RuntimeError: the program asks for a number that the trace does not know.
        """
        kwargs = kwargs or {}
        if func in self.decompositions:
            with self:
                return self.decompositions[func](*args, **kwargs)
        if func._opname == "lift_fresh":
            return self._lifted(func, args[0])
        try:
            result = func(*args, **kwargs)
        except DataDependentOutputException as error:
            raise RuntimeError(ASKED_FOR_NUMBERS.format(func)) from error
        if not any(
            isinstance(leaf, FakeTensor) or is_symbolic(leaf) for leaf in tree_leaves(result)
        ):
            return result  # a number that is known: of a tensor that the program made of data
        create = self.tracer.create_node
        words = self.tracer.create_arg(args), self.tracer.create_arg(kwargs)
        self._track(result, create("call_function", func, *words, name=func._opname))
        return result

    def _lifted(self, func: Any, tensor: Any) -> Any:
        """A tensor that the program makes of data: a copy of a constant."""
        with disable_proxy_modes_tracing():
            result = func(tensor)
        with modes_off():
            kept = self.tracer.create_arg(tensor.detach())
        copy = constructors["operator_of_aten"]("lift_fresh_copy").default
        node = self.tracer.create_node("call_function", copy, (kept,), {}, name=copy._opname)
        self.tracer.track(result, node)
        return result

    def _track(self, result: Any, node: Node) -> None:
        if isinstance(result, FakeTensor):
            self.tracer.track(result, node)
            return
        if is_symbolic(result):
            self.tracer.symbols.keep(result, node)
            return
        for number, part in enumerate(result):
            if part is not None:
                item = self.tracer.create_node(
                    "call_function", operator.getitem, (node, number), {}
                )
                self._track(part, item)


@contextmanager
def modes_off() -> Iterator[None]:
    """No mode below autograd sees what runs in this region."""
    stack = modes.stacks.dispatch_modes
    modes.stacks.dispatch_modes = []
    try:
        yield
    finally:
        modes.stacks.dispatch_modes = stack


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost trace that is being recorded in this thread, or None."""
    found = [mode for mode in modes.stacks.dispatch_modes
             if isinstance(mode, ProxyTorchDispatchMode)]  # fmt: skip
    return found[-1] if found else None


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[ProxyTorchDispatchMode | None]:
    """`with disable_proxy_modes_tracing() as mode:` what runs is not recorded; `mode` is the trace
    that goes on behind it."""
    stack, found = modes.stacks.dispatch_modes, get_proxy_mode()
    modes.stacks.dispatch_modes = [m for m in stack if not isinstance(m, ProxyTorchDispatchMode)]
    try:
        yield found
    finally:
        modes.stacks.dispatch_modes = stack


class _Shapes(FakeTensorMode):
    """Fake tensors whose every operator can be recorded."""

    def run(self, op: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """A row that ATen has not.

        Raises:
            NotImplementedInFlambeau: always.
        """
        raise NotImplementedInFlambeau(f"make_fx: {op.public} is no operator of aten")


class _Nested(CodeGen):
    """The source of a graph whose arguments are lists, tuples or dicts of inputs."""

    def __init__(self, parameters: list[str]) -> None:
        self.parameters = parameters

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function, and the one that takes the arguments apart."""
        names = ", ".join(self.parameters)
        leaves = ", ".join(free_vars)
        head = f"def forward(self, {names}){maybe_return_annotation}:"
        return f"{head}\n    {leaves}, = pytree.tree_leaves(({names},))"

    def process_inputs(self, *args: Any) -> Any:
        """The inputs in the arguments of a call."""
        return tree_leaves(args)


class _Trace:
    """One call of a function, to be recorded."""

    def __init__(self, function: Any, table: Mapping[Any, Any], shape_env: Any = None) -> None:
        self.function = function
        self.tracer = PythonKeyTracer()
        self.mode = ProxyTorchDispatchMode(self.tracer, table)
        self.fakes = _Shapes(allow_non_fake_inputs=True, shape_env=shape_env)

    def run(self, args: tuple[Any, ...]) -> GraphModule:
        parameters = _parameters(self.function, args)
        is_nested = len(tree_leaves(args)) != len(args) or any(
            isinstance(value, (list, tuple, dict)) for value in args
        )
        taken = self._inputs(parameters, args)
        try:
            with self.fakes, self.mode:
                result = self.function(*taken)
            self.tracer.create_node("output", "output", (self._output(result),), {})
        finally:
            self.tracer.forget()
            self.fakes._known.clear()
        if is_nested:
            self.tracer.graph.set_codegen(_Nested(parameters))
        name = getattr(self.function, "__name__", type(self.function).__name__)
        module = GraphModule(self.tracer.root, self.tracer.graph, name)
        if self.fakes.shape_env is not None:
            module.shape_env = self.fakes.shape_env
        return module

    def _inputs(self, parameters: list[str], args: tuple[Any, ...]) -> Any:
        def taken(value: Any, name: str) -> Any:
            node = self.tracer.create_node("placeholder", f"{name}_1", (), {})
            node.target = node.name
            if not isinstance(value, Tensor):
                return self._number(value, node)
            fake = self.fakes.from_tensor(value)
            self.tracer.track(fake, node)
            return fake

        pairs = zip(parameters, args, strict=True)
        return [tree_map(lambda leaf, name=name: taken(leaf, name), value) for name, value in pairs]

    def _number(self, value: Any, node: Node) -> Any:
        """A number as an input: with symbols for sizes, a symbol for an int."""
        env = self.fakes.shape_env
        if env is None or type(value) is not int:
            return value
        symbol = env.create_symintnode(env.create_symbol(value))
        if is_symbolic(symbol):
            self.tracer.symbols.keep(symbol, node)
        return symbol

    def _output(self, result: Any) -> Any:
        def plain(value: Any) -> Any:
            if type(value) is not tuple and isinstance(value, tuple):
                value = tuple(value)
            if isinstance(value, (list, tuple)):
                return type(value)([plain(item) for item in value])
            if isinstance(value, dict):
                return {key: plain(item) for key, item in value.items()}
            return value

        return self.tracer.create_arg(plain(result))


def _parameters(function: Any, args: tuple[Any, ...]) -> list[str]:
    """Names for the arguments.

    Raises:
        RuntimeError: the function has another number of parameters.
    """
    numbered = [f"arg{number}" for number in range(len(args))]
    if isinstance(function, Module):
        return numbered
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return numbered
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in found):
        return numbered
    if len(found) != len(args):
        raise RuntimeError(
            f"Tracing expected {len(found)} arguments but got {len(args)} concrete arguments"
        )
    return [one.name for one in found]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """A function that runs another one and returns what it did as a graph.

    The graph holds the operators of `torch.ops.aten` below autograd, so that derivatives
    (`torch.func.grad(f)`, `backward()` inside) and batches (`vmap`) are recorded as what they
    compute. Control flow is what it was in this call. Nodes have `meta["tensor_meta"]`, the layout
    of their result.

    Args:
        f: a function or module of tensors, and of lists, tuples and dicts of them.
        decomposition_table: functions for operators, called and recorded instead of them.
        tracing_mode: "real", "fake" or "symbolic". `f` is run on shapes alone in any case: asking
            for numbers of a tensor is refused, as PyTorch refuses it, and no random number is
            drawn. With "symbolic", sizes are symbols (`symbolic_shapes.py`): the graph computes
            with the sizes of its inputs, `meta["val"]` of a node tells its own, and
            `graph.shape_env.guards` are the conditions under which it is the right one.
        _allow_non_fake_inputs, _disable_torch_fn_metadata_mode: nothing to decide: tensors that
            the program brings along become constants, and nodes do not tell of functions.

    Raises:
        RuntimeError: `f` depends on numbers of a tensor, or takes another number of arguments.
        NotImplementedInFlambeau: traces above autograd, and operators that are none of `aten`'s.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> graph = make_fx(lambda x: x.sin().add_(1))(torch.ones(2))
    >>> print(graph.code.strip())
    def forward(self, x_1):
        sin = torch.ops.aten.sin.default(x_1);  x_1 = None
        add_ = torch.ops.aten.add_.Tensor(sin, 1);  sin = None
        return add_
    >>> trace = make_fx(lambda x: x.view(-1)[: x.shape[0]], tracing_mode="symbolic")
    >>> graph = trace(torch.ones(2, 3))
    >>> graph(torch.ones(5, 4)).shape
    torch.Size([5])
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
    words = {"pre_dispatch": pre_dispatch, "record_module_stack": record_module_stack,
             "_allow_fake_constant": _allow_fake_constant,
             "record_stack_traces": record_stack_traces,
             "proxy_module_inputs": proxy_module_inputs,
             "_error_on_data_dependent_ops": not _error_on_data_dependent_ops}  # fmt: skip
    for name, value in words.items():
        if value:
            raise NotImplementedInFlambeau(f"make_fx: {name}")

    def wrapped(*args: Any) -> GraphModule:
        env = None
        if tracing_mode == "symbolic":
            from flambeau.fx.experimental.symbolic_shapes import ShapeEnv

            env = ShapeEnv()
        return _Trace(f, decomposition_table or {}, env).run(args)

    return wrapped
