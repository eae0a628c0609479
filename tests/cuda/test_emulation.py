"""The emulated GPU: the facts of `emulated.py`, in a process where the emulation is on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import flambeau as torch

pytest.importorskip("llvmlite")  # which compiles the kernels' form for the CPU

HERE = Path(__file__).parent
PROGRAMS = ("emulated.py", "emulated_calls.py", "emulated_determinism.py", "emulated_memory.py",
            "several.py")  # fmt: skip
DEVICES = {"several.py": "2"}
"""How many devices a program wants, where it is more than one."""


def run(*arguments: str, emulate: bool, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python process with or without the emulation."""
    environment = {k: v for k, v in os.environ.items() if k != "FLAMBEAU_EMULATE_CUDA"}
    if emulate:
        environment["FLAMBEAU_EMULATE_CUDA"] = "1"
    environment |= variables
    command = [sys.executable, "-W", "error", *arguments]
    root = str(HERE.parent.parent)
    return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=root,
                          timeout=120, check=False)  # fmt: skip


def names() -> list[tuple[str, str]]:
    """The facts, read off the files: importing them would need the emulation."""
    found = []
    for program in PROGRAMS:
        text = (HERE / program).read_text(encoding="utf-8")
        facts = re.findall(r"^def (\w+)\(\) -> None:", text, re.MULTILINE)
        found += [(program, name) for name in facts if name != "main"]
    return found


@cache
def failures(program: str) -> dict[str, str]:
    devices = DEVICES.get(program, "1")
    done = run(str(HERE / program), emulate=True, FLAMBEAU_EMULATE_CUDA=devices)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("program", "name"), names())
def test_emulated(program: str, name: str) -> None:
    assert failures(program).get(name) is None, failures(program)[name]


@pytest.mark.parametrize("program", PROGRAMS)
def test_streams_in_an_order_of_their_own_change_nothing(program: str) -> None:
    """The facts again, every launch checked for races and uses after free."""
    variables = {"FLAMBEAU_EMULATE_CUDA": DEVICES.get(program, "1"), "FLAMBEAU_CUDA_SEED": "5"}
    done = run(str(HERE / program), emulate=True, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout).keys() == failures(program).keys()


@pytest.mark.parametrize(("variable", "kept"), [("1", 0), ("0", 32 << 20), ("", 32 << 20)])
def test_memory_goes_back_at_once_where_the_variable_says_so(variable: str, kept: int) -> None:
    program = """
import flambeau as torch
x = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
small = torch.ones(3, device="cuda")
del x
print(torch.cuda.memory_reserved() - (2 << 20), small.sum().item())
"""
    done = run("-c", program, emulate=True, PYTORCH_NO_CUDA_MEMORY_CACHING=variable)
    assert done.stdout.split() == [str(kept), "3.0"], done.stderr


def test_races_of_programs_are_found() -> None:
    program = """
import flambeau as torch
x = torch.ones(300, device="cuda")
s = torch.cuda.Stream()
y = x + 1
with torch.cuda.stream(s):
    {wait}
    print((y * 2).sum())
"""
    wait = "s.wait_stream(torch.cuda.default_stream())"
    assert (
        run("-c", program.format(wait=wait), emulate=True, FLAMBEAU_CUDA_SEED="1").returncode == 0
    )
    broken = run("-c", program.format(wait="pass"), emulate=True, FLAMBEAU_CUDA_SEED="1")
    assert broken.returncode == 1 and "Fault: race: a read in stream" in broken.stderr


def test_it_can_be_switched_on_late() -> None:
    program = """
import flambeau as torch
x = torch.ones(2)                      # functions are built before
y = torch.zeros_like(x) + torch.nn.functional.softmax(x, 0)
torch.cuda.emulate()
z = torch.ones(2, device="cuda")
assert torch.zeros_like(z).device.type == torch.nn.functional.softmax(z, 0).device.type == "cuda"
assert torch.cuda.is_available() and x.device.type == y.device.type == "cpu"
"""
    done = run("-c", program, emulate=False)
    assert done.returncode == 0, done.stderr


def test_a_checkpoint_of_a_gpu_is_read_without_one(tmp_path: Path) -> None:
    file = tmp_path / "x.pt"
    save = f"import flambeau as t; t.save(t.arange(3., device='cuda'), {str(file)!r})"
    done = run("-c", save, emulate=True)
    assert done.returncode == 0, done.stderr
    assert torch.load(file, map_location="cpu").tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match=r"torch.cuda.is_available\(\) is False"):
        torch.load(file)


def test_without_it_nothing_is_there() -> None:
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
        torch.ones(2).cuda()
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
        torch.ones(2, device="cuda")


def test_it_costs_nothing_while_it_is_off() -> None:
    """No operator is watched, and Tensor has its plain properties."""
    program = """
import sys
import flambeau as torch
from flambeau._core import modes
assert modes.watch.active == modes.watch.nodes == 0
torch.ones(2).add(1)
assert not any("emulation" in name or "_ops.cuda" in name for name in sys.modules)
"""
    done = run("-c", program, emulate=False)
    assert done.returncode == 0, done.stderr


def test_emulation_reaches_flambeau_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\nassert torch.ones(1).cuda().is_cuda\n", encoding="utf-8")
    done = run("-m", "flambeau", "run", str(script), emulate=True)
    assert done.returncode == 0, done.stderr
