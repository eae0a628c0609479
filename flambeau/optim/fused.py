"""Steps of all parameters of a group in one compiled kernel.

What lies where is found out once, in a `Plan`, and holds as long as nothing has moved: 500
parameters take 0.5 ms less than by asking every array again (benchmarks/optimizers.py).
Parameters that a kernel is not for (half types, complex numbers, gaps in memory) are left to be
stepped one by one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from flambeau._ops.launching.block_tables import set_blocks, tasks_for, typed_kernel
from flambeau._runtime import choice
from flambeau._runtime.cpu import address
from flambeau.autograd.history import bump
from flambeau.optim.options import Group, State

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))
NUMBER = "number"
APART = 64  # elements: memory of two tasks shares no cache line


def step(
    optimizer: Any, params: list[Any], states: list[State], group: Group
) -> tuple[list[Any], list[State]]:
    """Step those parameters that one kernel can step; returns the others and their states."""
    plan = optimizer.plans.get(id(group))
    if plan is None:
        size = sum([parameter._data.size for parameter in params])
        if not choice.compiled(optimizer.job.work, size):
            optimizer.check_state(states, group)
            return params, states
    if plan is None or not plan.holds(params, states, group):
        optimizer.check_state(states, group)
        plan = optimizer.plans[id(group)] = Plan(optimizer, params, states, group)
    if not all(_fits_together(params[place], states[place], plan.needed) for place in plan.rest):
        optimizer.check_state(states, group)
        return params, states  # one is refused, perhaps: those behind it must not have moved
    before = choice.thread.launches
    try:
        for job in plan.jobs:
            job.run(group)
    except choice.KernelMissing:  # from a library of kernels, which has none for these
        if choice.thread.launches != before:
            raise
        return params, states
    return [params[place] for place in plan.rest], [states[place] for place in plan.rest]


def _fits_together(parameter: Any, state: State, names: tuple[str, ...]) -> bool:
    """Whether the gradient and what is kept have the parameter's type and shape."""
    data = parameter._data
    others = [parameter._grad, *[state.get(name) for name in names]]
    return all(
        other._data.dtype == data.dtype and other._data.shape == data.shape
        for other in others
        if other is not None
    )


class Plan:
    """Which parameters of a group are stepped by which kernel."""

    def __init__(
        self, optimizer: Any, params: list[Any], states: list[State], group: Group
    ) -> None:
        self.optimizer = optimizer
        self.count = len(params)
        self.needed = optimizer.needed(group)
        self.rest: list[int] = []
        places: dict[Any, list[int]] = {}
        times = Counter(map(id, params))
        for place, (parameter, state) in enumerate(zip(params, states, strict=True)):
            names = tuple([name for name in self.needed if name in state])
            once = times[id(parameter)] == 1  # tasks step others at the same time
            if once and optimizer.job.suits(parameter, {name: state[name] for name in names}):
                places.setdefault((parameter._data.dtype, names), []).append(place)
            else:
                self.rest.append(place)
        self.jobs = [optimizer.job(optimizer, dtype, names, places[dtype, names])
                     for dtype, names in places]  # fmt: skip
        for job in self.jobs:
            job.look(params, states)
            job.lay_out()

    def holds(self, params: list[Any], states: list[State], group: Group) -> bool:
        """Whether everything lies where it lay when the plan was made."""
        if len(params) != self.count or self.optimizer.needed(group) != self.needed:
            return False
        return all(job.holds(params, states) for job in self.jobs)


def is_for_kernel(parameter: Any) -> bool:
    """Whether a kernel can go through a parameter and its gradient."""
    data = parameter._data
    if (
        data.__class__ is not np.ndarray
        or data.dtype not in PLAIN
        or not data.size
        or not data.flags.c_contiguous
    ):
        return False
    return fits(parameter._grad._data, data.dtype, data.shape)


def fits(data: np.ndarray, dtype: Any, shape: tuple[int, ...]) -> bool:
    """Whether a kernel can go through it beside a parameter of this type and shape."""
    return (
        data.__class__ is np.ndarray  # and no array without numbers
        and data.dtype == dtype
        and data.shape == shape
        and data.flags.c_contiguous
    )


