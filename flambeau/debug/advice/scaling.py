"""Gradients that are still multiplied by the scale of a GradScaler."""

from __future__ import annotations

import weakref
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.autograd.graph import Node
from flambeau.debug.advice.base import Topic
from flambeau.debug.places import Line


class Scaled(Topic):
    """Follows which parameters have gradients of a scaled loss, not divided by the scale yet."""

    def __init__(self, found: Any) -> None:
        super().__init__(found)
        self.roots: dict[int, Any] = {}  # by id: nodes of scaled losses
        self.leaves: dict[int, Any] = {}  # by id: parameters
        self.factor = 1.0

    def scaled(self, result: Tensor, scaler: Any) -> None:
        """Remember the node of a scaled loss."""
        if result._node is not None:
            self.roots[id(result._node)] = weakref.ref(result._node)
            self.factor = scaler.get_scale()

    def backward(self, roots: list[Any], line: Line) -> None:
        """Remember the leaves that a scaled loss has gradients for."""
        scaled = [root for root in roots if root is not None and self._is_scaled(root)]
        if not scaled:
            return
        for leaf in leaves_of(scaled):
            self.leaves[id(leaf)] = weakref.ref(leaf)
        self.roots.clear()

    def _is_scaled(self, root: Any) -> bool:
        """A scaled loss, or a sum of such."""
        node = getattr(root, "source", root)
        nodes = [node, *(getattr(node, "edges", None) or ())]
        return any(id(n) in self.roots and self.roots[id(n)]() is n for n in nodes)

    def unscaled(self, optimizer: Any) -> None:
        """The gradients of an optimizer are divided by the scale now."""
        for parameter in parameters_of(optimizer):
            self.leaves.pop(id(parameter), None)

    def updated(self, scaler: Any) -> None:
        """The iteration is over."""
        self.leaves.clear()

    def still_scaled(self, parameters: list[Any]) -> int:
        """How many of the parameters have scaled gradients."""
        found = 0
        for parameter in parameters:
            known = self.leaves.get(id(parameter))
            found += known is not None and known() is parameter and parameter._grad is not None
        return found


def parameters_of(optimizer: Any) -> list[Any]:
    """Of all groups."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def leaves_of(roots: list[Any]) -> list[Any]:
    """The tensors that gradients of these nodes end in."""
    found, seen, stack = [], set(), list(roots)
    while stack:
        edge = stack.pop()
        if edge is None or id(edge) in seen:
            continue
        seen.add(id(edge))
        if isinstance(edge, Tensor):
            found.append(edge)
        elif isinstance(edge, Node):
            variable = getattr(edge, "variable", None)
            found += [variable] if isinstance(variable, Tensor) else []
            stack.extend([*edge.edges, getattr(edge, "source", None)])
    return found


class ScaledClipping(Scaled):
    """`clip_grad_norm_` between `scaler.scale(loss).backward()` and `scaler.step(optimizer)`."""

    title = "clipping of scaled gradients"

    def clip(self, parameters: list[Tensor], line: Line) -> None:
        """Compare with the parameters that are scaled."""
        count = self.still_scaled(parameters)
        if not count:
            return
        text = (f"{count} gradients are multiplied by {self.factor:,.0f} when they are clipped: "
                "the limit is smaller by that factor")  # fmt: skip
        better = """\
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
scaler.step(optimizer)"""
        self.add(line, text, better)


class ScaledStep(Scaled):
    """`optimizer.step()` where `scaler.step(optimizer)` was meant."""

    title = "a step with scaled gradients"

    def step(self, optimizer: Any, line: Line) -> None:
        """Compare with the parameters that are scaled; `scaler.step` has unscaled them."""
        count = self.still_scaled(parameters_of(optimizer))
        if not count:
            return
        text = f"{count} gradients are still multiplied by {self.factor:,.0f}"
        self.add(line, text, "scaler.step(optimizer)\nscaler.update()", unit="step")
