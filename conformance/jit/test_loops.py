"""Loops over every operator that has a rule of batches, beside PyTorch: values, types, gradients,
and what is refused."""

from __future__ import annotations

import os
import random
import typing
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch as reference

import flambeau
from flambeau.jit.optimise import settings
from tests.jit.optimise import loop_programs

SEED = os.environ.get("FLAMBEAU_SEED", "0")
"""Other programs than those of every day. `tests/jit/optimise/test_batching.py` draws new ones."""
OVERLOADS = {schema.full_name: schema for schema in loop_programs.overloads()}

DIFFERENT_WITHOUT_LOOPS = {
    "aten::lerp.Tensor": "tensors of two types are taken", "aten::stack": "PyTorch's script says "
    "that a result learns which no gradient reaches", "aten::clamp.Tensor": "bounds that learn",
    "aten::min.other": "no gradient beside integers", "aten::max.other": "the same",
    "aten::softshrink": "negative bounds are taken", "aten::floor_divide.Scalar": "refused later",
    "aten::floor_divide": "refused later", "aten::var.dim": "gradients over no dims",
    "aten::to.dtype_layout": "a layout that does not exist is taken",
}  # fmt: skip
"""Operators that differ from PyTorch's in eager programs, too."""
ASKED = [name for name in OVERLOADS if name not in DIFFERENT_WITHOUT_LOOPS]


def scripted(library: Any, text: str, path: Path) -> Any:
    """The program of a text; None where no overload takes its arguments."""
    scope = {"__name__": "loop", "torch": library, "Tensor": library.Tensor, "List": typing.List}  # noqa: UP006
    exec(compile(text, str(path), "exec"), scope)  # noqa: S102
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return library.jit.script(scope["loop"])
        except RuntimeError:
            return None


def answer(function: Any, library: Any, arguments: list[Any]) -> Any:
    """Values, type, strides and gradients of a call; None if it is refused."""
    try:
        result = function(*arguments)
    except Exception as error:  # noqa: BLE001
        return str(error)
    leaves = [v for v in [*arguments[:5], *arguments[5]] if v.requires_grad]
    grads = []
    if result.requires_grad:
        slope = library.linspace(0.3, 1.7, result.numel(), dtype=result.dtype).reshape(result.shape)
        try:
            grads = library.autograd.grad(result, leaves, slope, allow_unused=True)
        except RuntimeError:
            grads = ["refused"]
    told = [str(result.dtype), tuple(result.shape), result.stride(), result.requires_grad]
    return [told, *[plain(value) for value in (result.detach(), *grads)]]


def plain(value: Any) -> Any:
    """A tensor as one of PyTorch, for comparison."""
    return reference.tensor(value.tolist()) if hasattr(value, "tolist") else value


def assert_gradients_agree(mine: Any, other: Any) -> None:
    """What nearly cancels is as exact as what it is left of; where a derivative is infinite, some
    orders of a sum give nan, and others infinity.
    """
    if not isinstance(mine, reference.Tensor) or not isinstance(other, reference.Tensor):
        assert mine == other
        return
    both = ~(mine.isfinite() | other.isfinite())
    mine, other = [x.to(reference.promote_types(x.dtype, reference.float32)) for x in (mine, other)]
    mine, other = mine.masked_fill(both, 0), other.masked_fill(both, 0)
    largest = float(other[other.isfinite()].abs().max()) if other.isfinite().any() else 0.0
    atol = 1e-5 * max(1.0, largest)
    reference.testing.assert_close(mine, other, rtol=1e-4, atol=atol, equal_nan=True)


@pytest.mark.parametrize("name", ASKED)
def test_loops_agree_with_pytorch(name: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    seed = random.Random(f"{SEED}{name}").randrange(2**32)
    text, answers = "", []
    for library in (reference, flambeau):
        drawn = loop_programs.Drawn(OVERLOADS[name], seed)
        text, path = drawn.text, tmp_path / f"{library.__name__}.py"
        path.write_text(text)
        function = scripted(library, text, path)
        if function is None:
            answers.append(None)
            continue
        with settings.using(raise_faults=True):
            calls = [drawn.arguments(library, call) for call in range(3)]
            answers.append([answer(function, library, given) for given in calls])
    theirs, ours = answers
    assert (theirs is None) == (ours is None), text
    for expected, got in zip(theirs or (), ours or (), strict=True):
        if isinstance(expected, str) or isinstance(got, str):
            assert isinstance(expected, str) == isinstance(got, str), (text, expected, got)
            continue
        assert expected[0] == got[0], text
        reference.testing.assert_close(got[1], expected[1], rtol=1e-4, atol=1e-5, equal_nan=True)
        for mine, other in zip(got[2:], expected[2:], strict=True):
            assert_gradients_agree(mine, other)
