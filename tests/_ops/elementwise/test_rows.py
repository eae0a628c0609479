"""Rules of pointwise rows that are easy to lose: numbers, types, edges of gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


def gradient(function, values):
    x = torch.tensor(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (torch.abs, [0.0, -2.0], [0.0, -1.0]),
        (torch.relu, [0.0, 2.0], [0.0, 1.0]),
        (lambda x: x.clamp(-1, 1), [-1.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
        (lambda x: torch.maximum(x, torch.ones(1)), [1.0, 2.0, 0.0], [0.5, 1.0, 0.0]),
        (lambda x: x**0, [0.0, 3.0], [0.0, 0.0]),
        (lambda x: 0**x, [0.0, 1.0], [0.0, 0.0]),
        (lambda x: torch.xlogy(x, torch.zeros(1)), [0.0], [0.0]),
        (lambda x: torch.atan2(x, torch.zeros(1)), [0.0], [0.0]),
    ],
)
def test_gradients_at_edges(function, values, expected):
    assert gradient(function, values) == expected


def test_numbers_do_not_change_an_activation_of_halves():
    x = torch.tensor([-1.0, 2.0]).half()
    assert torch.nn.functional.leaky_relu(x, 0.1).dtype is torch.float16


def test_reflected_operators():
    x = torch.tensor([2, 4])
    assert (9 // x).tolist() == [4, 2]
    assert (9 % x).tolist() == [1, 1]
    assert (2**x).tolist() == [4, 16]
    assert (1 << x).tolist() == [4, 16]
    assert (2 / x).tolist() == [1.0, 0.5]
    assert isinstance(np.array([1, 2]) + x, torch.Tensor)


def test_in_place_forms_of_several_tensors():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert x.addcmul_(y, y, value=2) is x
    assert x.tolist() == [19.0, 34.0]
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(1).addcmul_(x, y)


def test_alias_does_the_same():
    assert torch.absolute is not torch.abs
    assert torch.absolute(torch.tensor([-1.0])).item() == 1.0
    assert torch.special.expit is not torch.sigmoid
    assert torch.special.expit(torch.zeros(1)).item() == 0.5
    assert torch.tensor([-1.0]).absolute_().item() == 1.0


def test_bool_subtraction_names_the_way_out():
    flags = torch.tensor([True])
    with pytest.raises(RuntimeError, match="two bool tensors"):
        flags - flags
    with pytest.raises(RuntimeError, match="with a bool tensor"):
        flags - torch.ones(1)


def test_integer_powers():
    with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
        torch.tensor([2]) ** -1
    assert torch.tensor([2, 1, -1]).pow(torch.tensor([-1, -1, -1])).tolist() == [0, 1, -1]


def test_scalar_conditions_promote_as_numbers():
    condition = torch.tensor([True, False])
    assert torch.where(condition, 1, 2).dtype is torch.int64
    assert torch.where(condition, 1.0, torch.ones(2).half()).dtype is torch.float16


def test_next_number_of_bfloat16():
    one = torch.ones(1).bfloat16()
    assert torch.nextafter(one, one + 1).item() == 1.0078125


def test_every_formula_can_be_recorded():
    from flambeau._ops.table import loading
    from flambeau._ops.table.op import REGISTRY
    from flambeau._ops.table.recording import build

    loading.load_all()
    for op in REGISTRY.values():
        if op.backward:
            build(op)
