"""What short ways through frequent calls must not change: zeros, views, conversions, clamps."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("first, second", [(0.0, -0.0), (-0.0, 0.0)])
def test_zeros_of_both_signs_are_two_numbers(first, second):
    x = torch.tensor([-0.0, 0.0, 3.0])
    for number in (first, second, first):
        expected = np.array([-0.0, 0.0, 3.0], np.float32)
        assert str((x * number).tolist()) == str((expected * np.float32(number)).tolist())
        assert str((x + number).tolist()) == str((expected + np.float32(number)).tolist())


VIEWS = {
    "columns": lambda x: x[:, 1::2],
    "transposed": lambda x: x.t(),
    "row": lambda x: x[1],
    "detached": lambda x: x.detach(),
    "diagonal": lambda x: x.diagonal(),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_writes_to_views_reach_the_base_and_are_counted(view):
    base = torch.arange(24.0).reshape(4, 6)
    expected = base.numpy().copy()
    seen = view(base)
    places = view(torch.arange(24).reshape(4, 6)).numpy()
    seen.mul_(2.0).add_(torch.ones(seen.shape)).sqrt_()
    flat = expected.reshape(-1)
    flat[places.reshape(-1)] = np.sqrt(flat[places.reshape(-1)] * 2 + 1)
    np.testing.assert_allclose(base.numpy(), expected, rtol=1e-6)
    assert base._version == seen._version == 3


def test_writes_that_meet_their_operand_or_history_take_the_long_way():
    x = torch.arange(6.0)
    with pytest.raises(RuntimeError, match="some elements of the input tensor"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.zeros(3).expand(2, 3).mul_(2.0)
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        leaf[:2].mul_(2.0)
    product = leaf * 1
    product[:2].mul_(3.0)
    product.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0, 1.0]


SOURCES = [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64,
    torch.uint8, torch.bool, torch.complex64,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("have", SOURCES, ids=str)
@pytest.mark.parametrize("want", SOURCES, ids=str)
def test_conversions_agree_whatever_the_size_and_layout(have, want):
    """Few elements, and many (for which there are compiled loops), and transposed memory."""
    some = (torch.arange(1500).remainder(97) - 20).to(torch.float64).mul(1.37).abs().to(have)
    each = torch.stack([number.to(want) for number in some[:120]])
    assert some.to(want)[:120].equal(each)
    turned = some.reshape(30, 50).t().to(want)
    assert turned.stride() == (1, 50)
    assert turned.t().reshape(-1)[:120].equal(each)


def test_clamp_tells_bounds_that_are_no_numbers():
    x = torch.tensor([-1.0, float("nan"), 2.0])
    for bounds in (("a", 1), (None, "b"), (torch.zeros(3), 1)):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            x.clamp(*bounds)
    assert str(x.clamp(np.float64(0.5), torch.tensor(1)).tolist()) == "[0.5, nan, 1.0]"
