"""`jacrev`, `jacfwd` and `hessian` as batches of rows and columns, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformance.side_by_side import compare


def _x(t: Any, *shape: int, dtype: str = "float64") -> Any:
    count = 1
    for size in shape:
        count *= size
    return t.arange(1, count + 1, dtype=getattr(t, dtype)).reshape(shape) / (count + 1)


def _counted(t: Any, transform: str, **options: Any) -> Any:
    """How often the function is run, and with what comes out."""
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return x.sin() * x.sum()

    return getattr(t.func, transform)(f, **options)(_x(t, 5)), len(calls)


def _written(t: Any, x: Any) -> Any:
    room = t.zeros(4, dtype=x.dtype)
    room[:2].copy_(x.exp())
    room[2:].add_(x * x)
    return (room * room.roll(1)).sum()


def _outside(t: Any) -> Any:
    room = t.zeros(3, dtype=t.float64)
    scale = room[1:]

    def f(x: Any) -> Any:
        return (x * x).sum()

    found = t.func.hessian(f)(_x(t, 3))
    return found, room + 1, scale


CASES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda t: t.func.jacrev(lambda x: x.sin().outer(x))(_x(t, 3)),
    "columns": lambda t: t.func.jacfwd(lambda x: x.sin().outer(x))(_x(t, 3)),
    "some rows": lambda t: t.func.jacrev(lambda x: x.cumsum(0), chunk_size=2)(_x(t, 5)),
    "no row": lambda t: t.func.jacrev(lambda x: x[:0] * 2)(_x(t, 3)),
    "no column": lambda t: t.func.jacrev(lambda x: x.sum() + t.ones(2, dtype=t.float64))(_x(t, 0)),
    "constant": lambda t: t.func.jacrev(lambda x: t.ones(2, dtype=t.float64))(_x(t, 3)),
    "constant forwards": lambda t: t.func.jacfwd(lambda x: t.ones(2, dtype=t.float64))(_x(t, 3)),
    "trees": lambda t: t.func.jacrev(
        lambda a, b: {"p": a["u"] * b, "q": (a["v"].sum(),)}, argnums=(0, 1)
    )({"u": _x(t, 2), "v": _x(t, 3)}, _x(t, 2)),
    "trees forwards": lambda t: t.func.jacfwd(
        lambda a, b: {"p": a["u"] * b, "q": (a["v"].sum(),)}, argnums=(0, 1)
    )({"u": _x(t, 2), "v": _x(t, 3)}, _x(t, 2)),
    "aux": lambda t: t.func.jacrev(lambda x: (x**2, x + 1), has_aux=True)(_x(t, 3)),
    "aux forwards": lambda t: t.func.jacfwd(lambda x: (x**2, t.ones(2)), has_aux=True)(_x(t, 3)),
    "aux that moves": lambda t: t.func.jacfwd(lambda x: (x**2, x + 1), has_aux=True)(_x(t, 3)),
    "half": lambda t: t.func.jacrev(lambda x: x * x)(_x(t, 3, dtype="bfloat16")).float(),
    "random": lambda t: t.func.jacfwd(lambda x: x * t.rand(3))(_x(t, 3)),
    "calls": lambda t: _counted(t, "jacrev"),
    "calls forwards": lambda t: _counted(t, "jacfwd"),
    "calls in pieces": lambda t: _counted(t, "jacrev", chunk_size=2),
    "asks for numbers": lambda t: t.func.jacrev(lambda x: x * x.sum().item())(_x(t, 3)),
    "hessian": lambda t: t.func.hessian(lambda x: (x.exp() @ x.sin()) ** 2)(_x(t, 4)),
    "of written": lambda t: t.func.hessian(lambda x: _written(t, x))(_x(t, 2)),
    "of written, mapped": lambda t: t.func.vmap(
        lambda v: v * t.func.grad(lambda x: _written(t, x))(_x(t, 2))
    )(_x(t, 3, 2)),
    "tensors from outside": _outside,
    "ten examples": lambda t: t.func.vmap(t.func.hessian(lambda x: (x**3).sum() * x[0]))(
        _x(t, 10, 3)
    ),
    "columns of rows": lambda t: t.func.jacfwd(t.func.jacrev(lambda x: x.sigmoid() * x.sum()))(
        _x(t, 2, 2)
    ),
    "rows of columns": lambda t: t.func.jacrev(t.func.jacfwd(lambda x: x.sigmoid() * x.sum()))(
        _x(t, 2, 2)
    ),
    "three times": lambda t: t.func.jacrev(t.func.jacfwd(t.func.jacrev(lambda x: (x**4).sum())))(
        _x(t, 2)
    ),
    "of what learns": lambda t: t.func.jacrev(lambda x: x**3)(_x(t, 3).requires_grad_()),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_jacobians(name: str) -> None:
    compare(CASES[name])
