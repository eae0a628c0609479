"""The node of a group in the autograd graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._compiler.kernel_source import NoForm
from flambeau._core import modes
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.autograd import graph
from flambeau.autograd.graph import Node, output_node, save_input, version_of
from flambeau.autograd.history import edge_of
from flambeau.jit.optimise import faults
from flambeau.jit.optimise.fusion import saving
from flambeau.jit.optimise.fusion.symbols import NotFusible


class FusedBackward(Node):
    """Computes all gradients of a group by its backward kernels."""

    __slots__ = ("form", "group", "kept", "outputs", "results", "shapes", "value_versions",
                 "values")  # fmt: skip
    title = "FusedBackward"
    composed = True  # of nodes that lead to fewer places each
    form: Any
    group: Any
    kept: tuple[Any, ...]  # arrays of the forward pass
    shapes: list[Any]  # (shape, dtype) of each result with gradients
    values: tuple[Any, ...]  # the arguments, for gradients of gradients
    results: tuple[Any, ...]  # those that operators save: what is kept, its version, who made it
    value_versions: list[int]
    sequence_number: int

    def apply(self, grad: Any) -> tuple[Any, ...]:
        """The gradients of the arguments, from those of the results."""
        if self.saved is None:
            raise RuntimeError(graph.FREED)
        grads = grad if isinstance(grad, list) else [grad]
        self._check(grads)
        inputs = [self.values[position] for position, _ in self.form.kept_inputs]
        if modes.grad.enabled or modes.watch.interferes():
            return self._by_operators(grads)
        given = [wrap(np.zeros(shape, dtype)) if g is None else g
                 for g, (shape, dtype) in zip(grads, self.shapes, strict=True)]  # fmt: skip
        try:
            found: tuple[Any, ...] = self.form.run_backward(self.kept, inputs, given)
        except (NotFusible, NoForm):
            return self._by_operators(grads)
        except Exception as error:
            return faults.plainly(self.group.part, error, self._by_operators, grads)  # type: ignore[no-any-return]
        return self._only_reached(grads, found) if any(g is None for g in grads) else found

    def _check(self, grads: list[Any]) -> None:
        """Raise if anything was written to that operators read again for the results that have
        gradients."""
        form = self.form
        pairs = zip(grads, form.needed, strict=True)
        needed = [saved for grad, saved in pairs if grad is not None]
        for k, position in enumerate(form.saved):
            if any(position in saved.arguments for saved in needed):
                graph.unpack(self, k)
        for number, (kept, version, title) in zip(form.checked, self.results, strict=True):
            if any(number in saved.titles for saved in needed):
                _check_result(kept, version, title)

    def _only_reached(self, grads: list[Any], found: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients where some results get none. Zeros have taken their place: what only they lead
        to has no gradient, and where 0 met inf, or nan, the operators have to say what comes out.
        """
        pairs = zip(grads, self.form.reached, strict=True)
        reached = frozenset().union(*[positions for g, positions in pairs if g is not None])
        kept = [g if position in reached else None
                for position, g in zip(self.form.wanted, found, strict=True)]  # fmt: skip
        if any(np.isnan(g._data).any() for g in kept if g is not None):
            return self._by_operators(grads)
        return tuple(kept)

    def _by_operators(self, grads: list[Any]) -> tuple[Any, ...]:
        """Gradients that can be differentiated again: the group's operators are recorded anew, on
        aliases: an argument may have been computed from another one.
        """
        from flambeau.autograd import enable_grad

        changed = self._changed()
        values = list(self.values)
        with enable_grad():
            for position, edge in zip(self.form.wanted, self.edges, strict=True):
                values[position] = saving.with_history(values[position], edge)
            results = self.group.plain(*values)
            results = results if isinstance(results, tuple) else (results,)
        if changed:
            kept = dict(zip(self.form.kept, self.kept, strict=True))
            arrays = {slot: kept[place] for slot, place in self.form.slots.items()}
            saving.put_back(results, [values[k]._node for k in self.form.wanted], arrays)
        recorded = [r for r, has in zip(results, self.form.recorded, strict=True) if has]
        return saving.gradients(recorded, grads, [values[k] for k in self.form.wanted])

    def _changed(self) -> bool:
        """Whether an argument was written to since. What operators have computed from it and saved
        has a place, and is put back; an error where it has none."""
        pairs = enumerate(zip(self.values, self.value_versions, strict=True))
        changed = [(position, value, version) for position, (value, version) in pairs
                   if isinstance(value, Tensor) and version_of(value) != version]  # fmt: skip
        for position, value, version in changed:
            if position in self.form.lost:
                raise graph.modified_error(value, version)
        return bool(changed)

    def release(self) -> None:
        """Forget what was saved."""
        self.saved = None
        self.kept = self.values = self.results = ()


def record(group: Any, form: Any, values: Any, store: Any, results: list[Any]) -> None:
    """Put a node behind the results that have gradients."""
    node = FusedBackward(*[edge_of(values[position]) for position in form.wanted])
    saved = [values[position] for position in form.saved]
    node.saved = tuple([save_input(tensor) for tensor in saved])
    node.versions = tuple([version_of(tensor) for tensor in saved])
    node.group, node.form, node.values = group, form, values
    node.value_versions = [version_of(v) if isinstance(v, Tensor) else 0 for v in values]
    node.kept = tuple([store[place] for place in form.kept])
    node.results = tuple([(_saved_result(form, number, results[number]),
                           version_of(results[number]), title)
                          for number, title in form.checked.items()])  # fmt: skip
    recorded = [r for r, has in zip(results, form.recorded, strict=True) if has]
    node.outputs = len(recorded)
    node.shapes = [(r._data.shape, r._data.dtype) for r in recorded]
    for index, result in enumerate(recorded):
        result._node = node if len(recorded) == 1 else output_node(node, index)
        result._requires_grad = True


def _saved_result(form: Any, number: int, result: Tensor) -> Any:
    """A result that operators save: itself, where it has no gradient and so does not lead here."""
    return graph.save_result(result) if form.recorded[number] else result


def _check_result(kept: Any, version: int, title: str) -> None:
    """Raise if a result that operators save was written to since."""
    if not isinstance(kept, Tensor):
        graph.check_result(kept, version, title)
    elif version_of(kept) != version:
        raise graph.modified_error(kept, version)
