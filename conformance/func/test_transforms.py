"""Derivatives of functions, nested at random, against PyTorch's `torch.func`.

A program is a function of vectors and a chain of transforms around it, each drawn from `grad`,
`jacrev`, `jacfwd`, `hessian`, `jvp`, `vjp`, `linearize`, `vmap`; what comes out is compared to the
last digits of float64. `FLAMBEAU_PROGRAMS=2000` draws more.
"""

from __future__ import annotations

import os
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator

COUNT = int(os.environ.get("FLAMBEAU_PROGRAMS", "150"))
SIZE = 3

FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda t, x, y: x * y + x**2,
    "waves": lambda t, x, y: t.sin(x) * t.cos(y) + t.tanh(x),
    "softmax": lambda t, x, y: t.softmax(x, 0) * y,
    "matrix": lambda t, x, y: t.outer(x, y) @ x,
    "norm": lambda t, x, y: x / (x * x + 1).sum().sqrt() + y,
    "pieces": lambda t, x, y: t.cat([x[1:], y[:1]]) * t.stack([x.sum(), y.prod(), x[0]]),
    "views": lambda t, x, y: (x.view(1, -1).expand(2, -1) * y).t().sum(1) ** 3,
    "in place": lambda t, x, y: x.clone().mul_(y).add_(x).exp_(),
    "written": lambda t, x, y: _written(t, x, y),
    "constant inside": lambda t, x, y: x * _constant(t, x) + y,
    "chosen": lambda t, x, y: t.where(x > y, x**3, t.sigmoid(y) * x),
    "layer norm": lambda t, x, y: t.nn.functional.layer_norm(x, (SIZE,)) * y,
    "gelu": lambda t, x, y: t.nn.functional.gelu(x) + t.nn.functional.softplus(y),
    "solve": lambda t, x, y: t.linalg.solve(t.eye(SIZE, dtype=x.dtype) * 4 + t.outer(x, y), x),
    "running": lambda t, x, y: t.cumsum(x * y, 0) + t.logcumsumexp(x, 0),
    "indices": lambda t, x, y: x[t.tensor([2, 0, 1])] * y.index_select(0, t.tensor([0, 0, 1])),
    "linear": lambda t, x, y: t.nn.functional.linear(x.view(1, -1), t.outer(y, y)).view(-1),
    "learns inside": lambda t, x, y: t.func.grad(lambda z: (z * x * y).sin().sum())(x),
    "jvp inside": lambda t, x, y: t.func.jvp(lambda z: z.exp() * y, (x,), (y,))[1],
    "vjp inside": lambda t, x, y: t.func.vjp(lambda z: z**2 * y, x)[1](y)[0],
}


def _written(torch: Any, x: Any, y: Any) -> Any:
    room = torch.zeros(2 * SIZE, dtype=x.dtype)
    room = room + 0 * x.sum()
    room[:SIZE] = x * y
    room[SIZE:].copy_(x.exp())
    return room[1 : SIZE + 1] * room[SIZE:]


def _constant(torch: Any, x: Any) -> Any:
    with torch.no_grad():
        return x.exp()


TRANSFORMS = (
    "grad", "jacrev", "jacfwd", "hessian", "jvp", "vjp", "linearize", "grad_and_value", "vmap",
    "vmap", "vmap of one", "vmap in pieces",
)  # fmt: skip


def transformed(torch: Any, function: Callable[..., Any], name: str, argnum: int) -> Any:
    """A function of (x, y) that gives one vector of numbers, made by a transform of another."""

    def flat(x: Any, y: Any) -> Any:
        found = function(x, y).reshape(-1)
        return found[:SIZE] if found.numel() >= SIZE else found.repeat(SIZE)[:SIZE]

    def number(x: Any, y: Any) -> Any:
        return (flat(x, y) ** 2).sum()

    func = torch.func
    if name == "grad":
        return func.grad(number, argnum)
    if name == "grad_and_value":
        return lambda x, y: sum(func.grad_and_value(number, argnum)(x, y))
    if name == "hessian":
        return lambda x, y: func.hessian(number, argnum)(x, y).sum(0)
    if name in ("jacrev", "jacfwd"):
        return lambda x, y: getattr(func, name)(flat, argnum)(x, y).sum(1)
    if name.startswith("vmap"):
        dims = ((0, None), (None, 0))[argnum] if name == "vmap of one" else (argnum, 0)
        chunk = 1 if name == "vmap in pieces" else None
        mapped = func.vmap(flat, dims, argnum, chunk_size=chunk)
        batch = lambda x, y, dim: x if dim is None else torch.stack([x, y, x * y], dim)  # noqa: E731
        return lambda x, y: mapped(batch(x, y, dims[0]), batch(y, x, dims[1])).sum(argnum)
    if name == "jvp":
        return lambda x, y: func.jvp(flat, (x, y), (y, x))[1]
    if name == "linearize":
        return flat
    return lambda x, y: func.vjp(flat, x, y)[1](y)[argnum]


