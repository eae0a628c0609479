"""Hooks of every kind: on tensors, after accumulation, on several tensors, on nodes."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0], requires_grad=True)


def test_tensor_hooks_run_in_order_and_replace() -> None:
    x, seen = leaf(), []
    x.register_hook(lambda g: seen.append(g.tolist()))
    handle = x.register_hook(lambda g: g * 100)
    x.register_hook(lambda g: g + 1)
    handle.remove()
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_hook_stays_with_the_value_before_an_in_place_write() -> None:
    x, seen = leaf(), []
    y = x * 1
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(10)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0, 1.0]), ("before", [10.0, 10.0])]


def test_retained_gradients_follow_in_place_writes() -> None:
    x = leaf()
    y = x * 1
    y.retain_grad()
    y.mul_(10)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    assert x.grad.tolist() == [10.0, 10.0]


def test_hooks_after_accumulation_may_take_the_gradient_away() -> None:
    x, seen = leaf(), []

    def step(p: torch.Tensor) -> None:
        seen.append(p.grad.tolist())
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    for factor in (1, 2):
        (x * factor).sum().backward()
    assert seen == [[1.0, 1.0], [2.0, 2.0]]
    assert x.grad is None


def test_a_hook_on_several_tensors_waits_for_those_that_are_reached() -> None:
    x, y, seen = leaf(), leaf(), []
    handle = torch.autograd.graph.register_multi_grad_hook(
        [x, y], lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    (x * 2).sum().backward()
    (x + y).sum().backward()
    handle.remove()
    (x + y).sum().backward()
    assert seen == [[[2.0, 2.0], None], [[1.0, 1.0], [1.0, 1.0]]]


def test_a_hook_on_any_of_several_tensors_runs_once_a_pass() -> None:
    x, y, seen = leaf(), leaf(), []
    torch.autograd.graph.register_multi_grad_hook([x, y], seen.append, mode="any")
    for _ in range(2):
        (x + y).sum().backward()
    assert len(seen) == 2


def test_node_hooks_see_and_replace() -> None:
    x, seen = leaf(), []
    y = x * 3
    y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None))
    y.sum().backward()
    assert seen == [[2.0, 2.0]]
    assert x.grad.tolist() == [60.0, 60.0]


@pytest.mark.parametrize(
    ("result", "text"),
    [(1, "expected Variable"), (torch.ones(3), "has changed the size of value")],
)
def test_wrong_replacements(result: Any, text: str) -> None:
    x = leaf()
    x.register_hook(lambda g: result)
    with pytest.raises((TypeError, RuntimeError), match=text):
        x.sum().backward()
