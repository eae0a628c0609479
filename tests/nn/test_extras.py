"""`nn.grad`, `nn.attention`, `nn.factory_kwargs`, products in groups."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.nn.attention import SDPBackend, sdpa_kernel
from flambeau.nn.attention.bias import causal_lower_right, causal_upper_left

F = torch.nn.functional


def test_gradients_of_convolutions_are_those_of_autograd():
    torch.manual_seed(0)
    input, weight = torch.randn(2, 4, 9, requires_grad=True), torch.randn(6, 2, 3)
    weight.requires_grad_()
    output = F.conv1d(input, weight, stride=2, padding=1, groups=2)
    grad_output = torch.randn(output.shape)
    expected = torch.autograd.grad(output, (input, weight), grad_output)
    options = {"stride": 2, "padding": 1, "groups": 2}
    found = torch.nn.grad.conv1d_input(input.shape, weight, grad_output, **options)
    assert torch.allclose(found, expected[0])
    found = F.grad.conv1d_weight(input, weight.shape, grad_output, **options)
    assert torch.allclose(found, expected[1])


def test_permitted_kernels_end_with_the_block():
    x = torch.ones(1, 1, 2, 2)
    nothing = sdpa_kernel(SDPBackend.CUDNN_ATTENTION)
    with nothing, pytest.raises(RuntimeError, match="No viable backend"):
        F.scaled_dot_product_attention(x, x, x)
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        assert not torch.backends.cuda.math_sdp_enabled()
        F.scaled_dot_product_attention(x, x, x)
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(x[0], x[0], x[0])
    assert torch.backends.cuda.math_sdp_enabled()
    F.scaled_dot_product_attention(x[0], x[0], x[0])


def test_priorities():
    from flambeau.nn.attention import _cur_sdpa_kernel_backends as current

    wanted = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]
    with sdpa_kernel(wanted, set_priority=True):
        assert current(with_priority=True) == wanted
    assert len(current()) == 5


def test_causal_biases():
    assert causal_lower_right(2, 3).tolist() == [[True, True, False], [True, True, True]]
    assert causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    with pytest.warns(UserWarning, match="NaNs"):
        causal_lower_right(3, 2)
    with pytest.raises(AssertionError, match="2D"):
        causal_upper_left(3)


def test_factory_kwargs():
    given = {"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}}
    assert torch.nn.factory_kwargs(given) == {"dtype": torch.float64, "device": "cpu"}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        torch.nn.factory_kwargs({"size": 3})


def test_grouped_products():
    left, right = torch.arange(12.0).view(6, 2), torch.ones(2, 2, 3)
    result = F.grouped_mm(left, right, offs=torch.tensor([2, 5], dtype=torch.int32))
    assert result[:5].tolist() == [[row.sum().item()] * 3 for row in left[:5]]
    assert result[5].tolist() == [0.0, 0.0, 0.0]


def test_in_place_dropout_of_a_view_without_a_batch():
    x = torch.ones(4, 6)
    dropped = F.dropout1d(x.t(), 0.5, inplace=True)
    assert dropped.shape == (6, 4)
    assert x.tolist() == dropped.t().tolist()
    assert 0.0 in x
