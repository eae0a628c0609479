"""Pool kernels on examples small enough to check by eye, and their adjoint laws."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau._ops.images import planes
from flambeau._ops.pooling import (
    fractional as fractional_pool,
)
from flambeau._ops.pooling import (
    numpy_adaptive as adaptive_pool,
)
from flambeau._ops.pooling import (
    numpy_form as pool,
)
from flambeau._ops.pooling import (
    shapes as pool_check,
)


def test_max_pool_takes_the_first_of_equals_and_the_last_nan() -> None:
    input = np.array([[[1.0, 1.0, 0.0, np.nan], [1.0, 0.0, np.nan, 2.0]]])
    values, places = pool.max_pool_with_indices(input, (2, 2), (2, 2), (0, 0), (1, 1), (1, 2))
    np.testing.assert_array_equal(values, [[[1.0, np.nan]]])
    np.testing.assert_array_equal(places, [[[0, 6]]])


def test_max_pool_of_minus_infinity_points_into_the_input() -> None:
    input = np.full((1, 1, 3, 3), -np.inf)
    _, places = pool.max_pool_with_indices(input, (3, 3), (2, 2), (1, 1), (1, 1), (2, 2))
    np.testing.assert_array_equal(places.ravel(), [0, 1, 3, 4])


def test_backward_adds_up_where_windows_overlap() -> None:
    input = np.array([[[0.0, 5.0, 0.0]]])
    values, places = pool.max_pool_with_indices(input, (2,), (1,), (0,), (1,), (2,))
    np.testing.assert_array_equal(values, [[[5.0, 5.0]]])
    grad = pool.max_pool_backward(np.ones_like(values), places, (3,), (2,), (1,), (1,))
    np.testing.assert_array_equal(grad, [[[0.0, 2.0, 0.0]]])


@pytest.mark.parametrize("include", [True, False])
def test_avg_pool_is_linear_with_its_adjoint(include: bool) -> None:
    rng = np.random.default_rng(0)
    input = rng.standard_normal((2, 3, 7, 6))
    output = pool_check.avg_pool_output_shape(input.shape, (3, 2), (2, 2), (1, 1), True)
    result = pool.avg_pool(input, (3, 2), (2, 2), (1, 1), output[2:], include)
    grad = rng.standard_normal(result.shape)
    back = pool.avg_pool_backward(grad, (7, 6), (3, 2), (2, 2), (1, 1), include)
    assert np.isclose((back * input).sum(), (result * grad).sum())


def test_adaptive_segments_overlap() -> None:
    assert adaptive_pool.segments(5, 3) == [(0, 2), (1, 4), (3, 5)]
    result = adaptive_pool.adaptive_avg_pool(np.arange(5.0).reshape(1, 1, 5), (3,))
    np.testing.assert_allclose(result, [[[0.5, 2.0, 3.5]]])
    values, places = adaptive_pool.adaptive_max_pool(np.arange(5.0).reshape(1, 1, 5), (3,))
    np.testing.assert_array_equal(values, [[[1.0, 3.0, 4.0]]])
    np.testing.assert_array_equal(places, [[[1, 3, 4]]])


def test_fractional_windows_end_with_the_input() -> None:
    starts = fractional_pool.window_starts(np.array([[0.3, 0.9]]), 10, 4, 2)
    assert starts.shape == (1, 2, 4)
    assert (starts[..., 0] == 0).all()
    assert (starts[..., -1] == 8).all()


def test_unpool_puts_maxima_back() -> None:
    input = np.arange(16.0).reshape(1, 1, 4, 4)
    values, places = pool.max_pool_with_indices(input, (2, 2), (2, 2), (0, 0), (1, 1), (2, 2))
    result = planes.max_unpool(values, places, (4, 4))
    assert result.sum() == values.sum()
    np.testing.assert_array_equal(planes.gather_planes(result, places, 2), values)
