"""Steps of all parameters of a group in one compiled kernel.

An optimizer that has such a kernel answers `compiled(state, group)`: the kernel's formula with its
options, the tensors of state, and the numbers of this step for this parameter. Parameters that the
kernel is not for (half types, complex numbers, gaps in memory) are stepped one by one as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flambeau._core.settings import get_num_threads
from flambeau._runtime import choice
from flambeau._runtime.cpu import address
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.history import bump
from flambeau.optim.formulas import Group, State

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of `_ops.kernels.optimizer` for one parameter: its options, state and numbers."""

    name: str
    options: tuple[bool, ...]
    state: tuple[Tensor, ...]
    numbers: tuple[float, ...]


def step(optimizer: Any, params: list[Any], group: Group) -> list[Any]:
    """Step those parameters that one kernel can step; returns the others."""
    size = 0
    for parameter in params:
        size += parameter._data.size
    if not choice.compiled("optimizer", size):
        return params
    jobs: dict[Any, Job] = {}
    rest = []
    for parameter in params:
        if not _fits(parameter, parameter._grad) or not _enter(optimizer, parameter, group, jobs):
            rest.append(parameter)
    for job in jobs.values():
        job.run()
    return rest


def _fits(parameter: Any, other: Any) -> bool:
    """Whether a kernel can go through both from the first element to the last."""
    if other is None:  # what is not kept yet
        return True
    data, beside = parameter._data, other._data
    return (
        data.dtype in PLAIN and beside.dtype == data.dtype and beside.size == data.size > 0
        and data.flags.c_contiguous and beside.flags.c_contiguous
    )  # fmt: skip


def _enter(optimizer: Any, parameter: Any, group: Group, jobs: dict[Any, Job]) -> bool:
    """Put a parameter on the list of its kernel; False where it is not for a kernel."""
    state: State = optimizer.state_of(parameter, group)
    grad = parameter._grad
    if not state:
        optimizer.start(parameter, grad, state, group)
    kept = [value for name, value in state.items() if name != "step"]
    if not all(_fits(parameter, value) for value in kept):
        return False
    formula = optimizer.compiled(state, group)
    if formula is None:
        return False
    arrays = [parameter._data, grad._data, *[t._data for t in formula.state]]
    key = (formula.name, formula.options, arrays[0].dtype)
    job = jobs.get(key)
    if job is None:
        job = jobs[key] = Job(*key)
    job.add(arrays, formula.numbers)
    bump(parameter)
    return True


class Job:
    """The parameters that one launch steps."""

    def __init__(self, name: str, options: tuple[bool, ...], dtype: np.dtype[Any]) -> None:
        from flambeau._ops.kernels import optimizer as kernels

        self.kernels = kernels
        self.name, self.options, self.dtype = name, options, dtype
        self.rows: list[int] = []
        self.numbers: list[float] = []
        self.blocks = 0

    def add(self, arrays: list[np.ndarray], numbers: tuple[float, ...]) -> None:
        """A row of the table."""
        size = arrays[0].size
        places = [address(array) for array in arrays]
        places += [0] * (self.kernels.ARRAYS - len(places))
        self.rows += [self.blocks, size, *places]
        self.numbers += [*numbers, *[0.0] * (self.kernels.NUMBERS - len(numbers))]
        self.blocks += -(-size // self.kernels.BLOCK)

    def run(self) -> None:
        """Step them all."""
        from flambeau._compiler.types import OF_NUMPY
        from flambeau._runtime.engine import vector_bits
        from flambeau._runtime.launch import kernel

        element = OF_NUMPY[self.dtype.name]
        formula = getattr(self.kernels, self.name)
        width = vector_bits() // element.bits
        found = kernel(self.kernels.step, FORMULA=formula, OPTIONS=self.options, T=element, W=width)
        count = len(self.rows) // self.kernels.ROW
        end = [self.blocks] * self.kernels.ROW
        table = np.array([*self.rows, *end], np.int64)
        numbers = np.array(self.numbers, self.dtype)
        tasks = min(max(self.blocks // 4, 1), 4 * get_num_threads())
        found.parallel(tasks, table, numbers, count, self.blocks)
