"""Steps of optimizers on GPUs: all parameters of one kind in one launch; so are their gradients
divided by the scale of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._compiler.gpu.ptx import Shape
from flambeau._compiler.types import NAMES, OF_NUMPY, f32, f64
from flambeau._ops.cuda import fills
from flambeau._ops.cuda.kernels import steps as kernels
from flambeau._runtime.cpu import address
from flambeau._runtime.cuda import constants
from flambeau._runtime.cuda.launch import kernel

THREADS = 256
BLOCK = 1 << 14
"""Elements that a block steps."""
TYPES = ("float32", "float64", "float16", "bfloat16")


class Table:
    """What blocks are to do, in memory of the device; copied there when an address has changed."""

    def __init__(self, sizes: Sequence[int], columns: int) -> None:
        blocks = [-(-size // BLOCK) for size in sizes]
        self.owner = np.repeat(np.arange(len(sizes)), blocks)
        part = np.concatenate([np.arange(count) for count in blocks]) * BLOCK
        self.part = part
        self.rows = np.zeros((len(part), 1 + columns), np.int64)
        self.rows[:, 0] = np.minimum(np.asarray(sizes)[self.owner] - part, BLOCK)
        self.known: Any = None
        self.memory: Any = None

    def filled(self, groups: Sequence[Sequence[Any]]) -> Any:
        """The table with the addresses of arrays: a column for each group."""
        found = np.array([[address(array) for array in group] for group in groups], np.int64)
        if self.known is not None and np.array_equal(found, self.known):
            return self.memory
        size = groups[0][0].itemsize
        self.rows[:, 1:] = found[:, self.owner].T + (self.part * size)[:, None]
        self._copied(groups[0][0])
        self.known = found
        return self.memory

    def moved(self, grads: Sequence[Any]) -> Any:
        """The table with other gradients."""
        found = [address(array) for array in grads]
        if found != self.known[GRADS].tolist():
            self.known[GRADS] = found
            size = grads[0].itemsize
            self.rows[:, 1 + GRADS] = self.known[GRADS][self.owner] + self.part * size
            self._copied(grads[0])
        return self.memory

    def _copied(self, like: Any) -> None:
        """Copy it into new memory of the device: a launch may still read the old one."""
        self.memory = fills.new(self.rows.shape, None, self.rows.dtype, like)
        constants.copied(address(self.memory), address(self.rows), self.rows.nbytes)


GRADS = 1
"""The number of the gradients among the groups of arrays."""
TABLES: dict[Any, Table] = {}
MOST_TABLES = 64


def suits(data: Any, *others: Any) -> bool:
    """Whether the kernel is for a parameter with its gradient and what is kept of it."""
    return NAMES[data.dtype] in TYPES and data.size > 0 and all(
        a.__class__ is data.__class__ and a.dtype == data.dtype and a.shape == data.shape
        and a.flags.c_contiguous for a in (data, *others)
    )  # fmt: skip


class Launch:
    """A launch that steps parameters, which can be made again with other gradients and numbers."""

    def __init__(self, kernel: Any, table: Table, constants: list[Any], maximize: bool) -> None:
        self.kernel, self.table = kernel, table
        self.constants, self.maximize = constants, maximize
        self.known = table.known

    def run(self, memory: Any, numbers: Sequence[Any]) -> None:
        """Put it into the current stream."""
        given = [float(n) for n in numbers if not (n is None or isinstance(n, bool))]
        more = [0.0] * (kernels.MOST_NUMBERS - len(given))
        rows = self.table.rows.shape
        self.kernel(rows[0], memory, rows[1], *given, *more)

    def again(self, numbers: Sequence[Any], maximize: bool, grads: Sequence[Any]) -> bool:
        """The same step of the same parameters; False if it takes another kernel, or the table has
        come to be about something else."""
        if (
            self.table.known is not self.known
            or maximize != self.maximize
            or constant_part(numbers) != self.constants
        ):
            return False
        self.run(self.table.moved(grads), numbers)
        return True


def constant_part(numbers: Sequence[Any]) -> list[Any]:
    """The numbers that are written into a kernel; NUMBER in the place of the others."""
    return [n if n is None or isinstance(n, bool) else kernels.NUMBER for n in numbers]


def _table(key: Any, sizes: Sequence[int], columns: int) -> Table:
    """The table that calls with such arrays share."""
    table = TABLES.get(key)
    if table is None:
        if len(TABLES) >= MOST_TABLES:
            TABLES.clear()
        table = TABLES[key] = Table(sizes, columns)
    return table


def step(formula: Any, kept: tuple[bool, ...], numbers: Sequence[Any], maximize: bool,
         groups: Sequence[Sequence[Any]]) -> Launch:  # fmt: skip
    """Step parameters of one type.

    Args:
        formula: of `flambeau.optim.formulas`.
        kept: which of what the formula keeps there is.
        numbers: what it takes besides, in order: floats, and None, True and False as options.
        groups: arrays of parameters, of gradients, and of each thing that is kept.
    """
    first = groups[0][0]
    sizes = tuple(data.size for data in groups[0])
    key = (formula, first.__class__, first.dtype.num, sizes, len(groups), id(groups[0][0]))
    table = _table(key, sizes, len(groups))
    memory = table.filled(groups)
    plain = constant_part(numbers)
    compute = f64 if first.itemsize == f64.size else f32
    aligned = all(address(array) % 16 == 0 for group in groups for array in group)
    type = OF_NUMPY[NAMES[first.dtype]]
    form = Shape(threads=THREADS, aligned=True, reads=("table",))
    made = kernel(
        kernels.step_many, form, FORMULA=formula.native, KEPT=kept, CONSTANTS=tuple(plain),
        MAXIMIZE=maximize, T=type, A=compute, V=16 // type.size if aligned else 1, THREADS=THREADS,
    )  # fmt: skip
    launch = Launch(made, table, plain, maximize)
    launch.run(memory, numbers)
    return launch


# ---- the scale of losses


def unscale(grads: Sequence[Any], inverse: Any, found: Any) -> None:
    """Multiply gradients of one type, each of which `suits`, by a number; `found` becomes 1 if one
    of them was infinite or nan.

    Args:
        inverse: a single float32 of the device, as is `found`.
    """
    first = grads[0]
    sizes = tuple(data.size for data in grads)
    key = "unscale", first.__class__, first.dtype.num, sizes
    table = _table(key, sizes, 1)
    memory = table.filled([grads])
    type = OF_NUMPY[NAMES[first.dtype]]
    aligned = all(address(array) % 16 == 0 for array in grads)
    made = kernel(
        kernels.unscale_many, Shape(threads=THREADS, aligned=True, reads=("table", "inverse")),
        T=type, A=f64 if type.size == f64.size else f32, V=16 // type.size if aligned else 1,
        THREADS=THREADS,
    )  # fmt: skip
    made(len(table.rows), memory, table.rows.shape[1], inverse, found)


def next_scale(scale: Any, tracker: Any, found: Any, growth: float, backoff: float,
               interval: int) -> None:  # fmt: skip
    """Let a scale shrink or grow after a step: single numbers of the device, float32 but for the
    tracker, which is int32."""
    made = kernel(kernels.next_scale, Shape(threads=32, reads=("found",)))
    made(1, scale, tracker, found, float(growth), float(backoff), int(interval))
