"""History of views and of in-place writes.

A view shares memory with its base. A recorded in-place write to the base gives the base a new node
and makes the nodes of its views stale; a write to a view is recorded on the base as `CopySlices`.
Stale views get a fresh node, `AsStridedBackward0` of the base, when they are next used.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from flambeau._core import modes
from flambeau._core.dtype import BY_NUMPY
from flambeau._core.parts import part_type
from flambeau._runtime.cpu import address, copy, element_strides, owner_of
from flambeau._tensor.numberless import Numberless
from flambeau._tensor.tensor import Tensor, memory_of, new, provides
from flambeau.autograd.graph import (
    FREED,
    AliasBackward0,
    Node,
    OutputNode,
    SavedOfView,
    SavedResult,
    alias_of,
    next_sequence_number,
    short_title,
    tools,
)
from flambeau.autograd.tangents import copy_tangents
from flambeau.autograd.versions import bump, rewritten, version_of

__all__ = ["alias_of", "bump", "rewritten", "version_of"]  # for those who record, too


def edge_of(tensor: Tensor) -> Any:
    """Where gradients of a tensor go: its node, itself if it is a leaf, or None."""
    base = tensor._base
    if base is None:
        if not tensor._requires_grad:
            return None
        return tensor if tensor._node is None else tensor._node
    if not (tensor._requires_grad or base._requires_grad):
        return None
    _refresh(tensor, base)
    if tensor._node is None:  # a view may be a leaf of its own, unless its base has a history
        unrecorded = tensor._creation in UNRECORDED and base._requires_grad
        return Nowhere() if unrecorded else tensor
    return tensor._node


UNRECORDED = ("no_grad", "inference")
LEARNING = "learning"
"""The creation of an unrecorded view that was told to require grad: it is a leaf of its own."""


class Nowhere(Node):
    """Where gradients of an unrecorded view go: it requires grad, as its base does, and yet no
    gradient can flow to the base."""

    __slots__ = ()
    title = "Nowhere"

    def apply(self, grad: Any) -> tuple[Any, ...]:
        return ()


def _refresh(view: Tensor, base: Tensor) -> None:
    """Give a view whose memory was written to since a node that starts from its base."""
    version = version_of(view)
    if view._view_version == version:
        return
    if not base._requires_grad and view._node is None:
        return
    if view._creation:
        raise RuntimeError(_creation_error(view, INDIRECT))
    node = _view_node(base, view)
    if view._retain is not None:
        view._retain.move(view, node)
    view._node = node
    view._requires_grad = True
    view._view_version = version


@provides("grad_fn")
def grad_fn(tensor: Tensor) -> Node | None:
    """The public `grad_fn`."""
    if tensor._base is not None:
        edge_of(tensor)
    node = tensor._node
    if node is None:
        return None
    return node.source if type(node) is OutputNode else node.public()


class Geometry:
    """Shape, strides and offset of a tensor within its base, in elements of the base's type.

    reals: whether the two are views of one memory as real and as complex numbers. Both are then
    taken as real ones, a complex tensor with a last dim of two.
    """

    __slots__ = ("offset", "reals", "shape", "strides")

    def __init__(self, data: Any, base_data: Any, reals: bool) -> None:
        self.reals = reals
        self.shape, self.strides = data.shape, element_strides(data)
        distance = _distance(data, base_data) if data.size else 0
        if reals and data.dtype.kind in "cW":
            self.shape = (*self.shape, 2)
            self.strides = (*[2 * stride for stride in self.strides], 1)
            self.offset = distance // (data.itemsize // 2)
        else:
            self.offset = distance // data.itemsize


def _lies_apart(data: Any, base_data: Any) -> bool:
    """Whether a view lies in other memory than its base: one of them was given it since."""
    whole, own = owner_of(base_data), owner_of(data)
    return whole is not own and not (
        address(whole) <= address(data) < address(whole) + whole.nbytes
    )


def _distance(data: Any, base_data: Any) -> int:
    """Bytes from the start of a base to that of its view. A base that was given other memory
    (`set_`) is taken to have its view at the same place of that."""
    if not _lies_apart(data, base_data):
        return address(data) - address(base_data)
    place = (address(base_data) - address(owner_of(base_data))) // base_data.itemsize
    return address(data) - address(owner_of(data)) - place * data.itemsize


class Window:
    """A view as a part of its base: how a gradient gets from one to the other."""

    __slots__ = ("base", "complex", "conjugated", "negated", "view")

    def __init__(self, base: Tensor, view: Tensor) -> None:
        whole, data = memory_of(base), memory_of(view)
        reals = whole.dtype != data.dtype
        if reals and _lies_apart(data, whole):
            reals = False  # it was given memory of another type
        elif reals and part_type(whole.dtype) != part_type(data.dtype):
            raise RuntimeError(
                f"no gradient is defined for {base.dtype} memory that was written to, as a view of "
                f"type {BY_NUMPY[data.dtype]}"
            )
        self.complex = whole.dtype.kind in "cW", data.dtype.kind in "cW"
        self.view, self.base = Geometry(data, whole, reals), Geometry(whole, whole, reals)
        self.conjugated = base._conjugated != view._conjugated and self.complex[1]
        self.negated = base._negated != view._negated
        if base._conjugated and not self.complex[1] and self.view.offset % 2:
            self.negated = not self.negated  # the imaginary part of a conjugate

    def grad(self, grad: Any) -> Any:
        """The gradient of the base from that of the view; zeros elsewhere."""
        base, view = self.base, self.view
        if self.conjugated:
            grad = tools.conj(grad)
        if self.negated:
            grad = tools.neg(grad)
        if view.reals and self.complex[1]:
            grad = tools.view_as_real(tools.resolve_conj(grad))
        found = tools.as_strided_grad(
            grad, base.shape, base.strides, 1, view.shape, view.strides, view.offset
        )
        return tools.view_as_complex(found) if view.reals and self.complex[0] else found

    def own_layout(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """Shape, strides and offset of the view in elements of its own type."""
        shape, strides, offset = self.view.shape, self.view.strides, self.view.offset
        if not (self.view.reals and self.complex[1]):
            return shape, strides, offset
        return shape[:-1], tuple([stride // 2 for stride in strides[:-1]]), offset // 2

    def title(self) -> str:
        """What torch calls the node of a view that has none to tell how it was made: one that
        differs from its base by the type or a bit alone is made again as such."""
        same = self.view.strides == self.base.strides and self.view.shape == self.base.shape
        if same and self.conjugated != self.negated:
            return "ConjBackward0" if self.conjugated else "NegViewBackward0"
        if same and self.complex[0] != self.complex[1]:
            return "ViewAsComplexBackward0" if self.complex[1] else "ViewAsRealBackward0"
        return "AsStridedBackward0"

    def empty(self, like: Any) -> Any:
        """New memory laid out as the base."""
        shape, strides = self.base.shape, self.base.strides
        if self.base.reals and self.complex[0]:
            shape, strides = shape[:-1], tuple([stride // 2 for stride in strides[:-1]])
        return tools.new_empty_strided(like, shape, strides)

    def of(self, tensor: Any) -> Any:
        """The part of a tensor that is laid out as the base."""
        view = self.view
        if view.reals and self.complex[0]:
            tensor = tools.view_as_real(tensor)
        part = tools.as_strided(tensor, view.shape, view.strides, view.offset)
        if view.reals and self.complex[1]:
            part = tools.view_as_complex(part)
        if self.conjugated:
            part = tools.conj(part)
        return tools.negated(part) if self.negated else part


class ViewNode(Node):
    """A view as a part of its base, after the history that it was made with is stale."""

    __slots__ = ("window",)
    window: Window

    def apply(self, grad: Any) -> tuple[Any, ...]:
        return (self.window.grad(grad),)


class AsStridedBackward0(ViewNode):
    """A view as its base's elements at given strides and offset, in elements of its own type."""

    __slots__ = ()
    title = "AsStridedBackward0"
    _saved_size = property(lambda node: node.window.own_layout()[0])
    _saved_stride = property(lambda node: node.window.own_layout()[1])
    _saved_storage_offset = property(lambda node: node.window.own_layout()[2])


