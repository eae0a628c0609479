"""Operators over lists of tensors, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch

LEFT = [np.array([1.0, -2.0, 3.5]), np.array([[0.5, 4.0]])]
RIGHT = [np.array([2.0, 0.25, -1.0]), np.array([[3.0, -0.5]])]


@pytest.mark.parametrize(("name", "ufunc"), [("add", np.add), ("mul", np.multiply),
                                             ("maximum", np.maximum)])  # fmt: skip
def test_lists(name: str, ufunc: np.ufunc) -> None:
    """Pairs of two lists, in new tensors and in place."""
    wanted = [ufunc(*pair).tolist() for pair in zip(LEFT, RIGHT, strict=True)]
    left, right = [[torch.from_numpy(a.copy()) for a in arrays] for arrays in (LEFT, RIGHT)]
    made = getattr(torch, f"_foreach_{name}")(left, right)
    assert [x.tolist() for x in made] == wanted
    assert [x.tolist() for x in left] == [a.tolist() for a in LEFT]
    assert getattr(torch, f"_foreach_{name}_")(left, right) is left
    assert [x.tolist() for x in left] == wanted


def test_gradients() -> None:
    """d(a * b + 3 c) and of norms."""
    a, b = torch.tensor([3.0, 4.0], requires_grad=True), torch.tensor([2.0, 5.0])
    (result,) = torch._foreach_addcmul([a], [a], [b], 3.0)
    (norm,) = torch._foreach_norm([a])
    (result.sum() + norm).backward()
    np.testing.assert_allclose(a.grad.numpy(), 1 + 3 * b.numpy() + np.array([0.6, 0.8]), rtol=1e-6)


def test_lengths() -> None:
    """Each tensor has its partner, or its number."""
    tensors = [torch.ones(2), torch.ones(2)]
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(tensors, tensors[:1])
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        torch._foreach_add(tensors, [1.0])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1.0)


@pytest.mark.parametrize("name", ["exp", "sqrt", "reciprocal", "tanh", "sigmoid", "norm"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_list_of_one_has_second_derivatives(name: str, packed: bool) -> None:
    """As the operator on the tensor alone; also where hooks keep what is saved."""
    x = torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks

    def second(apply: Any) -> list[float]:
        if packed:
            with hooks(lambda saved: saved, lambda saved: saved):
                result = apply()
        else:
            result = apply()
        (first,) = torch.autograd.grad(result, x, torch.ones_like(result), create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0].tolist()

    single = x.norm if name == "norm" else getattr(x, name)
    wanted = second(single)
    assert second(lambda: getattr(torch, f"_foreach_{name}")([x])[0]) == pytest.approx(wanted)


def test_the_node_of_a_list_of_one() -> None:
    """It can be called, and named by an edge."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (y,) = torch._foreach_mul([x], 3.0)
    edge = torch.autograd.graph.GradientEdge(y.grad_fn, 0)
    assert torch.autograd.grad((y * 2).sum(), edge, retain_graph=True)[0].tolist() == [2, 2]
    assert y.grad_fn(torch.ones(2)).tolist() == [3, 3]


def test_all_that_a_list_has_saved_is_looked_at() -> None:
    """A write to one result is an error for the gradient of another, as in torch, whether its own
    tensor learns or not."""
    for learns in (True, False):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=learns)
        first, second = torch._foreach_sigmoid([x, y])
        second.detach().add_(1)
        with pytest.raises(RuntimeError, match="which is output 1 of ForeachSigmoid"):
            first.sum().backward()


def test_powers_of_complex_numbers_are_summed_up_in_a_real_type() -> None:
    x = torch.tensor([3 + 4j, 0 + 1j], dtype=torch.complex128)
    (found,) = torch._foreach_powsum([x], 1, torch.float64)
    assert found.item() == 6.0
