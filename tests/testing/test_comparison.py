"""`assert_close`: what it accepts, what it refuses, what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau.testing import assert_allclose, assert_close

ONE = torch.tensor([1.0, 2.0])

EQUAL = [
    (ONE, torch.tensor([1.0, 2.000001])),
    (torch.tensor([1, 2]), torch.tensor([1, 2])),
    (1.0, 1.0 + 1e-9),
    (None, None),
    ([1, (ONE, 2.0)], (1, [ONE, 2.0])),
    ({"a": ONE, "b": 1}, {"b": 1, "a": ONE}),
    (np.array([1.0]), np.array([1.0 + 1e-9])),
    (torch.nn.Parameter(ONE), ONE),
    (math.inf, math.inf),
]


@pytest.mark.parametrize(("actual", "expected"), EQUAL)
def test_close(actual, expected):
    assert_close(actual, expected)


DIFFERENT = [
    (ONE, torch.tensor([1.0, 2.1]), {}, "Mismatched elements: 1 / 2 (50.0%)"),
    (ONE, torch.tensor([1.0, 2.1]), {}, "at index (1,) (up to 1e-05 allowed)"),
    (ONE, ONE + 1, {"rtol": 0, "atol": 0}, "Tensor-likes are not equal!"),
    (torch.tensor([1, 2]), torch.tensor([1, 3]), {}, "Greatest absolute difference: 1 at"),
    (ONE, ONE.double(), {}, "attribute 'dtype' do not match: torch.float32 != torch.float64"),
    (ONE, ONE[:1], {}, "attribute 'shape' do not match: torch.Size([2]) != torch.Size([1])"),
    (torch.ones(2, 3), torch.ones(3, 2).t(), {"check_stride": True}, "(3, 1) != (1, 2)"),
    (math.nan, math.nan, {}, "Expected nan but got nan."),
    (1.0, 1, {}, "The (d)types do not match"),
    (None, 1, {}, "None mismatch: None is not 1"),
    (True, False, {}, "Booleans mismatch: True is not False"),
    ([1, [2]], [1, [3]], {}, "The failure occurred for item [1][0]"),
    ({"a": [ONE]}, {"a": [ONE + 1]}, {}, "The failure occurred for item ['a'][0]"),
    ([1], [1, 2], {}, "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, {}, "Missing keys in the actual mapping: ['b']"),
    (1.0, 2.0, {"msg": "my words"}, "my words"),
    (1.0, 2.0, {"msg": lambda text: text.splitlines()[0] + "?"}, "Scalars are not close!?"),
]


@pytest.mark.parametrize(("actual", "expected", "options", "text"), DIFFERENT)
def test_different(actual, expected, options, text):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected, **options)
    assert text in str(caught.value)


def test_structure_comes_before_values():
    with pytest.raises(AssertionError, match="length of the sequences"):
        assert_close([1.0, [2]], [5.0, [2, 3]])


def test_options():
    assert_close(math.nan, math.nan, equal_nan=True)
    assert_close(ONE, ONE.double(), check_dtype=False)
    assert_close(ONE, ONE + 0.5, rtol=0.0, atol=0.6)
    with pytest.raises(ValueError, match="but got no atol"):
        assert_close(ONE, ONE, rtol=1.0)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(ONE, [1.0, 2.0])
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(torch.nn.Parameter(ONE), ONE, allow_subclasses=False)


def test_gradients_are_not_recorded():
    wanted = ONE.clone().requires_grad_()
    with pytest.raises(AssertionError, match="not close"):
        assert_close(wanted * 2, ONE)
    assert wanted.grad is None


def test_the_older_function():
    with pytest.warns(FutureWarning, match="assert_allclose"):
        assert_allclose([1.0, 2.0], [1, 2])
    with pytest.raises(AssertionError), pytest.warns(FutureWarning):
        assert_allclose(ONE, ONE + 0.1)
