"""From a kernel to what a GPU loads: LLVM's PTX, and machine code (a cubin) by ptxas.

ptxas comes with CUDA's compiler (`pip install nvidia-cuda-nvcc`); without it the driver compiles
the PTX itself. Either is kept on disk, by architecture.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache as cache_once
from pathlib import Path
from typing import Any

from flambeau._compiler.gpu.ptx import TRIPLE, PtxModule, Shape
from flambeau._runtime import cache, engine

PTX_OF = {
    "sm_80": 78, "sm_86": 78, "sm_89": 78, "sm_90": 80, "sm_90a": 80, "sm_100": 86, "sm_120": 87,
}  # fmt: skip
"""Architecture -> the version of PTX that its kernels are written in."""
OWN = {(8, 0): "sm_80", (8, 6): "sm_86", (8, 9): "sm_89", (9, 0): "sm_90a", (10, 0): "sm_100",
       (12, 0): "sm_120"}  # fmt: skip
"""Compute capability -> architecture."""
COMMON = "sm_90"
"""For GPUs that are newer than this table: their driver makes what they need of its PTX."""
WHEELS = ("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas")


class PtxError(RuntimeError):
    """What ptxas says of PTX that it does not take."""


def architecture(capability: tuple[int, int]) -> str:
    """The architecture that kernels are made for on a GPU of this compute capability.

    Raises:
        RuntimeError: the GPU is older than all that there are kernels for.
    """
    if capability < min(OWN):
        raise RuntimeError(f"GPUs of compute capability {capability[0]}.{capability[1]} are too "
                           "old: kernels need 8.0")  # fmt: skip
    found = OWN.get(capability)
    return found if found is not None else COMMON if capability > (9, 0) else "sm_80"


@cache_once
def ptxas() -> str | None:
    """Where the assembler is: FLAMBEAU_PTXAS, among the programs, in CUDA_HOME, or in a wheel of
    NVIDIA's."""
    given = os.environ.get("FLAMBEAU_PTXAS") or shutil.which("ptxas")
    if given:
        return given
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home and Path(home, "bin", "ptxas").is_file():
        return str(Path(home, "bin", "ptxas"))
    wheels = (Path(folder, wheel) for folder in sys.path for wheel in WHEELS)
    return next((str(path) for path in wheels if path.is_file()), None)


def image(native: Any, statics: dict[str, Any], shape: Shape, arch: str) -> bytes:
    """A kernel as a cubin, or as PTX where there is no ptxas; from the disk if it is there."""
    program = ptxas()
    status = Path(__file__).stat()
    form = (
        f"cuda {native.name} {arch} {shape} {bool(program)} {status.st_size} {status.st_mtime_ns}"
    )
    key = engine.key_of((native,), statics, form)
    found = cache.read(key)
    if found is None:
        text = ptx(native, statics, shape, arch)
        found = assembled(text, arch)[0] if program else text.encode() + b"\0"
        cache.write(key, found)
    return found


def ptx(native: Any, statics: dict[str, Any], shape: Shape, arch: str) -> str:
    """A kernel as PTX, after LLVM's passes."""
    from flambeau._runtime import llvm

    module = PtxModule(llvm.VERSION)
    module.kernel(native, statics, shape)
    if "loops" in llvm.DEBUG:
        sys.stderr.write(f"# kernel {native.name} {statics}\n{native.parts}{native.source}\n")
    text = module.text()
    if "llvm" in llvm.DEBUG:
        sys.stderr.write(text)
    machine = target(arch)
    parsed = llvm.binding.parse_assembly(text)
    parsed.data_layout = str(machine.target_data)
    parsed.verify()
    optimise(parsed, machine)
    found: str = machine.emit_assembly(parsed)
    if "asm" in llvm.DEBUG:
        sys.stderr.write(found)
    return found


@cache_once
def target(arch: str) -> Any:
    """LLVM's machine for an architecture."""
    from flambeau._runtime.llvm import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    triple = binding.Target.from_triple(TRIPLE)
    return triple.create_target_machine(cpu=arch, features=f"+ptx{PTX_OF[arch]}", opt=3)


def optimise(parsed: Any, machine: Any) -> None:
    """All of -O3 but what makes vectors of loops: threads are the lanes here."""
    from flambeau._runtime.llvm import binding

    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = True
    options.loop_vectorization = options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)


def assembled(text: str, arch: str) -> tuple[bytes, str]:
    """A cubin, and what ptxas says of it.

    Raises:
        PtxError: ptxas does not take the text.
    """
    program = ptxas()
    if program is None:
        raise PtxError("there is no ptxas: pip install nvidia-cuda-nvcc")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(text)
        command = [program, f"-arch={arch}", "-v", str(source), "-o", str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PtxError(done.stderr + text)
        return result.read_bytes(), done.stderr + done.stdout


# ---- what became of a kernel


@dataclass(frozen=True, slots=True)
class Report:
    """What PTX and ptxas tell of a kernel."""

    instructions: int
    wide: int
    """Accesses of global memory of several elements at once."""
    narrow: int
    generic: int
    """Accesses for which LLVM does not know which memory is meant."""
    registers: int = -1
    spilled: int = -1
    """Bytes of registers that went to memory."""


INSTRUCTION = re.compile(r"^\t(?:@!?%p\d+ )?[a-z][\w.]*[ ;]", re.MULTILINE)
GLOBAL = re.compile(r"\b(?:ld|st)\.(?:relaxed\.|volatile\.)?global[.\w]*")
GENERIC = re.compile(r"\b(?:ld|st)\.(?:v\d\.)?[bfus]\d")


def report(native: Any, statics: dict[str, Any], shape: Shape, arch: str) -> Report:
    """Compile a kernel and count; registers and spills only where there is ptxas."""
    text = ptx(native, statics, shape, arch)
    accesses = GLOBAL.findall(text)
    wide = sum(bool(re.search(r"\.v[248]\.", access)) for access in accesses)
    counts = (len(INSTRUCTION.findall(text)), wide, len(accesses) - wide,
              len(GENERIC.findall(text)))  # fmt: skip
    if ptxas() is None:
        return Report(*counts)
    said = assembled(text, arch)[1]
    registers = max(map(int, re.findall(r"Used (\d+) registers", said)), default=-1)
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill", said)))
    return Report(*counts, registers, spilled)
