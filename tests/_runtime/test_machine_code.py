"""Object files in memory: the same kernels as LLVM's linker gives, without its limits."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flambeau._compiler.language import external, f64, i32, i64, pointer  # noqa: F401
from flambeau._compiler.native import native
from flambeau._runtime import choice, machine_code

if not (machine_code.POSSIBLE and choice.available()):
    pytest.skip("kernels are loaded another way here", allow_module_level=True)

from flambeau._runtime import llvm


@native
def weighted(x: pointer(f64), n: i64) -> f64:
    total = f64(0.125)
    for i in range(n):
        total = total + external("cbrt", f64, x[i]) * f64(3.0)
    return total


def object_of(kernel: Any) -> bytes:
    module = llvm.new_module()
    module.export(kernel, {})
    return llvm.assemble(module.text(), llvm.PASSES)


def answer(address: int) -> float:
    values = (ctypes.c_double * 3)(1, 8, 27)
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_int64)(address)
    return function(ctypes.addressof(values), 3)


CODE = object_of(weighted)


def mappings() -> int:
    return Path("/proc/self/maps").read_bytes().count(b"\n")


def test_the_same_as_by_llvm():
    """Constants, functions of the process, and the kernel itself are found."""
    placed = machine_code.place(CODE, ("weighted",))
    linked = llvm.link("a test", CODE, ("weighted",))
    assert answer(placed["weighted"]) == answer(linked["weighted"]) == 18.125


def test_thousands_of_kernels_share_their_mappings():
    before = mappings()
    found = {machine_code.place(CODE, ("weighted",))["weighted"] for _ in range(2000)}
    assert len(found) == 2000
    assert mappings() - before < 100
    assert {answer(address) for address in found} == {18.125}


def test_no_page_is_writable_and_executable():
    address = machine_code.place(CODE, ("weighted",))["weighted"]
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= address < last:
            assert line.split()[1] == "r-xp"
            return
    raise AssertionError("it is not mapped")


@pytest.mark.parametrize("kind", [2, 4, 9, 10, 42])
def test_what_is_not_plain_is_left_to_llvm(kind: int):
    """Relocations of other kinds, which another LLVM or code model would write."""
    sections = machine_code._sections(CODE)
    listed = next(one for one in sections if one.kind == machine_code.RELOCATIONS)
    other = bytearray(CODE)
    other[listed.offset + 8] = kind
    with pytest.raises(machine_code.NotPlain):
        machine_code.place(bytes(other), ("weighted",))
    with pytest.raises(machine_code.NotPlain):
        machine_code.place(b"\xcf\xfa\xed\xfe" + CODE[4:], ("weighted",))


def test_what_is_missing_is_named():
    with pytest.raises(RuntimeError, match="without entry, fault"):
        machine_code.place(CODE, ("weighted", "entry", "fault"))
    with pytest.raises(RuntimeError, match="no function cbru"):
        machine_code.place(CODE.replace(b"\0cbrt\0", b"\0cbru\0"), ("weighted",))


def test_damaged_objects_are_errors():
    """What no cache would hand out: bytes changed and cut anywhere. Nothing of it is run."""
    drawn = random.Random(5)
    refused = 0
    for _ in range(3000):
        data = bytearray(CODE)
        for _ in range(drawn.choice([1, 1, 2, 8])):
            place = drawn.choice([drawn.randrange(64), drawn.randrange(len(data))])
            data[place] = drawn.choice([0, 1, 0x7F, 0xFF, drawn.randrange(256)])
        if drawn.random() < 0.3:
            del data[drawn.randrange(len(data)) :]
        try:
            machine_code.place(bytes(data), ("weighted",))
        except (RuntimeError, MemoryError, machine_code.NotPlain):
            refused += 1
    assert 500 < refused < 3000


def run(code: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "FLAMBEAU_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", code], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env=environment,
    )  # fmt: skip


def test_no_memory_is_an_error(tmp_path: Path):
    """LLVM would end the process."""
    code = f"""
import resource
from flambeau._runtime import machine_code
code = bytes.fromhex({CODE.hex()!r})
machine_code.place(code, ("weighted",))
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), -1))
try:
    for _ in range(2000):
        machine_code.place(code, ("weighted",))
except MemoryError as error:
    print(error)
"""
    said, _ = run(code, tmp_path).communicate(timeout=60)
    assert said.startswith("no 1048576 bytes for machine code: "), said


def test_first_kernels_in_many_threads_of_many_processes(tmp_path: Path):
    """All compile, write, read and load the same kernels at once, from an empty cache."""
    code = """
import threading
import flambeau as torch
x = torch.linspace(0.5, 2, 20_000)
functions = [torch.exp, torch.neg, torch.sqrt, lambda t: t + t]
start, sums = threading.Barrier(4), set()
def work(number):
    start.wait()
    for turn in range(4):
        sums.add((turn + number) % 4 * 1e6 + round(functions[(turn + number) % 4](x).sum().item()))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(sorted(sums))
"""
    crowd = [run(code, tmp_path) for _ in range(2)]
    said = [one.communicate(timeout=120)[0] for one in crowd]
    assert [one.returncode for one in crowd] == [0] * 2, said
    assert said[0] == said[1] and said[0].startswith("["), said
