"""The autograd graph: nodes, edges, and what nodes keep for backward.

An edge is what a gradient flows to: a `Node`, or the leaf tensor itself, or None where no gradient
is wanted. Nodes never point downstream, so no graph is a reference cycle: a result that a formula
needs is kept as its array and a weak reference.
"""

from __future__ import annotations

import importlib
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from flambeau._core import modes
from flambeau._tensor.bits import share
from flambeau._tensor.tensor import Counter, Tensor, new
from flambeau.autograd.changed import changed_error
from flambeau.autograd.handles import RemovableHandle
from flambeau.autograd.versions import counter_of, cut_off, version_of

next_sequence_number: Callable[[], int] = itertools.count(1).__next__
"""The order of nodes: backward runs the highest first. A node takes its number once it has its
edges, because to ask for the edge of a view may make a node (see `history`) that comes before it.
"""

watch = modes.watch


class Tools:
    """Operators that the graph itself needs; `flambeau._ops` hands them over at import."""

    add: Any
    clone: Any
    as_strided: Any
    new_zeros: Any
    new_empty_strided: Any
    sum_to_size: Any
    expand: Any
    to_dtype: Any
    zeros: Any
    ones_like: Any
    is_number: Any
    view_as_real: Any
    view_as_complex: Any
    conj: Any
    negated: Any
    resolve_conj: Any
    neg: Any


tools = Tools()

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


WRITTEN_OUT = ("CopyBackwards", "Error", "NotImplemented")
"""Rows' nodes that torch names with the place where they are written."""


class Node:
    """One recorded operator. Subclasses, one per row, hold the formulas in `apply`.

    >>> import flambeau as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> node = (x * 2).grad_fn
    >>> node.name(), isinstance(node, torch.autograd.graph.Node)
    ('MulBackward0', True)
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "edges",
        "hooks",
        "saved",
        "sequence_number",
        "versions",
    )
    title = "Node"
    outputs = 1
    _output_number = 0
    """Which output of itself it stands for."""
    of_user = False
    """Whether it is a function of the user's, which runs without gradients, too."""
    runs_on_nothing = False
    """Whether it has something to do where no gradient came."""
    takes_list = False
    """Whether gradients come to it as a list, also that of an only output."""
    composed = False
    """Whether it does what torch has several nodes for. Where it sends nothing, no path leads."""
    facts: dict[str, Any] = {}  # noqa: RUF012  # of a class of nodes, not of one
    """What users see as saved that is so for all nodes of a kind, but for those told otherwise."""
    shown: tuple[int, ...] | None = None
    """Which of several outputs hooks are told of; None for all."""
    edges: tuple[Any, ...]
    saved: Any  # tensors and values for the formulas; None once freed
    versions: Any  # of each saved tensor: the count of in-place writes when it was saved
    hooks: Any

    def __init__(self, *edges: Any) -> None:
        """A node that saves nothing so far; the calls that rows record do without this one."""
        self.edges, self.hooks, self.saved = edges, None, ()
        self.sequence_number = next_sequence_number()

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Gradients for each edge from the gradient of the output(s)."""
        raise NotImplementedError(f"{self.title} has no backward formula")

    def release(self) -> None:
        """Forget what was saved; a second backward then raises."""
        if self.saved:
            self.saved = None

    def single(self) -> bool:
        """Whether an edge that leads to the node itself leads to its only output."""
        return self.outputs == 1 and not self.takes_list

    def lists(self) -> Iterable[slice]:
        """The edges of lists of tensors: hooks are told of all of a list if one is asked for."""
        return ()

    def name(self) -> str:
        """The name that users see, such as MulBackward0."""
        return f"torch::autograd::{self.title}" if self.title in WRITTEN_OUT else self.title

    def public(self) -> Node:
        """This node as users see it: nodes that do the work of several may be taken apart."""
        return self

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where gradients go: (node, output number) pairs, (None, 0) where none is wanted."""
        return tuple(public_edge(edge) for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for the user's own notes."""
        return self.__dict__.setdefault("_metadata", {})

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node has run."""
        return add_hook(self, "post", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node runs."""
        return add_hook(self, "pre", hook)

    def __call__(self, *grads: Any) -> Any:
        """The gradients that this node makes of gradients of its outputs; no hooks run."""
        if len(grads) != self.outputs:
            raise TypeError(f"expected {self.outputs} arguments, got {len(grads)} instead")
        for position, grad in enumerate(grads):
            if grad is not None and not isinstance(grad, Tensor):
                raise TypeError(f"argument {position} is not a Variable")
        found = self.apply(grads[0] if self.single() else list(grads))
        return found[0] if len(found) == 1 else tuple(found)

    def _sequence_nr(self) -> int:
        return self.sequence_number

    def _set_sequence_nr(self, number: int) -> None:
        self.sequence_number = number

    def __repr__(self) -> str:
        return f"<{self.title} object at {id(self):#x}>"


class OutputNode(Node):
    """One output of a node that has several; collects its gradient for the node behind it, which
    has the hooks, too."""

    __slots__ = ("index", "source")
    title = "OutputNode"

    @property
    def _output_number(self) -> int:  # type: ignore[override]
        """Which output it is for users: those without gradients do not count."""
        shown = self.source.shown
        return self.index if shown is None else shown.index(self.index)


class AccumulateGrad(Node):
    """The public face of a leaf in the graph.

    A leaf that gets other memory gets another one. `since` and `until` say which nodes lead to
    this one: those with such sequence numbers. `until` is 0 as long as it is the leaf's.
    """

    __slots__ = ("since", "until", "variable")
    title = "AccumulateGrad"
    since: int
    until: int
    variable: Tensor

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Add a gradient to the leaf's; hooks of this node do not run."""
        from flambeau.autograd.accumulation import accumulate_grad
        from flambeau.autograd.hook_calls import run_filled_hooks

        if grad is not None:
            create_graph = bool(modes.grad.enabled)
            accumulate_grad(self.variable, grad, create_graph, run_hooks=run_filled_hooks)
        return ()

    def __call__(self, grad: Any) -> tuple[()]:
        """Add a gradient to the leaf's."""
        super().__call__(grad)
        return ()

    def end(self, number: int) -> None:
        """Note that the leaf gets another one. A pass reaches this one last."""
        self.until, self.sequence_number = number, -number

    def leads_here(self, node: Node, leaf: Tensor) -> bool:
        """Whether an edge to `leaf` leads to this one, which is not the leaf's any more."""
        return self.variable is leaf and self.since <= node.sequence_number < self.until

    def name(self) -> str:
        return f"torch::autograd::{self.title}"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self.variable, "node_post", hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self.variable, "node_pre", hook)


