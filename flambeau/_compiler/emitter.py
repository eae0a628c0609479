"""Writes LLVM IR: values, arithmetic, conversions, memory. The language's meaning is in `lower`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from flambeau._compiler.types import (
    Pointer,
    Scalar,
    Vector,
    bf16,
    boolean,
    f16,
    f32,
    i32,
    i64,
    like,
    u32,
    vector,
)

Type = Any  # Scalar | Vector | Pointer


class CompileError(TypeError):
    """A kernel that the language does not allow; names the kernel and the line."""


class Value:
    """An SSA value: its type and text; `limits` (debug form) are the ends of a pointer's memory."""

    __slots__ = ("limits", "text", "type")

    def __init__(self, type: Type, text: str, limits: tuple[str, str] | None = None) -> None:
        self.type = type
        self.text = text
        self.limits = limits

    @property
    def typed(self) -> str:
        """`float %3`."""
        return f"{self.type.llvm} {self.text}"

    def __bool__(self) -> bool:
        raise CompileError("a value that is known only when the kernel runs cannot decide here")

    def __repr__(self) -> str:
        return f"<{self.type} {self.text}>"


def literal(type: Scalar, number: Any) -> str:
    """The text of a constant."""
    if type is boolean:
        return "true" if number else "false"
    if not type.is_float:
        return str(int(number))
    if type is bf16:
        bits = struct.unpack("<I", struct.pack("<f", float(number)))[0]
        return str((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if number == number else 0x7FC0)
    value = float(number)
    if type.bits == 64:
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if type.bits == 32:
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else -float("inf")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"


def constant(type: Type, number: Any) -> Value:
    """A constant of a type; every lane of a vector is the same."""
    text = literal(type.element, number)
    if isinstance(type, Vector):
        lane = f"{type.element.llvm} {text}"
        text = f"<{', '.join([lane] * type.width)}>"
    return Value(type, text)


FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
INT_OPS = {"add": "add", "sub": "sub", "mul": "mul", "div": "sdiv", "rem": "srem", "and": "and",
           "or": "or", "xor": "xor", "shl": "shl", "shr": "ashr"}  # fmt: skip
UINT_OPS = {**INT_OPS, "div": "udiv", "rem": "urem", "shr": "lshr"}
COMPARISONS = {
    "lt": ("olt", "slt", "ult"), "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"),
    "ge": ("oge", "sge", "uge"), "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"),
}  # fmt: skip


