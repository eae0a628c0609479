"""`functionalize` beside PyTorch's: results, what arguments hold afterwards, gradients, graphs."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference
from torch.fx.experimental.proxy_tensor import make_fx as reference_make_fx

import flambeau
from flambeau.fx.experimental.proxy_tensor import make_fx
from tests.random_seeds import generator

BOTH = ((reference, reference_make_fx), (flambeau, make_fx))
VIEWS: list[Callable[[Any, Any], Any]] = [
    lambda t, x: x.view(-1), lambda t, x: x[0], lambda t, x: x[..., 1:], lambda t, x: x[::2],
    lambda t, x: x.unsqueeze(-1), lambda t, x: x.t(), lambda t, x: x.transpose(0, -1),
    lambda t, x: x.permute(tuple(reversed(range(x.dim())))), lambda t, x: x.diagonal(),
    lambda t, x: x.split(1)[0], lambda t, x: x.unbind(-1)[1], lambda t, x: x.detach(),
    lambda t, x: x.squeeze(), lambda t, x: x.chunk(2)[1],
    lambda t, x: x.narrow(0, 0, 1), lambda t, x: x.flatten(), lambda t, x: x.reshape(-1),
    lambda t, x: x.expand_as(x), lambda t, x: x.unflatten(0, (-1, 1)),
]  # fmt: skip
WRITES: list[Callable[[Any, Any, Any], Any]] = [
    lambda t, x, y: x.add_(1), lambda t, x, y: x.mul_(y.sum()), lambda t, x, y: x.sin_(),
    lambda t, x, y: x.copy_(y.sum()), lambda t, x, y: x.fill_(0.5), lambda t, x, y: x.zero_(),
    lambda t, x, y: x.sub_(x.cos(), alpha=2), lambda t, x, y: x.clamp_(-1, 1),
    lambda t, x, y: x.masked_fill_(x > 0.5, 0.25), lambda t, x, y: t.exp(x, out=x),
    lambda t, x, y: x.__setitem__(0, 1.5), lambda t, x, y: x.index_fill_(0, t.tensor([0]), 2.0),
    lambda t, x, y: x.relu_(), lambda t, x, y: x.cumsum_(0), lambda t, x, y: x.lerp_(x * 2, 0.5),
    lambda t, x, y: t.nn.functional.relu(x, inplace=True), lambda t, x, y: x.div_(3.0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def collected() -> Any:
    """Levels of transforms hold their tensors in circles."""
    yield
    gc.collect()


def func(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.func")


class Drawn:
    """A program of views and writes, the same in either library."""

    def __init__(self, number: int) -> None:
        draw = generator("functionalize", number)
        self.choices = [draw.random() for _ in range(40)]
        self.length = draw.randrange(3, 9)

    def __call__(self, t: Any, x: Any, y: Any) -> Any:
        choices = iter(self.choices)
        values = [x, y, x * 2]

        def chosen(items: list[Any]) -> Any:
            return items[int(next(choices) * len(items))]

        for _ in range(self.length):
            value, what = chosen(values), next(choices)
            try:
                if what < 0.5:
                    values.append(chosen(VIEWS)(t, value))
                elif what < 0.9:
                    chosen(WRITES)(t, value, chosen(values))
                else:
                    values.append(value + chosen(values).sum())
            except (RuntimeError, IndexError) as error:
                if "functional" in str(error) or "aten" in str(error):
                    raise
        return values[2:]


def plain(values: Any) -> Any:
    return [(str(v.dtype), v.detach().tolist()) for v in values]


def assert_close(mine: Any, other: Any) -> None:
    assert [kind for kind, _ in mine] == [kind for kind, _ in other]
    for (_, numbers), (_, wanted) in zip(mine, other, strict=True):
        reference.testing.assert_close(
            reference.tensor(numbers), reference.tensor(wanted), rtol=1e-4, atol=1e-5,
            equal_nan=True,
        )  # fmt: skip


@pytest.mark.parametrize("number", range(60))
def test_drawn_programs(number: int) -> None:
    program = Drawn(number)
    draw = generator("numbers", number)
    numbers = [[[draw.uniform(-1, 1) for _ in range(2)] for _ in range(2)] for _ in range(2)]
    given = [reference.tensor(rows) for rows in numbers]
    want = plain([*program(reference, *given), *given])
    inputs = [flambeau.tensor(rows) for rows in numbers]

    def mine(x: Any, y: Any) -> Any:
        return program(flambeau, x, y)

    assert_close(plain([*flambeau.func.functionalize(mine)(*inputs), *inputs]), want)
    inputs = [flambeau.tensor(rows) for rows in numbers]
    graph = make_fx(flambeau.func.functionalize(mine))(*inputs)
    assert_close(plain([*graph(*inputs), *inputs]), want)
    written = {node.target._opname for node in graph.graph.nodes
               if hasattr(node.target, "_opname") and node.target._schema.is_mutable}  # fmt: skip
    assert written <= {"copy_"}


def view(t: Any, x: Any) -> Any:
    y = x + 1
    y.view(-1).add_(1)
    return y


def parts(t: Any, x: Any) -> Any:
    y = x * 2
    first, second = y.split(1)
    first.add_(second)
    return y


CODES: dict[str, Callable[[Any, Any], Any]] = {
    "argument": lambda t, x: x.add_(1), "part of an argument": lambda t, x: x[0].mul_(0),
    "out": lambda t, x: t.add(x, 1, out=x), "nothing": lambda t, x: x.sin() + 1,
    "diagonal": lambda t, x: x.diagonal().mul_(2),
}  # fmt: skip


def traced(t: Any, make: Any, program: Any) -> Any:
    return make(func(t).functionalize(lambda x: program(t, x)))(t.zeros(2, 2))


def code_of(t: Any, make: Any, program: Any) -> str:
    return str(traced(t, make, program).code)


@pytest.mark.parametrize("name", CODES)
def test_code(name: str) -> None:
    theirs, ours = (code_of(t, make, CODES[name]) for t, make in BOTH)
    assert ours == theirs


@pytest.mark.parametrize("program", [view, parts])
def test_views_are_made_anew(program: Any) -> None:
    """PyTorch makes those anew, too, that nobody asks for."""
    codes = []
    for t, make in BOTH:
        graph = traced(t, make, program)
        graph.graph.eliminate_dead_code()
        graph.recompile()
        codes.append(graph.code)
    assert codes[1] == codes[0]


def nested(t: Any) -> list[Any]:
    f = func(t)

    def loss(x: Any) -> Any:
        return (x * 2).mul_(x).sum()

    x = t.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = x.clone().requires_grad_()
    z = f.functionalize(lambda v: (v * 2).mul_(3))(y)
    z.sum().backward()
    return [f.grad(f.functionalize(loss))(x), f.functionalize(f.grad(loss))(x),
            f.vmap(f.functionalize(loss))(x), f.functionalize(f.vmap(loss))(x),
            f.vmap(f.grad(f.functionalize(loss)))(x), y.grad,
            f.jvp(f.functionalize(loss), (x,), (x,))[1]]  # fmt: skip


def test_nesting() -> None:
    assert_close(plain(nested(flambeau)), plain(nested(reference)))


def test_what_is_returned() -> None:
    for t, _ in BOTH:
        x = t.ones(2)
        f = func(t).functionalize
        assert f(lambda v: v)(x) is x
        written = f(lambda v: v.add_(1))(x)
        assert written.tolist() == x.tolist() == [2.0, 2.0]
        assert written.data_ptr() != x.data_ptr()
        assert f(lambda v, n, *, k: (v + n, k, "a"))(x, 3, k=None)[1:] == (None, "a")


def refused(t: Any, call: Any) -> str:
    with pytest.raises(RuntimeError) as caught:
        call(t, func(t).functionalize)
    return str(caught.value).rpartition("report a bug to PyTorch. ")[2]


@pytest.mark.parametrize("call", [
    lambda t, f, kept: f(lambda x: kept.add_(x))(t.ones(2)),
    lambda t, f, kept: f(lambda x: x, remove="all"),
    lambda t, f, kept: f(lambda x: x.add_(1))(t.ones(2, requires_grad=True)),
])  # fmt: skip
def test_refusals(call: Any) -> None:
    theirs, ours = (refused(t, lambda t, f: call(t, f, t.ones(2))) for t, _ in BOTH)
    assert ours == theirs


@pytest.mark.parametrize("write", [lambda x: x.unsqueeze_(0), lambda x: x.resize_(4)])
def test_other_layouts_are_refused(write: Any) -> None:
    with pytest.raises(NotImplementedError, match="functionalize") as caught:
        flambeau.func.functionalize(lambda x: write(x))(flambeau.ones(2))
    del caught
