"""Every rule of batched loops, in every overload, beside the loop as it stands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.jit.optimise import faults, sharing
from flambeau.jit.optimise import settings as switches
from flambeau.jit.optimise.batched_loops import BatchedLoop
from tests.jit.optimise import loop_programs
from tests.jit.optimise.test_loops import both

# ruff: noqa: ANN001, ANN201

pytestmark = pytest.mark.filterwarnings("ignore")
OVERLOADS = {schema.full_name: schema for schema in loop_programs.overloads()}


def tensors_of(arguments):
    return [tensor for value in arguments for tensor in sharing.tensors_in(value)]


def leaves_of(arguments):
    return [tensor for tensor in tensors_of(arguments) if tensor.requires_grad]


def answer(function, arguments, write):
    """What a program gives: its result with gradients, or its error."""
    try:
        result = function(*arguments)
    except Exception as error:
        return type(error), str(error)
    grads = None
    leaves = leaves_of(arguments)
    told = [result.clone().detach(), result.shape, result.dtype, result.stride(),
            result.requires_grad, result._base is None, result._version]  # fmt: skip
    if write:  # an operator may have been recorded; what it has saved is apart from the result
        with torch.no_grad():
            result.zero_()
    if result.requires_grad:
        slope = torch.linspace(0.3, 1.7, result.numel(), dtype=result.dtype).reshape(result.shape)
        try:
            grads = torch.autograd.grad(result, leaves, slope, allow_unused=True)
        except RuntimeError as error:
            grads = type(error), str(error)
    return [*told, grads]


def assert_same(got, expected):
    if isinstance(expected, tuple) or isinstance(got, tuple):
        assert got == expected
        return
    assert got[1:-1] == expected[1:-1]
    close(got[0], expected[0])
    if expected[-1] is None or isinstance(expected[-1][0], type):
        assert got[-1] == expected[-1]
        return
    for ours, theirs in zip(got[-1], expected[-1], strict=True):
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            close(ours, theirs)


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


def compiled(text, path):
    """A program's batched form, whether it has one, and the loop as it stands."""
    path.write_text(text)
    scope = {"__name__": "loop", "torch": torch, "Tensor": torch.Tensor, "List": list}
    exec(compile("from typing import List\n" + text, str(path), "exec"), scope)
    return both(scope["loop"], fusion=False, subscripts=False)


def check(text, path, calls, write=False):
    """Compare all calls of a program in both forms; how many of them were batched."""
    try:
        fast, found, plain = compiled(text, path)
    except RuntimeError:
        return None  # no overload takes these arguments
    batched = 0
    before = faults.counted.total()
    for arguments in calls:
        expected = answer(plain, arguments, write)
        values = [tensor.detach().clone() for tensor in tensors_of(arguments)]
        with switches.using(raise_faults=True):
            got = answer(fast, arguments, write)
        assert_same(got, expected)
        for tensor, value in zip(tensors_of(arguments), values, strict=True):
            assert torch.equal(tensor, value) or tensor.isnan().any()
        loops = [call for call in found if isinstance(call, BatchedLoop)]
        batched += bool(loops) and loops[0].fits and not isinstance(expected, tuple)
    assert faults.counted.total() == before
    return batched


@pytest.mark.parametrize("name", OVERLOADS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(seed=st.integers(0, 2**32))
def test_every_overload_agrees(tmp_path_factory, name, seed):
    drawn = loop_programs.Drawn(OVERLOADS[name], seed)
    calls = [drawn.arguments(torch, call) for call in range(4)]
    path = tmp_path_factory.mktemp("loops", numbered=True) / "loop.py"
    check(drawn.text, path, calls, write=seed % 2 == 0)
