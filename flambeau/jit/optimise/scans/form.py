"""What runs in the place of a loop: memory for all rounds, a kernel forward, a kernel back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._ops.products import blas
from flambeau._runtime.launch import Kernel, kernel
from flambeau._tensor.tensor import Tensor, wrap
from flambeau.jit.optimise.fusion.symbols import Source
from flambeau.jit.optimise.scans.text import ROWS, Writer, panel_width

TASK = 1 << 18
"""Multiply-adds of a task at least."""
POINT = 16
"""Multiply-adds that an element of a pointwise expression costs as much as, roughly."""
Arrays = dict[int, np.ndarray]


class Launch:
    """A phase with its kernel, which is compiled when it first runs."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.phase = writer.phase
        work = sum(depth * columns for depth, columns in self.phase.matrices.values())
        self.work = work + POINT * sum(self.phase.layouts[place].width for place in writer.places)

    @cached_property
    def kernel(self) -> Kernel:
        """The machine code."""
        return kernel(self.writer.native)

    def tasks(self, rounds: int) -> int:
        """In how many parts the rows of the batch go."""
        rows = self.phase.rows
        return max(1, min(get_num_threads(), rows // ROWS, rounds * rows * self.work // TASK))

    def run(self, arrays: Arrays, matrices: dict[int, np.ndarray], rounds: int) -> None:
        """Run all rounds. `arrays` holds what is given, and gets the rest."""
        tasks, rows = self.tasks(rounds), self.phase.rows
        for place in self.writer.places:
            if place not in arrays:
                layout = self.phase.layouts[place]
                make = np.zeros if layout.adds else np.empty
                arrays[place] = make(layout.shape(rounds, rows, tasks), layout.dtype)
        pointers = [arrays[place] for place in self.writer.places]
        for number, back in self.writer.products:
            matrix = matrices[number].T if back else matrices[number]
            pointers.append(panels(matrix, self.writer.lanes))
        self.kernel.parallel(tasks, *pointers, rounds, rows)


def panels(matrix: np.ndarray, lanes: int) -> np.ndarray:
    """A [depth, columns] matrix as `rows_product` reads it, with zeros behind its columns."""
    depth, columns = matrix.shape
    padded, vectors = panel_width(columns, lanes)
    if padded != columns:
        matrix, given = np.zeros((depth, padded), matrix.dtype), matrix
        matrix[:, :columns] = given
    parts = matrix.reshape(depth, -1, vectors * lanes).transpose(1, 0, 2)
    return np.ascontiguousarray(parts)


@dataclass(slots=True)
class Slope:
    """A part of the gradient of an argument.

    kind: "rows" and "whole" are the array of a place, of all rounds or of all together, "first"
    what it holds for the first round, "added" its sum over tasks, "summed" that over all rows of
    all rounds; "matrix" is the gradient of the matrix of product `place`.
    shape: the argument's; for "rows" that of a round.
    """

    kind: str
    place: int
    shape: tuple[int, ...] = ()
    source: Source | None = None


@dataclass
class ScanForm:
    """A loop for arguments of given types and shapes; the number of rounds is free.

    Places number the arrays. `recorded`: for each result whether any number of rounds gives it a
    gradient.
    """

    forward: Launch
    places: int
    given: list[tuple[int, int]]
    """(position among the arguments, place)."""
    matrices: dict[int, tuple[int, bool]]
    """By number of a product: the position of its matrix, and whether it is turned."""
    outputs: list[tuple[str, int, int]]
    """("stack" or "state", the place that it comes from, its own place)."""
    recorded: list[bool]
    counted: int
    """The place of the number of rounds."""
    wanted: list[int] = field(default_factory=list)
    backward: Launch | None = None
    kept: list[int] = field(default_factory=list)
    grads: list[int] = field(default_factory=list)
    """For each recorded result: the place of its gradient."""
    slopes: list[list[Slope]] = field(default_factory=list)
    operands: dict[int, Source] = field(default_factory=dict)
    product_slopes: dict[int, Source] = field(default_factory=dict)
    zero: int | None = None
    course: Any = None
    """What is known of the results after any number of rounds."""
    columns_first: frozenset[int] = frozenset()
    """Products whose matrix lies column by column."""
    kept_inputs: list[tuple[int, int]] = field(default_factory=list)
    """As `given`, of what the backward part reads."""
    read_again: list[int] = field(default_factory=list)
    """Positions of all arguments that it reads, matrices among them."""
    singular: bool = True
    """Whether slopes may be infinite where all values are finite."""

    # ---- forward

    def run(self, values: Sequence[Any]) -> list[Any]:
        """All places after the forward pass."""
        arrays = self._inputs({place: values[position]._data for position, place in self.given})
        found = {position: values[position]._data for position, _ in self.matrices.values()}
        rounds = values[0]
        self.forward.run(arrays, self._matrices(found), rounds)
        taken = set(self.kept)  # what the user writes to a result must not reach others
        for kind, place, own in self.outputs:
            array: Any = arrays[place]
            if self.forward.phase.rank == 1:
                array = array[:, 0]
            if kind == "state":
                array = array[(rounds - 1) % len(array)].copy()
            elif place in taken:
                array = array.copy()
            taken.add(place)
            arrays[own] = array
        arrays[self.counted] = rounds
        return [arrays.get(place) for place in range(self.places)]

    def _inputs(self, data: dict[int, np.ndarray]) -> Arrays:
        arrays = {place: np.ascontiguousarray(array) for place, array in data.items()}
        if self.zero is not None:
            arrays[self.zero] = np.zeros((), self.forward.phase.compute)
        return arrays

    def _matrices(self, data: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        return {number: data[position].T if turned else data[position]
                for number, (position, turned) in self.matrices.items()
                if position in data}  # fmt: skip

    # ---- backward

    def run_backward(self, kept: Sequence[Any], data: dict[int, np.ndarray],
                     grads: Sequence[np.ndarray]) -> tuple[Tensor | None, ...]:  # fmt: skip
        """The gradients of `wanted`, from arguments by position and the gradients of results."""
        assert self.backward is not None
        arrays = self._inputs({place: data[position] for position, place in self.kept_inputs})
        arrays.update(zip(self.kept, kept, strict=True))
        rounds: Any = arrays.pop(self.counted)
        for place, grad in zip(self.grads, grads, strict=True):
            arrays[place] = np.ascontiguousarray(grad)
        self._start(arrays)
        self.backward.run(arrays, self._matrices(data), rounds)
        known: dict[Any, Tensor] = {}
        return tuple([self._slope(parts, arrays, known) for parts in self.slopes])

    def all_finite(self, slopes: Sequence[Tensor | None]) -> bool:
        """Whether gradients are numbers, as far as their sums tell. Where operators only multiply
        and add, those of rows need not be looked at.
        """
        looked_at = [slope for slope, parts in zip(slopes, self.slopes, strict=True)
                     if slope is not None
                     and (self.singular or any(part.kind != "rows" for part in parts))]  # fmt: skip
        return all(np.isfinite(np.add.reduce(slope._data, None)) for slope in looked_at)

    def _start(self, arrays: Arrays) -> None:
        """Gradients of last states that nobody gives are 0."""
        assert self.backward is not None
        phase = self.backward.phase
        for place in phase.carried:
            if place not in arrays:
                layout = phase.layouts[place]
                arrays[place] = np.zeros((phase.rows, layout.width), layout.dtype)

    def _slope(self, parts: Sequence[Slope], arrays: Arrays,
               known: dict[Any, Tensor]) -> Tensor | None:  # fmt: skip
        """One argument's gradient: what is one array is one tensor."""
        total: Tensor | None = None
        for part in parts:
            key = (part.kind, part.place, part.shape)
            if key not in known:
                known[key] = wrap(self._array(part, arrays))
            total = known[key] if total is None else wrap(total._data + known[key]._data)
        return total

    def _array(self, part: Slope, arrays: Arrays) -> np.ndarray:
        if part.kind == "matrix":
            return self._of_matrix(part.place, arrays)
        array = arrays[part.place]
        if part.kind == "rows":
            return array.reshape(-1, *part.shape)
        if part.kind == "first":
            return array[0].reshape(part.shape).copy()
        if part.kind == "added":
            array = np.add.reduce(array, 0)
        if part.kind == "summed":
            assert part.source is not None
            array = blas.column_sums(columns(array, part.source))
        whole = array.size == prod(part.shape)
        return array.reshape(part.shape) if whole else array.sum(keepdims=True).reshape(part.shape)

    def _of_matrix(self, number: int, arrays: Arrays) -> np.ndarray:
        """The sum of state.T @ slope over all rounds, as one product."""
        turned = self.matrices[number][1]
        source = self.operands[number]
        place = self.forward.phase.carried.get(source.place)
        array = arrays[source.place] if place is None else before(arrays[source.place],
                                                                  arrays[place])  # fmt: skip
        left, right = columns(array, source), columns(arrays[self.product_slopes[number].place],
                                                      self.product_slopes[number])  # fmt: skip
        if turned:
            return blas.product(right.T, left)
        columns_first = number in self.columns_first
        return blas.product(right.T, left).T if columns_first else blas.product(left.T, right)


def before(first: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The states before all rounds from those after them."""
    found = np.empty_like(after)
    found[0], found[1:] = first, after[:-1]
    return found


def columns(array: np.ndarray, source: Source) -> np.ndarray:
    """What all rounds have at a source, [rounds * rows, C]."""
    width = source.shape[-1]
    return array.reshape(-1, array.shape[-1])[:, source.start : source.start + width]
