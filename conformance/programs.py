"""Random programs of views, in-place operations, indexing and arithmetic, run under two libraries.

A program is a list of steps; each step is a name and plain Python arguments, and refers to earlier
results by number. `Writer` writes one by asking `choose(n)` for numbers below n; `run` executes it
under a library and reports what can be seen of every result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Choose = Callable[[int], int]
FLOATS = ("float32", "float64")
DTYPES = ("float64", "float64", "float32", "int64", "bool", "float64", "int32", "float16")


@dataclass(frozen=True)
class Step:
    """One instruction: what to do, to which earlier results, with which numbers."""

    name: str
    args: tuple[Any, ...]
    no_grad: bool = False


@dataclass
class Outcome:
    """What a program did: one description per step, gradients, and errors."""

    steps: list[Any] = field(default_factory=list)
    grads: list[Any] = field(default_factory=list)


class Writer:
    """Writes a program; knows the shapes by running NumPy-free bookkeeping on sizes only."""

    def __init__(self, choose: Choose, length: int) -> None:
        self.choose = choose
        self.length = length

    def pick(self, options: Any) -> Any:
        return options[self.choose(len(options))]

    def program(self) -> list[Step]:
        steps = [self.create(True), self.create(False)]
        names = list(WEIGHTED)
        for _ in range(self.length):
            name = names[self.choose(len(names))]
            arguments = tuple(self.choose(16) for _ in range(5))
            steps.append(Step(name, arguments, no_grad=self.choose(12) == 0))
        return steps

    def create(self, grad: bool) -> Step:
        return Step("create", tuple([int(grad)] + [self.choose(16) for _ in range(4)]))


# ---- the interpreter: the same code for both libraries


class Machine:
    """Runs steps under one library."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.pool: list[Any] = []
        self.leaves: list[Any] = []
        self.count = 0

    def tensor(self, number: int) -> Any:
        return self.pool[number % len(self.pool)]

    def run(self, step: Step) -> Any:
        if step.no_grad:
            with self.library.no_grad():
                return OPERATIONS[step.name](self, *step.args)
        return OPERATIONS[step.name](self, *step.args)

    def values(self, shape: Any, dtype: str) -> Any:
        """Numbers that depend only on how many were made before."""
        size = math.prod(shape)
        numbers = (np.arange(size) * 7 + 3 * self.count) % 11 - 4
        self.count += 1
        array = numbers.reshape(shape)
        if dtype == "bool":
            return array % 2 == 0
        scale = 0.25 if dtype.startswith("float") else 1
        return (array * scale).astype(dtype)


SHAPES = ((2, 3), (3,), (4,), (2, 2), (), (1, 3), (3, 1), (2, 1, 3), (2, 3, 2), (6,), (0,), (2, 0),
          (1,), (4, 3), (3, 2), (2, 2, 2))  # fmt: skip


def create(m: Machine, grad: int, shape: int, dtype: int, layout: int, leaf: int) -> Any:
    name = DTYPES[dtype % len(DTYPES)] if not grad else FLOATS[dtype % 2]
    array = m.values(SHAPES[shape % len(SHAPES)], name)
    result = m.library.tensor(array.tolist(), dtype=getattr(m.library, name))
    if layout % 4 == 3 and result.dim() >= 2:
        result = result.transpose(0, 1).contiguous().transpose(0, 1)
    if grad or (leaf % 3 == 0 and result.is_floating_point()):
        result = result.detach().requires_grad_()
        m.leaves.append(result)
    return result


def _dim(t: Any, number: int) -> int:
    return number % t.dim() - (t.dim() if number % 5 == 4 else 0) if t.dim() else 0


def _index(t: Any, a: int, b: int, c: int) -> Any:
    """A basic index of one or two entries."""
    size = t.shape[0] if t.dim() else 1
    first = (a % max(size, 1), slice(a % 3, None), slice(None, None, 1 + b % 2), None, ...,
             slice(-2, None), -1)[b % 7]  # fmt: skip
    if c % 3 or t.dim() < 2:
        return first
    second = (c % max(t.shape[1], 1), slice(c % 2, 3), slice(None))[a % 3]
    return (first, second) if first is not ... else (..., second)


def getitem(m: Machine, x: int, a: int, b: int, c: int, _: int) -> Any:
    t = m.tensor(x)
    return t[_index(t, a, b, c)]


