"""Writes in place: versions, views and bases, and the errors that protect gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import flambeau as torch


def test_a_saved_value_that_changed_is_an_error_with_its_story() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Add.* is at version 1; expected"):
        z.sum().backward()
    y = x.exp()
    y.mul_(2)
    with pytest.raises(
        RuntimeError, match=r"\[torch.FloatTensor \[2\]\], which is output 0 of Exp"
    ):
        y.sum().backward()


def test_writes_to_views_reach_the_base() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[1:].mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]
    assert type(y.grad_fn).__name__ == "CopySlices"


def test_views_see_writes_to_the_base() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    view = y[1:]
    y.mul_(10)
    assert view.tolist() == [20.0, 30.0]
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 10.0]


def test_a_plain_tensor_gains_history() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    base = torch.zeros(2, 2)
    base[0] = x
    base[1, 0] = x[0] * 2
    (base * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [7.0, 2.0]
    assert base.requires_grad


def test_versions_are_shared_by_all_views() -> None:
    x = torch.ones(4)
    view = x[1:]
    view.add_(1)
    x.zero_()
    assert x._version == view._version == x.detach()._version == 2
    assert x.data._version == 0


def _written(view: torch.Tensor) -> None:
    view.mul_(2)


def _no_grad_view(base: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return base[:2]


def _inference_view(base: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return base[:2]


@pytest.mark.parametrize(
    ("view", "text"),
    [
        (lambda base: base.split(2)[0], "Output 0 of Split.* returns multiple views"),
        (lambda base: base.unbind()[1], "Output 1 of Unbind.* returns multiple views"),
        (_no_grad_view, "created in no_grad mode"),
        (_inference_view, "created in inference mode"),
    ],
)
def test_views_that_may_not_be_written_to(view: Callable, text: str) -> None:
    base = torch.ones(4, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match=text):
        _written(view(base))


def test_leaves_may_not_be_written_to() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("view", [
    lambda base: base[1:], lambda base: base.t(), lambda base: base.expand(2, 3),
    lambda base: base.detach()[0],
])  # fmt: skip
def test_views_of_constants_that_learn_are_named_as_views(view: Callable) -> None:
    learned = view(torch.ones(2, 3)).requires_grad_()
    with pytest.raises(RuntimeError, match=r"^a view of a leaf Variable that requires grad"):
        learned.zero_()
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad"):
        torch.ones(2, 3)[1:].detach().requires_grad_().zero_()


def test_a_tensor_of_chances_gets_zeros_of_its_own_type() -> None:
    """`bernoulli_(p)` sends them, in the type and the shape of `p`."""
    chances = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    drawn = torch.zeros(3).bernoulli_(chances)
    drawn.sum().backward()
    assert chances.grad.dtype is torch.float64
    assert chances.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, made, mask, place: x.ldexp_(made),
        lambda x, made, mask, place: x.mul_(made),
        lambda x, made, mask, place: x.masked_fill_(mask, 0.0),
        lambda x, made, mask, place: x.masked_scatter_(mask, made),
        lambda x, made, mask, place: x.put_(place, made),
        lambda x, made, mask, place: x.index_copy_(0, place, made),
        lambda x, made, mask, place: x.scatter_reduce_(0, place, made, "prod"),
    ],
)
def test_a_write_that_cannot_be_recorded_changes_nothing(write: Callable) -> None:
    """What was made in inference mode cannot be saved."""
    x = torch.tensor([0.5, 0.75], requires_grad=True) * 1
    with torch.inference_mode():
        made = torch.tensor([0.5, 0.25]), torch.tensor([True, True]), torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        write(x, *made)
    assert x.tolist() == [0.5, 0.75]
    assert x._version == 0