_UNSTRIDED = ("ConjBackward0", "NegViewBackward0", "ViewAsRealBackward0", "ViewAsComplexBackward0")
UNSTRIDED: dict[str, type[ViewNode]] = {
    title: type(title, (ViewNode,), {"__slots__": (), "title": title}) for title in _UNSTRIDED
}
"""Nodes of views that strides alone do not describe: these are made again as what they were."""


def _view_node(base: Tensor, view: Tensor) -> ViewNode:
    """A new history for a view, whose node says how it was made if it has one."""
    window = Window(base, view)
    title = window.title() if view._node is None else getattr(view._node, "title", "")
    return _node_of(window, title, edge_of(base))


def _node_of(window: Window, title: str, edge: Any) -> ViewNode:
    node = UNSTRIDED.get(title, AsStridedBackward0)(edge)
    node.window = window
    return node


class CopySlices(Node):
    """A recorded write to a view, seen from the base."""

    __slots__ = ("freed", "inner", "window")
    title = "CopySlices"

    def __init__(self, base: Tensor, view: Tensor, inner: Node) -> None:
        super().__init__(edge_of(base), *inner.edges[1:])
        inner.edges = self.edges
        self.inner, self.freed = inner, False
        self.window = Window(base, view)

    def apply(self, grad: Any) -> tuple[Any, ...]:
        if self.freed:
            raise RuntimeError(FREED)
        result = self.window.empty(grad)
        result.copy_(grad)
        part = self.window.of(result)
        inner = self.inner.apply(tools.clone(part))
        if self.edges[0] is None:
            return (None, *inner[1:])
        if inner[0] is None:
            part.zero_()
        else:
            part.copy_(inner[0])
        return (result, *inner[1:])

    def name(self) -> str:
        return f"torch::autograd::{self.title}"

    def release(self) -> None:
        self.inner.release()
        self.freed = True


