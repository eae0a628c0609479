"""Indexing: what is a view, what is recorded, and that errors leave tensors unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


def table() -> torch.Tensor:
    return torch.tensor(np.arange(12.0).reshape(3, 4))


def test_basic_indices_share_memory_and_tensors_copy() -> None:
    x = table()
    for index in (1, slice(1, 3), (0, slice(None, 2)), None, ..., (slice(None), 1)):
        assert x[index]._base is x
    for index in ([0, 1], torch.tensor([0, 2]), x > 3, True):
        assert x[index]._base is None


def test_a_write_to_a_view_reaches_the_base_and_its_gradient() -> None:
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = leaf * 2
    y[1] = 5.0
    (y * y).sum().backward()
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert leaf.grad.tolist() == [8.0, 0.0, 24.0]


def test_positions_that_repeat_add_up_in_the_gradient() -> None:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    leaf[[0, 0, 1]].sum().backward()
    assert leaf.grad.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (5, "index 5 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0), "too many indices for tensor of dimension 2"),
        ([0, 7], "index 7 is out of bounds for dimension 0 with size 3"),
        (torch.tensor([True, False]), "The shape of the mask [2] at index 0 does not match"),
        (1.0, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables"),
    ],
)
def test_a_wrong_index_changes_nothing(index: object, text: str) -> None:
    x = table()
    with pytest.raises(IndexError) as caught:
        x[index] = 100.0
    assert str(caught.value).startswith(text)
    assert x.tolist() == table().tolist()
    assert x._version == 0


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_an_empty_index_takes_values_of_any_shape_that_get_no_gradient(name: str) -> None:
    values = torch.ones(2, 2, requires_grad=True)
    target = torch.ones(3, requires_grad=True)
    result = getattr(target, name)(0, torch.empty(0, dtype=torch.int64), values)
    assert result.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(RuntimeError, match="not expandable to size"):
        result.sum().backward()