def run(torch: Any, program: tuple[str, list[tuple[str, int]]], values: Any) -> Any:
    name, chain = program
    function = lambda x, y: FUNCTIONS[name](torch, x, y)  # noqa: E731
    for transform, argnum in chain:
        function = transformed(torch, function, transform, argnum)
    x, y = (torch.tensor(value, dtype=torch.float64) for value in values)
    if chain and chain[-1][0] == "linearize":
        made: Any = torch.func.linearize(function, x, y)
        return made[1](y, x)
    return function(x, y)


def drawn(rng: random.Random) -> tuple[str, list[tuple[str, int]]]:
    name = rng.choice(sorted(FUNCTIONS))
    most = {"layer norm": 1, "running": 2}.get(name, 3)  # of more, PyTorch's are wrong or nan
    depth = min(most, rng.choice([1, 1, 2, 2, 3]))
    return name, [(rng.choice(TRANSFORMS), rng.randrange(2)) for _ in range(depth)]


def test_transforms_in_any_nesting() -> None:
    rng = generator("transforms")
    compared = 0
    for _ in range(COUNT):
        program = drawn(rng)
        values = [[rng.uniform(0.2, 1.5) for _ in range(SIZE)] for _ in range(2)]
        wanted = [_wanted(library, program, values) for library in (reference, Backwards())]
        if wanted[0] is None:
            continue
        compared += 1
        got = run(flambeau, program, values)
        assert got.shape == tuple(wanted[0].shape), program
        assert not got.requires_grad, program
        numbers = got.numpy()
        assert any(w is not None and np.allclose(numbers, w, 1e-8, 1e-8) for w in wanted), program
    assert compared > COUNT // 2


def _wanted(library: Any, program: tuple[str, list[tuple[str, int]]], values: Any) -> Any:
    """PyTorch's answer; None where it fails, as for slopes of slopes of norms."""
    try:
        if program[1][-1][0] != "linearize":
            found = run(library, program, values)
        else:  # it traces with fx, which does not see through everything: jvp says the same
            found = library.func.jvp(_plain(library, program), *_both(reference, values))[1]
    except RuntimeError:
        return None
    return None if found.isnan().any() else (found + 0).detach().numpy()  # no "ZeroTensor"


class Backwards:
    """PyTorch, whose `jvp` and what stands on it are made of `vjp`.

    Where its own forward mode is used twice it forgets a part: the second derivative of
    `layer_norm`, `det` and `solve` along a direction is another one than by finite differences.
    """

    def __init__(self) -> None:
        whole = reference.func
        self.func = types.SimpleNamespace(
            vmap=reference.func.vmap,
            grad=whole.grad, grad_and_value=whole.grad_and_value, vjp=whole.vjp,
            jacrev=whole.jacrev, jacfwd=whole.jacrev, jvp=self.jvp,
            hessian=lambda f, argnum: whole.jacrev(whole.jacrev(f, argnum), argnum),
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        return getattr(reference, name)

    @staticmethod
    def jvp(function: Any, primals: Any, tangents: Any) -> Any:
        """(value, derivative) by differentiating the products with the Jacobian."""
        value, pull = reference.func.vjp(function, *primals)[:2]
        turned = reference.func.vjp(pull, reference.zeros_like(value))[1]
        return value, turned(tangents)[0]


def _plain(torch: Any, program: tuple[str, list[tuple[str, int]]]) -> Any:
    name, chain = program
    function = lambda x, y: FUNCTIONS[name](torch, x, y)  # noqa: E731
    for transform, argnum in chain:
        function = transformed(torch, function, transform, argnum)
    return function


def _both(torch: Any, values: Any) -> Any:
    x, y = (torch.tensor(value, dtype=torch.float64) for value in values)
    return (x, y), (y, x)


@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "jvp", "vjp"])
def test_what_learns_outside_still_does(transform: str) -> None:
    """Gradients of results by tensors that the function closes over."""
    found = []
    for library in (flambeau, reference):
        w = library.tensor([0.5, 1.5, -1.0], dtype=library.float64, requires_grad=True)
        x = library.tensor([1.0, 2.0, 3.0], dtype=library.float64)
        function = transformed(library, lambda x, y, w=w: x**2 * w + y * w**3, transform, 0)
        result = function(x, x)
        assert result.requires_grad
        (gradient,) = library.autograd.grad(result.sum(), w)
        found.append(gradient.numpy())
    assert np.allclose(*found)


def test_tensors_inside_look_as_pytorchs_do() -> None:
    def seen(x: Any) -> Any:
        noted.append((x.requires_grad, x.is_leaf))
        return x.sum()

    for library in (flambeau, reference):
        noted: list[Any] = []
        x = library.ones(2)
        library.func.grad(seen)(x)
        library.func.jvp(seen, (x,), (x,))
        library.func.vjp(seen, x)
        assert noted == [(True, True), (False, True), (True, True)], library.__name__
