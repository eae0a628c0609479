"""Convolution kernels against the definition as loops, and their adjoint laws."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

from flambeau._ops.conv import numpy_form as conv
from flambeau._ops.conv import shapes as conv_check
from flambeau._ops.images import fold

Numbers = tuple[tuple[int, int], tuple[int, int], tuple[int, int], int]

# input, weight, (stride, padding, dilation, groups)
CASES: list[tuple[tuple[int, ...], tuple[int, ...], Numbers]] = [
    ((2, 3, 6, 5), (4, 3, 3, 2), ((1, 1), (1, 0), (1, 1), 1)),
    ((2, 4, 7, 6), (6, 2, 3, 3), ((2, 1), (1, 2), (1, 2), 2)),
    ((2, 3, 6, 6), (6, 1, 3, 3), ((2, 2), (1, 1), (1, 1), 3)),
    ((2, 9, 9, 9), (3, 9, 1, 1), ((1, 1), (0, 0), (1, 1), 1)),
    ((1, 8, 9, 9), (8, 8, 3, 3), ((1, 1), (1, 1), (1, 1), 1)),
]


def by_loops(input: np.ndarray, weight: np.ndarray, numbers: Numbers) -> np.ndarray:
    """The sum of the definition, one output at a time."""
    stride, padding, dilation, groups = numbers
    shape = conv_check.conv_output_shape(input.shape, weight.shape, None, *numbers)
    widths = [(0, 0), (0, 0), *((pad, pad) for pad in padding)]
    padded = np.pad(input, widths)
    result = np.zeros(shape)
    height, width = weight.shape[2:]
    per_group = weight.shape[0] // groups
    for n, o, y, x in product(*map(range, shape)):
        group = o // per_group
        first = group * weight.shape[1]
        rows = slice(y * stride[0], y * stride[0] + height * dilation[0], dilation[0])
        columns = slice(x * stride[1], x * stride[1] + width * dilation[1], dilation[1])
        window = padded[n, first : first + weight.shape[1], rows, columns]
        result[n, o, y, x] = (window[:, :height, :width] * weight[o]).sum()
    return result


@pytest.mark.parametrize("case", CASES, ids=str)
def test_definition_and_adjoints(case: tuple) -> None:
    input_shape, weight_shape, numbers = case
    rng = np.random.default_rng(0)
    input, weight = rng.standard_normal(input_shape), rng.standard_normal(weight_shape)
    output = conv.conv(input, weight, None, *numbers)
    np.testing.assert_allclose(output, by_loops(input, weight, numbers))
    grad = rng.standard_normal(output.shape)
    product_of_both = (output * grad).sum()
    to_input = conv.conv_backward_input(grad, weight, input_shape, *numbers)
    assert np.isclose((to_input * input).sum(), product_of_both)
    to_weight = conv.conv_backward_weight(grad, input, weight_shape, *numbers)
    assert np.isclose((to_weight * weight).sum(), product_of_both)


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    input, weight = rng.standard_normal((3, 4, 12, 12)), rng.standard_normal((5, 4, 3, 3))
    numbers: Numbers = ((1, 1), (1, 1), (1, 1), 1)
    whole = conv.conv(input, weight, None, *numbers)
    monkeypatch.setattr(conv, "COLUMN_BYTES", 5000)
    np.testing.assert_allclose(conv.conv(input, weight, None, *numbers), whole)


def test_half_types_round_once() -> None:
    input = np.ones((1, 300, 1, 1), ml_dtypes.bfloat16)
    weight = np.ones((1, 300, 1, 1), ml_dtypes.bfloat16)
    result = conv.conv(input, weight, None, (1, 1), (0, 0), (1, 1))
    assert result.dtype == ml_dtypes.bfloat16
    assert float(result.ravel()[0]) == 300


def test_transposed_is_the_adjoint() -> None:
    rng = np.random.default_rng(2)
    input, weight = rng.standard_normal((2, 4, 5)), rng.standard_normal((4, 3, 3))
    output = conv.conv_transpose(input, weight, None, (2,), (1,), (1,), (1,))
    assert output.shape == (2, 3, 10)
    other = rng.standard_normal(output.shape)
    back = conv.conv(other, weight, None, (2,), (1,), (1,))
    assert np.isclose((output * other).sum(), (back * input).sum())


def test_channels_words() -> None:
    with pytest.raises(RuntimeError, match="to have 3 channels, but got 2 channels instead"):
        conv_check.conv_output_shape((1, 2, 5, 5), (4, 3, 3, 3), None, (1, 1), (0, 0), (1, 1), 1)


def test_fold_undoes_unfold_of_blocks() -> None:
    input = np.arange(32.0).reshape(1, 2, 4, 4)
    numbers = (2, 2), (1, 1), (0, 0), (2, 2)
    columns = fold.unfold(input, *numbers)
    assert columns.shape == (1, 8, 4)
    np.testing.assert_array_equal(fold.fold(columns, (4, 4), *numbers), input)


def test_infinities_do_not_warn() -> None:
    input = np.array([[[np.inf, -np.inf]]], np.float32)
    with np.errstate(all="raise"):
        result = conv.conv(input, np.ones((1, 1, 2), np.float32), None, (1,), (0,), (1,))
    assert np.isnan(result).all()
