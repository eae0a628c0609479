"""Comparison of tensors, numbers and containers of them: `assert_close`.

The work is done in two passes. The first takes the two arguments apart into pairs of leaves and
complains about their structure; the second compares the leaves. So a list that is too short is
reported before a value that is wrong.
"""

from __future__ import annotations

import cmath
import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.layout import layout
from flambeau._core.promotion import promote_types
from flambeau._ops.table.namespace import ops
from flambeau._tensor.conversion import tensor
from flambeau._tensor.tensor import Tensor
from flambeau.testing._messages import Mismatch, scalars_differ, tensors_differ

Tolerances = tuple[float, float]
"""Relative and absolute."""

PRECISION: dict[dt.dtype, Tolerances] = {
    dt.float16: (1e-3, 1e-5),
    dt.bfloat16: (1.6e-2, 1e-5),
    dt.float32: (1.3e-6, 1e-5),
    dt.float64: (1e-7, 1e-7),
    dt.complex64: (1.3e-6, 1e-5),
    dt.complex128: (1e-7, 1e-7),
}
"""What values of a dtype may differ by; those of other dtypes have to be equal."""

DTYPE_OF_NUMBER: dict[type, dt.dtype] = {
    bool: dt.bool_,
    int: dt.int64,
    float: dt.float64,
    complex: dt.complex128,
}
COMPARABLE_AS_INT64 = frozenset((dt.uint16, dt.uint32, dt.uint64))


def default_tolerances(
    *inputs: Tensor | dt.dtype, dtype_precisions: dict[dt.dtype, Tolerances] | None = None
) -> Tolerances:
    """The loosest (relative, absolute) tolerances among tensors or dtypes.

    Raises:
        TypeError: an input is neither a tensor nor a dtype.
    """
    table = dtype_precisions or PRECISION
    found = []
    for value in inputs:
        if not isinstance(value, Tensor | dt.dtype):
            raise TypeError(
                f"Expected a torch.Tensor or a torch.dtype, but got {type(value)} instead."
            )
        element = value.dtype if isinstance(value, Tensor) else value
        found.append(table.get(element, (0.0, 0.0)))
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


@dataclass(frozen=True)
class Comparison:
    """How two leaves are compared; the fields are the options of `assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def for_leaf(self, path: tuple[Any, ...], *inputs: Tensor | dt.dtype) -> Comparison:
        """The same with both tolerances set, by default those of the dtypes."""
        if (self.rtol is None) != (self.atol is None):
            absent = "rtol" if self.rtol is None else "atol"
            raise Mismatch(
                ValueError,
                f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.",
                path,
            )
        if self.rtol is not None:
            return self
        rtol, atol = default_tolerances(*inputs)
        return replace(self, rtol=rtol, atol=atol)


Leaf = tuple[Callable[..., None], Any, Any, Comparison, tuple[Any, ...]]
"""The function that compares, its two values, the options, and where they are."""


# ---- the first pass: structure


def _leaves(
    actual: Any, expected: Any, options: Comparison, path: tuple[Any, ...]
) -> Iterator[Leaf]:
    """Pairs of values that are compared as wholes."""
    has_text = isinstance(actual, str) or isinstance(expected, str)
    if _are(Sequence, actual, expected) and not has_text:
        yield from _elements(actual, expected, options, path)
    elif _are(Mapping, actual, expected):
        yield from _items(actual, expected, options, path)
    else:
        yield _leaf(actual, expected, options, path)


def _are(kind: Any, actual: Any, expected: Any) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _elements(actual: Any, expected: Any, options: Comparison, path: Any) -> Iterator[Leaf]:
    if len(actual) != len(expected):
        raise Mismatch(
            AssertionError,
            f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
            path,
        )
    for place in range(len(actual)):
        yield from _leaves(actual[place], expected[place], options, (*path, place))


def _items(actual: Any, expected: Any, options: Comparison, path: Any) -> Iterator[Leaf]:
    keys, wanted = set(actual), set(expected)
    if keys != wanted:
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(wanted - keys)}\n"
            f"Additional keys in the actual mapping: {sorted(keys - wanted)}",
            path,
        )
    order: Any = keys
    with contextlib.suppress(TypeError):  # keys of several types have no order
        order = sorted(keys)
    for key in order:
        yield from _leaves(actual[key], expected[key], options, (*path, key))


def _leaf(actual: Any, expected: Any, options: Comparison, path: tuple[Any, ...]) -> Leaf:
    """How two values are compared, by the first kind that both are of."""
    if actual is None or expected is None:
        return _compare_none, actual, expected, options, path
    if _are((bool, np.bool_), actual, expected):
        return _compare_booleans, bool(actual), bool(expected), options, path
    if _are((int, float, complex, np.number), actual, expected):
        numbers = [v.item() if isinstance(v, np.number) else v for v in (actual, expected)]
        dtypes = [_dtype_of(number) for number in numbers]
        return _compare_numbers, *numbers, options.for_leaf(path, *dtypes), path  # type: ignore[return-value]
    tensors = _as_tensors(actual, expected, options.allow_subclasses)
    if tensors is None:
        raise Mismatch(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}.",
            path,
        )
    return _compare_tensors, *tensors, options.for_leaf(path, *tensors), path  # type: ignore[return-value]


def _dtype_of(number: Any) -> dt.dtype:
    return next(DTYPE_OF_NUMBER[kind] for kind in type(number).__mro__ if kind in DTYPE_OF_NUMBER)


def _as_tensors(actual: Any, expected: Any, allow_subclasses: bool) -> tuple[Any, Any] | None:
    """Both as tensors; None unless one is of the other's class and they can be made tensors."""
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not allow_subclasses and type(actual) is not type(expected)):
        return None
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        return actual, expected
    try:
        return ops.as_tensor(actual), ops.as_tensor(expected)
    except (TypeError, ValueError, RuntimeError):
        return None


