"""What `every_processor` pretends is so: no llvmlite in any process, features, threads, draws."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import every_processor
from tests.every_processor import Setting

ROOT = Path(__file__).resolve().parent.parent

WITHOUT = """
import importlib.metadata, importlib.util, subprocess, sys
assert importlib.util.find_spec("llvmlite") is None
assert importlib.util.find_spec("numpy") is not None
for name in ("llvmlite", "llvmlite.binding"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert "llvmlite" in str(error)
    else:
        raise AssertionError(name)
try:
    importlib.metadata.version("llvmlite")
except importlib.metadata.PackageNotFoundError:
    importlib.metadata.version("numpy")
else:
    raise AssertionError("its version is known")
import flambeau as torch
from flambeau._environment import report
assert "NumPy (llvmlite is missing)" in report()
assert torch.ones(300, 300).exp().sum().item() > 0
child = [sys.executable, "-c", "import llvmlite"]
assert b"No module named" in subprocess.run(child, capture_output=True).stderr
print("as it should be")
"""


def python(setting: Setting, code: str) -> str:
    inherited = {n: v for n, v in os.environ.items() if n != "FLAMBEAU_CPU"}
    paths = [setting.environment.get("PYTHONPATH", ""), str(ROOT)]
    environment = {**inherited, **setting.environment, "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_nothing_finds_llvmlite() -> None:
    assert python(Setting(None, 1, "auto"), WITHOUT) == "as it should be\n"


FACTS = """
import numpy, flambeau as torch
from flambeau._runtime import choice, processor
from numpy._core._multiarray_umath import __cpu_features__ as found
print(torch.get_num_threads(), choice.ENGINE, processor.CHOSEN)
print(found.get("X86_V3"), found.get("X86_V4"))
"""


@pytest.mark.parametrize("cpu", [name for name in every_processor.cpus() if name != "native"])
def test_numpy_has_no_more_features_than_kernels(cpu: str) -> None:
    threads, engine, chosen, third, fourth = python(Setting(cpu, 16, "llvm"), FACTS).split()
    assert (threads, engine, chosen) == ("16", "llvm", cpu)
    if cpu in ("baseline", "avx2"):
        assert fourth in ("False", "None")
    if cpu == "baseline":
        assert third in ("False", "None")


def test_every_setting_is_drawn_before_one_comes_again() -> None:
    count = len(every_processor.settings())
    first, again, other = (
        list(itertools.islice(every_processor.drawn(seed), 2 * count)) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert {setting for setting, _ in first[:count]} == set(every_processor.settings())
    files = set(every_processor.files_of_kernels())
    assert all(set(drawn) <= files for _, drawn in first)
    assert "tests/_ops/products/test_gemm.py" in files
