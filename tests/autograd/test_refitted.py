"""Tensors that get other memory while a graph holds them."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core import modes


def test_gradients_of_the_new_shape_are_summed_to_the_old_one() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.data = torch.ones(4, 2)
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [12.0, 12.0]


def test_gradients_that_do_not_fit_are_refused() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 3
    y.data = torch.ones(3)
    told = r"SumBackward0 .* index 0 - got \[3\] but expected shape compatible with \[2, 3\]"
    with pytest.raises(RuntimeError, match=told):
        y.sum().backward()


def test_gradients_come_back_in_the_old_type() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 3
    y.data = torch.ones(2, dtype=torch.float64)
    (grad,) = torch.autograd.grad((y * y).sum(), x)
    assert grad.dtype is torch.float32 and grad.tolist() == [6.0, 6.0]


def test_views_whose_shape_changes() -> None:
    x = torch.ones(3, requires_grad=True)
    view = x[:1]
    view.data = torch.full((2, 3), 2.0)
    (view * view).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [24.0, 0.0, 0.0]


def test_a_write_to_a_view_of_a_base_of_another_shape() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = torch.zeros(3, requires_grad=True).clone()
    base.data = torch.ones(4)
    base[:2].mul_(x)
    with pytest.raises(RuntimeError, match="Function torch::autograd::CopySlices returned an inv"):
        base.sum().backward()


def test_set_on_a_view_is_recorded_on_its_base() -> None:
    base = torch.ones(3, requires_grad=True) * 2
    view = base[1:]
    view.set_(view.detach())
    assert base.grad_fn is not None and base.grad_fn.name() == "torch::autograd::CopySlices"
    assert view._version == base._version == 1
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        base.sum().backward()


def test_backward_looks_for_them_only_while_they_are_alive() -> None:
    before = modes.watch.nodes
    y = torch.ones(2, requires_grad=True) * 3
    y.data = torch.ones(4, 2)
    assert modes.watch.nodes == before + 1
    del y
    assert modes.watch.nodes == before
