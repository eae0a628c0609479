"""backward and grad: leaves, retained graphs, inputs, unused inputs, deep graphs, memory."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import flambeau as torch


def test_gradients_add_up_in_leaves_only() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.sum().backward()
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None


def test_a_graph_with_saved_values_is_freed() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_only_the_given_inputs_are_filled() -> None:
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    (x * y).sum().backward(inputs=[y])
    assert x.grad is None
    assert y.grad.tolist() == [1.0, 1.0]


def test_derivatives_of_derivatives() -> None:
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y, found = x**5, []
    for _ in range(5):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        found.append(y.item())
    assert found == [80.0, 160.0, 240.0, 240.0, 120.0]


def test_unused_inputs() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used"):
        torch.autograd.grad(x.sum(), [x, y])
    assert torch.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    zeros = torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1]
    assert zeros.tolist() == [0.0, 0.0, 0.0]


def test_batched_gradients_are_a_jacobian() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (rows,) = torch.autograd.grad(x * x, x, torch.eye(3), is_grads_batched=True)
    assert rows.tolist() == np.diag([2.0, 4.0, 6.0]).tolist()


def test_gradients_of_intermediate_results() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    of_y, of_x = torch.autograd.grad((y * y).sum(), [y, x])
    assert of_y.tolist() == [2.0, 8.0]
    assert of_x.tolist() == [4.0, 32.0]
    assert x.grad is None


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda: torch.ones(2).sum().backward(), "does not require grad"),
        (lambda: torch.ones(2, requires_grad=True).backward(), "only for scalar outputs"),
        (lambda: torch.ones(2, requires_grad=True).backward(torch.ones(3)), "Mismatch in shape"),
        (lambda: torch.ones(2, requires_grad=True).add_(1), "a leaf Variable"),
        (lambda: torch.ones(2, dtype=torch.int64).requires_grad_(), "floating point"),
    ],
)
def test_refusals(action: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        action()


def test_a_chain_of_100_000_nodes() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y.t()
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y


def test_graphs_are_no_reference_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        hidden = x.exp().sin()
        view = hidden[1:]
        hidden.mul_(2)
        loss = (view.sum() + torch.logsumexp(hidden, 0)) / hidden.max()
        loss.backward()
        refs = [weakref.ref(t) for t in (hidden, view, loss)]
        refs += [weakref.ref(loss.grad_fn)]
        del hidden, view, loss
        assert [ref() for ref in refs] == [None] * 4
    finally:
        gc.enable()


def test_threads_have_graphs_of_their_own() -> None:
    x = torch.ones(1000, requires_grad=True)
    results: list[Any] = []

    def work(factor: int) -> None:
        for _ in range(20):
            (found,) = torch.autograd.grad((x * factor).sum(), x)
        results.append((factor, found[0].item()))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, float(n)) for n in range(1, 5)]


def test_copies_and_pickles_keep_the_leaf() -> None:
    import copy
    import pickle

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.sum().backward()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad
        assert other.is_leaf
        assert other.tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_inputs_that_do_not_learn_are_refused() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad"):
        (x * 2).sum().backward(inputs=[y])
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require"):
        torch.autograd.grad((x * 2).sum(), y)


@pytest.mark.parametrize("name", ["max", "min", "median", "mode", "sort", "cummax", "cummin"])
def test_gradients_of_picked_numbers_have_memory_of_their_own(name: str) -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = getattr(torch, name)(x, 0)[0]
    of_x, of_y = torch.autograd.grad(y, [x, y])
    of_x.mul_(3)
    assert (of_x.item(), of_y.item()) == (3.0, 1.0)


def test_a_singular_system_is_an_error_where_backward_is_recorded() -> None:
    a, b = torch.zeros(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    result = torch.linalg.solve_ex(a, b)[0].sum()
    torch.autograd.grad(result, [a, b], retain_graph=True)
    with pytest.raises(torch.linalg.LinAlgError, match="the input matrix is singular"):
        torch.autograd.grad(result, [a, b], create_graph=True)
