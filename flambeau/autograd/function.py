"""`autograd.Function`: operators whose gradient the user writes."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from flambeau._core import modes
from flambeau._tensor import overriding
from flambeau._tensor.bits import like
from flambeau._tensor.sparse import SparseTensor
from flambeau._tensor.tensor import Tensor, memory_of
from flambeau.autograd.function_tangents import in_levels
from flambeau.autograd.graph import (
    FREED,
    Node,
    next_sequence_number,
    output_node,
    save_part,
    tools,
    unpack,
    version_of,
)
from flambeau.autograd.history import (
    LEAF,
    UNRECORDED,
    alias_of,
    bump,
    check_inplace,
    edge_of,
    rebase,
    view_of,
)
from flambeau.autograd.notes import note
from flambeau.autograd.refitted import fitted
from flambeau.autograd.saved_fields import saved_tensor

TWICE = "trying to differentiate twice a function that was marked with @once_differentiable"
NOT_AN_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
    "mutated should be passed to ctx.mark_dirty()."
)

NOT_AN_OUTPUT = (
    "Some elements marked as dirty during the forward method were not returned as output. The "
    "inputs that are modified inplace must all be outputs of the Function."
)
VIEW_AMONG_MANY = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
    "cannot return more than one Tensor. This is not supported by the current autograd engine. "
    "You should either make sure the input is not a view (using .clone() for example) or make "
    "your Function only return one Tensor (potentially splitting it into two Functions: one "
    "doing the inplace that returns a single Tensor and a second one that does the other "
    "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do "
    "this change."
)


class FunctionCtx:
    """What `forward` and `backward` share: saved tensors, flags, and the user's own attributes."""

    _to_save: tuple[Any, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _non_differentiable: tuple[Any, ...] = ()
    _materialize = True
    _materialize_non_diff_grads = True
    _recorded = False
    _in_jvp = False
    _for_forward: tuple[Any, ...] = ()
    _kept: tuple[Any, Any] = (None, None)
    """What the node saved, for those who keep the context longer than the graph."""
    _node: Callable[[], Any]

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward; None entries are kept too. Call once, in `forward`."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""
        self._for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs `forward` changed in place; each must also be an output."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing output gradients come as zeros (True) or as None."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; an error if it was freed or changed in place. In `jvp`,
        what `save_for_forward` kept."""
        if self._in_jvp:
            return self._for_forward
        if not self._recorded:
            return self._to_save
        node = self._keeper()
        return tuple(unpack(node, position, True) for position in range(len(node.saved)))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning,
                      stacklevel=2)  # fmt: skip
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        """The same, as objects that take hooks."""
        if not self._recorded:
            return ()
        node = self._keeper()
        return tuple(saved_tensor(node, position) for position in range(len(node.saved)))

    def _keeper(self) -> Node:
        """The node, or once that is gone, another that keeps what it kept."""
        node: Node | None = self._node()
        if node is None:
            node = Node()
            node.edges, node.saved, node.versions = (), *self._kept
        if node.saved is None:
            raise RuntimeError(FREED)
        return node


class Context(FunctionCtx):
    """The `ctx` of one call. It is not the node, so that users may call their attributes anything.

    What nodes have (`next_functions`, `metadata`, `register_hook`, ...) is found on it too.
    """

    def __init__(self, node: BackwardCFunction, needs_input_grad: tuple[bool, ...]) -> None:
        self._node = weakref.ref(node)
        self.needs_input_grad = needs_input_grad

    def __getattr__(self, name: str) -> Any:
        node = None if name.startswith("__") else self._node()
        if node is None or not hasattr(Node, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(node, name)


class BackwardCFunction(Node):
    """The node of one call of a Function."""

    __slots__ = ("context", "input_metas", "positions", "results")
    of_user = runs_on_nothing = True
    function: type[Function]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "context"), name)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        grads = grad if isinstance(grad, list) else [grad]
        if self.context._materialize:
            grads = [
                tools.zeros(*meta) if g is None and meta is not None else g
                for g, meta in zip(grads, self.results, strict=True)
            ]
        backward = _backward_of(self.function)
        if modes.watch.overriding:
            returned = overriding.taking_part(backward, self.context, *grads)
        else:
            returned = backward(self.context, *grads)
        if not isinstance(returned, tuple):
            returned = (returned,)
        return self._checked(returned)

    def release(self) -> None:
        super().release()
        self.context._kept = (self.saved, self.versions)

    def _checked(self, returned: tuple[Any, ...]) -> tuple[Any, ...]:
        """One gradient per tensor input, of a shape that fits."""
        name, count = self.title, len(self.positions)
        fits = len(returned) == count
        if not fits and (len(returned) < count or any(p is not None for p in returned[count:])):
            raise RuntimeError(f"function {name} returned an incorrect number of gradients "
                               f"(expected {count}, got {len(returned)})")  # fmt: skip
        found: list[Any] = []
        for position, (is_tensor, part) in enumerate(zip(self.positions, returned, strict=False)):
            if not is_tensor:
                if part is not None:
                    raise RuntimeError(f"function {name} returned a gradient different than None "
                                       f"at position {position + 1}, but the corresponding forward "
                                       "input was not a Variable")  # fmt: skip
                continue
            found.append(self._fitted(part, len(found), name))
        return tuple(found)

    def _fitted(self, part: Any, index: int, name: str) -> Any:
        if part is None or self.edges[index] is None:
            return part
        if not isinstance(part, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(part).__name__})")
        if isinstance(part, SparseTensor) or self.input_metas[index] is None:
            return part
        shape, dtype = self.input_metas[index]
        return fitted(part, shape, dtype, name, index)


def _backward_of(function: type[Function]) -> Callable[..., Any]:
    """The user's `backward`, or `vjp`, its other name."""
    if function.vjp is Function.vjp:
        return function.backward
    if function.backward is not Function.backward:
        raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not "
                           "allowed. You should only implement one of them.")  # fmt: skip
    return function.vjp