class Emitter:
    """The text of one LLVM function as it grows."""

    def __init__(self, module: Any) -> None:
        self.module = module  # declares intrinsics: `module.declare(text)`
        self.entry: list[str] = []  # stack slots
        self.uses_room = False  # whether it has memory that is too large for the stack
        self.lines: list[str] = []
        self.count = 0
        self.terminated = False

    def name(self, hint: str = "t") -> str:
        """A new register or label."""
        self.count += 1
        return f"{hint}{self.count}"

    def line(self, text: str) -> None:
        """One instruction without a result; what follows a jump is never reached and left out."""
        if not self.terminated:
            self.lines.append(f"  {text}")

    def define(self, type: Type, text: str) -> Value:
        """One instruction with a result."""
        name = f"%{self.name()}"
        self.line(f"{name} = {text}")
        return Value(type, name)

    def label(self, name: str) -> None:
        """Begin a block; the one before falls through to it."""
        if not self.terminated:
            self.lines.append(f"  br label %{name}")
        self.lines.append(f"{name}:")
        self.terminated = False

    def jump(self, label: str) -> None:
        """End the block."""
        self.line(f"br label %{label}")
        self.terminated = True

    def branch(self, condition: Value, yes: str, no: str) -> None:
        """End the block by a condition."""
        self.line(f"br i1 {condition.text}, label %{yes}, label %{no}")
        self.terminated = True

    def slot(self, type: Type, count: int = 1, align: int = 0) -> str:
        """Memory on the stack; LLVM turns it into registers where it can."""
        name = f"%{self.name('v')}"
        many = f", i64 {count}" if count > 1 else ""
        self.entry.append(
            f"  {name} = alloca {type.llvm}{many}{f', align {align}' if align else ''}"
        )
        return name

    def call(self, result: Type | None, name: str, arguments: Sequence[Value]) -> Any:
        """Call a declared function."""
        listed = ", ".join([argument.typed for argument in arguments])
        kind = result.llvm if result is not None else "void"
        types = ", ".join([argument.type.llvm for argument in arguments])
        self.module.declare(f"declare {kind} @{name}({types})")
        text = f"call {kind} @{name}({listed})"
        if result is None:
            self.line(text)
            return None
        return self.define(result, text)

    def intrinsic(self, name: str, result: Type, *arguments: Value) -> Value:
        """Call `llvm.name` for the type of the first argument."""
        suffix = mangled(arguments[0].type)
        return self.call(result, f"llvm.{name}.{suffix}", arguments)  # type: ignore[no-any-return]

    # ---- arithmetic

    def arithmetic(self, op: str, a: Value, b: Value) -> Value:
        """`a op b`, both of one type."""
        if a.type.element is bf16 or a.type.bits == 16 and a.type.is_float:
            wide = like(a.type, f32)
            result = self.arithmetic(op, self.convert(wide, a), self.convert(wide, b))
            return self.convert(a.type, result)
        table = FLOAT_OPS if a.type.is_float else INT_OPS if a.type.kind == "int" else UINT_OPS
        if op not in table:
            raise CompileError(f"no operator {op!r} for {a.type}")
        return self.define(a.type, f"{table[op]} {a.type.llvm} {a.text}, {b.text}")

    def compare(self, op: str, a: Value, b: Value) -> Value:
        """`a op b` as a boolean of as many lanes."""
        if isinstance(a.type, Pointer):
            return self.define(boolean, f"icmp {COMPARISONS[op][2]} ptr {a.text}, {b.text}")
        result = like(a.type, boolean)
        if a.type.element is bf16 or a.type.element is f16 and not self.module.halves:
            wide = like(a.type, f32)
            return self.compare(op, self.convert(wide, a), self.convert(wide, b))
        ordered, signed, unsigned = COMPARISONS[op]
        if a.type.is_float:
            text = f"fcmp {ordered}"
        else:
            text = f"icmp {signed if a.type.kind == 'int' else unsigned}"
        return self.define(result, f"{text} {a.type.llvm} {a.text}, {b.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`."""
        if isinstance(a.type, Vector) and not isinstance(condition.type, Vector):
            condition = self.splat(condition, a.type.width)
        text = f"select {condition.typed}, {a.typed}, {b.typed}"
        result = self.define(a.type, text)
        if a.limits is not None and b.limits is not None:
            low, high = (self.define(i64, f"select {condition.typed}, i64 {x}, i64 {y}").text
                         for x, y in zip(a.limits, b.limits, strict=True))  # fmt: skip
            result.limits = (low, high)
        return result

    def splat(self, value: Value, width: int) -> Value:
        """The same number in every lane."""
        if width == 1:
            return value
        type = vector(value.type, width)
        first = self.define(type, f"insertelement {type.llvm} poison, {value.typed}, i32 0")
        return self.define(
            type, f"shufflevector {first.typed}, {type.llvm} poison, "
            f"<{width} x i32> zeroinitializer")  # fmt: skip

    def convert(self, type: Type, value: Value) -> Value:
        """`value` as another type with as many lanes: rounded to nearest, integers wrap round."""
        source, target = value.type, like(value.type, type.element)
        if source == target:
            return value
        if source.element is bf16:
            return self.convert(target, self._widen_bf16(value))
        if target.element is bf16:
            return self._narrow_bf16(self.convert(like(source, f32), value))
        if f16 in (source.element, target.element) and not self.module.halves:
            return self._convert_half(target, value)
        if {source.bits, target.bits} == {16, 64} and source.is_float and target.is_float:
            # processors convert halves to and from f32 only; torch's halves go that way too
            return self.convert(target, self.convert(like(source, f32), value))
        if target.element is boolean:
            zero = constant(source, 0)
            return self.compare("ne", value, zero)
        return self.define(target, f"{_cast(source, target)} {value.typed} to {target.llvm}")

    def _convert_half(self, target: Type, value: Value) -> Value:
        """By way of f32; integers that it does not hold are infinite as halves."""
        from flambeau._compiler import halves

        if value.type.element is f16:
            return self.convert(target, halves.widened(self, value))
        return halves.narrowed(self, self.convert(like(target, f32), value))

    def bitcast(self, type: Type, value: Value) -> Value:
        """The same bits as another type of the same size."""
        if value.type.llvm == type.llvm:
            return Value(type, value.text)
        return self.define(type, f"bitcast {value.typed} to {type.llvm}")

    def _widen_bf16(self, value: Value) -> Value:
        words = like(value.type, i32)
        wide = self.define(words, f"zext {value.typed} to {words.llvm}")
        high = self.define(words, f"shl {wide.typed}, {constant(words, 16).text}")
        return self.bitcast(like(value.type, f32), high)

    def _narrow_bf16(self, value: Value) -> Value:
        """Round to the nearest even: add half of the last place, and one more where it is odd."""
        if self.module.hardware_bf16:
            return self._narrow_in_hardware(value)
        words = like(value.type, u32)
        bits = self.bitcast(words, value)
        shifted = self.define(words, f"lshr {bits.typed}, {constant(words, 16).text}")
        odd = self.define(words, f"and {shifted.typed}, {constant(words, 1).text}")
        bias = self.define(words, f"add {odd.typed}, {constant(words, 0x7FFF).text}")
        rounded = self.define(words, f"add {bits.typed}, {bias.text}")
        high = self.define(words, f"lshr {rounded.typed}, {constant(words, 16).text}")
        is_nan = self.define(like(value.type, boolean), f"fcmp uno {value.typed}, {value.text}")
        chosen = self.select(is_nan, constant(words, 0x7FC0), high)
        target = like(value.type, bf16)
        return self.define(target, f"trunc {chosen.typed} to {target.llvm}")

    def _narrow_in_hardware(self, value: Value) -> Value:
        target = like(value.type, bf16)
        wide = "bfloat" if target.width == 1 else f"<{target.width} x bfloat>"
        narrow = self.define(target, f"fptrunc {value.typed} to {wide}")
        return self.define(target, f"bitcast {wide} {narrow.text} to {target.llvm}")

    # ---- memory

    def offset(self, pointer: Value, index: Value) -> Value:
        """The address `index` elements further."""
        element = pointer.type.element
        kind = "i8" if element is boolean else element.llvm
        result = self.define(
            pointer.type, f"getelementptr {kind}, ptr {pointer.text}, {index.typed}"
        )
        result.limits = pointer.limits
        return result

    def load(self, pointer: Value, width: int = 1, align: int = 0) -> Value:
        """Read `width` elements that follow each other."""
        type = vector(pointer.type.element, width)
        align = align or (8 if isinstance(type, Pointer) else type.element.size)
        return self.define(type, f"load {type.llvm}, ptr {pointer.text}, align {align}")

    def store(self, pointer: Value, value: Value, align: int = 0, hint: str = "") -> None:
        """Write all lanes of a value, one element after the other."""
        type = value.type
        align = align or (8 if isinstance(type, Pointer) else type.element.size)
        self.line(f"store {value.typed}, ptr {pointer.text}, align {align}{hint}")


def mangled(type: Type) -> str:
    """A type inside an intrinsic's name: v8f32."""
    if isinstance(type, Vector):
        return f"v{type.width}{mangled(type.element)}"
    if isinstance(type, Pointer):
        return "p0"
    return f"{'f' if type.is_float and type is not bf16 else 'i'}{type.bits}"


def _cast(source: Type, target: Type) -> str:
    if source.is_float and target.is_float:
        return "fpext" if target.bits > source.bits else "fptrunc"
    if source.is_float:
        return "fptosi" if target.kind == "int" else "fptoui"
    signed = source.kind == "int"
    if target.is_float:
        return "sitofp" if signed else "uitofp"
    if target.bits == source.bits:
        return "bitcast"
    if target.bits < source.bits:
        return "trunc"
    return "sext" if signed else "zext"