def accumulator_of(leaf: Tensor) -> AccumulateGrad:
    """The one AccumulateGrad object of a leaf, made when first asked for."""
    found: AccumulateGrad | None = leaf._accumulator and leaf._accumulator()
    if found is None:
        found = AccumulateGrad()
        found.variable, found.edges, found.hooks, found.saved = leaf, (), None, ()
        found.since, found.until = leaf._began, 0
        found.sequence_number = 2**63 - 1
        leaf._accumulator = weakref.ref(found)
    return found


def public_edge(edge: Any) -> tuple[Any, int]:
    if edge is None:
        return (None, 0)
    if isinstance(edge, Tensor):
        return (accumulator_of(edge), 0)
    if type(edge) is OutputNode:
        return (edge.source, edge._output_number)
    return (edge.public(), 0)


class OfOutput:
    """A hook on one of several outputs of a node; it runs with the node, in order of registration,
    with None where the output got no gradient."""

    __slots__ = ("hook", "index")

    def __init__(self, index: int, hook: Callable[..., Any]) -> None:
        self.index, self.hook = index, hook


def add_hook(owner: Any, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    """Put a hook on a node (`hooks`) or a leaf (`_hooks`), in order of registration."""
    if type(owner) is OutputNode:
        return add_hook(owner.source, kind, OfOutput(owner.index, hook))  # type: ignore[arg-type]
    of_leaf = isinstance(owner, Tensor)
    modes.watch.filled = modes.watch.filled or of_leaf
    field = "_hooks" if of_leaf else "hooks"
    table = getattr(owner, field)
    if table is None:
        table = {}
        setattr(owner, field, table)
    hooks = table.setdefault(kind, OrderedDict())
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


# ---- saving


class SavedResult:
    """The result of a node that a formula needs, kept without keeping the tensor alive.

    Both unset but after a write to a view: `of_view` is the node that the view then had, which
    errors name while it lives, `history` a function that makes another like it.
    """

    __slots__ = ("counter", "data", "history", "of_view", "tangents")
    counter: Counter
    data: Any
    tangents: Any  # what the tensor carries in forward mode; unset where it carried nothing
    history: Callable[[], Node]
    of_view: Callable[[], Node | None]
    index = 0


class SavedOfView(SavedResult):
    """The result of a write to a view."""

    __slots__ = ()


class SavedPart(SavedResult):
    """The same for one of several results. `ref`: the tensor, whose own node may have hooks;
    `source`: what gives the node if it is not the one that has saved it, which is a part of it."""

    __slots__ = ("index", "ref", "source")
    index: int
    ref: Any
    source: Any


def save_input(tensor: Tensor) -> Any:
    """What a node keeps of an input."""
    if tensor._inference:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`."
        )
    if modes.stacks.saved_hooks and not tools.is_number(tensor):
        return Packed(tensor, *modes.stacks.saved_hooks[-1])
    return tensor


def save_result(tensor: Tensor) -> Any:
    """What a node keeps of its only output."""
    if watch.saving and modes.stacks.saved_hooks:
        return PackedResult(tensor._data, counter_of(tensor), 0, *modes.stacks.saved_hooks[-1])
    if tensor.__class__ is not Tensor and hasattr(type(tensor), "__torch_dispatch__"):
        return ResultOfClass(tensor, 0)
    kept = new(SavedResult)
    kept.data = tensor._data
    kept.counter = counter_of(tensor)
    return kept


def save_part(tensor: Tensor, index: int) -> Any:
    """What a node keeps of one of its several outputs. One without gradients, such as indices, has
    no node, so it can be kept as any input."""
    if tensor._data.dtype.kind not in "fcVW":
        return save_input(tensor)
    if watch.saving and modes.stacks.saved_hooks:
        return PackedResult(tensor._data, counter_of(tensor), index, *modes.stacks.saved_hooks[-1])
    if tensor.__class__ is not Tensor and hasattr(type(tensor), "__torch_dispatch__"):
        return ResultOfClass(tensor, index)
    kept = new(SavedPart)
    kept.data = tensor._data
    kept.counter = counter_of(tensor)
    kept.index = index
    kept.ref = weakref.ref(tensor)
    return kept


PACK_WRITES = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
    "hook cannot be modified by in-place operations as this can lead to unexpected side-effects. "
    "Please open an issue if you need to perform in-place operations on the input to a pack hook."
)


class Packed:
    """A saved tensor that went through the user's pack hook.

    edge: where gradients of the tensor went then; what the hook unpacks is given that history.
    """

    __slots__ = ("edge", "packed", "unpack")

    def __init__(self, tensor: Tensor, pack: Any, unpack: Any) -> None:
        from flambeau.autograd.history import edge_of

        self.unpack = unpack
        self.edge = edge_of(tensor)
        version = version_of(tensor)
        before = modes.grad.enabled
        modes.grad.enabled = before and False  # None stays what it is: inference mode
        try:
            self.packed = pack(tensor)
        finally:
            modes.grad.enabled = before
        if version_of(tensor) != version:
            raise RuntimeError(PACK_WRITES)

    def unpacked(self, node: Node | None) -> Tensor:
        """What the user's unpack hook gives, as a tensor of its own. Hooks that it begins or ends
        meanwhile are as they were afterwards."""
        stack = modes.stacks.saved_hooks
        before = list(stack)
        try:
            found = self.unpack(self.packed)
        finally:
            watch.saving += len(before) - len(stack)
            stack[:] = before
        if not isinstance(found, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got "
                            f"result of type {type(found).__name__}")  # fmt: skip
        return self.followed(found, node)

    def followed(self, found: Tensor, node: Any) -> Tensor:
        """The same memory with the history of what was packed."""
        edge = self.edge
        itself = found is edge and found._requires_grad
        if itself or (edge is None and not found.requires_grad):
            return found
        result = alias_of(found)
        if isinstance(edge, Tensor):
            result._node, result._requires_grad = AliasBackward0(edge), True
        elif edge is not None:
            result._node, result._requires_grad = edge, True
        return result


class PackedResult(Packed):
    """A packed output, which leads to the node that has saved it, or to `source`."""

    __slots__ = ("index", "source")

    def __init__(self, data: Any, counter: Counter, index: int, pack: Any, unpack: Any) -> None:
        # What the hook gets, and may return, must not lead to the result: that would be a cycle.
        alias = new(Tensor)
        alias._data = data
        alias._counter = counter
        alias._version_count = counter.count
        super().__init__(alias, pack, unpack)
        self.index = index

    def followed(self, found: Tensor, node: Any) -> Tensor:
        return _with_history(alias_of(found), getattr(self, "source", lambda: node)(), self.index)


class ResultOfClass(PackedResult):
    """An output of a class with `__torch_dispatch__`: what it is made of is kept by its class, so
    what is saved is what `detach` gives."""

    __slots__ = ()

    def __init__(self, tensor: Any, index: int) -> None:
        kept = tensor.detach()
        super().__init__(tensor._data, counter_of(tensor), index, lambda _: kept, lambda it: it)

    def followed(self, found: Any, node: Any) -> Tensor:
        return _with_history(found.detach(), node, self.index)


def alias_of(tensor: Tensor) -> Tensor:
    """A tensor over the same memory and version count, without history: `detach`."""
    result = new(Tensor)
    if tensor._stored is None:
        result._data = tensor._data
    else:
        share(tensor, result)
    result._root = tensor if tensor._root is None else tensor._root
    return result  # type: ignore[no-any-return]


class AliasBackward0(Node):
    """Stands for a tensor in other words: gradients go where they would go from it."""

    __slots__ = ()
    title = __qualname__

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradient as it comes."""
        return (grad,)


def unpack_unchanged(node: Node, position: int) -> Any:
    """The saved result at `position`; None if it was written to since, so that the formula has to
    do without it."""
    kept = node.saved and node.saved[position]
    if isinstance(kept, SavedResult) and kept.counter.count != node.versions[position]:
        return None
    return unpack(node, position)


def unpack(node: Node, position: int, cut_off_too: bool = False) -> Any:
    """The saved tensor at `position`; an error if it was freed or written to since.

    `cut_off_too`: also one that lost its history by `detach_`, which formulas are refused.
    """
    if node.saved is None:
        raise RuntimeError(FREED)
    kept = node.saved[position]
    if kept is None:
        return None
    if isinstance(kept, SavedResult):
        return _unpack_result(node, kept, node.versions[position])
    if isinstance(kept, Tensor):
        if version_of(kept) != node.versions[position]:
            raise modified_error(kept, node.versions[position])
        if cut_off.numbers and not cut_off_too:
            cut_off.check(kept, node.sequence_number)
        return kept
    return kept.unpacked(node)


def _unpack_result(node: Node, kept: SavedResult, version: int) -> Tensor:
    kind = kept.__class__
    if kind is SavedPart and hasattr(kept, "source"):
        node = kept.source()
    if kept.counter.count != version:
        made_by = getattr(kept, "of_view", _none)() or node
        check_result(kept, version, short_title(made_by))
    if kind is SavedPart:
        tensor = kept.ref()  # type: ignore[attr-defined]
        itself = tensor is not None and tensor._data is kept.data
        if itself and getattr(tensor._node, "source", None) is node:
            return tensor  # type: ignore[no-any-return]
    alias = new(Tensor)
    alias._data = kept.data
    if watch.results:
        alias._tangents = getattr(kept, "tangents", None)
    if kind is SavedOfView:  # the node itself is part of the one behind the view's
        alias._node = kept.of_view() or kept.history()
        alias._requires_grad = True
        return alias  # type: ignore[no-any-return]
    return _with_history(alias, node, kept.index)


def check_result(kept: SavedResult, version: int, title: str) -> None:
    """Raise if a saved result of the operator `title` was written to since."""
    if kept.counter.count != version:
        raise changed_error(kept.data, kept.counter.count, version, title, kept.index)


def _none() -> None:
    return None


def _with_history(tensor: Tensor, node: Node, index: int) -> Tensor:
    tensor._node = node if node.single() else output_node(node, index)
    tensor._requires_grad = True
    return tensor


def output_node(source: Node, index: int) -> OutputNode:
    """The edge for one of several outputs."""
    node: OutputNode = new(OutputNode)
    node.edges, node.hooks, node.saved = (source,), None, ()
    node.sequence_number = next_sequence_number()
    node.source, node.index = source, index
    return node


def modified_error(tensor: Tensor, version: int) -> RuntimeError:
    """Torch's error for a saved tensor that an in-place operation has changed.

    Torch looks at the history of the tensor as it is now, which may be an error of its own, and
    does not know which output it was.
    """
    node = tensor.grad_fn
    title = "" if node is None else short_title(node)
    return changed_error(tensor._data, version_of(tensor), version, title, 0)


def short_title(node: Node) -> str:
    """`Exp` for ExpBackward0 and `Pow1` for PowBackward1, as torch's messages have them."""
    head, marker, number = node.name().rpartition("Backward")
    if not marker or not (number == "" or number.isdigit()):
        return node.name()
    return head if number == "0" else head + number


PUBLIC = {
    "GradientEdge": "edges", "get_gradient_edge": "edges",
    "saved_tensors_hooks": "saved", "save_on_cpu": "saved", "disable_saved_tensors_hooks": "saved",
    "register_multi_grad_hook": "hooks", "increment_version": "versions",
    "allow_mutation_on_saved_tensors": "mutation",
}  # fmt: skip
"""Names that `torch.autograd.graph` has and that live in modules built on this one."""


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"flambeau.autograd.{PUBLIC[name]}"), name)
