"""Our kernels assemble for every architecture, without what makes kernels slow."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.random_seeds import some

pytest.importorskip("llvmlite")  # which compiles the kernels' form for the CPU

PROGRAM = Path(__file__).with_name("kernel_forms.py")
ARCHITECTURES = ("sm_90a", *some("architectures", ("sm_80", "sm_100"), 1))
"""Hopper, for which kernels are laid out, and those before and after it."""
TABLES = ("sin", "cos", "tan")
"""Rows that look up constants."""
HOT = ("exp", "add", "mul", "gelu", "tanh", "sigmoid", "relu", "softmax", "layer_norm", "sum",
       "cross_entropy", "mse_loss", "adamw", "embedding", "transposed", "to", "where")  # fmt: skip


@cache
def forms(arch: str) -> dict[str, Any]:
    root = str(PROGRAM.parents[3])
    environment = {**os.environ, "FLAMBEAU_EMULATE_CUDA": "1", "PYTHONPATH": root}
    done = subprocess.run([sys.executable, str(PROGRAM), arch], env=environment, text=True,
                          capture_output=True, cwd=root, timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def chosen(arch: str, words: tuple[str, ...]) -> dict[str, Any]:
    return {name: it for name, it in forms(arch).items() if name.split()[0].rstrip(":") in words}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_form_assembles(arch: str) -> None:
    found = forms(arch)
    assert len(found) > 400
    assert {name: it["failed"] for name, it in found.items() if "failed" in it} == {}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_llvm_knows_which_memory_is_meant(arch: str) -> None:
    unclear = {name for name, it in forms(arch).items() if it["generic"]}
    assert {name for name in unclear if name.split()[0] not in TABLES} == set()


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_registers_suffice(arch: str) -> None:
    """Kernels are laid out for Hopper: hot ones keep all in registers there; elsewhere a few put
    some bytes by."""
    assert {name: it["spilled"] for name, it in forms(arch).items() if it["spilled"] > 128} == {}
    hot, most = chosen(arch, HOT), 0 if arch == "sm_90a" else 96
    assert len(hot) > 60
    assert {name: it["spilled"] for name, it in hot.items() if it["spilled"] > most} == {}


@pytest.mark.slow
def test_elements_that_follow_each_other_are_read_together() -> None:
    names = ("exp", "add", "gelu", "relu", "softmax", "layer_norm", "transposed")
    some = {name: it for name, it in chosen("sm_90a", names).items()
            if it["aligned"] and " odd" not in name and " long" not in name
            and "apart" not in name and "down" not in name
            and "backward" not in name}  # fmt: skip
    assert len(some) > 20
    assert {name for name, it in some.items() if it["wide"] < it["narrow"]} == set()


@pytest.mark.slow
def test_half_types_take_few_instructions() -> None:
    """No more than the limit of `kernel_forms`, or that of the title, which has a reason there."""
    found = {name: it for name, it in forms("sm_90a").items() if "float16: " in name}
    assert len(found) > 250
    most = {name: constant("MORE").get(title_of(name), (constant("FEW"), ""))[0] for name in found}
    over = {name: each(it) for name, it in found.items() if each(it) > most[name]}
    assert over == {}


@pytest.mark.slow
def test_no_exception_is_idle() -> None:
    """Every title that may take more has a kernel that does."""
    found = forms("sm_90a")
    over = {title_of(name) for name, it in found.items()
            if "float16: " in name and each(it) > constant("FEW")}  # fmt: skip
    assert over == set(constant("MORE"))


def each(it: dict[str, Any]) -> float:
    return it["instructions"] / (it["each"] + 1)  # type: ignore[no-any-return]


def title_of(name: str) -> str:
    return name.rpartition(": ")[0].rpartition(" ")[0]


@cache
def constant(name: str) -> Any:
    """A constant of the program, which only runs where a GPU is emulated."""
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)
