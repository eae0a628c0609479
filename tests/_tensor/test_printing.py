"""The printed text of tensors, against strings recorded from torch 2.13."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flambeau._tensor.printing import (
    format_tensor,
    get_printoptions,
    printoptions,
    set_printoptions,
)

NAN = float("nan")
INF = float("inf")
DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")


def text(values: Any, dtype: Any = np.float32, **arguments: Any) -> str:
    """The text with float32 as the default dtype."""
    data = np.asarray(values).astype(dtype)
    name = data.dtype.name
    is_default = name in ("float32", "complex64")
    return format_tensor(data, dtype_name=f"torch.{name}", is_default_dtype=is_default, **arguments)


FLOATS = [
    ([1, 2], "tensor([1., 2.])"),
    (3.5, "tensor(3.5000)"),
    (INF, "tensor(inf)"),
    (1e-9, "tensor(1.0000e-09)"),
    ([0, 0], "tensor([0., 0.])"),
    ([1, NAN], "tensor([1., nan])"),
    ([1, -INF, 3], "tensor([1., -inf, 3.])"),
    ([1.5, NAN, 0], "tensor([1.5000,    nan, 0.0000])"),
    ([-0.0, 1.5], "tensor([-0.0000, 1.5000])"),
    ([-1.5, 100.25], "tensor([ -1.5000, 100.2500])"),
    ([1, 1000], "tensor([   1., 1000.])"),
    ([1, 1001], "tensor([1.0000e+00, 1.0010e+03])"),
    ([1.5, 1500], "tensor([   1.5000, 1500.0000])"),
    ([1e8, 1e8], "tensor([100000000., 100000000.])"),
    ([1e9, 1], "tensor([1.0000e+09, 1.0000e+00])"),
    ([1e-45, 1], "tensor([1.4013e-45, 1.0000e+00])"),
    ([99999.99, 1000.5], "tensor([99999.9922,  1000.5000])"),
]


@pytest.mark.parametrize(("values", "expected"), FLOATS)
def test_float_notation(values: Any, expected: str) -> None:
    assert text(values) == expected


COMPLEX = [
    (1 + 2j, "tensor(1.+2.j)"),
    ([1 + 1e-9j], "tensor([1.+1.0000e-09j])"),
    ([complex(1e9, 1), complex(NAN, INF)], "tensor([1.0000e+09+1.j,        nan+infj])"),
    (
        [1.5 + 2j, -3 - 4.25j, NAN],
        "tensor([ 1.5000+2.0000j, -3.0000-4.2500j,     nan+0.0000j])",
    ),
]


@pytest.mark.parametrize(("values", "expected"), COMPLEX)
def test_complex(values: Any, expected: str) -> None:
    assert text(values, np.complex64) == expected


OTHER_DTYPES = [
    (3, np.int64, "tensor(3)"),
    ([1, -20], np.int64, "tensor([  1, -20])"),
    ([True, False], np.bool_, "tensor([ True, False])"),
    ([1, 2], np.int32, "tensor([1, 2], dtype=torch.int32)"),
    ([1, 60000], np.uint16, "tensor([    1, 60000], dtype=torch.uint16)"),
    ([1, 2**32 - 1], np.uint32, "tensor([         1, 4294967295], dtype=torch.uint32)"),
    (2**64 - 1, np.uint64, "tensor(18446744073709551615, dtype=torch.uint64)"),
    ([1e-320, 1], np.float64, "tensor([9.9999e-321,  1.0000e+00], dtype=torch.float64)"),
    ([1e300, 1.5], np.float64, "tensor([1.0000e+300,  1.5000e+00], dtype=torch.float64)"),
    ([1, 2, INF], np.float16, "tensor([1., 2., inf], dtype=torch.float16)"),
    ([0.1], ml_dtypes.bfloat16, "tensor([0.1001], dtype=torch.bfloat16)"),
    (2.5, ml_dtypes.float8_e5m2, "tensor(2.5000, dtype=torch.float8_e5m2)"),
    (
        [1, 2.5, 448],
        ml_dtypes.float8_e4m3fn,
        "tensor([  1.0000,   2.5000, 448.0000], dtype=torch.float8_e4m3fn)",
    ),
    (
        [1, 2.5, 57344, INF, NAN],
        ml_dtypes.float8_e5m2,
        "tensor([1.0000e+00, 2.5000e+00, 5.7344e+04,        inf,        nan],\n"
        "       dtype=torch.float8_e5m2)",
    ),
    ([2, NAN], ml_dtypes.float8_e8m0fnu, "tensor([2.0000,    nan], dtype=torch.float8_e8m0fnu)"),
    ([2.0**-127, 1], ml_dtypes.float8_e8m0fnu, "tensor([0., 1.], dtype=torch.float8_e8m0fnu)"),
    ([1 + 2j], np.complex128, "tensor([1.+2.j], dtype=torch.complex128)"),
]


@pytest.mark.parametrize(("values", "dtype", "expected"), OTHER_DTYPES)
def test_other_dtypes(values: Any, dtype: Any, expected: str) -> None:
    assert text(values, dtype) == expected


EMPTY = [
    ((0,), np.float32, "tensor([])"),
    ((0, 3), np.float32, "tensor([], size=(0, 3))"),
    ((0,), np.int64, "tensor([], dtype=torch.int64)"),
    ((0,), np.bool_, "tensor([], dtype=torch.bool)"),
    ((0,), np.complex64, "tensor([], dtype=torch.complex64)"),
    ((2, 0), np.int32, "tensor([], size=(2, 0), dtype=torch.int32)"),
]


@pytest.mark.parametrize(("shape", "dtype", "expected"), EMPTY)
def test_empty(shape: tuple[int, ...], dtype: Any, expected: str) -> None:
    assert text(np.zeros(shape), dtype) == expected


def test_blank_lines_between_dimensions() -> None:
    assert text(np.zeros((2, 1, 2, 3))) == (
        "tensor([[[[0., 0., 0.],\n"
        "          [0., 0., 0.]]],\n"
        "\n"
        "\n"
        "        [[[0., 0., 0.],\n"
        "          [0., 0., 0.]]]])"
    )


def test_summary() -> None:
    assert text(np.arange(2000), np.int64) == ("tensor([   0,    1,    2,  ..., 1997, 1998, 1999])")
    assert text(np.zeros((1500, 2))) == (
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n"
        "        [0., 0.],\n        [0., 0.],\n        [0., 0.]])"
    )


def test_summary_is_formatted_from_what_is_shown() -> None:
    data = np.ones(10**7, np.float32)
    data[5000] = 1e30
    assert text(data) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_suffixes() -> None:
    values = [1, 2]
    assert text(values, requires_grad=True) == "tensor([1., 2.], requires_grad=True)"
    assert text(values, requires_grad=True, grad_fn_name="MulBackward0") == (
        "tensor([1., 2.], grad_fn=<MulBackward0>)"
    )
    assert text(values, np.float64, device_suffix="device='cuda:0'", requires_grad=True) == (
        "tensor([1., 2.], device='cuda:0', dtype=torch.float64, requires_grad=True)"
    )
    assert text(values, prefix="Labelled(") == "Labelled([1., 2.])"


def test_suffix_that_does_not_fit_starts_a_line() -> None:
    arguments = {"device_suffix": "device='meta'", "contents": "...", "requires_grad": True}
    assert text(np.zeros(2), np.complex64, **arguments) == (
        "tensor(..., device='meta', size=(2,), dtype=torch.complex64,\n       requires_grad=True)"
    )


OPTIONS = [
    ({"precision": 0}, [1.5, 100.25], "tensor([  2, 100])"),
    ({"precision": 1}, [1.5, 100.25], "tensor([  1.5, 100.2])"),
    ({"profile": "short"}, [1.5], "tensor([1.50])"),
    ({"sci_mode": True}, [1, 22], "tensor([1.0000e+00, 2.2000e+01])"),
    ({"sci_mode": False}, [1, 1e9], "tensor([         1., 1000000000.])"),
    ({"sci_mode": False}, [1e-9, 1], "tensor([0.0000, 1.0000])"),
    ({"linewidth": 20}, np.arange(4), "tensor([0., 1., 2.,\n        3.])"),
    ({"threshold": 5, "edgeitems": 1}, np.arange(7), "tensor([0.,  ..., 6.])"),
    ({"threshold": 5, "edgeitems": 0}, np.arange(7), "tensor([...], size=(7,))"),
    ({"edgeitems": 0}, 1.5, "tensor(1.5000, size=())"),
]


@pytest.mark.parametrize(("options", "values", "expected"), OPTIONS)
def test_options(options: dict[str, Any], values: Any, expected: str) -> None:
    set_printoptions(**options)
    assert text(values) == expected


def test_profile_comes_before_the_other_options() -> None:
    set_printoptions(linewidth=50, sci_mode=True)
    set_printoptions(profile="short", precision=9)
    assert get_printoptions() == DEFAULT | {"precision": 9, "edgeitems": 2}


def test_sci_mode_is_forgotten_unless_given() -> None:
    set_printoptions(sci_mode=True)
    set_printoptions(precision=2)
    assert get_printoptions() == DEFAULT | {"precision": 2}


def test_printoptions_restores_after_an_error() -> None:
    with pytest.raises(KeyError), printoptions(precision=2):
        assert get_printoptions() == DEFAULT | {"precision": 2}
        raise KeyError
    assert get_printoptions() == DEFAULT


def test_unknown_option() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        set_printoptions(colour=1)  # type: ignore[call-arg]


def test_negative_edgeitems_cannot_cut() -> None:
    set_printoptions(edgeitems=-1, threshold=3)
    assert text([1, 2]) == "tensor([1., 2.])"
    with pytest.raises(RuntimeError, match="edgeitems must not be negative"):
        text(np.arange(7))
