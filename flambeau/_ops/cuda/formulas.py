"""Row formulas that only GPUs need: the ends of reductions in parts, gradients without sums over
rows, which a second launch adds up."""

from __future__ import annotations

from typing import Any

from flambeau._compiler.expr import absolute, sqrt
from flambeau._compiler.expr import isnan as is_nan
from flambeau._compiler.fuse import average, first, formula, total
from flambeau._ops.rows import formulas as shared


@formula(x="full", count="number")
def mean_of(x: Any, count: Any) -> Any:
    """The sum over a number: of elements, or of the sums of parts."""
    return total(x) / count


@formula(x="full")
def length_of(x: Any) -> Any:
    """The 2-norm."""
    return sqrt(total(x * x))


@formula(x="full")
def root_of_total(x: Any) -> Any:
    """The 2-norm, from the sums of squares of parts."""
    return sqrt(total(x))


@formula(x="full", mean="row", freedom="number")
def variance_about(x: Any, mean: Any, freedom: Any) -> Any:
    """The sum of squared distances from a mean, over a number."""
    return shared.sum_of_centered_squares.function(x, mean) / freedom


@formula(x="full", mean="row", freedom="number")
def deviation_about(x: Any, mean: Any, freedom: Any) -> Any:
    """Its square root."""
    return sqrt(shared.sum_of_centered_squares.function(x, mean) / freedom)


@formula(x="full", freedom="number")
def root_of_mean(x: Any, freedom: Any) -> Any:
    """The square root of a sum over a number."""
    return sqrt(total(x) / freedom)


@formula(x="full", mean="row")
def squares_about(x: Any, mean: Any) -> Any:
    """The sum of squared distances from a mean."""
    return shared.sum_of_centered_squares.function(x, mean)


@formula(x="full", peak="row")
def place_of(x: Any, peak: Any) -> Any:
    """The first place that has the extreme of the row; nan is one."""
    return first((x == peak) | is_nan(x))


@formula(x="full", weight="along", bias="along", eps="number")
def layer_norm_of_halves(x: Any, weight: Any, bias: Any, eps: Any) -> Any:
    """Normalised rows; mean; 1 / standard deviation. What rounding a mean in f32 loses is nothing
    beside what half types have lost."""
    mean = average(x)
    centered = x - mean
    rstd = 1 / sqrt(average(centered * centered) + eps)
    normal = centered * rstd
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias, mean, rstd


@formula(x="full", grad="full", weight="along", mean="row", rstd="row")
def layer_norm_slope(x: Any, grad: Any, weight: Any, mean: Any, rstd: Any) -> Any:
    """The gradient of layer norm's input."""
    return shared.group_norm_backward.function(x, grad, weight, mean, rstd)


@formula(x="full", grad="full", weight="along", rstd="row")
def rms_norm_slope(x: Any, grad: Any, weight: Any, rstd: Any) -> Any:
    """The gradient of RMS norm's input."""
    return shared.rms_norm_backward.function(x, grad, weight, rstd)[0]


@formula(x="full", grad="full", mean="along", rstd="along")
def column_sums(x: Any, grad: Any, mean: Any, rstd: Any) -> Any:
    """What weight and bias of layer norm get: rows are the columns here."""
    return shared.normal_sums.function(x, grad, mean, rstd)


@formula(x="full", grad="full", rstd="along")
def scaled_column_sums(x: Any, grad: Any, rstd: Any) -> Any:
    """What the weight of RMS norm gets."""
    return total(grad * (x * rstd))


@formula(x="full", power="number")
def sum_of_powers(x: Any, power: Any) -> Any:
    """The sum of sizes to a power."""
    return total(absolute(x) ** power)
