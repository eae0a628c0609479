"""The row formulas of reductions, normalisation and cross-entropy, one function each (those of
elements and their targets: `losses.py`).

Parameters of another kind than the rows themselves are named in the decorator; those that may be
absent are None then. Sources: the functions' own definitions in PyTorch's documentation; gradients
are derived by hand from them.
"""

from __future__ import annotations

from typing import Any

from flambeau._compiler.expr import absolute, exp, log1p, maximum, sqrt, where
from flambeau._compiler.expr import isnan as is_nan
from flambeau._compiler.fuse import (
    amax,
    amin,
    at,
    average,
    down,
    first,
    formula,
    length,
    position,
    product,
    total,
)

# ---- reductions


@formula(x="full")
def sum_of(x: Any) -> Any:
    """The sum."""
    return total(x)


@formula(x="full")
def sum_of_numbers(x: Any) -> Any:
    """The sum of what is not nan."""
    return total(where(is_nan(x), 0, x))


@formula(x="full")
def product_of(x: Any) -> Any:
    """The product."""
    return product(x)


@formula(x="full")
def largest(x: Any) -> Any:
    """The largest element."""
    return amax(x)


@formula(x="full")
def smallest(x: Any) -> Any:
    """The smallest element."""
    return amin(x)


@formula(x="full")
def largest_place(x: Any) -> Any:
    """The largest element and the first place that has it; nan counts as the largest."""
    peak = amax(x)
    return peak, first((x == peak) | is_nan(x))


@formula(x="full")
def smallest_place(x: Any) -> Any:
    """The smallest element and the first place that has it; nan counts as the smallest."""
    low = amin(x)
    return low, first((x == low) | is_nan(x))


@formula(x="full")
def any_true(x: Any) -> Any:
    """1 if an element is not 0."""
    return amax(where(x != 0, 1, 0))


@formula(x="full")
def all_true(x: Any) -> Any:
    """1 if no element is 0."""
    return amin(where(x != 0, 1, 0))


@formula(x="full")
def nonzero_count(x: Any) -> Any:
    """How many elements are not 0."""
    return total(where(x != 0, 1, 0))


@formula(x="full", correction="number")
def variance(x: Any, correction: Any) -> Any:
    """Mean, and the sum of squared distances from it over length - correction."""
    mean = average(x)
    centered = x - mean
    drift = total(centered)  # what rounding the mean has lost; found in the same pass
    squares = maximum(total(centered * centered) - drift * drift / length(), 0)
    return mean, squares / maximum(length() - correction, 0)


@formula(x="full")
def sum_of_squares(x: Any) -> Any:
    """The square of the 2-norm."""
    return total(x * x)


@formula(x="full", mean="number")
def sum_of_centered_squares(x: Any, mean: Any) -> Any:
    """Squared distances from a mean that is known."""
    centered = x - mean
    return total(centered * centered)


@formula(x="full")
def sum_of_sizes(x: Any) -> Any:
    """The 1-norm."""
    return total(absolute(x))


@formula(x="full")
def largest_size(x: Any) -> Any:
    """The norm of order inf."""
    return amax(absolute(x))


# ---- normalisation


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _normalised(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    mean = average(x)
    centered = x - mean
    drift = average(centered)  # what rounding the mean has lost; found in the same pass
    variance = maximum(average(centered * centered) - drift * drift, 0)
    rstd = 1 / sqrt(variance + eps)
    exact = where(is_nan(drift), mean, mean + drift)  # the mean of infinities is one
    return _affine((centered - drift) * rstd, weight, bias), exact, rstd, variance


def _normalised_backward(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """The gradient of the input, and the normalised rows."""
    normal = (x - mean) * rstd
    scaled = _affine(grad, weight, None)
    along = average(scaled * normal)
    return rstd * (scaled - average(scaled) - normal * along), normal


@formula(x="full", weight="along", bias="along", eps="number")
def layer_norm(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Normalised rows; mean; 1 / standard deviation."""
    return _normalised(x, weight, bias, eps)[:3]


@formula(x="full", grad="full", weight="along", mean="row", rstd="row")
def layer_norm_backward(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """Gradients of input, weight and bias."""
    of_input, normal = _normalised_backward(x, grad, weight, mean, rstd)
    return of_input, down(grad * normal), down(grad)


@formula(x="full", weight="segment", bias="segment", eps="number")
def group_norm(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """The same with a weight for every channel of a group."""
    return _normalised(x, weight, bias, eps)[:3]


@formula(x="full", grad="full", weight="segment", mean="row", rstd="row")
def group_norm_backward(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """The gradient of the input."""
    return _normalised_backward(x, grad, weight, mean, rstd)[0]


@formula(x="full", weight="row", bias="row", eps="number")
def batch_norm(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Normalised rows (channels); mean; 1 / standard deviation; variance."""
    return _normalised(x, weight, bias, eps)


@formula(x="full", weight="row", bias="row", mean="row", variance="row", eps="number")
def fixed_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, eps: Any) -> Any:
    """Batch norm with statistics that are known."""
    scale = _affine(1 / sqrt(variance + eps), weight, None)
    shift = -mean * scale
    return x * scale + (shift if bias is None else shift + bias)


@formula(x="full", grad="full", weight="row", mean="row", rstd="row")
def batch_norm_backward(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """Gradients of input, weight and bias where the statistics are the batch's."""
    normal = (x - mean) * rstd
    of_weight, of_bias = total(grad * normal), total(grad)
    scale = _affine(rstd, weight, None)
    result = scale * (grad - of_bias / length() - normal * (of_weight / length()))
    return result, of_weight, of_bias


@formula(x="full", grad="full", weight="row", mean="row", rstd="row")
def fixed_norm_backward(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """The same where the statistics are given."""
    return grad * _affine(rstd, weight, None), total(grad * ((x - mean) * rstd)), total(grad)


@formula(x="full", grad="full", mean="row", rstd="row")
def normal_sums(x: Any, grad: Any, mean: Any, rstd: Any) -> Any:
    """What weight and bias get from one channel of one sample."""
    return total(grad * ((x - mean) * rstd)), total(grad)


@formula(x="full", weight="along", eps="number")
def rms_norm(x: Any, weight: Any, eps: Any) -> Any:
    """Rows over their root mean square, and what they were multiplied by."""
    rstd = 1 / sqrt(average(x * x) + eps)
    return _affine(x * rstd, weight, None), rstd


@formula(x="full", grad="full", weight="along", rstd="row")
def rms_norm_backward(x: Any, grad: Any, weight: Any, rstd: Any) -> Any:
    """Gradients of input and weight."""
    normal = x * rstd
    scaled = _affine(grad, weight, None)
    return rstd * (scaled - normal * average(scaled * normal)), down(grad * normal)


# ---- cross-entropy


@formula(x="full", target="index")
def cross_entropy(x: Any, target: Any) -> Any:
    """The loss of every row; its largest score and its sum of exponentials.

    The largest scores' exponentials, which are 1, are counted apart: beside them the others would
    lose digits that a small loss consists of.
    """
    peak = amax(x)
    below = x - peak
    ties = total(where(below == 0, 1, 0))
    others = total(where(below == 0, 0, exp(below))) + (ties - 1)
    return log1p(others) - (at(x, target) - peak), peak, 1 + others


@formula(x="full", target="index", peak="row", weights="row", factor="row")
def cross_entropy_backward(x: Any, target: Any, peak: Any, weights: Any, factor: Any) -> Any:
    """`(softmax - one_hot) * factor`."""
    return exp(x - peak) * (factor / weights) - where(position() == target, factor, 0)
