"""The node of a scan in the autograd graph: it gives the gradients that the loop's own nodes would
give, to whom they would give them, and raises where they would raise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler.kernel_source import NoForm
from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd import graph
from flambeau.autograd.graph import (
    Node,
    output_node,
    save_input,
    save_part,
    version_of,
)
from flambeau.autograd.history import edge_of
from flambeau.jit.optimise import faults
from flambeau.jit.optimise.fusion.saving import gradients, with_history
from flambeau.jit.optimise.fusion.symbols import NotFusible
from flambeau.jit.optimise.scans.course import Ends, Token


class ScanBackward(Node):
    """Computes all gradients of a loop by its backward kernel."""

    __slots__ = ("copies", "ends", "form", "kept", "outputs", "owners", "recorded", "scan",
                 "shapes", "value_versions", "values")  # fmt: skip
    title = "FusedBackward"
    composed = True  # of nodes that lead to fewer places each
    form: Any
    scan: Any
    ends: Ends
    recorded: list[int]  # which results have gradients
    owners: list[Token]  # whose memory the saved tensors are
    kept: tuple[Any, ...]  # arrays of the forward pass
    copies: dict[int, Any]  # arguments that operators would not save
    shapes: list[Any]
    values: tuple[Any, ...]  # the arguments, for gradients of gradients
    value_versions: list[int]
    sequence_number: int

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradients of the arguments, from those of the results."""
        if self.saved is None:
            raise RuntimeError(graph.FREED)
        grads = grad if isinstance(grad, list) else [grad]
        given = [k for k, g in zip(self.recorded, grads, strict=True) if g is not None]
        self._check(given)
        if modes.grad.enabled or modes.watch.interferes():
            return self._by_operators(grads)
        try:
            return self._by_kernels(grads, given)
        except (NotFusible, NoForm):
            return self._by_operators(grads)
        except Exception as error:
            return tuple(faults.plainly("scans", error, self._by_operators, grads))

    def _check(self, given: list[int]) -> None:
        """Raise if anything was written to that operators would read again for some results."""
        needed: frozenset[Token] = frozenset().union(*[self.ends.saved[k] for k in given])
        for position, owner in enumerate(self.owners):
            if owner in needed:
                graph.unpack(self, position)

    def _by_kernels(self, grads: list[Any], given: list[int]) -> tuple[Any, ...]:
        form = self.form
        whole = {k: g for k, g in zip(self.recorded, grads, strict=True) if g is not None}
        arrays = [whole[k]._data if k in whole else np.zeros(*self.shapes[k])
                  for k, has in enumerate(form.recorded) if has]  # fmt: skip
        found = form.run_backward(self.kept, self._arguments(), arrays)
        zeros = form.singular or len(given) < sum(form.recorded)
        if zeros and not form.all_finite(found):
            return self._by_operators(grads)  # there, zeros are not the same as no gradient
        reached: frozenset[int] = frozenset().union(*[self.ends.leaves[k] for k in given])
        return tuple([slope if position in reached else None
                      for position, slope in zip(form.wanted, found, strict=True)])  # fmt: skip

    def _arguments(self) -> dict[int, Any]:
        """What kernels read of the arguments, by position."""
        return {position: self.copies[position] if position in self.copies
                else self.values[position]._data for position in self.form.read_again}  # fmt: skip

    def _by_operators(self, grads: list[Any]) -> tuple[Any, ...]:
        """Gradients that can be differentiated again: the loop's operators are recorded anew, on
        aliases: an argument may have been computed from another one.
        """
        from flambeau.autograd import enable_grad

        with enable_grad():
            values = self._aliases()
            results = self.scan.plain(*values)
            results = results if isinstance(results, tuple) else (results,)
        recorded = [results[k] for k in self.recorded]
        return gradients(recorded, grads, [values[k] for k in self.form.wanted])

    def _aliases(self) -> list[Any]:
        """The arguments as they were when the loop ran, with the history that they had."""
        values = list(self.values)
        edges = dict(zip(self.form.wanted, self.edges, strict=True))
        for position, value in enumerate(values):
            if not isinstance(value, Tensor):
                continue
            if position in edges:
                values[position] = with_history(value, edges[position])
            if version_of(value) != self.value_versions[position]:
                values[position] = self._as_it_was(position, values[position])
        return values

    def _as_it_was(self, position: int, value: Tensor) -> Tensor:
        """An argument that was written to since."""
        if position not in self.copies:
            raise graph.modified_error(value, self.value_versions[position])
        copied: Tensor = wrap(self.copies[position])
        if position in self.form.wanted:
            copied._node, copied._requires_grad = value._node, True
        return copied

    def release(self) -> None:
        """Forget what was saved; where operators save nothing, that is nothing."""
        if self.saved:
            self.saved = None
            self.kept = self.values = ()
            self.copies = {}


def record(scan: Any, form: Any, values: Any, store: Any, results: list[Tensor]) -> None:
    """Put a node behind the results that have gradients."""
    ends = form.course.at(values[0])
    recorded = [k for k, learns in enumerate(ends.learns) if learns]
    if not recorded:
        return
    node = ScanBackward(*[edge_of(values[position]) for position in form.wanted])
    node.recorded = recorded
    node.scan, node.form, node.values, node.ends = scan, form, values, ends
    node.value_versions = [version_of(v) if isinstance(v, Tensor) else 0 for v in values]
    node.kept = tuple([store[place] for place in form.kept])
    node.shapes = [(r._data.shape, r._data.dtype) for r in results]
    node.outputs = len(node.recorded)
    for index, k in enumerate(node.recorded):
        results[k]._node = node if node.outputs == 1 else output_node(node, index)
        results[k]._requires_grad = True
    _save(node, results)


def _save(node: ScanBackward, results: list[Tensor]) -> None:
    """Save what operators would save. What they would not save for each of the results is copied,
    but for what nobody else can write to: kernels may read it again, and gradients of gradients do.
    """
    ends, values = node.ends, node.values
    needed: frozenset[Token] = frozenset().union(*ends.saved)
    node.owners, saved, versions = [], [], []
    for owner in needed:
        if owner[0] == "given":
            tensor = values[owner[1]]
            kept = save_input(tensor)
        elif owner in ends.owners:
            k = ends.owners.index(owner)
            tensor = results[k]
            learns = k in node.recorded
            kept = save_part(tensor, node.recorded.index(k)) if learns else save_input(tensor)
        else:
            continue
        node.owners.append(owner)
        saved.append(kept)
        versions.append(version_of(tensor))
    node.saved, node.versions = tuple(saved), tuple(versions)
    always = frozenset.intersection(*[ends.saved[k] for k in node.recorded])
    known = {owner[1] for owner in always if owner[0] == "given"} | node.scan.round.fresh
    node.copies = {position: values[position]._data.copy() for position in range(1, len(values))
                   if position not in known and isinstance(values[position], Tensor)}  # fmt: skip
