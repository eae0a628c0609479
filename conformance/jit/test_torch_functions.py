"""Functions of torch in programs: code and results under both libraries."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.jit import both
from conformance.jit.reading import numbered

FILES = sorted(Path(__file__).with_name("torch_functions").glob("*.py"))
PROGRAMS = [pytest.param(file, name, id=name) for file in FILES for name in both.functions(file)]
CHOSEN = re.compile(r"\bfunctional\.\w*(unique|_return_|lu_|lu\b)\w*")
"""Functions that a flag chooses, which have names of their own."""
IN_BFLOAT16 = "autocast_region"
"""A program whose result NumPy has no type for."""


def flat(result: Any) -> list[Any]:
    """The tensors, as arrays, and other values of nested tuples, lists and dictionaries."""
    if isinstance(result, dict):
        return [part for key, value in result.items() for part in (key, *flat(value))]
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flat(part)]
    if not hasattr(result, "detach"):
        return [str(result)]
    return [result.detach().float().numpy() if "bfloat16" in str(result.dtype) else (
        result.detach().numpy())]  # fmt: skip


def joined(code: str) -> str:
    """Calls of chosen functions in one line, whose breaks depend on how long names are."""
    code = re.sub(r"(_\d+) = (\S+\.chosen)\n +return \1\(", r"return \2(", code)
    return re.sub(r"(_\d+) = (\S+\.chosen\(.*\))\n +return \1\n", r"return \2\n", code)


def run(library: str, file: Path, name: str) -> tuple[str, list[Any]]:
    """The code of a program and its results."""
    torch = both.LIBRARIES[library]
    function = both.compiled(file, name, library)
    values = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function.code, flat(function(torch.from_numpy(values)))


@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_programs(file: Path, name: str) -> None:
    """The code is torch's, but for the numbers of temporaries and overloads; so are the results."""
    (our_code, ours), (their_code, theirs) = (
        run(library, file, name) for library in ("flambeau", "torch")
    )
    codes = [re.sub(r"\.___torch_mangle_\d+", "", code) for code in (our_code, their_code)]
    codes = [joined(CHOSEN.sub("functional.chosen", code)) for code in codes]
    assert numbered(codes[0], r"\b_\d+\b") == numbered(codes[1], r"\b_\d+\b")
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, str):
            assert one == other
        else:
            tolerance = 0.05 if name == IN_BFLOAT16 else 1e-4
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
