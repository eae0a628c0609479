"""What runs in the place of a group: kernels and operators, on numbered arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau._compiler.fuse import Formula
from flambeau._ops.launching import loop_plans
from flambeau._ops.launching.loop_plans import Fusion
from flambeau._ops.rows import launch as rows
from flambeau._ops.rows import whole_arrays as row_ops
from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.fusion.symbols import NotFusible, Source

Store = list[Any]
SUMS = 32
"""Parts of a sum over rows at most."""


class Output:
    """An array that a kernel fills: new memory of a shape, or a part of one."""

    __slots__ = ("dtype", "place", "shape", "source")

    def __init__(self, place: int, shape: tuple[int, ...], dtype: Any,
                 source: Source | None = None) -> None:  # fmt: skip
        self.place = place
        self.shape = shape
        self.dtype = dtype
        self.source = source  # the part that is written; the memory is there then

    def array(self, store: Store) -> np.ndarray:
        """Where the kernel writes to."""
        if self.source is None:
            made = store[self.place] = np.empty(self.shape, self.dtype)
            return made
        if self.source.start == 0:
            store[self.place] = np.empty(self.shape, self.dtype)
        return self.source.of(store[self.place])


class Loops:
    """One loop over all elements; operands broadcast."""

    def __init__(self, fusion: Fusion, sources: Sequence[Source],
                 outputs: Sequence[Output]) -> None:  # fmt: skip
        self.fusion = fusion
        self.sources = tuple(sources)
        self.outputs = tuple(outputs)
        self.bases = list(dict.fromkeys(source.place for source in sources))
        self.ready: dict[Any, Any] = {}  # strides of the arrays -> what is known then

    def run(self, store: Store) -> None:
        """Read, compute, write."""
        bases = [store[place] for place in self.bases]
        outs = [output.array(store) for output in self.outputs]
        key = tuple([array.strides for array in bases])
        ready = self.ready.get(key)
        if ready is None:
            ready = self.ready[key] = self._prepare(store, bases, outs)
        plan, parts = ready
        if plan.align:
            plan.run([source.of(store[source.place]) for source in self.sources], outs)
            return
        starts = [address(array) for array in bases]
        pointers = [starts[base] + offset for base, offset in parts]
        plan.kernel.parallel(plan.tasks, *pointers, *outs, *plan.rest)

    def _prepare(self, store: Store, bases: list[np.ndarray], outs: list[np.ndarray]) -> Any:
        """The plan, and for each pointer its array and how many bytes behind it it lies."""
        arrays = [source.of(store[source.place]) for source in self.sources]
        plan = loop_plans.make_plan(self.fusion, arrays, outs)
        if plan is None:
            raise NotFusible("operands that lie across results")
        parts = []
        for k in range(len(arrays)) if plan.pointers is None else plan.pointers:
            base = self.bases.index(self.sources[k].place)
            parts.append((base, address(arrays[k]) - address(bases[base])))
        return plan, parts


class Rows:
    """A row formula over [rows, n]: kinds say how each operand lies to the rows."""

    def __init__(self, formula: Formula, compute: Any, sources: Sequence[Source],
                 outputs: Sequence[Output], shape: tuple[int, ...],
                 summed: Sequence[bool]) -> None:  # fmt: skip
        self.formula = formula
        self.compute = rows.compute_type(compute)
        self.dtype = compute
        self.sources = tuple(sources)
        self.kinds = tuple(formula.kinds.values())
        self.outputs = tuple(outputs)
        self.n = shape[-1]
        self.rows = int(np.prod(shape[:-1], dtype=np.int64))
        self.summed = tuple(summed)
        size = self.n * self.rows
        self.tasks = max(min(SUMS, self.rows // 8, size // rows.GRAIN), 1)

    def run(self, store: Store) -> None:
        """Read, compute, write; sums over rows come in parts, one for each task."""
        pairs = zip(self.kinds, self.sources, strict=True)
        inputs = tuple([self._input(kind, s.of(store[s.place])) for kind, s in pairs])
        arrays = [np.empty(self.tasks * self.n, self.dtype) if down else output.array(store)
                  for down, output in zip(self.summed, self.outputs, strict=True)]  # fmt: skip
        flat = tuple([a if down else a.reshape(-1, self.n) if a.size == self.rows * self.n
                      else a.reshape(-1)
                      for a, down in zip(arrays, self.summed, strict=True)])  # fmt: skip
        steps, sizes = (self.n, 0), (self.rows, 1, self.n)
        if not any(self.summed):
            row_ops.launch("along", self.formula, self.compute, inputs, flat, steps, sizes)
            return
        rows.run("along", self.formula, self.compute, inputs, flat, steps, sizes, self.tasks)
        for array, down, output in zip(arrays, self.summed, self.outputs, strict=True):
            if down:
                total = np.add.reduce(array.reshape(self.tasks, self.n), 0, np.float64)
                store[output.place] = total.astype(output.dtype).reshape(output.shape)

    def _input(self, kind: str, array: np.ndarray) -> Any:
        if kind == "number":
            return array.item()
        array = np.ascontiguousarray(array)
        return array if kind == "full" else array.reshape(-1)


class Call:
    """An operator between kernels."""

    def __init__(self, function: Callable[..., Any], values: Sequence[Any],
                 places: Sequence[int | None]) -> None:  # fmt: skip
        self.function = function
        self.values = tuple(values)
        self.places = tuple(places)

    def run(self, store: Store) -> None:
        """Call it with tensors."""
        result = self.function(*[_tensors(store, value) for value in self.values])
        results = result if isinstance(result, (tuple, list)) else (result,)
        for place, tensor in zip(self.places, results, strict=True):
            if place is not None:
                store[place] = tensor._data


def _tensors(store: Store, value: Any) -> Any:
    if isinstance(value, Source):
        return wrap(value.of(store[value.place]))
    if isinstance(value, list):
        return [_tensors(store, item) for item in value]
    return value


class Form:
    """A group for arguments of given types, shapes and strides.

    forward, backward: steps in order. results: places of the results, or the values of those that
    are no tensors. given: places of the tensors among the arguments.
    """

    def __init__(self) -> None:
        self.places = 0
        self.forward: list[Any] = []
        self.backward: list[Any] = []
        self.given: list[tuple[int, int]] = []  # (position among the arguments, place)
        self.results: list[int | None] = []  # a place, or None for a constant
        self.constants: list[Any] = []
        self.recorded: list[bool] = []  # which results have gradients
        self.wanted: list[int] = []  # positions of the arguments that gradients are wanted for
        self.kept: list[int] = []  # places of the forward pass that the backward pass reads
        self.kept_inputs: list[tuple[int, int]] = []  # as `given`
        self.grads: list[int] = []  # places of the results' gradients
        self.slopes: list[Source | None] = []  # where the gradients of `wanted` lie
        self.reached: list[frozenset[int]] = []  # positions that each recorded result leads to
        self.checked: dict[int, str] = {}  # results that are saved: their number, their operator
        self.saved: list[int] = []  # positions of the arguments that operators save
        self.needed: list[Any] = []  # `Saved`: what operators save for each recorded result
        self.slots: dict[Any, int] = {}  # what operators save in between: where -> its place
        self.lost: set[int] = set()  # positions that they compute it from where it has no place

    def run(self, values: Sequence[Any]) -> Store:
        """All places after the forward pass."""
        store: Store = [None] * self.places
        for position, place in self.given:
            store[place] = values[position]._data
        for step in self.forward:
            step.run(store)
        return store

    def run_backward(self, kept: Sequence[Any], inputs: Sequence[Tensor],
                     grads: Sequence[Tensor]) -> tuple[Tensor | None, ...]:  # fmt: skip
        """The gradients of `wanted`. What is one array is one tensor: who takes gradients over
        sees by that whether they are shared.
        """
        store: Store = [None] * self.places
        for place, array in zip(self.kept, kept, strict=True):
            store[place] = array
        for (_, place), tensor in zip(self.kept_inputs, inputs, strict=True):
            store[place] = tensor._data
        for place, grad in zip(self.grads, grads, strict=True):
            store[place] = grad._data
        for step in self.backward:
            step.run(store)
        made = dict(zip(self.grads, grads, strict=True))
        found: list[Tensor | None] = []
        for source in self.slopes:
            if source is None:
                found.append(None)
                continue
            if source.place not in made:
                made[source.place] = wrap(store[source.place])
            whole = made[source.place]
            found.append(whole if source.dim is None else wrap(source.of(whole._data)))
        return tuple(found)