def begin_anew(leaf: Tensor) -> None:
    """Part a leaf that gets other memory from the graph so far: its nodes still fill `.grad`, but
    they do not lead to the leaf where its gradient is asked for."""
    leaf._began = next_sequence_number()
    modes.watch.renewed = True
    known = leaf._accumulator and leaf._accumulator()
    if known is not None:
        known.end(leaf._began)
    leaf._accumulator = None


# ---- in-place writes

MULTIPLE = (
    "Output {index} of {title} is a view and {verb} modified inplace. This view is the output of a "
    "function that returns multiple views. Such functions do not allow the output views to be "
    "modified inplace. You should replace the inplace operation by an out-of-place one."
)
NO_GRAD_VIEW = (
    "A view was created in no_grad mode and {verb} modified inplace with grad mode enabled. Given "
    "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code "
    "by moving both the view and the inplace either both inside the no_grad block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
WITHOUT_NODE = (
    "A view was created in no_grad mode and {verb} modified inplace with grad mode enabled."
)
INFERENCE_VIEW = (
    "A view was created in inference mode and {verb} modified inplace in normal mode. Given that "
    "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the inference_mode block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
CUSTOM_FUNCTION = (
    "Output {index} of {title} is a view and {verb} modified inplace. This view was created inside "
    "a custom Function (or because an input was returned as-is) and the autograd logic to handle "
    "view+inplace would override the custom backward associated with the custom Function, leading "
    "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of "
    "the custom Function."
)
REASONS = {
    "no_grad": NO_GRAD_VIEW, "inference": INFERENCE_VIEW, "multiple": MULTIPLE,
    "custom": CUSTOM_FUNCTION, LEARNING: NO_GRAD_VIEW,
}  # fmt: skip
DIRECT = "is being"
INDIRECT = "its base or another view of its base has been"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW = "a view of a leaf Variable that requires grad is being used in an in-place operation."
INFERENCE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
    "to get a normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17"
    " for more details."
)


def is_inference(tensor: Tensor) -> bool:
    """Whether a tensor, or what it is a view of, was made in inference mode."""
    root = tensor._root
    return tensor._inference if root is None else tensor._inference or root._inference


on_write: list[Callable[[Tensor], None]] = []
"""Who is told of writes while `watch.results` is on; others may take shorter ways."""


def check_inplace(tensor: Tensor, recorded: bool, *, leaf: bool = True) -> None:
    """Raise torch's errors for writes that are not allowed. Call before the memory changes.

    `recorded`: whether the write would be recorded (grad mode on, and an input requires grad).
    `leaf`: whether leaves that require grad are refused.
    """
    for about_to_change in on_write:
        about_to_change(tensor)
    if is_inference(tensor) and not (modes.grad.inference or tensor._counts):
        raise RuntimeError(INFERENCE)
    if not leaf or not modes.grad.enabled:
        return
    base = tensor._base
    if base is None:
        if tensor._requires_grad and tensor._node is None:
            raise RuntimeError(LEAF)
        return
    if tensor._creation and (recorded or base._requires_grad):
        raise RuntimeError(_creation_error(tensor, DIRECT))
    if base._node is None and (base._requires_grad or tensor._requires_grad):
        raise RuntimeError(LEAF_VIEW)
    if tensor._node is None and (tensor._requires_grad or base._requires_grad):
        raise RuntimeError(LEAF)  # its base gained history, which this view has not taken up yet


def _creation_error(view: Tensor, verb: str) -> str:
    node = getattr(view._node, "source", view._node)
    title = "None" if node is None else short_title(node)
    text = REASONS[view._creation].format(index=view.output_nr, title=title, verb=verb)
    unrecorded = view._creation in (*UNRECORDED, LEARNING)
    if node is None and not unrecorded:
        return f"{WITHOUT_NODE.format(verb=verb)} {text.partition('. ')[2]}"
    if node is None or not unrecorded:
        return text
    of_a_view = f"Output {view.output_nr} of {title} is a view of a view which"
    return text.replace("A view", of_a_view, 1)


def snapshot(tensor: Tensor) -> Tensor:
    """A copy with the history that a tensor has now: what formulas need from before a write."""
    result = new(Tensor)
    data = tensor._data
    result._data = data.copy() if isinstance(data, Numberless) else copy(data)
    edge = edge_of(tensor)
    if edge is not None and type(edge) is not Nowhere:
        result._node = edge if isinstance(edge, Node) else AliasBackward0(edge)
        result._requires_grad = True
    if tensor._tangents is not None:
        copy_tangents(tensor, result)
    return result  # type: ignore[no-any-return]


def from_before(target: Tensor, operands: Any) -> Any:
    """Operands of a write as they are to be saved: hooks that pack what is saved run after it, so
    what lies in the target's memory is copied for them."""
    if not modes.stacks.saved_hooks:
        return operands
    root = target if target._root is None else target._root
    return [snapshot(v) if _lies_with(v, root) else v for v in operands]


def _lies_with(value: Any, root: Tensor) -> bool:
    return isinstance(value, Tensor) and (value is root or value._root is root)


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node` the history of a tensor that was just written to (after `bump`)."""
    base = tensor._base
    if base is None:
        _adopt(tensor, node)
        return
    slices = CopySlices(base, tensor, node)
    _adopt(base, slices)
    _refresh(tensor, base)
    for kept in node.saved or ():
        if isinstance(kept, SavedResult):
            if kept.__class__ is SavedResult:
                kept.__class__ = SavedOfView  # type: ignore[assignment]
            kept.of_view = weakref.ref(tensor._node)
            kept.history = partial(_view_after, weakref.ref(slices))


def _view_after(slices: Callable[[], CopySlices | None]) -> Node:
    """The view that was written to, as a part of its base after the write. It runs in backward of
    that very write, which is therefore still there."""
    written = slices()
    assert written is not None
    return _node_of(written.window, written.window.title(), written)


def _adopt(tensor: Tensor, node: Node) -> None:
    if not tensor._requires_grad:
        tensor._requires_grad = True
        rewritten.add(tensor)
    if tensor._retain is not None:
        tensor._retain.move(tensor, node)
    tensor._node = node


# ---- making views


def view_of(base: Tensor, data: Any) -> Tensor:
    """A tensor over `data`, a view of the memory of `base` (no history yet)."""
    result = new(Tensor)
    result._data = data
    if base._root is None:
        result._root = result._base = base
        if base._version_count:
            result._view_version = base._version_count
    else:
        join_family(base, result)
    if base._requires_grad or base._creation:
        limit_view(base, result)
    return result  # type: ignore[no-any-return]


def join_family(source: Tensor, view: Tensor) -> None:
    """Tell a new view of a tensor that shares memory itself which tensors it belongs to."""
    root: Any = source._root
    view._root = root
    view._base = source if source._base is None else source._base
    if root._version_count:
        view._view_version = root._version_count


def limit_view(source: Tensor, view: Tensor) -> bool:
    """Note on a view of a tensor why in-place writes to it may be wrong; False: it is not recorded,
    since autograd knows nothing of what was made in inference mode."""
    if source._inference:
        view._base = None
        return False
    if not modes.grad.enabled:
        base = source if source._base is None else source._base
        if base._requires_grad:
            view._requires_grad = True
        view._creation = _why_unrecorded()
    elif source._creation:
        view._creation = source._creation
    return True


def _why_unrecorded() -> str:
    return "inference" if modes.grad.inference else "no_grad"


def views_of(base: Tensor, parts: Any) -> tuple[Tensor, ...]:
    """Tensors over several views of the memory of `base`, made by one operator."""
    root = base if base._root is None else base._root
    family = base if base._base is None else base._base
    version = root._version_count
    recording = modes.grad.enabled
    limited = family._requires_grad and not recording
    creation = "multiple" if recording else _why_unrecorded()
    results = []
    for part in parts:
        result = new(Tensor)
        result._data = part
        result._root = root
        result._base = family
        result._creation = creation
        if version:
            result._view_version = version
        if limited:
            result._requires_grad = True
        results.append(result)
    return tuple(results)
