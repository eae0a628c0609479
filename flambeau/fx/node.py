"""`torch.fx.node`: one step of a graph, and functions over the arguments of steps."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flambeau._core.dtype import dtype
from flambeau._core.layout import Size
from flambeau._ops.table import loading
from flambeau._tensor.assertions import _assert, _assert_async
from flambeau.fx.immutable_collections import immutable_dict, immutable_list
from flambeau.fx.qualified_names import function_name, type_name

if TYPE_CHECKING:
    from flambeau.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Callable[..., Any] | str
Argument = Any

_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)
_side_effectful_functions: set[Callable[..., Any]] = {_assert, _assert_async}
_get_qualified_name = function_name
_type_repr = type_name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose calls stay in a graph although nobody uses their result."""
    _side_effectful_functions.add(fn)
    return fn


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """The same arguments with each Node replaced by what a function makes of it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """The same arguments with each leaf replaced; lists and dicts become immutable ones."""
    if isinstance(a, tuple) and not isinstance(a, Size):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


class Node:
    """One step: what is called (`op`, `target`), with what, and who uses its result.

    `placeholder` is an input, `get_attr` a parameter or the like of the module, `call_function`,
    `call_module` and `call_method` are calls, `output` is what is returned.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._update_args_kwargs(args, kwargs)

    # ---- the order of steps

    @property
    def next(self) -> Node:
        """The step after this one; after the last one, the graph's root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The step before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node, or put it, in front of this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move a node, or put it, behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def _place(self) -> int:
        """How many steps stand before this one."""
        node, count = self, 0
        while node.op != "root":
            node, count = node._prev, count + 1
        return count

    # ---- arguments and users

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments by name; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, new_args: Iterable[Any], new_kwargs: dict[str, Any]) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(new_args), use)
        self._kwargs = map_arg(dict(new_kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """Every node among the arguments, once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put a positional argument in front of that at an index."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace, or add, one argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let another node take this one's place in all arguments, or in those a function picks.

        Returns the nodes that used this one. propagate_meta: the other one, which must have no
        `meta` of its own, takes this one's.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        users = list(self.users)
        for user in users:
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace one node among the arguments by another, wherever it stands."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether dropping the step would change more than its result.

        impure_random: calls that draw random numbers count.
        """
        if self.op in {"placeholder", "output"}:
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            if impure_random and _draws(name):
                return True
            return self.target in _side_effectful_functions
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).endswith("__")
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                return False
            return bool(getattr(module.get_submodule(str(self.target)), "_is_impure", False))
        return False

    @property
    def stack_trace(self) -> str | None:
        """Where the program made the step, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    # ---- text

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", None) == "_operator":
            return f"operator.{name}"
        if getattr(builtins, name, None) is target:
            return f"builtins.{name}"
        return function_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The step as a line of text, as a graph prints it.

        placeholder_names, maybe_return_typename: lists that take what belongs into the head of a
        graph; a placeholder then has no line.

        Raises:
            NotImplementedError: `include_tensor_metadata` is asked for.
        """
        if include_tensor_metadata:
            raise NotImplementedError(
                "format_node(include_tensor_metadata=True) is not implemented"
            )
        kind = f": {type_name(self.type)} " if self.type is not None else ": "
        head = f"%{self.name} {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            return self._placeholder_line(head, placeholder_names)
        if self.op == "get_attr":
            return f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        told = ", ".join(f"{key}: {_told(value)}" for key, value in self.kwargs.items())
        target = self._pretty_print_target(self.target)
        return f"{head}[target={target}](args = {_told(self.args)}, kwargs = {{{told}}})"

    def _placeholder_line(self, head: str, names: list[str] | None) -> str | None:
        if names is not None:
            kind = f" : {type_name(self.type)}" if self.type is not None else ""
            names.append(f"%{self.target}{kind}" if kind else str(self.target))
            return None
        default = f"(default={_told(self.args[0])})" if self.args else ""
        return f"{head}[target={self.target}]{default}"


def _draws(name: str) -> bool:
    """Whether a function of this name draws random numbers: the family `random` holds its row."""
    modules = loading.modules_of(name) or loading.modules_of(f"nn.functional.{name}")
    return any(module.startswith("random.") for module in modules)


def _told(value: Any) -> str:
    """An argument in the text of a graph: nodes with a percent sign, text without quotes."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, immutable_list | list):
        return "[" + ", ".join(map(_told, value)) + "]"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        inside = ", ".join(map(_told, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_told(item)}" for key, item in value.items()) + "}"
    if isinstance(value, slice):
        parts = ", ".join(_told(part) for part in (value.start, value.stop, value.step))
        return f"slice({parts})"
    return str(value)


base_types = (str, int, float, bool, complex, dtype, type(None), type(...))
