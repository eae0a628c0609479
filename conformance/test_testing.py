"""`torch.testing` against PyTorch's: the same verdicts, the same texts, the same random tensors."""

from __future__ import annotations

import math
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau


def outcome(library, call, scope=None):
    """What a call returns or raises, as text; classes go by torch's names."""
    library.manual_seed(0)
    names = {"torch": library, "np": np, "math": math, "OrderedDict": OrderedDict}
    names |= {"nan": math.nan, "inf": math.inf, "t": library.tensor, "testing": library.testing}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = eval(call, names | (scope or {}))
    except Exception as error:  # noqa: BLE001
        text = f"{type(error).__name__}: {error}"
        return text.replace("flambeau._tensor.tensor", "torch").replace("flambeau.", "torch.")
    return result, [(w.category, str(w.message)) for w in caught]


CLOSE = """
t([1.0, 2.0]), t([1.0, 2.0])
t([1.0, 2.0]), t([1.0, 2.1])
t([1.0, 2.0]), t([1.0, 2.0000001])
t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 5.0], [3.5, 4.0]])
t(1.0), t(2.0)
t(1.0), t(0.0)
t(1), t(2)
t([1, 2]), t([1, 4])
t([0, 2], dtype=torch.uint8), t([255, 2], dtype=torch.uint8)
t([True, False]), t([True, True])
t([1.0, 2.0]), t([1.0, 2.0, 3.0])
t([1.0]), t(1.0)
t([1.0, 2.0]), t([1, 2])
t([1.0, 2.0]), t([1, 2]), check_dtype=False
t([1.0, 2.5]), t([1, 2]), check_dtype=False
t([1, 2], dtype=torch.uint16), t([1, 2], dtype=torch.int8), check_dtype=False
t([nan, 2.0]), t([nan, 2.0])
t([nan, 2.0]), t([nan, 2.0]), equal_nan=True
t([nan, 2.0]), t([nan, 3.0]), equal_nan=True
t([inf, 2.0]), t([inf, 2.0])
t([inf, 2.0]), t([-inf, 2.0])
t([inf, 2.0]), t([1.0, 2.0])
t([1 + 2j]), t([1 + 2j])
t([1 + 2j, 3j]), t([1 + 2.5j, 3j])
t([1.0]), t([1.001]), rtol=0.01, atol=0.0
t([1.0]), t([1.1]), rtol=0.0, atol=0.0
t([1.0]), t([1.1]), rtol=0.1
t([1.0]), t([1.1]), atol=0.1
1.0, 1.1, atol=0.1
[1.0], [1.1], atol=0.1
t([1.0]).half(), t([1.0005]).half()
t([1.0]).bfloat16(), t([1.0078125]).bfloat16()
t([1.0]).bfloat16(), t([1.03125]).bfloat16()
t([1.0]).double(), t([1.0 + 1e-6]).double()
t([1.0]).double(), t([1.0 + 1e-8]).double()
t([]), t([])
torch.zeros(0, 3), torch.zeros(3, 0)
torch.ones(2, 3), torch.ones(3, 2).t()
torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True
1, 1
1, 2
1, 1.0
1, 1.0, check_dtype=False
1.0, 1.0 + 1e-9
1.0, 2.0
1.0, 0.0
0.0, 1e-9
1e-9, 1e-10, rtol=0, atol=0
1j, 2j
1j, 1j + 1e-12
nan, nan
nan, nan, equal_nan=True
inf, inf
inf, -inf
inf, 1.0
np.float64(1.0), 1.0
np.float32(1.0), 1.1
np.int32(3), np.int64(4)
True, True
True, False
True, np.bool_(False)
[True], [False]
None, None
None, 1
[None], [1]
1, None
"abc", "abc"
"abc", 1
["a"], ["a"]
object, object
t([1.0]), [1.0]
t([1.0]), np.array([1.0])
t(1.0), 1.0
np.array([1.0]), np.array([1.0])
np.array([1.0]), np.array([2.0])
np.array([1.0]), np.array([1])
torch.nn.Parameter(t([1.0])), t([1.0])
torch.nn.Parameter(t([1.0])), t([2.0])
torch.nn.Parameter(t([1.0])), t([1.0]), allow_subclasses=False
t([1.0], requires_grad=True), t([1.0])
[1, 2], [1, 2]
[1, 2], (1, 2)
[1, 2], [1, 2, 3]
[1, 2], [1, 3]
[[1, 2], 3], [[1], 4]
[[1, 2], 3], [[1, 5], 4]
[t([1.0]), [t(3.0)]], [t([1.0]), [t(4.0)]]
{"a": 1, "b": 2}, {"b": 2, "a": 1}
{"a": 1, "b": 2}, {"a": 1, "c": 2}
{"a": {"x": [t([1.0, 2.0])]}}, {"a": {"x": [t([1.0, 3.0])]}}
{"b": 1, "a": 2}, {"b": 2, "a": 1}
{1: 1, "a": 2}, {1: 1, "a": 3}
OrderedDict(a=1), {"a": 1}
[], []
{}, {}
[1], {"a": 1}
t([1.0]), t([2.0]), msg="own text"
t([1.0]), t([2.0]), msg=lambda text: "<" + text + ">"
[t([1.0])], [t([2.0])], msg=lambda text: "<" + text + ">"
[t([1.0])], [t([2.0])], msg="own text"
[1], [1, 2], msg="own text"
torch.arange(24).view(2, 3, 4), torch.arange(24).view(2, 3, 4).flip(0)
torch.zeros(3, 1), torch.ones(3, 1)
torch.zeros(4), torch.tensor([0.0, -1.0, 1.0, 1.0])
torch.Size([2]), torch.Size([3])
t([1.0, 2.0]).to(torch.float8_e5m2), t([1.0, 2.0]).to(torch.float8_e5m2)
t([1.0, 2.0]).to(torch.float8_e5m2), t([1.0, 3.0]).to(torch.float8_e5m2)
t([1.0, 2.0]).to(torch.float8_e5m2), t([1.0, 3.0]).to(torch.float8_e5m2), rtol=0.1, atol=0.1
""".strip().splitlines()