# ---- the second pass: values


def _compare_none(actual: Any, expected: Any, options: Comparison, path: Any) -> None:
    if actual is not expected:
        raise Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)


def _compare_booleans(actual: bool, expected: bool, options: Comparison, path: Any) -> None:
    if actual is not expected:
        # Without the path, as in PyTorch.
        raise Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", ())


def _compare_numbers(actual: Any, expected: Any, options: Comparison, path: Any) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise Mismatch(
            AssertionError,
            f"The (d)types do not match: {type(actual)} != {type(expected)}.",
            path,
        )
    if actual == expected:
        return
    if options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    rtol, atol = _tolerances(options)
    difference = abs(actual - expected)
    if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    raise Mismatch(AssertionError, scalars_differ(actual, expected, rtol, atol), path)


def _tolerances(options: Comparison) -> Tolerances:
    """The pair that `for_leaf` has filled in."""
    assert options.rtol is not None
    assert options.atol is not None
    return options.rtol, options.atol


def _compare_tensors(actual: Any, expected: Any, options: Comparison, path: Any) -> None:
    _compare_attributes(actual, expected, options, path)
    if "meta" in (actual.device.type, expected.device.type):
        return
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        common = promote_types(_comparable(actual.dtype), _comparable(expected.dtype))
        actual, expected = actual.to(common), expected.to(common)
    _compare_values(actual.detach(), expected.detach(), options, path)


def _compare_attributes(actual: Any, expected: Any, options: Comparison, path: Any) -> None:
    strided = layout.table["strided"]
    both_strided = actual.layout is strided and expected.layout is strided
    rows = [
        ("shape", True, actual.shape, expected.shape),
        ("layout", options.check_layout, actual.layout, expected.layout),
        ("stride()", options.check_stride and both_strided, actual.stride(), expected.stride()),
        ("device", options.check_device, actual.device, expected.device),
        ("dtype", options.check_dtype, actual.dtype, expected.dtype),
    ]
    for name, is_checked, got, wanted in rows:
        if is_checked and got != wanted:
            raise Mismatch(
                AssertionError,
                f"The values for attribute '{name}' do not match: {got} != {wanted}.",
                path,
            )


def _comparable(element: dt.dtype) -> dt.dtype:
    """The dtype by which tensors of two dtypes are compared: large unsigned ones promote badly."""
    return dt.int64 if element in COMPARABLE_AS_INT64 else element


def _compare_values(actual: Any, expected: Any, options: Comparison, path: Any) -> None:
    rtol, atol = _tolerances(options)
    is_tiny = actual.dtype.is_floating_point and actual.dtype.itemsize == 1
    if is_tiny and (rtol or atol):
        raise Mismatch(
            AssertionError,
            f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low "
            "dimensional floats. Please use rtol=0.0 and atol=0.0.",
            path,
        )
    matches = ops.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if bool(matches.all()):
        return
    if actual.ndim == 0:
        text = scalars_differ(actual.item(), expected.item(), rtol, atol)
    else:
        text = tensors_differ(actual, expected, matches, rtol, atol)
    raise Mismatch(AssertionError, text, path)


# ---- the functions for tests


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless |actual - expected| <= atol + rtol · |expected| everywhere.

    Tensors, arrays and numbers are compared, and sequences and mappings of them at any depth.
    Values that are not finite have to be equal. Tolerances default to those of the dtype, the
    looser of two: for float32 `rtol` is 1.3e-6 and `atol` 1e-5, for integers both are 0.

    Args:
        allow_subclasses: a Parameter, say, may stand for a Tensor.
        equal_nan: NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: these have to be the same too.
            Tensors that may differ in dtype are compared in the dtype that both promote to.
        msg: the text of the error, or a function that makes it of the text it would have had.

    Raises:
        AssertionError: they differ, in a value, an attribute, a length or a key.
        ValueError: one tolerance is given without the other.
        TypeError: values of unrelated types, or of types that cannot be compared.
    """
    __tracebackhide__ = True
    options = Comparison(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout,
        check_stride,
    )  # fmt: skip
    try:
        leaves = list(_leaves(actual, expected, options, ()))
    except Mismatch as found:
        raise found.error() from None
    for compare, *arguments in leaves:
        try:
            compare(*arguments)
        except Mismatch as found:
            raise found.error(msg) from None


OLD_PRECISION: dict[dt.dtype, Tolerances] = {
    dt.float16: (1e-3, 1e-3),
    dt.float32: (1e-4, 1e-5),
    dt.float64: (1e-5, 1e-8),
}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The deprecated name of `assert_close`, with looser tolerances and dtypes not compared."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = tensor(actual)
    if not isinstance(expected, Tensor):
        expected = tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=OLD_PRECISION)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
