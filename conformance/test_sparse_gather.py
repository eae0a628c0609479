"""`gather(sparse_grad=True)`: the gradient has an entry for each position, as PyTorch's has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.test_sparse import LIBRARIES, assert_same, outcome
from tests.random_seeds import generator

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"foreach": True}), ("SGD", {"fused": True}), ("SGD", {"maximize": True}),
    ("Adagrad", {}), ("Adagrad", {"weight_decay": 0.1}), ("Adagrad", {"fused": True}),
    ("SparseAdam", {}), ("SparseAdam", {"maximize": True}), ("Adam", {}), ("AdamW", {}),
    ("Adam", {"foreach": True}), ("RMSprop", {}), ("Rprop", {}), ("Adadelta", {}), ("Adamax", {}),
    ("ASGD", {}), ("NAdam", {}), ("RAdam", {}), ("Adafactor", {}), ("LBFGS", {"max_iter": 2}),
]  # fmt: skip


def test_gradients_of_drawn_positions() -> None:
    """Any number of dims, any dim, shorter indices, none at all."""
    drawn = np.random.default_rng(generator("gather").getrandbits(64))
    for _ in range(60):
        sizes = [int(n) for n in drawn.integers(1, 5, drawn.integers(0, 4))]
        dim = int(drawn.integers(-len(sizes), len(sizes))) if sizes else 0
        shape = [int(drawn.integers(0 if drawn.random() < 0.1 else 1, n + 1)) for n in sizes]
        if sizes:
            shape[dim] = int(drawn.integers(0, 6))
        index = drawn.integers(0, sizes[dim] if sizes else 1, shape)
        values, factors = drawn.standard_normal(sizes), drawn.standard_normal(shape)
        ours, theirs = (
            outcome(gradient, library, values, dim, index, factors) for library in LIBRARIES
        )
        assert_same(ours, theirs)


def gradient(library: Any, values: Any, dim: int, index: Any, factors: Any) -> Any:
    """The gradients of a gather, of one of what is computed, and of both in a sum."""
    found = []
    for inner in (lambda x: x, lambda x: x * 3, lambda x: x.sin()):
        x = library.tensor(values, dtype=library.float64, requires_grad=True)
        places = library.tensor(np.asarray(index), dtype=library.int64)
        y = inner(x).gather(dim, places, sparse_grad=True)
        (y * library.tensor(factors, dtype=library.float64)).sum().backward()
        found += [y.detach(), x.grad]
    return found


@pytest.mark.parametrize(("sizes", "index"), [
    ((), [0]), ((), [0, 0]), ((), 0), ((), []), ((3,), 1), ((3,), [1]), ((3,), []),
])  # fmt: skip
def test_one_side_without_dims(sizes: Any, index: Any) -> None:
    values, factors = np.ones(sizes), np.ones(np.shape(index))
    ours, theirs = (outcome(gradient, library, values, 0, index, factors) for library in LIBRARIES)
    assert_same(ours, theirs)


def test_passes_add_up_and_have_a_second_order() -> None:
    def gradients(library: Any) -> Any:
        x = library.arange(4.0).requires_grad_()
        rows = library.tensor([0, 0, 3])
        for _ in range(2):
            x.gather(0, rows, sparse_grad=True).sum().backward()
        found = [x.grad.clone()]
        (x.gather(0, rows, sparse_grad=True).sum() + x.sum()).backward()
        found.append(x.grad)
        x.grad = None
        squares = x.gather(0, rows, sparse_grad=True) ** 2
        (first,) = library.autograd.grad(squares.sum(), x, create_graph=True)
        first.to_dense().sum().backward()
        return [*found, first.requires_grad, first.detach(), x.grad]

    ours, theirs = (outcome(gradients, library) for library in LIBRARIES)
    assert_same(ours, theirs)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
def test_optimizers(name: str, options: dict[str, Any]) -> None:
    """They take the gradient or refuse it, as PyTorch's do."""

    def trained(library: Any) -> Any:
        x = library.nn.Parameter(library.arange(4.0))
        optimizer = getattr(library.optim, name)([x], lr=0.1, **options)
        for step in range(3):

            def loss(step: int = step) -> Any:
                optimizer.zero_grad()
                found = x.gather(0, library.tensor([0, step, 3]), sparse_grad=True)
                found.square().sum().backward()
                return found.square().sum()

            optimizer.step(loss)
        return x.detach()

    ours, theirs = (outcome(trained, library) for library in LIBRARIES)
    assert_same(ours, theirs, rtol=1e-5)
