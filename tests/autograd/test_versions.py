"""Versions live with the memory: what nodes keep of results, and for how long."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau.autograd.versions import rewritten

MODIFIED = "modified by an inplace operation"
SAVING = {
    "exp": lambda x: x.exp(), "max": lambda x: x.max(1)[0], "softmax": lambda x: x.softmax(0),
    "in place": lambda x: (x * 1).tanh_(), "view": lambda x: (x * 1)[0].sigmoid_(),
}  # fmt: skip


def leaf() -> Any:
    return torch.tensor([[0.5, 1.25], [1.5, 0.75]], requires_grad=True)


def test_a_result_that_nobody_holds_is_checked_as_one_that_is_held() -> None:
    def program(h: Any) -> Any:
        v = torch.exp(h)
        v.mul_(3)
        return torch.tanh(v * 0.1).sum()

    h = leaf()
    with pytest.raises(RuntimeError, match=MODIFIED + ".*output 0 of Exp, is at version 1"):
        torch.autograd.grad(program(h), h)


@pytest.mark.parametrize("make", SAVING.values(), ids=SAVING)
def test_saved_results_are_freed_with_their_last_reference(make: Callable[[Any], Any]) -> None:
    gc.collect()
    gc.disable()
    try:
        v = make(leaf())
        node, tensor = weakref.ref(v.grad_fn), weakref.ref(v)
        del v
        assert node() is None
        assert tensor() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("make", SAVING.values(), ids=SAVING)
def test_a_graph_does_not_keep_its_results_alive(make: Callable[[Any], Any]) -> None:
    x = leaf()
    v = make(x)
    tensor, total = weakref.ref(v), v.sum()
    del v
    assert tensor() is None
    total.backward()
    assert x.grad is not None


def test_the_short_ways_are_left_only_while_a_counted_tensor_lives() -> None:
    before = rewritten.count
    x = leaf()
    v = x.exp()
    v.detach_()
    assert rewritten.count == before + 1
    del v
    assert rewritten.count == before


def test_an_alias_counts_for_the_node_when_root_and_result_are_gone() -> None:
    base, x = torch.ones(2, 2), leaf()
    alias = base.detach()
    alias.mul_(x)
    total = alias.exp_().sum()
    other = base.view(-1)
    del alias, base
    other.zero_()
    with pytest.raises(RuntimeError, match=MODIFIED):
        total.backward()


def test_hooks_of_one_of_several_results_see_gradients_through_what_is_saved() -> None:
    def slopes(held: bool) -> list[list[float]]:
        x, seen = leaf(), []
        values, vectors = torch.linalg.eigh(x @ x.T)
        vectors.register_hook(lambda grad: seen.append(grad.reshape(-1).tolist()))
        total = (vectors * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum() + values.sum()
        keep = [values, vectors] if held else []
        (first,) = torch.autograd.grad(total, x, create_graph=True)
        first.sum().backward()
        assert len(keep) in (0, 2)
        return seen

    assert slopes(True) == slopes(False)


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 8, 16])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int32, torch.int64])
def test_negation_in_place_of_every_so_many_elements(step: int, kind: Any) -> None:
    x = torch.arange(1, 9 * step + 1, dtype=kind)
    expected = (-x[::step]).tolist()
    x[::step].neg_()
    assert x[::step].tolist() == expected


def test_data_of_an_alias_is_memory_of_its_own() -> None:
    x = torch.ones(3)
    alias = x.detach()
    x.data = torch.zeros(5)
    alias.data = torch.full((2,), 2.0)
    assert alias.untyped_storage().nbytes() == 8
    assert alias.storage_offset() == 0
    assert x.untyped_storage().nbytes() == 20


def test_detached_after_it_was_saved() -> None:
    """What `detach_` took the history of is refused to the formulas that saved it before."""
    first = torch.tensor(1.0, requires_grad=True).clone()
    result = first.sin()
    first.detach_()
    assert result.grad_fn._saved_self is first
    with pytest.raises(RuntimeError, match="that has been detached in-place"):
        result.backward()
    second = torch.tensor(1.0, requires_grad=True)
    between = second.clone()
    result = between * 2  # saves nothing of it
    between.detach_()
    result.backward()
    assert second.grad == 2