def _advanced(m: Machine, t: Any, a: int, b: int) -> Any:
    size = max(t.shape[0], 1) if t.dim() else 1
    second = max(t.shape[1], 1) if t.dim() > 1 else 1
    rows = m.library.tensor([a % size, b % size])
    kinds = (
        lambda: rows,
        lambda: [0, a % size],
        lambda: t > 0,
        lambda: (rows, slice(None)),
        lambda: (slice(None), m.library.tensor([a % second, 0])),
        lambda: (rows, m.library.tensor([0, b % second])),
        lambda: (None, rows),
        lambda: (..., m.library.tensor([[a % t.shape[-1] if t.dim() and t.shape[-1] else 0]])),
        lambda: m.library.tensor(a % 2 == 0),
        lambda: (rows, None, b % second),
    )
    return kinds[b % len(kinds)]()


def getitem_advanced(m: Machine, x: int, a: int, b: int, c: int, _: int) -> Any:
    t = m.tensor(x)
    return t[_advanced(m, t, a, b)]


def setitem(m: Machine, x: int, a: int, b: int, c: int, d: int) -> Any:
    t = m.tensor(x)
    index = _index(t, a, b, c) if d % 2 else _advanced(m, t, a, b)
    t[index] = _defined(t, m.tensor(d)) if d % 3 else 2.0
    return t