class _FunctionMeta(type):
    def __init__(cls, name: str, bases: Any, namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        title = f"{name}Backward"
        fields = {"function": cls, "title": title, "__module__": BackwardCFunction.__module__}
        cls._backward_cls = type(title, (BackwardCFunction,), fields)


class Function(FunctionCtx, metaclass=_FunctionMeta):
    """Subclass with static methods `forward(ctx, ...)` and `backward(ctx, *grads)`; call `apply`.

    `forward` may leave out `ctx` if there is a static method `setup_context(ctx, inputs, output)`.

    >>> import flambeau as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x ** 2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    _backward_cls: type[BackwardCFunction]
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The result of the operator; runs unrecorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what `backward` needs, for a `forward` without ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient (or None) per argument of `forward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Directional derivatives of the outputs from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function over a batch."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod "
            "or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record it."""
        if modes.watch.results and modes.stacks.levels:
            return in_levels(cls, args, kwargs)[0]
        return cls._applied(args, kwargs)[0]

    @classmethod
    def _applied(cls, args: Any, kwargs: Any) -> tuple[Any, Context]:
        """The outputs, and the context of the call."""
        if cls.setup_context is not Function.setup_context:
            args, kwargs = _with_defaults(cls.forward, args, kwargs), {}
        node = cls._backward_cls()
        node.hooks, node.saved, node.versions = None, (), ()
        tensors = [a for a in args if isinstance(a, Tensor)]
        node.positions = tuple([isinstance(a, Tensor) for a in args])
        needs_input_grad = tuple([isinstance(a, Tensor) and a.requires_grad for a in args])
        recording = bool(modes.grad.enabled) and True in needs_input_grad
        context = node.context = Context(node, needs_input_grad)
        node.edges = tuple([edge_of(t) for t in tensors]) if recording else ()
        node.sequence_number = next_sequence_number()
        node.input_metas = tuple([_meta(t) for t in tensors])
        if modes.watch.anomaly:
            note(node, 1)
        output = _run(cls, context, args, kwargs)
        return _finish(cls, node, tensors, output, recording), context


_signature = functools.lru_cache(maxsize=1024)(inspect.signature)


def _meta(tensor: Tensor) -> Any:
    if isinstance(tensor, SparseTensor):
        return None
    return tensor._data.shape, tensor._data.dtype


def _with_defaults(forward: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All arguments by position, those that were left out, too: what `setup_context` gets."""
    signature = _signature(forward)
    if not kwargs and len(args) >= len(signature.parameters):
        return args  # type: ignore[no-any-return]
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _run(cls: type[Function], context: Context, args: Any, kwargs: Any) -> Any:
    before = modes.grad.enabled
    modes.grad.enabled = before and False  # None stays what it is: inference mode
    try:
        if cls.setup_context is Function.setup_context:
            return cls.forward(context, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(context, args, output)
        return output
    finally:
        modes.grad.enabled = before


def _finish(cls: type[Function], node: BackwardCFunction, inputs: list[Tensor], output: Any,
            recording: bool) -> Any:  # fmt: skip
    many = isinstance(output, tuple)  # a list is a value like any other that is no tensor
    outputs = list(output) if many else [output]
    if node.context._dirty:
        _check_marks(node.context._dirty, inputs, outputs, recording)
    for result in outputs:
        if isinstance(result, SparseTensor) and any(result is t for t in inputs):
            result.view(result.shape)  # a view of itself: refused in the words of `view`
    differ = [recording and _has_gradient(node.context, result) for result in outputs]
    for position, result in enumerate(outputs):
        if isinstance(result, Tensor):
            outputs[position] = _own(node, inputs, result, recording)
    if recording:
        _link(node, outputs, differ)
        _save(node, inputs, outputs)
    if many:
        return tuple(outputs)
    return outputs[0]


def _check_marks(dirty: tuple[Any, ...], inputs: list[Tensor], outputs: list[Any],
                 recording: bool) -> None:  # fmt: skip
    """What `mark_dirty` was told must be inputs that are outputs, too."""
    if not all(any(d is t for t in inputs) for d in dirty):
        warnings.warn(NOT_AN_INPUT, UserWarning, stacklevel=4)
    if not all(any(d is t for t in outputs) for d in dirty):
        raise RuntimeError(NOT_AN_OUTPUT)
    if recording and len(outputs) > 1 and any(d._base is not None for d in dirty):
        raise RuntimeError(VIEW_AMONG_MANY)


def _own(node: BackwardCFunction, inputs: list[Tensor], result: Tensor, recording: bool) -> Tensor:
    """An output as a tensor of its own: an input returned as it is becomes a view of itself."""
    dirty = node.context._dirty
    if dirty and any(result is t for t in dirty):
        bump(result)
        if recording:
            _check_dirty(result)
        elif result.requires_grad:
            return alias_of(result)
        return result
    if any(result is t for t in inputs):
        if result.requires_grad and not recording:
            return alias_of(result)
        result = _view_as_itself(result)
    if result._base is not None and modes.grad.enabled:
        result._creation = "custom"
    return result


def _view_as_itself(tensor: Tensor) -> Tensor:
    view = view_of(tensor, memory_of(tensor))
    if tensor._stored is not None:
        view = like(tensor, view)
    if not (modes.watch.overriding and overriding.takes_part(tensor)):
        return view
    with overriding.off():
        result = view.as_subclass(type(tensor))  # type: ignore[attr-defined]
    for field in ("_root", "_base", "_creation", "_view_version", "_requires_grad"):
        setattr(result, field, getattr(view, field))
    return result  # type: ignore[no-any-return]


def _check_dirty(result: Tensor) -> None:
    """The errors of in-place writes, which have happened already."""
    base = result._base
    own = base is None or base._node is not None or result._creation in UNRECORDED
    if own and result._node is None and result._requires_grad:
        raise RuntimeError(LEAF.replace("is being used", "has been used"))
    check_inplace(result, True)


def _has_gradient(context: Context, result: Any) -> bool:
    """Whether an output, as `forward` returned it, is one that gradients flow from."""
    if not isinstance(result, Tensor) or result._data.dtype.kind not in "fcVW":
        return False
    constant = context._non_differentiable
    return not (constant and any(result is t for t in constant))


def _link(node: BackwardCFunction, outputs: list[Any], differ: list[bool]) -> None:
    """Give outputs their node. `differ`: which of them gradients flow from."""
    node.outputs = len(outputs)
    pairs = zip(outputs, differ, strict=True)
    node.results = [_result_meta(node.context, result, has) for result, has in pairs]
    many = sum(differ) > 1
    for position, result in enumerate(outputs):
        if not isinstance(result, Tensor):
            continue
        if result._base is not None and many:
            result._creation = "multiple"
        if not differ[position]:
            continue
        link = node if len(outputs) == 1 else output_node(node, position)
        if any(result is t for t in node.context._dirty):
            rebase(result, link)
            result.grad = None  # type: ignore[assignment]  # it was that of what is gone
            continue
        result._node = link
        result._requires_grad = True
        if result._base is not None:
            result._view_version = version_of(result)  # it may have been written to in `forward`


def _result_meta(context: Context, result: Any, differs: bool) -> Any:
    """What zeros for an output without gradient look like; None where none are made."""
    if not isinstance(result, Tensor):
        return None
    if not (differs or context._materialize_non_diff_grads):
        return None
    return result._data.shape, result._data.dtype, result.device


def _save(node: BackwardCFunction, inputs: list[Tensor], outputs: list[Any]) -> None:
    kept: list[Any] = []
    versions = []
    for position, tensor in enumerate(node.context._to_save):
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"save_for_backward can only save variables, but argument "
                            f"{position} is of type {type(tensor).__name__}")  # fmt: skip
        place = next((i for i, o in enumerate(outputs) if o is tensor), None)
        if tensor is None:
            kept.append(None)
        elif place is not None and tensor.requires_grad:
            kept.append(save_part(tensor, place))
        else:
            kept.append(_saved_input(tensor))
        versions.append(0 if tensor is None else version_of(tensor))
    node.saved, node.versions = tuple(kept), tuple(versions)
    node.context._kept = (node.saved, node.versions)
    node.context._to_save = ()
    node.context._recorded = True


def _saved_input(tensor: Tensor) -> Any:
    from flambeau.autograd.graph import save_input

    return save_input(tensor) if modes.watch.saving else tensor


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A `backward` whose own gradient raises."""

    def wrapper(ctx: Any, *args: Any) -> Any:
        before = modes.grad.enabled
        modes.grad.enabled = False
        try:
            outputs = function(ctx, *args)
        finally:
            modes.grad.enabled = before
        if not before or not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        many = isinstance(outputs, tuple)
        marked = mark_once(outputs if many else (outputs,))
        return marked if many else marked[0]

    return wrapper


class Error(Node):
    """Stands behind tensors whose gradient nobody may ask for."""

    __slots__ = ("message",)
    title = "Error"
    runs_on_nothing = True

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """Say so."""
        raise RuntimeError(self.message)


def mark_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Gradients of a formula that has no gradient of its own."""
    return delayed_error(TWICE, tuple(_as_leaf(value) for value in values))


def _as_leaf(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    leaf = alias_of(value)
    leaf._requires_grad = value._data.dtype.kind in "fcVW"
    return leaf


def delayed_error(message: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same tensors, whose gradients are an error with this message."""
    node = Error(*[edge_of(v) if isinstance(v, Tensor) else None for v in values])
    node.message = message
    node.outputs = len(values)
    results = list(values)
    for position, value in enumerate(values):
        if node.edges[position] is not None:
            results[position] = alias_of(value)
            _lead_to(results[position], node, position)
    return tuple(results)


def _lead_to(result: Tensor, node: Node, position: int) -> None:
    result._node = node if node.outputs == 1 else output_node(node, position)
    result._requires_grad = True


class InplaceFunction(Function):
    """The old base class of functions that can work in place. Use Function."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
