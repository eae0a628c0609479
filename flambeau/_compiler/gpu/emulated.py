"""The same kernel for the CPU: a block's threads are fibers that take turns.

A fiber runs until it waits (for its block at a `barrier`, for its warp in a shuffle) or ends; then
the next one's turn comes. Blocks run one after the other. The order of both is the launcher's
choice, so that what hangs on it shows. A kernel in which nothing waits is a plain loop.
"""

from __future__ import annotations

from typing import Any

from flambeau._compiler.emitter import Emitter, Value
from flambeau._compiler.gpu import fibers
from flambeau._compiler.gpu.ptx import received
from flambeau._compiler.module import Module
from flambeau._compiler.types import Pointer, f64, i32, i64, pointer


class EmulatedModule(Module):
    """The text of a kernel and of what runs its threads; `entry` is called as other kernels are."""

    emulated = True

    def __init__(self, *, llvm_version: int, halves: bool) -> None:
        super().__init__(llvm_version=llvm_version, halves=halves)
        self.waits = False
        self.places: list[tuple[str, int]] = []
        for name, count in fibers.TABLES.items():
            kind = f"[{count} x i64]"
            self.declare(f"@emulated.{name} = internal global {kind} zeroinitializer, align 64")

    # ---- what words stand for

    def state(self, emit: Emitter, slot: str) -> Value:
        """A word of the state: which thread runs, in which block."""
        place = f"getelementptr (i64, ptr @emulated.state, i64 {fibers.SLOTS[slot]})"
        return emit.define(i64, f"load i64, ptr {place}, align 8")

    def shared(self, type: Any, count: int, align: int) -> str:
        """A name for new memory of the block."""
        name = f"@shared.{len(self.places)}"
        self.places.append((name, count * type.size))
        self.declare(f"{name} = internal global [{count * type.size} x i8] zeroinitializer, "
                     f"align {max(align, type.size)}")  # fmt: skip
        return name

    def wait(self, to: Any) -> None:
        """A barrier of the block."""
        self.waits = True
        self._call_native(to, fibers.wait, [fibers.BLOCK], {})

    def exchange(self, to: Any, mode: str, value: Value, lane: Value) -> Value:
        """A number of another lane of the warp."""
        self.waits = True
        bits = to.emit.define(i64, f"zext {to.emit.bitcast(i32, value).typed} to i64")
        found = self._call_native(to, fibers.exchange, [bits, to.emit.convert(i64, lane), mode], {})
        return to.emit.bitcast(value.type, to.emit.convert(i32, found))

    def ballot(self, to: Any, condition: Value) -> Value:
        """A bit for each lane."""
        self.waits = True
        bit = to.emit.define(i64, f"zext {condition.typed} to i64")
        return to.emit.convert(i32, self._call_native(to, fibers.votes, [bit], {}))

    # ---- the whole

    def kernel(self, native_kernel: Any, statics: dict[str, Any]) -> None:
        """The kernel, and `entry` around it."""
        self._thread(native_kernel, statics)
        if self.waits and not fibers.SWITCH:
            raise NotImplementedError(
                f"no emulated GPU on {fibers.MACHINE}: its fibers have no switch"
            )
        self._spoil()
        self.functions.append(
            "define internal void @emulated.switch(ptr %here, ptr %there) naked noinline nounwind "
            f'{{\n  call void asm sideeffect "{fibers.SWITCH}", "~{{memory}}"()\n  unreachable\n}}'
        )
        name, _ = self._instance(fibers.end, (fibers.end,), {})
        self.functions.append(
            "define internal void @emulated.begin() noinline nounwind {\n"
            f"  call void @emulated.thread()\n  call void @{name}()\n  unreachable\n}}"
        )
        args = Value(pointer(i64), "%args")
        key = (fibers.run_kernel, (args.type, False), self.waits)
        name, _ = self._instance(fibers.run_kernel, key, {"args": args, "WAITS": self.waits})
        self.functions.append(
            "define void @entry(ptr %args) nounwind {\n"
            f"  call void @{name}(ptr %args)\n  ret void\n}}"
        )

    def _thread(self, native_kernel: Any, statics: dict[str, Any]) -> None:
        """`emulated.thread`: one thread of the kernel, with the arguments of the launch."""
        emit = Emitter(self)
        names: dict[str, Any] = dict(statics)
        passed: list[Value] = []
        base = self.state(emit, "arguments")
        start = emit.define(pointer(i64), f"inttoptr {base.typed} to ptr")
        for parameter in native_kernel.parameters:
            if not parameter.static:
                type = native_kernel.type_of(parameter, names)
                place = f"getelementptr i64, {start.typed}, i64 {len(passed)}"
                value = self._argument(emit, type, emit.define(pointer(i64), place))
                names[parameter.name] = value
                passed.append(value)
        key = (native_kernel, *(
            names[p.name] if p.static else (names[p.name].type, False)
            for p in native_kernel.parameters
        ))  # fmt: skip
        name, result = self._instance(native_kernel, key, names)
        self._emit_call(emit, name, result, passed)
        emit.line("ret void")
        head = "define internal void @emulated.thread() noinline nounwind {"
        self.functions.append("\n".join([head, "begin:", *emit.entry, *emit.lines, "}"]))

    def _argument(self, emit: Emitter, type: Any, place: Value) -> Value:
        kind = "ptr" if isinstance(type, Pointer) else "double" if type.is_float else "i64"
        found = Value(f64 if kind == "double" else i64, f"%{emit.name()}")
        emit.line(f"{found.text} = load {kind}, {place.typed}, align 8")
        return received(emit, type, found.text)

    def _spoil(self) -> None:
        """`emulated.spoil`: memory of a block begins with bytes that are nan as floats."""
        lines = [f"  call void @llvm.memset.p0.i64(ptr {name}, i8 -1, i64 {size}, i1 false)"
                 for name, size in self.places]  # fmt: skip
        self.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        head = "define internal void @emulated.spoil() nounwind {"
        self.functions.append("\n".join([head, *lines, "  ret void", "}"]))