@pytest.mark.parametrize("arguments", CLOSE)
def test_assert_close(arguments):
    call = f"testing.assert_close({arguments})"
    assert outcome(flambeau, call) == outcome(torch, call)


VALUES = st.one_of(
    st.floats(-3, 3, width=32), st.sampled_from([math.nan, math.inf, -math.inf, 0.0])
)
TOLERANCES = st.sampled_from([None, (0.0, 0.0), (0.1, 0.0), (0.0, 0.5)])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=5), TOLERANCES, st.booleans())
def test_random_values(pairs, tolerances, equal_nan):
    rtol, atol = tolerances or (None, None)
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    scope = {"a": first, "b": second, "rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    for wrap in ("", "t"):
        call = (
            f"testing.assert_close({wrap}(a), {wrap}(b), rtol=rtol, atol=atol, equal_nan=equal_nan)"
        )
        assert outcome(flambeau, call, scope) == outcome(torch, call, scope)


@pytest.mark.parametrize(
    "arguments",
    [
        "t([1.0]), t([1.00005])",
        "t([1.0]), t([1.01])",
        "[1.0, 2.0], [1, 2]",
        "t([nan]), t([nan])",
        "t([1.0]), t([2.0]), msg='own text'",
        "t([1.0]).double(), 1.0",
        "t([1.0]), [1.1], rtol=0.2, atol=0.0",
    ],
)
def test_assert_allclose(arguments):
    call = f"testing.assert_allclose({arguments})"
    assert outcome(flambeau, call) == outcome(torch, call)


DTYPES = """
bool uint8 int8 int16 int32 int64 uint16 uint32 float16 bfloat16 float32 float64 complex64
complex128 float8_e4m3fn float8_e5m2
""".split()
OPTIONS = [
    "(4, 5)",
    "7",
    "3, 2, 6",
    "()",
    "[2, 0]",
    "(4, 5), low=0, high=2",
    "(4, 5), low=-1.5, high=1.5",
    "(4, 5), noncontiguous=True",
    "(1,), noncontiguous=True",
    "(40,), low=0, exclude_zero=True",
    "(2, 3, 4, 5), memory_format=torch.channels_last",
    "(3,), requires_grad=True",
    "(3,), low=2, high=1",
    "(3,), low=nan",
    "(3,), low=1000000000000000000000000, high=inf",
    "(3,), low=-inf, high=inf",
    "(3,), low=1, high=1",
    "(2, 2), noncontiguous=True, memory_format=torch.contiguous_format",
]


def bits(tensor):
    """A tensor as bytes, with everything else that `make_tensor` decides."""
    plain = tensor.detach().contiguous()
    facts = (str(tensor.dtype), tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
    if tensor.dtype.itemsize == 1 or "bfloat" in str(tensor.dtype):
        plain = plain.double()
    return facts, plain.numpy().tobytes()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_make_tensor(dtype, options):
    call = f"testing.make_tensor({options}, dtype=torch.{dtype}, device='cpu')"
    theirs, ours = outcome(torch, call), outcome(flambeau, call)
    if "not implemented for" in theirs:  # PyTorch lacks a kernel
        assert not isinstance(ours, str)
        return
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs
        return
    assert bits(ours[0]) == bits(theirs[0])
    assert ours[1] == theirs[1]
    outcome(torch, call), outcome(flambeau, call)
    assert flambeau.rand(1).item() == torch.rand(1).item()


def test_default_tolerances():
    from torch.testing._comparison import default_tolerances as theirs

    from flambeau.testing._comparison import default_tolerances as ours

    for name in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int8"):
        assert ours(getattr(flambeau, name)) == theirs(getattr(torch, name))
    assert ours(flambeau.ones(1), flambeau.float16) == theirs(torch.ones(1), torch.float16)
