"""One LLVM module: an entry that unpacks its arguments, and the functions that it is made of."""

from __future__ import annotations

from typing import Any

from flambeau._compiler.emitter import CompileError, Emitter, Value, constant
from flambeau._compiler.language import Word
from flambeau._compiler.lower import Lowering
from flambeau._compiler.rooms import Rooms
from flambeau._compiler.types import Pointer, Scalar, boolean, f32, f64, i64, pointer

FAULT_WORDS = 4


class Module:
    """The text of a kernel and of all that it calls."""

    hardware_bf16 = False
    """Whether one instruction rounds to bfloat16. x86 has one as well, but that takes subnormal
    numbers for 0."""

    def __init__(self, *, checked: bool = False, llvm_version: int = 22, halves: bool = True,
                 room_key: Scalar | None = None) -> None:  # fmt: skip
        self.checked = checked
        self.halves = halves  # whether the processor converts float16
        self.llvm_version = llvm_version
        self.rooms = Rooms(room_key)
        self.declarations: dict[str, None] = {}
        self.functions: list[str] = []
        self.known: dict[Any, tuple[str, Any]] = {}
        self.faults: list[tuple[str, int]] = []  # what the number of a fault stands for

    def declare(self, text: str) -> None:
        """A declaration or a global, once."""
        self.declarations[text] = None

    def text(self) -> str:
        """The whole module."""
        return "\n".join([*self.declarations, *self.functions]) + "\n"

    # ---- functions

    def call(self, caller: Lowering, function: Any, arguments: list[Any], named: Any) -> Any:
        """A call inside a kernel."""
        if isinstance(function, Word):
            return function.emit(caller, *arguments, **named)
        if hasattr(function, "parameters") and hasattr(function, "tree"):
            return self._call_native(caller, function, arguments, named)
        if not callable(function):
            raise caller.error(f"{function!r} cannot be called")
        if any(isinstance(value, Value) for value in [*arguments, *named.values()]):
            raise caller.error(f"{function!r} is not a kernel: its arguments must be constants")
        return function(*arguments, **named)

    def _call_native(self, caller: Lowering, native: Any, arguments: list[Any], named: Any) -> Any:
        bound = native.bind(arguments, named)
        names: dict[str, Any] = {}
        passed: list[Value] = []
        key: list[Any] = [native]
        for parameter in native.parameters:
            value = bound[parameter.name]
            if parameter.static or not (isinstance(value, Value) or parameter.annotation):
                names[parameter.name] = value
                key.append(value)
                continue
            if parameter.annotation is not None:
                value = caller.adapt(value, native.type_of(parameter, names))
            elif not isinstance(value, Value):
                value = caller.as_value(value)
            names[parameter.name] = value
            passed.append(value)
            key.append((value.type, value.limits is not None))
        name, result = self._instance(native, tuple(key), names)
        return self._emit_call(caller.emit, name, result, passed)

    def _emit_call(self, emit: Emitter, name: str, result: Any, passed: list[Value]) -> Any:
        listed = []
        for value in passed:
            listed.append(value.typed)
            listed += [f"i64 {limit}" for limit in value.limits or ()]
        if name in self.rooms.users:
            emit.uses_room = True
            listed.append("ptr %thread.room")
        text = f"call {self.result_text(result)} @{name}({', '.join(listed)})"
        if result is None:
            emit.line(text)
            return None
        if not isinstance(result, tuple):
            return emit.define(result, text)
        packed = f"%{emit.name()}"
        emit.line(f"{packed} = {text}")
        kind = self.result_text(result)
        return tuple(emit.define(type, f"extractvalue {kind} {packed}, {position}")
                     for position, type in enumerate(result))  # fmt: skip

    def result_text(self, result: Any) -> str:
        """The LLVM type of what a function returns."""
        if result is None:
            return "void"
        if isinstance(result, tuple):
            return "{" + ", ".join(type.llvm for type in result) + "}"
        return str(result.llvm)

    def _instance(self, native: Any, key: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """The function compiled for these types and constants."""
        try:
            if key in self.known:
                return self.known[key]
        except TypeError:
            raise CompileError(f"{native.name}: constants must be hashable") from None
        name = f"{native.name}.{len(self.known)}"
        self.known[key] = (name, None)
        heads: list[str] = []
        own = dict(names)
        for parameter in native.parameters:
            value = names[parameter.name]
            if isinstance(value, Value):
                own[parameter.name] = _parameter_value(parameter.name, value, heads)
        noalias = " noalias" if native.apart else ""
        heads = [
            h.replace("ptr ", f"ptr{noalias} ", 1) if h.startswith("ptr ") else h for h in heads
        ]
        lowering = Lowering(self, native, own)
        self._lower(lowering, native)
        if lowering.emit.uses_room:
            self.rooms.users.add(name)
            heads.append("ptr noalias %thread.room")
        kind = "noinline" if native.outline else "alwaysinline"
        head = f"define internal {self.result_text(lowering.result)} @{name}({', '.join(heads)})"
        self._finish(lowering, f"{head} {kind} nounwind")
        self.known[key] = (name, lowering.result)
        return self.known[key]

    def _lower(self, lowering: Lowering, native: Any) -> None:
        for parameter in native.parameters:
            value = lowering.names.get(parameter.name)
            if parameter.name in lowering.assigned and isinstance(value, Value):
                variable = lowering.variable(value.type, parameter.name, value.limits is not None)
                lowering.names[parameter.name] = variable
                lowering.write(variable, value)
        lowering.body(native.tree.body)
        if not lowering.emit.terminated:
            if lowering.result is not None:
                lowering.emit.line("unreachable")
            else:
                lowering.emit.line("ret void")

    def _finish(self, lowering: Lowering, head: str) -> None:
        emit = lowering.emit
        if emit.lines and emit.lines[-1].endswith(":"):
            emit.lines.append("  unreachable")
        body = [f"{head} {{", "entry:", *emit.entry, *emit.lines, "}"]
        self.functions.append("\n".join(body))

    # ---- the entry

    def entry(self, native: Any, statics: dict[str, Any]) -> None:
        """`entry(args, task, tasks)`: unpack the 64-bit slots of `args` and run the kernel."""
        emit = Emitter(self)
        names: dict[str, Any] = dict(statics)
        passed: list[Value] = []
        slot = 0
        for parameter in native.parameters:
            if parameter.static:
                continue
            if parameter.name in ("task", "tasks"):
                value = Value(i64, f"%{parameter.name}")
            else:
                type = native.type_of(parameter, names)
                value = self._unpack(emit, slot, type)
                slot += 3 if self.checked and isinstance(type, Pointer) else 1
            names[parameter.name] = value
            passed.append(value)
        self._call_kernel(emit, native, names, passed)
        emit.line("ret void")
        head = "define void @entry(ptr %args, i64 %task, i64 %tasks) nounwind {"
        self.functions.append("\n".join([head, "begin:", *emit.entry, *emit.lines, "}"]))
        if self.checked:
            self.declare(f"@fault = global [{FAULT_WORDS} x i64] zeroinitializer, align 8")

    def export(self, native: Any, statics: dict[str, Any]) -> None:
        """A C function of the kernel's name, with the kernel's parameters and result; for callers
        that are not the launcher. Its pointers are never checked."""
        emit = Emitter(self)
        names: dict[str, Any] = dict(statics)
        passed: list[Value] = []
        for parameter in native.parameters:
            if not parameter.static:
                value = Value(native.type_of(parameter, names), f"%{parameter.name}")
                names[parameter.name] = value
                passed.append(value)
        result, found = self._call_kernel(emit, native, names, passed)
        emit.line("ret void" if result is None else f"ret {found.typed}")
        listed = ", ".join(value.typed for value in passed)
        head = f"define {self.result_text(result)} @{native.name}({listed}) nounwind {{"
        self.functions.append("\n".join([head, "begin:", *emit.entry, *emit.lines, "}"]))

    def _call_kernel(self, emit: Emitter, native: Any, names: dict[str, Any],
                     passed: list[Value]) -> tuple[Any, Any]:  # fmt: skip
        """A call of a kernel with what a function has been given: the type of its result, and the
        result."""
        key = (native, *(
            names[p.name] if p.static else (names[p.name].type, names[p.name].limits is not None)
            for p in native.parameters
        ))  # fmt: skip
        name, result = self._instance(native, key, names)
        if name in self.rooms.users:
            self.rooms.enter(emit)
        return result, self._emit_call(emit, name, result, passed)

    def _unpack(self, emit: Emitter, slot: int, type: Any) -> Value:
        place = emit.define(pointer(i64), f"getelementptr i64, ptr %args, i64 {slot}")
        if isinstance(type, Pointer):
            value = emit.define(type, f"load ptr, ptr {place.text}, align 8")
            if self.checked:
                low, high = (self._unpack(emit, slot + k, i64).text for k in (1, 2))
                value.limits = (low, high)
            return value
        held: Scalar = f64 if type.is_float else i64
        value = emit.define(held, f"load {held.llvm}, ptr {place.text}, align 8")
        if type is boolean:
            return emit.compare("ne", value, constant(i64, 0))
        if type.is_float and type.bits < 32:
            value = emit.convert(f32, value)
        return emit.convert(type, value)

    def note_fault(self, emit: Emitter, outside: Value, native: Any, line: int) -> None:
        """Remember the first access outside: which line it was in."""
        self.faults.append((native.name, line))
        self.declare("@nowhere = internal global [512 x i8] zeroinitializer, align 64")
        noted, after = emit.name("fault"), emit.name("fine")
        emit.branch(outside, noted, after)
        emit.label(noted)
        second = "getelementptr (i64, ptr @fault, i64 1)"
        known = emit.define(i64, "load atomic i64, ptr @fault monotonic, align 8")
        before = emit.define(i64, f"load atomic i64, ptr {second} monotonic, align 8")
        first = emit.compare("eq", known, constant(i64, 0))
        number = emit.select(first, constant(i64, len(self.faults)), known)
        place = emit.select(first, constant(i64, line), before)
        emit.line(f"store atomic {place.typed}, ptr {second} monotonic, align 8")
        emit.line(f"store atomic {number.typed}, ptr @fault monotonic, align 8")
        emit.jump(after)
        emit.label(after)


def _parameter_value(name: str, value: Value, heads: list[str]) -> Value:
    heads.append(f"{value.type.llvm} %{name}")
    limits = None
    if value.limits is not None:
        limits = (f"%{name}.low", f"%{name}.high")
        heads += [f"i64 {limit}" for limit in limits]
    return Value(value.type, f"%{name}", limits)
