"""`make_fx` beside PyTorch's: the code of its graphs, and what they compute for other inputs."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch as reference
from torch.fx.experimental.proxy_tensor import make_fx as reference_make_fx

import flambeau
from flambeau._core import modes
from flambeau.fx.experimental.proxy_tensor import make_fx
from tests.random_seeds import generator


@pytest.fixture(autouse=True)
def collected() -> Any:
    """Levels of transforms hold their tensors in circles."""
    yield
    if modes.watch.active:
        gc.collect()


def write_to_a_view(t: Any, x: Any) -> Any:
    y = x + 1
    y.view(-1).add_(1)
    return y


def write_to_a_part(t: Any, x: Any) -> Any:
    y = x * 2
    row = y[0]
    row.mul_(3)
    y.mul_(2)
    return y, row


def write_to_split(t: Any, x: Any) -> Any:
    y = x * 2
    first, second = y.split(1)
    first.add_(second)
    return y


def assign(t: Any, x: Any) -> Any:
    y = x.clone()
    y[0] = 1
    return y


def loss(x: Any) -> Any:
    return (x.sin() ** 2).sum()


def backward(t: Any, x: Any) -> Any:
    x = x.detach().requires_grad_()
    loss(x).backward()
    return x.grad


def weights(t: Any) -> Any:
    return t.arange(6.0).reshape(2, 3) / 7


def constant(t: Any, x: Any) -> Any:
    return x + t.ones(2) + t.tensor([1.0, 2.0])


def hessian_of_logits(t: Any, x: Any) -> Any:
    return t.func.hessian(lambda row: t.logsumexp(row, 0))(x[0])


SAME_CODE: dict[str, Callable[[Any, Any], Any]] = {
    "write_to_a_view": write_to_a_view, "write_to_split": write_to_split,
    "in place": lambda t, x: x.add_(1), "a part in place": lambda t, x: x[0].mul_(0),
    "two results": lambda t, x: x.max(0), "softmax": lambda t, x: t.softmax(x, 0),
    "product": lambda t, x: x @ x.T, "dead code": lambda t, x: (x + 1, x.sin())[0],
    "nothing": lambda t, x: x, "cat": lambda t, x: t.cat([x, x]),
    "layer norm": lambda t, x: t.nn.functional.layer_norm(x, (2,)),
    "cross entropy": lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([0, 1])),
    "index": lambda t, x: x[t.tensor([0])], "a list": lambda t, x: [x + 1, (x, {"a": x * 2})],
    "type": lambda t, x: x.to(t.float64), "number": lambda t, x: (x + 1, 3, None),
    "relu": lambda t, x: x.relu() + t.nn.functional.gelu(x),
}  # fmt: skip
SAME_RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "write_to_a_part": write_to_a_part, "assign": assign, "backward": backward,
    "constant": constant, "hessian": hessian_of_logits,
    "gradient": lambda t, x: t.func.grad(loss)(x),
    "batch": lambda t, x: t.vmap(lambda row: row.sum() * 2)(x),
    "gradients of a batch": lambda t, x: t.vmap(t.func.grad(loss))(x),
    "tangent": lambda t, x: t.func.jvp(loss, (x,), (x.cos(),)),
    "jacobian": lambda t, x: t.func.jacrev(t.sin)(x[0]),
    "brought along": lambda t, x: x @ weights(t),
    "out": lambda t, x: t.add(x, 1, out=t.empty(2, 2)),
    "convolution": lambda t, x: t.nn.functional.conv1d(x[None], t.ones(2, 2, 1)),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x),
    "batch norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "sum": lambda t, x: t.einsum("ij,kj->ik", x, x).cumsum(0),
}  # fmt: skip


def traced(make: Any, library: Any, program: Any, x: Any) -> Any:
    return make(lambda x: program(library, x))(x)


def inputs() -> list[list[float]]:
    draw = generator("make_fx")
    return [[draw.uniform(-2, 2) for _ in range(2)] for _ in range(2)]


@pytest.mark.parametrize("name", SAME_CODE)
def test_code(name: str) -> None:
    both = ((reference_make_fx, reference), (make_fx, flambeau))
    graphs = [traced(make, t, SAME_CODE[name], t.tensor(inputs())) for make, t in both]
    assert graphs[1].code == graphs[0].code


@pytest.mark.parametrize("name", SAME_CODE | SAME_RESULTS)
def test_results_for_other_inputs(name: str) -> None:
    program = (SAME_CODE | SAME_RESULTS)[name]
    graph = traced(make_fx, flambeau, program, flambeau.zeros(2, 2))
    numbers = inputs()
    want = program(reference, reference.tensor(numbers))
    got = graph(flambeau.tensor(numbers))
    assert_same(got, want)


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, reference.Tensor):
        assert str(got.dtype) == str(want.dtype)
        reference.testing.assert_close(
            reference.tensor(got.tolist(), dtype=want.dtype), want.detach(), rtol=1e-5, atol=1e-5
        )
    elif isinstance(want, dict):
        assert list(got) == list(want)
        assert_same(list(got.values()), list(want.values()))
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for mine, other in zip(got, want, strict=True):
            assert_same(mine, other)
    else:
        assert got == want


def layer(t: Any) -> Any:
    model = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.Tanh(), t.nn.Linear(3, 1))
    for number, parameter in enumerate(model.parameters()):
        parameter.data.fill_(0.25 * number - 0.5)
    return model


@pytest.mark.parametrize("whole", [True, False])
def test_modules_bring_their_parameters(whole: bool) -> None:
    graphs, results = [], []
    numbers = inputs()
    for make, t in ((reference_make_fx, reference), (make_fx, flambeau)):
        model = layer(t)
        graph = make(model if whole else partial(lambda m, x: m(x), model))(t.zeros(2, 2))
        graphs.append([name for name, _ in graph.named_parameters()])
        results.append(graph(t.tensor(numbers)).tolist())
    assert graphs[0] == graphs[1]
    reference.testing.assert_close(*map(reference.tensor, results))


def test_arguments_in_containers() -> None:
    def program(x: Any, y: Any) -> Any:
        return {"sum": x + y["k"][1], "first": y["k"][0]}

    graph = make_fx(program)(flambeau.zeros(2), {"k": [flambeau.ones(2), flambeau.zeros(2)]})
    got = graph(flambeau.ones(2), {"k": [flambeau.ones(2) * 3, flambeau.ones(2) * 5]})
    assert {name: value.tolist() for name, value in got.items()} == {
        "sum": [6.0, 6.0],
        "first": [3.0, 3.0],
    }


@pytest.mark.parametrize("program", [
    lambda x: x if x.sum() > 0 else -x,
    lambda x: x + x.sum().item(),
    lambda x, y=2: x * y,
])  # fmt: skip
def test_refused(program: Any) -> None:
    errors = []
    for make, t in ((reference_make_fx, reference), (make_fx, flambeau)):
        with pytest.raises(RuntimeError) as caught:
            make(program)(t.zeros(2, 2))
        errors.append(str(caught.value).partition("  It may")[0])
        del caught  # it holds the tensors of the trace
    assert errors[0] == errors[1]


def test_decompositions() -> None:
    def codes(make: Any, t: Any) -> str:
        def softmax(x: Any, dim: int, half: bool) -> Any:
            return x.exp() / x.exp().sum(dim, keepdim=True)

        table = {t.ops.aten._softmax.default: softmax}
        graph = make(lambda x: t.softmax(x, 0), decomposition_table=table)(t.zeros(2, 2))
        return str(graph.code)

    assert codes(make_fx, flambeau) == codes(reference_make_fx, reference)


def test_signature() -> None:
    theirs, ours = (
        list(inspect.signature(make).parameters) for make in (reference_make_fx, make_fx)
    )
    assert ours == theirs
