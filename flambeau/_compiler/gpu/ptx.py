"""A kernel as LLVM IR for NVIDIA's processors.

Pointers stay generic and say that they begin at 16 bytes; LLVM finds by itself that they are global
memory, and makes 16-byte accesses of vectors. Numbers come as 64 bits each, as for the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flambeau._compiler.emitter import Emitter, Value, constant
from flambeau._compiler.module import Module
from flambeau._compiler.types import Pointer, Scalar, boolean, f32, f64, i64

TRIPLE = "nvptx64-nvidia-cuda"
WIDEST = 16


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kernel is compiled for besides its constants."""

    threads: int
    """Threads of a block."""
    apart: bool = True
    """Whether no two pointers reach the same memory."""
    aligned: bool = True
    """Whether all pointers begin at 16 bytes."""
    reads: tuple[str, ...] = ()
    """Pointers through which nothing is written."""
    resident: int = 0
    """Blocks that a multiprocessor shall hold at once: a limit on registers; 0: none."""


class PtxModule(Module):
    """The text of a kernel for a GPU."""

    emulated = False
    hardware_bf16 = True

    def __init__(self, llvm_version: int) -> None:
        super().__init__(llvm_version=llvm_version)
        self.places = 0

    def shared(self, type: Any, count: int, align: int) -> str:
        """A name for new memory of the block."""
        name = f"@shared.{self.places}"
        self.places += 1
        kind = f"[{count} x {type.llvm}]"
        self.declare(f"{name} = internal addrspace(3) global {kind} poison, align {align}")
        return f"addrspacecast (ptr addrspace(3) {name} to ptr)"

    def kernel(self, native: Any, statics: dict[str, Any], shape: Shape) -> None:
        """The kernel as a function that a driver launches under the kernel's name."""
        emit = Emitter(self)
        names: dict[str, Any] = dict(statics)
        heads: list[str] = []
        passed: list[Value] = []
        for parameter in native.parameters:
            if not parameter.static:
                type = native.type_of(parameter, names)
                heads.append(_head(parameter.name, type, shape))
                value = received(emit, type, f"%{parameter.name}")
                names[parameter.name] = value
                passed.append(value)
        self._call_kernel(emit, native, names, passed)
        emit.line("ret void")
        head = f"define ptx_kernel void @{native.name}({', '.join(heads)}) nounwind convergent"
        attributes = f'"nvvm.maxntid"="{shape.threads}"'
        if shape.resident:
            attributes += f' "nvvm.minctasm"="{shape.resident}"'
        lines = [f"{head} {attributes} {{", "begin:", *emit.entry, *emit.lines, "}"]
        self.functions.append("\n".join(lines))

    def text(self) -> str:
        """The whole module; what threads do together is moved nowhere else (`convergent`)."""
        text = super().text().replace("alwaysinline nounwind", "alwaysinline nounwind convergent")
        text = text.replace("noinline nounwind", "alwaysinline nounwind convergent")
        return f'target triple = "{TRIPLE}"\n{text}'


def _head(name: str, type: Any, shape: Shape) -> str:
    if not isinstance(type, Pointer):
        return f"{held(type).llvm} %{name}"
    size = type.element.size
    words = [
        "ptr",
        "noalias" if shape.apart else "",
        "readonly" if name in shape.reads else "",
        f"align {WIDEST if shape.aligned else size}",
        f"%{name}",
    ]
    return " ".join(filter(None, words))


def held(type: Scalar) -> Scalar:
    """The type of 64 bits that a number is handed over in."""
    return f64 if type.is_float else i64


def received(emit: Emitter, type: Any, text: str) -> Value:
    """An argument in the type that the kernel wants."""
    if isinstance(type, Pointer):
        return Value(type, text)
    value = Value(held(type), text)
    if type is boolean:
        return emit.compare("ne", value, constant(i64, 0))
    if type.is_float and type.bits < f32.bits:
        value = emit.convert(f32, value)
    return emit.convert(type, value)
