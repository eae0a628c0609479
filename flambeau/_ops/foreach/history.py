"""The history of operators over lists of tensors: one node for a whole list.

Each tensor of a list is recorded by the operator for single tensors, whose node knows the formulas.
The node of the list takes the place of these: it has an output for each of them, an edge for each
tensor of each list that was given, and lets the nodes of single tensors compute.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from flambeau._core import modes
from flambeau._ops.table.outputs import tensors_in
from flambeau._ops.table.pointwise import wants_grad
from flambeau._ops.table.recording import RowNode
from flambeau._tensor.tensor import Tensor, new
from flambeau.autograd.accumulation import total
from flambeau.autograd.engine import asked_for_all, look_at_saved
from flambeau.autograd.graph import (
    FREED,
    Node,
    PackedResult,
    SavedPart,
    SavedResult,
    alias_of,
    next_sequence_number,
    output_node,
)
from flambeau.autograd.history import edge_of
from flambeau.autograd.notes import note

NUMBERED: dict[str, dict[str, str]] = {
    **dict.fromkeys(("add", "sub", "mul"), {
        "List": "0List", "Scalar": "1Scalar", "ScalarList": "1ScalarList", "Tensor": "0Tensor"}),
    "div": {"List": "0", "Scalar": "1Scalar", "ScalarList": "1ScalarList", "Tensor": "0Tensor"},
    **dict.fromkeys(("clamp_max", "clamp_min", "lerp"), {
        "List": "1List", "Scalar": "0Scalar", "ScalarList": "0ScalarList"}),
    **dict.fromkeys(("maximum", "minimum"), {"List": "0List", "Scalar": "0", "ScalarList": "1"}),
    **dict.fromkeys(("addcdiv", "addcmul"), {"Scalar": "0Scalar", "ScalarList": "0ScalarList"}),
    "pow": {"List": "0", "Scalar": "0Scalar", "ScalarList": "1", "ScalarAndTensor": "2"},
    "max": {"": "1"},
}  # fmt: skip
"""The ends of PyTorch's names for the nodes, by overload; "0" where nothing is said."""


def title(name: str, overload: str) -> str:
    """What PyTorch calls the node of `_foreach_<name>`: `ForeachLog1PBackward0`."""
    words = re.sub(r"(?:^|_|(?<=[a-z]\d))([a-z])", lambda letter: letter[1].upper(), name)
    return f"Foreach{words}Backward{NUMBERED.get(name, {}).get(overload, '0')}"


Calls = list[tuple[tuple[Any, ...], dict[str, Any]]]


