"""NumPy's arrays and scalars beside tensors: every type, both orders, every operator of Python.

Where PyTorch has an answer, it is compared; where it fails, or forgets half of a number, NumPy's
own answer counts, and for comparisons that of PyTorch for two tensors.
"""

from __future__ import annotations

import ast
import itertools
import operator
import random
import warnings
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from tests.random_seeds import generator

COMPARISONS = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")}
ARITHMETIC = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_",
                 "xor", "lshift", "rshift")
}  # fmt: skip
TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
         "complex64", "complex128", "bfloat16")  # fmt: skip
NUMPY_TYPES = (
    "bool_", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
FORMS = {
    "scalar": lambda kind: getattr(np, kind)(1),
    "0-dim": lambda kind: np.array(1, kind),
    "vector": lambda kind: np.array([1, 2, 1], kind),
}  # fmt: skip
READ_AS_FLOAT = ("bool_", "complex64")
"""Scalars of these types are floats to PyTorch: it makes numbers float32, and drops parts."""
CASES = list(
    itertools.product(TYPES, NUMPY_TYPES, (0, 1), FORMS, (False, True),
                      {**ARITHMETIC, **COMPARISONS})
)  # fmt: skip


def tensor(torch: Any, kind: str, dims: int) -> Any:
    return (torch.tensor([1, 2, 3]) if dims else torch.tensor(2)).to(getattr(torch, kind))


def told(call: Any) -> Any:
    """Whether a tensor came, its type and values; or the class of the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = call()
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            return type(error).__name__
    is_tensor = isinstance(found, (flambeau.Tensor, reference.Tensor))
    kind = str(getattr(found, "dtype", type(found))).removeprefix("torch.")
    return is_tensor, kind, repr(found.tolist() if hasattr(found, "tolist") else found)


def operated(torch: Any, case: Any) -> Any:
    kind, numpy_kind, dims, form, is_left, name = case
    x, y = tensor(torch, kind, dims), FORMS[form](numpy_kind)
    call = {**ARITHMETIC, **COMPARISONS}[name]
    return told(lambda: call(y, x) if is_left else call(x, y))


def right(case: Any) -> Any:
    """What is right where PyTorch fails."""
    kind, numpy_kind, dims, form, is_left, name = case
    x, y = tensor(reference, kind, dims), FORMS[form](numpy_kind)
    if name in COMPARISONS or kind == "bfloat16":
        y = y.item() if form == "scalar" else reference.from_numpy(y)
        call = {**ARITHMETIC, **COMPARISONS}[name]
        return told(lambda: call(y, x) if is_left else call(x, y))
    call = ARITHMETIC[name]
    return told(lambda: _as_tensor(call(y, x.numpy()) if is_left else call(x.numpy(), y)))


def _as_tensor(result: Any) -> Any:
    result = np.asarray(result)
    return reference.from_numpy(result.astype(np.uint8) if result.dtype == bool else result)


def wanted(case: Any) -> Any:
    """PyTorch's answer, or the right one; None if nobody has one."""
    kind, numpy_kind, _, form, _, _ = case
    if form == "scalar":
        unknown = numpy_kind in READ_AS_FLOAT
        return None if unknown else operated(reference, case)
    found = operated(reference, case)
    if isinstance(found, str) or not found[0]:
        found = right(case)
    return None if isinstance(found, str) else found


def agree(case: Any, here: Any, there: Any) -> bool:
    """Equal to the last bit and the sign of zero, but for powers of complex numbers: the C library
    answers those in PyTorch, and one step of rounding is its own affair."""
    kinds, is_told = case[:2], isinstance(here, tuple) and isinstance(there, tuple)
    if not is_told or case[-1] != "pow" or not any("complex" in kind for kind in kinds):
        return bool(here == there)
    values = [np.array(ast.literal_eval(told[2])) for told in (here, there)]
    steps = 4 * np.finfo("float64" if here[1] == "complex128" else "float32").eps
    return bool(here[:2] == there[:2] and np.allclose(*values, rtol=steps, atol=0))


def test_arrays_and_scalars_beside_tensors() -> None:
    rng: random.Random = generator("numpy operands")
    wrong = []
    for case in rng.sample(CASES, 5000):
        told_there = wanted(case)
        told_here = operated(flambeau, case)
        if told_there is not None and not agree(case, told_here, told_there):
            wrong.append((case, told_here, told_there))
    assert not wrong


@pytest.mark.parametrize("name", ["add", "mul", "truediv", "sub", "pow"])
@pytest.mark.parametrize("is_left", [False, True])
def test_tensors_that_learn(name: str, is_left: bool) -> None:
    """PyTorch refuses; here an array is a constant."""
    x = flambeau.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = np.array([2.0, 3.0, 4.0], "float32")
    call = ARITHMETIC[name]
    (call(other, x) if is_left else call(x, other)).sum().backward()
    y = flambeau.tensor([1.0, 2.0, 3.0], requires_grad=True)
    plain = flambeau.from_numpy(other)
    (call(plain, y) if is_left else call(y, plain)).sum().backward()
    assert flambeau.allclose(x.grad, y.grad)


def test_arrays_that_are_written_to_stay_arrays() -> None:
    array = np.ones(3)
    before = array
    array += flambeau.tensor([1.0, 2.0, 3.0])
    assert array is before
    assert array.tolist() == [2.0, 3.0, 4.0]
