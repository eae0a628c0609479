"""Autocast on CUDA, against PyTorch's own lists: its fake tensors need no GPU."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch as reference

PROGRAM = Path(__file__).parent.parent / "tests" / "amp" / "cuda_lists.py"
spec: Any = importlib.util.spec_from_file_location("cuda_lists", PROGRAM)
table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(table)


@cache
def outcomes(library: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(PROGRAM), library], capture_output=True, text=True,
                          cwd=str(PROGRAM.parent.parent.parent), check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def is_error(outcome: Any) -> bool:
    return isinstance(outcome, str) and outcome.startswith("an error")


@pytest.mark.parametrize("name", table.LISTS)
def test_types(name: str) -> None:
    mine, theirs = outcomes("flambeau"), outcomes("torch")
    cases = [case for case in theirs if case.startswith(f"{name} ") and theirs[case] != "unknown"]
    assert cases or name in ("gru_cell",), "PyTorch's fake tensors cannot do it"
    for case in cases:
        if is_error(theirs[case]) and "autocast" not in theirs[case]:
            assert is_error(mine[case]), case  # the operator's own error, worded by fake tensors
        else:
            assert mine[case] == theirs[case], case


def test_every_entry_of_the_lists_has_a_line() -> None:
    listed = {
        full.removeprefix("aten::")
        for full in reference._C._dispatch_get_all_op_names()
        if reference._C._dispatch_has_kernel_for_dispatch_key(full, "AutocastCUDA")
    }
    names = {name.removesuffix(".input") for name in listed}
    assert names - set(table.LISTS) == table.INTERNAL