def view(m: Machine, x: int, a: int, b: int, c: int, d: int) -> Any:
    t = m.tensor(x)
    n = t.numel()
    shapes = [(n,), (-1,), (1, n), (n, 1)]
    shapes += [(k, n // k) for k in (2, 3) if n and n % k == 0]
    shape = shapes[a % len(shapes)]
    return (t.view, t.reshape)[b % 2](shape)


def _squeeze(t: Any, a: int, b: int) -> Any:
    """One dim only where that removes it: torch takes a stale view by a squeeze that changes
    nothing for a leaf."""
    dim = _dim(t, b)
    if a % 2 or (t.dim() and t.shape[dim] != 1):
        return t.squeeze()
    return t.squeeze(dim)


def _as_strided(t: Any, a: int, b: int, c: int) -> Any:
    if not t.numel():
        return t.view(-1)
    return t.as_strided((2, 1 + a % 2), (b % 3, 1), c % 2)


def _target(t: Any) -> Any:
    """What an in-place operation is tried on: not windows that overlap, where the result of
    reading and writing the same places is undefined."""
    places = np.zeros(1, int)
    for size, stride in zip(t.shape, t.stride(), strict=True):
        if stride:
            places = (places[:, None] + np.arange(size) * stride).ravel()
    return t.clone() if len(set(places.tolist())) < len(places) else t


VIEWS: dict[str, Callable[..., Any]] = {
    "transpose": lambda m, x, a, b, c, d: m.tensor(x).transpose(
        _dim(m.tensor(x), a), _dim(m.tensor(x), b)),
    "unsqueeze": lambda m, x, a, b, c, d: m.tensor(x).unsqueeze(a % (m.tensor(x).dim() + 1)),
    "squeeze": lambda m, x, a, b, c, d: _squeeze(m.tensor(x), a, b),
    "expand": lambda m, x, a, b, c, d: m.tensor(x).expand(2, *m.tensor(x).shape) if a % 2 else (
        m.tensor(x).expand(*[3 if n == 1 else -1 for n in m.tensor(x).shape])),
    "narrow": lambda m, x, a, b, c, d: m.tensor(x).narrow(_dim(m.tensor(x), a), b % 3, c % 3),
    "diagonal": lambda m, x, a, b, c, d: m.tensor(x).diagonal(a % 3 - 1),
    "unfold": lambda m, x, a, b, c, d: m.tensor(x).unfold(
        _dim(m.tensor(x), a), 1 + b % 2, 1 + c % 2),
    "flatten": lambda m, x, a, b, c, d: m.tensor(x).flatten(),
    "permute": lambda m, x, a, b, c, d: m.tensor(x).permute(
        *np.roll(range(m.tensor(x).dim()), a).tolist()),
    "movedim": lambda m, x, a, b, c, d: m.tensor(x).movedim(
        _dim(m.tensor(x), a), _dim(m.tensor(x), b)),
    "t": lambda m, x, a, b, c, d: m.tensor(x).t(),
    "select": lambda m, x, a, b, c, d: m.tensor(x).select(_dim(m.tensor(x), a), b % 3 - 1),
    "unbind": lambda m, x, a, b, c, d: m.tensor(x).unbind(_dim(m.tensor(x), a))[b % 2],
    "split": lambda m, x, a, b, c, d: m.tensor(x).split(1 + a % 2, _dim(m.tensor(x), b))[c % 2],
    "chunk": lambda m, x, a, b, c, d: m.tensor(x).chunk(1 + a % 3, _dim(m.tensor(x), b))[0],
    "detach": lambda m, x, a, b, c, d: m.tensor(x).detach(),
    "as_strided": lambda m, x, a, b, c, d: _as_strided(m.tensor(x), a, b, c),
    "view_as": lambda m, x, a, b, c, d: m.tensor(x).view_as(m.tensor(a)),
}  # fmt: skip


def _write(name: str) -> Callable[..., Any]:
    def step(m: Machine, x: int, a: int, b: int, c: int, d: int) -> Any:
        other = (m.tensor(a), 2, 0.5, m.tensor(b))[c % 4]
        target = _target(m.tensor(x))
        return getattr(target, name)(_defined(target, other))

    return step


def _defined(target: Any, other: Any) -> Any:
    """The operand, or a copy of it where it shares memory with the target in a way that neither
    raises nor has a defined result: reading what the same operation writes."""
    if isinstance(other, (int, float)) or other is target or not other.numel():
        return other
    shared = _memory(other) == _memory(target)
    plain = other.is_contiguous() and target.is_contiguous()
    return other.clone() if shared and not plain else other


def _filling(m: Machine, x: int, a: int) -> Any:
    """A value to fill with. In PyTorch an integer tensor filled with one that learns does so itself
    from then on, and every view of it raises."""
    value = m.tensor(a)
    return value if m.tensor(x).is_floating_point() else value.detach()


def _write_unary(name: str, *extra: Any) -> Callable[..., Any]:
    return lambda m, x, a, b, c, d: getattr(m.tensor(x), name)(*extra)


def _rewrite(name: str) -> Callable[..., Any]:
    return lambda m, x, a, b, c, d: getattr(_target(m.tensor(x)), name)()


WRITES: dict[str, Callable[..., Any]] = {
    **{name: _write(name) for name in ("add_", "mul_", "sub_", "div_")},
    **{name: _rewrite(name) for name in ("zero_", "neg_", "abs_", "square_")},
    "fill_": lambda m, x, a, b, c, d: m.tensor(x).fill_((1.5, 2, _filling(m, x, a))[b % 3]),
    "copy_": lambda m, x, a, b, c, d: m.tensor(x).copy_(_defined(m.tensor(x), m.tensor(a))),
    "clamp_": lambda m, x, a, b, c, d: m.tensor(x).clamp_(min=-0.5),
    "masked_fill_": lambda m, x, a, b, c, d: m.tensor(x).masked_fill_(m.tensor(x) > 0, 1.0),
    "iadd": lambda m, x, a, b, c, d: _iadd(m.tensor(x), m.tensor(a)),
    "index_add_": lambda m, x, a, b, c, d: m.tensor(x).index_add_(
        0, m.library.tensor([0, 0]), m.tensor(a).clone()),
}  # fmt: skip


def _iadd(target: Any, other: Any) -> Any:
    target += _defined(target, other)
    return target


def _binary(name: str) -> Callable[..., Any]:
    def step(m: Machine, x: int, a: int, b: int, c: int, d: int) -> Any:
        left = m.tensor(x)
        right = (m.tensor(a), 2, 0.5, m.tensor(b), True, -3)[c % 6]
        operation = getattr(m.library, name)
        return operation(left, right) if d % 4 else operation(left, m.tensor(a))

    return step


def _matmul(left: Any, right: Any) -> Any:
    """Of one type where a factor is empty: torch looks at types only if there is work to do."""
    if not (left.numel() and right.numel()):
        right = right.to(left.dtype)
    return _plain((left @ right) * 1)


def _plain(t: Any) -> Any:
    """The same values in a tensor whose dims of size 1 have the strides of a new one."""
    return t.reshape(-1).reshape(t.shape)


ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{n: _binary(n) for n in ("add", "sub", "mul", "div", "maximum", "eq", "gt", "remainder")},
    **{n: _write_unary(n) for n in ("exp", "neg", "abs", "square", "clone", "contiguous", "sum",
                                    "relu", "tanh", "double", "sigmoid")},
    "reflected": lambda m, x, a, b, c, d: (
        2 - m.tensor(x), 1 / m.tensor(x), 2 * m.tensor(x))[a % 3],
    "sum_dim": lambda m, x, a, b, c, d: m.tensor(x).sum(_dim(m.tensor(x), a), keepdim=b % 2 == 0),
    "mean": lambda m, x, a, b, c, d: m.tensor(x).mean(),
    "amax": lambda m, x, a, b, c, d: m.tensor(x).amax(_dim(m.tensor(x), a)),
    "cat": lambda m, x, a, b, c, d: m.library.cat([m.tensor(x), m.tensor(a)], _dim(m.tensor(x), b)),
    "stack": lambda m, x, a, b, c, d: m.library.stack([m.tensor(x), m.tensor(x)], a % 2),
    "where": lambda m, x, a, b, c, d: m.library.where(m.tensor(x) > 0, m.tensor(x), m.tensor(a)),
    "matmul": lambda m, x, a, b, c, d: _matmul(m.tensor(x), m.tensor(a)),
    "pow": lambda m, x, a, b, c, d: m.tensor(x) ** 2,
    "masked_fill": lambda m, x, a, b, c, d: m.tensor(x).masked_fill(m.tensor(x) > 0, 0.5),
}  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    "create": create, "getitem": getitem, "getitem_advanced": getitem_advanced,
    "setitem": setitem, "view": view, **VIEWS, **WRITES, **ARITHMETIC,
}  # fmt: skip
WEIGHTED = (
    *OPERATIONS, "getitem", "getitem", "setitem", "setitem", "view", "mul_", "add_", "mul", "add",
    "getitem_advanced", "select", "transpose",
)  # fmt: skip


