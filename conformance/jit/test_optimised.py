"""The optimiser against PyTorch: random programs, called with one kind of arguments after another.

Each program is compiled once. Its calls differ in shapes, types, memory and gradients, so that what
one call has settled must not be taken for granted by the next.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from flambeau.jit.optimise.fusion import group

from .random_programs import program

LIBRARIES = (reference, flambeau)
TOLERANCES = {"float64": 1e-9, "float32": 3e-4, "float16": 3e-2, "bfloat16": 6e-2}


@dataclass(frozen=True)
class Call:
    """How a program is called."""

    rows: int = 5
    columns: int = 6
    dtype: str = "float32"
    grads: str = ""
    """Arguments that gradients are wanted for."""
    strided: str = ""
    """Arguments that do not lie row by row."""
    context: str = ""
    """`no_grad`, `inference` or `autocast`."""
    times: int = 3


FIRST = Call()
CALLS = (
    FIRST, Call(grads="xywub"), Call(7, 10), Call(1, 6), Call(7, 10, grads="xb"), Call(0, 6),
    Call(0, 6, grads="xw"), Call(strided="xy"), Call(strided="xyw", grads="xyw"),
    Call(dtype="float64"), Call(dtype="float64", grads="yub"), Call(dtype="float16"),
    Call(grads="xywub", context="no_grad"), Call(grads="xy", context="inference"),
    Call(context="autocast"), Call(40, 64), Call(40, 64, grads="xywub"), FIRST,
    replace(FIRST, grads="w"), Call(grads="xywub"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def arguments(call: Call, torch: Any) -> list[Any]:
    """x, y, w, u, b."""
    rows, columns = call.rows, call.columns
    drawn = np.random.default_rng(rows * 100 + columns)
    found = []
    for name, shape in zip("xywub", [(rows, columns), (rows, columns), (columns, columns),
                                     (columns, columns), (columns,)], strict=True):  # fmt: skip
        array = drawn.standard_normal(shape) * (0.3 if name in "wu" else 1.0)
        if name in call.strided:
            array = np.ascontiguousarray(array.T)
        tensor = torch.tensor(array.tolist(), dtype=getattr(torch, call.dtype)).reshape(array.shape)
        tensor.requires_grad_(name in call.grads)
        found.append(tensor)
    return found


def context(call: Call, torch: Any) -> ExitStack:
    """What the call stands in."""
    stack = ExitStack()
    if call.context == "no_grad":
        stack.enter_context(torch.no_grad())
    elif call.context == "inference":
        stack.enter_context(torch.inference_mode())
    elif call.context == "autocast":
        stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
    return stack


def outcome(function: Any, call: Call, torch: Any) -> Any:
    """Results and gradients as NumPy arrays with what else is told; or the kind of error."""
    given = arguments(call, torch)
    passed = [t.t() if name in call.strided else t for name, t in zip("xywub", given, strict=True)]
    try:
        with context(call, torch):
            results = function(*passed)
    except RuntimeError:
        return "RuntimeError"
    found = [told(result, torch) for result in results]
    if any(result.requires_grad for result in results):
        total = sum((result * result).sum() for result in results if result.requires_grad)
        total.backward()
    return found, [None if t.grad is None else told(t.grad, torch) for t in given]


def told(tensor: Any, torch: Any) -> tuple[Any, ...]:
    """What is compared of a tensor."""
    values = tensor.detach().to(torch.float64).numpy()
    return str(tensor.dtype).split(".")[1], tuple(tensor.shape), tensor.requires_grad, values


def assert_same(found: Any, wanted: Any, call: Call) -> None:
    """Compare two outcomes."""
    if isinstance(wanted, str) or isinstance(found, str):
        assert found == wanted, f"{call}"
        return
    for mine, theirs in zip([*found[0], *found[1]], [*wanted[0], *wanted[1]], strict=True):
        if theirs is None or mine is None:
            assert mine is theirs, f"{call}: a gradient"
            continue
        assert mine[:3] == theirs[:3], f"{call}"
        name = "bfloat16" if call.context == "autocast" else theirs[0]
        scale = max(1.0, float(np.max(np.abs(theirs[3]), initial=0, where=np.isfinite(theirs[3]))))
        bound = TOLERANCES[name] * scale
        np.testing.assert_allclose(mine[3], theirs[3], rtol=TOLERANCES[name], atol=bound,
                                   err_msg=f"{call}")  # fmt: skip


@pytest.mark.parametrize("seed", range(32))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call gives what PyTorch gives: the first, which settles something, and later ones."""
    if seed % 4:  # kernels for small tensors, too
        monkeypatch.setattr(group, "FEW", 0)
    text = program(seed)
    theirs, ours = [torch.jit.CompilationUnit(text).f for torch in LIBRARIES]
    try:
        for call in CALLS:
            wanted = outcome(theirs, call, reference)
            for _ in range(call.times):
                assert_same(outcome(ours, call, flambeau), wanted, call)
    except AssertionError:
        print(text)
        raise


# ---- scans

LOOP = """
def f(x, y, w, u, b):
    out = []
    h, c = y, y * 0.5
    for t in range(4):
        row = x * (0.2 * t)
        {lines}
        out.append(h)
    return torch.stack(out, {dim}), h, c
"""
CELLS = (
    """gates = row @ w + h @ u + b
        c = torch.sigmoid(gates + c * b) * c + torch.tanh(gates[:, :1]) * row
        h = torch.sigmoid(gates) * torch.tanh(c)""",
    """g = torch.sigmoid(row + h @ w)
        h = (1 - g) * h + g * torch.tanh(row + (g * h) @ u + b)
        c = torch.maximum(c, h)""",
    """a, d = torch.cat([torch.addmm(b, h, w), row - c], 1).chunk(2, 1)
        h = torch.where(a > d, a, d).tanh() * b
        c = c * 0.9 + h / (1 + d * d)""",
    """c = torch.tanh(c + row)
        h = torch.nn.functional.linear(c, w, b).tanh() + h * 0.1""",
)


CALLS_OF_CELLS = (
    FIRST, Call(grads="xywub"), Call(1, 6, grads="yu"), Call(strided="xyw", grads="xyw"),
    Call(dtype="float64", grads="wb"), Call(dtype="float16"), Call(context="autocast"),
    Call(grads="xy", context="inference"), Call(0, 6, grads="xw"),
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_loops_with_cells(cell: str) -> None:
    """As for the random programs: every call gives what PyTorch gives."""
    text = LOOP.format(lines=cell, dim=CELLS.index(cell) % 2)
    theirs, ours = [torch.jit.CompilationUnit(text).f for torch in LIBRARIES]
    for call in CALLS_OF_CELLS:
        assert_same(outcome(ours, call, flambeau), outcome(theirs, call, reference), call)