class Job:
    """The parameters that one kernel steps: those of one type that keep the same."""

    work = "optimizer"  # in the table of `_runtime.choice`

    @staticmethod
    def suits(parameter: Any, kept: dict[str, Any]) -> bool:
        """Whether the kernel is for a parameter, with its gradient and what is kept of it."""
        dtype, shape = parameter._data.dtype, parameter._data.shape
        return is_for_kernel(parameter) and all(
            fits(other._data, dtype, shape) for other in kept.values()
        )

    def __init__(self, optimizer: Any, dtype: np.dtype[Any], names: tuple[str, ...],
                 places: list[int]) -> None:  # fmt: skip
        from flambeau._ops.optimizers.kernels import steps as kernels

        self.optimizer, self.kernels = optimizer, kernels
        self.dtype, self.places = dtype, places
        self.names = (*names, "step") if optimizer.counts else names
        self.present = tuple([name in names for name in optimizer.kept])

    def look(self, params: list[Any], states: list[State]) -> None:
        """Take what is to be stepped now, and the arrays of it."""
        self.params = [params[place] for place in self.places]
        self.states = [states[place] for place in self.places]
        self.grads = [parameter._grad._data for parameter in self.params]
        self.columns = [[parameter._data for parameter in self.params]]
        self.columns += [[state[name]._data for state in self.states] for name in self.names]

    def holds(self, params: list[Any], states: list[State]) -> bool:
        """Look again: whether the arrays are those of the step before, and gradients fit."""
        before = self.columns
        try:
            self.look(params, states)
        except (AttributeError, KeyError):  # something is not kept any more
            return False
        for column, known in zip(self.columns, before, strict=True):
            if list(map(id, column)) != list(map(id, known)):
                return False
        dtype = self.dtype
        for grad, size in zip(self.grads, self.sizes, strict=True):
            if grad.__class__ is not np.ndarray or grad.size != size or grad.dtype != dtype:
                return False
            if not grad.flags.c_contiguous:
                return False
        return True

    def lay_out(self) -> None:
        """The table of addresses; each step fills in the gradients and which numbers to use."""
        head, columns = self.kernels.HEAD, self.columns
        self.sizes = [data.size for data in columns[0]]
        self.counters = None
        if self.optimizer.counts:
            *columns, steps = columns
            self.counters = Counters(steps)
        self.table = np.zeros((len(self.sizes) + 1, head + 1 + len(columns)), np.int64)
        self.table[:-1, 1] = self.sizes
        for place, column in enumerate(columns):
            self.table[:-1, head + place + (place > 0)] = [address(data) for data in column]
        set_blocks(self.table, self.kernels.BLOCK)
        self.found: dict[Any, Any] = {}

    # ---- a step

    def take_grads(self, group: Group) -> np.ndarray:
        """The table with the gradients of this step, which will write to the parameters."""
        self.table[:-1, self.kernels.HEAD + 1] = [address(grad) for grad in self.grads]
        for _ in range(self.optimizer.writes(group)):
            for parameter in self.params:
                bump(parameter)
        return self.table

    def run(self, group: Group) -> None:
        """Step them all."""
        table = self.take_grads(group)
        moments = self.moments(group)
        numbers = [Numbers(self.optimizer, moment, group) for moment in dict.fromkeys(moments)]
        if len(numbers) == 1:
            table[:-1, 2] = 0
            self._launch(table, numbers, group)
            return
        places = {one.moment: place for place, one in enumerate(numbers)}
        which = np.array([places[moment] for moment in moments])
        for constants in {one.constants for one in numbers}:
            alike = [place for place, one in enumerate(numbers) if one.constants == constants]
            rows = np.append(np.isin(which, alike), True)
            part = table[rows]
            part[:-1, 2] = np.searchsorted(alike, which[rows[:-1]])
            set_blocks(part, self.kernels.BLOCK)
            self._launch(part, [numbers[place] for place in alike], group)

    def moments(self, group: Group) -> list[Any]:
        """What the numbers of each parameter depend on; counts the steps."""
        if self.counters is not None and self.counters.alike:
            return self.counters.count()
        advance = self.optimizer.advance
        return [advance(state, group) for state in self.states]

    def _launch(self, table: np.ndarray, numbers: list[Numbers], group: Group) -> None:
        key = (numbers[0].constants, bool(group.get("maximize")))
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = self._kernel(*key)
        blocks = int(table[-1, 0])
        values = np.array([one.values for one in numbers], self.dtype)
        found.parallel(tasks_for(blocks), table, values, table.shape[1], blocks)

    def _kernel(self, constants: tuple[Any, ...], maximize: bool) -> Any:
        return typed_kernel(self.kernels.step, self.dtype, FORMULA=self.optimizer.formula.native,
                            KEPT=self.present, CONSTANTS=constants, MAXIMIZE=maximize)  # fmt: skip


class ShapedJob(Job):
    """Parameters whose elements are not all alike: the kernel steps whole ones, told their shapes.

    A task steps one parameter after the other, with memory of its own (`room` elements).
    """

    work = "optimizer of matrices"
    room = 1
    computed: Any = None
    """The type of a task's memory, where it is not the parameters'."""

    def shape(self, parameter: Any) -> tuple[int, ...]:
        """What the kernel is told of a parameter's shape."""
        raise NotImplementedError

    def lay_out(self) -> None:
        """The table, with shapes behind the addresses."""
        super().lay_out()
        shapes = [self.shape(parameter) for parameter in self.params]
        self.table = np.hstack([self.table, [*shapes, (0,) * len(shapes[0])]])

    def launch(self, found: Any, *numbers: Any) -> None:
        """Run the kernel over all parameters."""
        table = self.table
        tasks = min(tasks_for(int(table[-1, 0])), len(self.params))
        room = -(-self.room // APART) * APART
        scratch = np.empty(tasks * room, self.computed or self.dtype)
        found.parallel(tasks, table, *numbers, scratch, table.shape[1], len(self.params), room)


class Counters:
    """The step counters of parameters, which one kernel advances."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = arrays
        self.dtype = arrays[0].dtype
        self.alike = self.dtype in PLAIN and all(data.dtype == self.dtype for data in arrays)
        self.places = np.array([address(data) for data in arrays])
        self.counted = np.empty(len(arrays))

    def count(self) -> list[float]:
        """Advance all of them; returns what they are."""
        from flambeau._compiler.types import NAMES, OF_NUMPY
        from flambeau._ops.optimizers.kernels import steps as kernels
        from flambeau._runtime.launch import kernel

        found = kernel(kernels.count, T=OF_NUMPY[NAMES[self.dtype]])
        found(self.places, self.counted, len(self.arrays))
        return self.counted.tolist()  # type: ignore[no-any-return]


class Numbers:
    """The numbers of a formula in its order, apart from those that are options."""

    __slots__ = ("constants", "moment", "values")

    def __init__(self, optimizer: Any, moment: Any, group: Group) -> None:
        named = optimizer.numbers(moment, group)
        ordered = [named[name] for name in optimizer.formula.names[2 + len(optimizer.kept) :]]
        self.moment = moment
        self.constants = tuple([
            value if value is None or isinstance(value, bool) else NUMBER for value in ordered
        ])  # fmt: skip
        self.values = [value for value, constant in zip(ordered, self.constants, strict=True)
                       if constant == NUMBER]  # fmt: skip