class ListNode(Node):
    """An operator over lists: an output for each tensor of the result.

    `parts`: the nodes of single tensors (None where there is none, as of integers), `starts`: where
    in `edges` those of each argument begin, `steps`: how far they are apart for two single nodes:
    0 for a tensor that all meet.
    """

    __slots__ = ("freed", "parts", "starts", "steps")
    takes_list = True
    freed: bool
    once = False
    """Whether it runs once only, also where nothing is saved that users could see."""
    parts: list[RowNode | None]
    starts: list[int]
    steps: list[int]

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradients of all lists from those of the results."""
        if self.freed:
            raise RuntimeError(FREED)
        if modes.watch.partial and self.hooks is not None:
            with asked_for_all():  # hooks are told of all of a list
                return self._gradients(grad)
        return self._gradients(grad)

    def _gradients(self, grad: Any) -> tuple[Any, ...]:
        found: list[Any] = [None] * len(self.edges)
        for index, (part, given) in enumerate(zip(self.parts, grad, strict=True)):
            if part is None:
                continue
            if given is None:
                look_at_saved(part)
                continue
            for operand, own in zip(part.operands, part.apply(given), strict=True):
                if own is not None:
                    place = self.starts[operand] + self.steps[operand] * index
                    known = found[place]
                    found[place] = own if known is None else total(known, own)
        return tuple(found)

    def lists(self) -> list[slice]:
        ends = [*self.starts[1:], len(self.edges)]
        return [slice(*ends_of_one) for ends_of_one in zip(self.starts, ends, strict=True)]

    def release(self) -> None:
        """Forget what was saved for each tensor."""
        self.freed = self.once
        for part in self.parts:
            if part is not None:
                part.release()

    @property
    def saved(self) -> Any:  # type: ignore[override]
        """All that is saved; None once it was freed."""
        kept = [part.saved for part in self.parts if part is not None]
        if self.freed or any(saved is None for saved in kept):
            return None
        return tuple([one for saved in kept for one in saved])

    @property
    def versions(self) -> Any:  # type: ignore[override]
        """The counts of writes that go with `saved`."""
        return tuple([one for part in self.parts if part is not None for one in part.versions])


SHOWN = {
    "ForeachDivBackward0": {"self": "self", "other": "other"},
    **{f"Foreach{name}Backward{number}": {"self": "self", word: bound}
       for name, bound in (("Maximum", "min"), ("Minimum", "max"))
       for number, word in ((0, "scalar"), (1, "scalars"))},
    "ForeachMmBackward0": {"self": "self", "mat2": "mat2"},
    "ForeachNormBackward0": {"self": "self", "result": "result", "ord": "ord"},
    "ForeachPowBackward0": {"self": "self", "exponent": "exponent", "result": "result"},
    "ForeachPowBackward1": {"self": "self", "exponent": "exponent"},
    "ForeachPowBackward2": {"self": "self", "exponent": "exponent", "result": "result"},
}  # fmt: skip
"""What nodes show as saved, by the names that it has in the nodes of single tensors."""
NUMBERS = {
    *[(f"Foreach{name}Backward{number}", word) for name in ("Maximum", "Minimum")
      for number, word in ((0, "scalar"), (1, "scalars"))],
    ("ForeachNormBackward0", "ord"), ("ForeachPowBackward1", "exponent"),
    ("ForeachPowBackward2", "self"),
}  # fmt: skip
"""Which of it are no tensors."""


def _shown(named: str) -> dict[str, property]:
    """The properties behind these names: `_saved_self`, `_raw_saved_self`."""
    found = {}
    for name, own in SHOWN.get(named, {}).items():
        number = (named, name) in NUMBERS
        alike = number and name in ("self", "scalar", "ord")
        found[f"_saved_{name}"] = property(partial(_of_parts, f"_saved_{own}", alike=alike))
        if not number:
            found[f"_raw_saved_{name}"] = property(partial(_of_parts, f"_raw_saved_{own}"))
    return found


def _of_parts(name: str, node: ListNode, *, alike: bool = False) -> Any:
    """What single nodes show by a name: of each, or of one if it is `alike` in all."""
    if node.saved is None:
        raise RuntimeError(FREED)
    found = [getattr(part, name) for part in node.parts if part is not None]
    return found[0] if alike else tuple(found)


@cache
def node_class(named: str) -> type[ListNode]:
    """The class of nodes of that name."""
    once = named.removeprefix("Foreach").partition("Backward")[0] in ("Add", "Sub", "Addcmul")
    shown = _shown(named)
    return type(named, (ListNode,), {"__slots__": (), "title": named, "once": once, **shown})


def learns(operands: Sequence[Any]) -> bool:
    """Whether a call with these operands is recorded."""
    return wants_grad(operands)


def together(named: str, function: Callable[..., Any], given: Sequence[Any],
             calls: Calls) -> tuple[Any, ...]:  # fmt: skip
    """The results of `function` for each of some calls, and one node for all of them.

    `given`: the arguments of the operator over lists, in the places that their tensors have in the
    single calls.
    """
    results = [function(*own, **more) for own, more in calls]
    if modes.grad.enabled and any(result._node is not None for result in results):
        return _recorded(named, function, given[: len(calls[0][0])], calls, results)
    return tuple(results)


def _recorded(named: str, function: Callable[..., Any], given: Sequence[Any], calls: Calls,
              results: list[Any]) -> tuple[Any, ...]:  # fmt: skip
    shown = _shown_to_all(given)
    for index, (own, more) in enumerate(calls if shown else ()):
        if any(id(value) in shown for value in own):
            operands = [shown.get(id(value), (value,))[-1] for value in own]
            results[index] = function(*operands, **more)
    made = [result._node for result in results]
    if not all(part is None or isinstance(part, RowNode) for part in made):
        return tuple(results)  # of tensors whose operators are no rows, such as sparse ones
    node = new(node_class(named))
    node.hooks, node.freed = None, False
    _lead_on(node, made, given)
    if any(part is not None and part.saved for part in made):
        _keep(node, made, {id(alias): original for original, alias in shown.values()})
    for index, result in enumerate(results):
        if result._data.dtype.kind in "fcVW":
            result._node, result._requires_grad = output_node(node, index), True
    return tuple(results)


def _shown_to_all(given: Sequence[Any]) -> dict[int, tuple[Tensor, Tensor]]:
    """What stands for the tensors of a list that do not learn while others of it do: formulas make
    gradients for these, too, which hooks of the node are told."""
    if modes.stacks.saved_hooks:
        return {}
    found = {}
    for value in given:
        if not isinstance(value, (list, tuple)):
            continue
        tensors = tensors_in([value])
        if all(tensor._requires_grad for tensor in tensors):
            continue
        learning = [tensor.requires_grad for tensor in tensors]
        if all(learning) or not any(learning):
            continue
        for tensor, learns_itself in zip(tensors, learning, strict=True):
            if not learns_itself and tensor._data.dtype.kind in "fcVW":
                alias = alias_of(tensor)
                alias._requires_grad = True
                found[id(tensor)] = tensor, alias
    return found


def _lead_on(node: ListNode, made: list[Any], given: Sequence[Any]) -> None:
    """Give a node its edges: for each tensor of each argument, in the order of these."""
    edges: list[Any] = []
    starts, steps = [], []
    for value in given:
        starts.append(len(edges))
        if isinstance(value, Tensor):
            edges.append(edge_of(value))
            steps.append(0)
        else:
            edges += map(edge_of, tensors_in([value]))
            steps.append(1)
    node.edges, node.outputs, node.parts = tuple(edges), len(made), made
    node.starts, node.steps = starts, steps
    node.sequence_number = next_sequence_number()
    if modes.watch.saving and modes.watch.anomaly:
        note(node, 5)


def _keep(node: ListNode, made: list[Any], originals: dict[int, Tensor]) -> None:
    """What single nodes have saved is the list's: its results lead to the node of the list."""
    reference = weakref.ref(node)
    for index, part in enumerate(made):
        if part is None or not part.saved:
            continue
        saved = part.saved
        if originals:
            saved = [originals.get(id(kept), kept) for kept in saved]
        part.saved = tuple([
            kept if kept.__class__ is Tensor else of_list(kept, reference, index) for kept in saved
        ])  # fmt: skip


def of_list(kept: Any, source: Callable[[], Any], index: int) -> Any:
    """What a part of a node keeps, if it is the part's result, as the result `index` of the node
    that `source` gives."""
    one: Any
    if type(kept) is SavedResult:
        one = new(SavedPart)
        one.data, one.counter, one.ref = kept.data, kept.counter, _nothing
        if hasattr(kept, "tangents"):
            one.tangents = kept.tangents
    elif type(kept) is PackedResult:
        one = new(PackedResult)
        one.edge, one.packed, one.unpack = kept.edge, kept.packed, kept.unpack
    else:
        return kept
    one.source, one.index = source, index
    return one


def _nothing() -> None:
    return None