def describe(machine: Machine, t: Any) -> Any:
    """Everything of a tensor that a program can see."""
    aliases = [i for i, other in enumerate(machine.pool) if _memory(other) == _memory(t)]
    return {
        "dtype": str(t.dtype), "shape": tuple(t.shape), "stride": tuple(t.stride()),
        "offset": t.storage_offset(), "requires_grad": t.requires_grad, "leaf": t.is_leaf,
        "aliases": aliases, "version": t._version,
        "values": t.detach().to(machine.library.float64).numpy().copy(),
    }  # fmt: skip


def safely(machine: Machine, t: Any) -> Any:
    """A description, or the error that asking raised (stale views can do that)."""
    try:
        return describe(machine, t)
    except Exception as error:
        return {"error": type(error).__name__, "text": str(error)}


def _memory(t: Any) -> int:
    return t.untyped_storage().data_ptr() if t.numel() else id(t)


def run(program: list[Step], library: Any) -> Outcome:
    """Execute a program; errors are results too."""
    machine = Machine(library)
    outcome = Outcome()
    for step in program:
        try:
            result = machine.run(step)
        except Exception as error:
            outcome.steps.append({"error": type(error).__name__, "text": str(error)})
            continue
        if result.requires_grad and not result.is_floating_point():
            result = result.detach()  # torch lets such views be, and trips over them later
        machine.pool.append(result)
        if result.numel() > 200:
            machine.pool.pop()
            result = result.sum()
        outcome.steps.append(safely(machine, result))
    outcome.steps.append([safely(machine, t) for t in machine.pool])
    outcome.grads = _gradients(machine, library)
    return outcome


def _gradients(machine: Machine, library: Any) -> list[Any]:
    """Gradients of the leaves from all results together."""
    total = None
    try:
        outputs = [t for t in machine.pool if t.requires_grad and t.grad_fn is not None]
    except Exception as error:
        return [{"error": type(error).__name__, "text": str(error)}]
    for position, t in enumerate(outputs):
        term = (t.double() * (0.1 + 0.01 * position)).sum()
        total = term if total is None else total + term
    if total is None:
        return []
    try:
        total.backward()
    except Exception as error:
        return [{"error": type(error).__name__, "text": str(error)}]
    grads = [leaf.grad for leaf in machine.leaves]
    return [g if g is None else (tuple(g.stride()), g.double().numpy().copy()) for g in grads]
