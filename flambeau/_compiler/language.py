"""The words of the kernel language, beyond Python's own: memory, vectors, mathematics.

A kernel is a Python function under `@native` (see `native`); these names stand in it for what LLVM
has. They mean nothing outside of a kernel.
"""

from __future__ import annotations

import ast
import zlib
from collections.abc import Callable
from typing import Any

from flambeau._compiler.emitter import Value, constant, literal, mangled
from flambeau._compiler.expressions import Expressions, Registers
from flambeau._compiler.types import (
    SCALARS,
    Pointer,
    Scalar,
    Vector,
    b8,
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    i128,
    like,
    pointer,
    u8,
    u16,
    u32,
    u64,
    vector,
)

_MUL = ast.Mult()

static: Any = "static"
"""As an annotation: the parameter is a constant while compiling (a type, an int, a kernel)."""


class Word:
    """A word of the language: `emit` writes what it stands for."""

    def __init__(self, name: str, emit: Callable[..., Any]) -> None:
        self.name = name
        self.emit = emit
        self.__doc__ = emit.__doc__

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError(f"{self.name} is a word of the kernel language: it works inside @native")

    def __repr__(self) -> str:
        return f"<word {self.name}>"


WORDS: dict[str, Word] = {}


def word(emit: Callable[..., Any]) -> Word:
    """Make a function that writes instructions a word of the language."""
    name = emit.__name__.rstrip("_")
    WORDS[name] = Word(name, emit)
    return WORDS[name]


def unroll(*bounds: Any) -> Any:
    """`for i in unroll(n)`: the body is written out for every i; also for a tuple."""
    if len(bounds) == 1 and not isinstance(bounds[0], int):
        return tuple(bounds[0])
    return tuple(range(*bounds))


# ---- memory


@word
def load(to: Expressions, address: Value, width: int = 1, mask: Value | None = None,
         align: int = 0) -> Value:  # fmt: skip
    """`load(x + i, W)`: W elements that follow each other; lanes without `mask` are 0 and their
    memory is not touched."""
    if mask is None:
        return to.load(address, width, align)
    type = vector(address.type.element, width)
    address = to.checked_lanes(address, mask)
    align = type.element.size
    name = f"llvm.masked.load.{mangled(type)}.p0"
    zero = constant(type, 0)
    if _old_masked(to):
        listed = [address, constant(i32, align), mask, zero]
        return to.emit.call(type, name, listed)  # type: ignore[no-any-return]
    return _aligned_masked(to, name, type, align, [address, mask, zero])


@word
def store(to: Expressions, address: Value, value: Value, mask: Value | None = None,
          align: int = 0, stream: bool = False) -> None:  # fmt: skip
    """`store(x + i, v)`: all lanes of v (those with `mask`), converted by nobody: the types must
    fit. `stream` asks for a store that leaves the caches alone."""
    value = to.adapt(value, like(value.type, address.type.element)) if isinstance(
        value, Value) else constant(address.type.element, value)  # fmt: skip
    if mask is None:
        hint = ""
        if stream:
            align = align or value.type.size
            to.emit.module.declare("!0 = !{i32 1}")
            hint = ", !nontemporal !0"
        to.store(address, value, align, hint)
        return
    address = to.checked_lanes(address, mask)
    align = value.type.element.size
    name = f"llvm.masked.store.{mangled(value.type)}.p0"
    if _old_masked(to):
        to.emit.call(None, name, [value, address, constant(i32, align), mask])
        return
    _aligned_masked(to, name, None, align, [value, address, mask])


def _old_masked(to: Expressions) -> bool:
    """Whether masked accesses take their alignment as an argument (LLVM up to 21)."""
    return to.module.llvm_version < 22  # type: ignore[no-any-return]


def _aligned_masked(
    to: Expressions, name: str, result: Any, align: int, values: list[Value]
) -> Any:
    """Since LLVM 22 the alignment is an attribute of the pointer."""
    kind = "void" if result is None else result.llvm
    types = ", ".join(value.type.llvm for value in values)
    to.module.declare(f"declare {kind} @{name}({types})")
    listed = ", ".join(f"ptr align {align} {value.text}" if isinstance(value.type, Pointer)
                       else value.typed for value in values)  # fmt: skip
    text = f"call {kind} @{name}({listed})"
    return to.emit.line(text) if result is None else to.emit.define(result, text)


@word
def gather(to: Expressions, base: Value, index: Value, mask: Value | None = None) -> Value:
    """`base[index]` for every lane of a vector of i64 or i32 indices."""
    type = vector(base.type.element, index.type.width)
    result = Value(type, "undef") if mask is None else constant(type, 0)
    for lane in range(index.type.width):
        one = to.emit.define(index.type.element, f"extractelement {index.typed}, i32 {lane}")
        address = to.add(base, one)
        item = to.load(address)
        text = f"insertelement {result.typed}, {item.typed}, i32 {lane}"
        result = to.emit.define(type, text)
    return result


@word
def stack(to: Expressions, type: Any, count: int, align: int = 64) -> Value:
    """Memory of the kernel's own for `count` elements; its contents are undefined. What is large
    is no part of the stack, see `rooms`."""
    text = to.module.rooms.place(to.emit, count * type.size)
    if text is None:
        text = to.emit.slot(type, count, align)
    value = Value(pointer(type.element if isinstance(type, Vector) else type), text)
    if to.module.checked:
        low = to.emit.define(i64, f"ptrtoint ptr {text} to i64")
        high = to.emit.define(i64, f"add i64 {low.text}, {count * type.size}")
        value.limits = (low.text, high.text)
    return value


@word
def table(to: Expressions, type: Any, values: tuple[Any, ...]) -> Value:
    """Constants in memory: `table(u64, WORDS)[i]`."""
    listed = ", ".join(f"{type.llvm} {literal(type, value)}" for value in values)
    name = f"@table.{zlib.crc32(f'{type.llvm} {listed}'.encode()):08x}"
    kind = f"[{len(values)} x {type.llvm}]"
    to.module.declare(f"{name} = private unnamed_addr constant {kind} [{listed}], align 64")
    return Value(pointer(type), name)


@word
def registers(to: Expressions, type: Any, count: int, first: Any = None) -> Registers:
    """`count` variables of one type, all `first` (0): indexed by constants, kept in registers."""
    items = [to.variable(type) for _ in range(count)]
    value = to.adapt(0 if first is None else first, type)
    for item in items:
        to.write(item, value)
    return Registers(items)


@word
def cast(to: Expressions, type: Any, value: Value) -> Value:
    """The same bits as another type: pointers to other elements, numbers as integers and back."""
    if isinstance(type, Pointer):
        if isinstance(value.type, Pointer):
            return Value(type, value.text, value.limits)
        return to.emit.define(type, f"inttoptr {value.typed} to ptr")
    if isinstance(value.type, Vector) and not isinstance(type, Vector):
        type = like(value.type, type)
    return to.emit.bitcast(type, value)


@word
def prefetch(to: Expressions, address: Value, write: int = 0, locality: int = 3) -> None:
    """Ask for the cache line of an address."""
    to.module.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    to.emit.line(
        f"call void @llvm.prefetch.p0(ptr {address.text}, i32 {write}, i32 {locality}, i32 1)"
    )


@word
def copy_memory(to: Expressions, target: Value, source: Value, count: Any) -> None:
    """Copy `count` elements; the two must not overlap."""
    size = to.binary(_MUL, to.as_value(count), target.type.element.size)
    to.module.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    to.emit.line(
        f"call void @llvm.memcpy.p0.p0.i64({target.typed}, {source.typed}, {size.typed}, i1 false)"
    )


@word
def zero_memory(to: Expressions, target: Value, count: Any) -> None:
    """Set `count` elements to 0."""
    size = to.binary(_MUL, to.as_value(count), target.type.element.size)
    to.module.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    to.emit.line(f"call void @llvm.memset.p0.i64({target.typed}, i8 0, {size.typed}, i1 false)")


# ---- vectors


@word
def splat(to: Expressions, value: Any, width: int) -> Value:
    """The same number in `width` lanes."""
    return to.emit.splat(to.as_value(value), width)


@word
def lanes(to: Expressions, type: Any, width: int) -> Value:
    """0, 1, 2, ... as a vector of `width` lanes."""
    if width == 1:
        return constant(type, 0)
    listed = ", ".join(f"{type.llvm} {lane}" for lane in range(width))
    return Value(vector(type, width), f"<{listed}>")


@word
def shuffle(to: Expressions, a: Value, b: Value | None, order: tuple[int, ...]) -> Value:
    """Lanes of a and b (numbered after a's) in a constant order; -1 is any."""
    other = b.typed if b is not None else f"{a.type.llvm} poison"
    mask = ", ".join(f"i32 {lane}" if lane >= 0 else "i32 poison" for lane in order)
    type = vector(a.type.element, len(order))
    return to.emit.define(type, f"shufflevector {a.typed}, {other}, <{len(order)} x i32> <{mask}>")


@word
def insert(to: Expressions, value: Value, lane: Any, item: Value) -> Value:
    """The vector with another number in one lane."""
    place = to.as_value(lane)
    item = to.adapt(item, value.type.element)
    return to.emit.define(value.type, f"insertelement {value.typed}, {item.typed}, {place.typed}")


def _reduction(name: str, floating: str, signed: str, unsigned: str) -> Word:
    def emit(to: Expressions, value: Value) -> Value:
        if not isinstance(value.type, Vector):
            return value
        element = value.type.element
        if element.is_float and name in ("add", "mul"):
            return _tree(to, value, name)
        op = floating if element.is_float else signed if element.kind == "int" else unsigned
        full = f"llvm.vector.reduce.{op}.{mangled(value.type)}"
        return to.emit.call(element, full, [value])  # type: ignore[no-any-return]

    emit.__name__ = f"reduce_{name}"
    emit.__doc__ = f"All lanes of a vector joined by {name}; sums and products by halves."
    return word(emit)


def _tree(to: Expressions, value: Value, op: str) -> Value:
    """Join lanes in halves: the order is fixed, and rounding errors stay small."""
    width = value.type.width
    while width > 1:
        half = width // 2
        if half == 1:
            low, high = _lane(to, value, 0), _lane(to, value, 1)
        else:
            low = shuffle.emit(to, value, None, tuple(range(half)))
            high = shuffle.emit(to, value, None, tuple(range(half, 2 * half)))
        value = to.emit.arithmetic(op, low, high)
        width = half
    return value


def _lane(to: Expressions, value: Value, lane: int) -> Value:
    return to.emit.define(value.type.element, f"extractelement {value.typed}, i32 {lane}")


reduce_add = _reduction("add", "fadd", "add", "add")
reduce_mul = _reduction("mul", "fmul", "mul", "mul")
reduce_max = _reduction("max", "fmaximum", "smax", "umax")
reduce_min = _reduction("min", "fminimum", "smin", "umin")
reduce_and = _reduction("and", "and", "and", "and")
reduce_or = _reduction("or", "or", "or", "or")


@word
def any_lane(to: Expressions, mask: Value) -> Value:
    """Whether any lane of a vector of booleans is true."""
    if not isinstance(mask.type, Vector):
        return mask
    return to.emit.call(boolean, f"llvm.vector.reduce.or.{mangled(mask.type)}", [mask])  # type: ignore[no-any-return]


@word
def mask_bits(to: Expressions, mask: Value) -> Value:
    """A vector of booleans as an i64, lane 0 in the lowest bit."""
    count = mask.type.width
    bits = Scalar(f"u{count}", f"i{count}", "uint", count)
    return to.emit.convert(i64, to.emit.define(bits, f"bitcast {mask.typed} to {bits.llvm}"))


# ---- mathematics of the processor


def _unary(name: str, llvm: str, doc: str) -> Word:
    def emit(to: Expressions, value: Any) -> Any:
        wide = _raised(to, value)
        result = to.emit.intrinsic(llvm, wide.type, wide)
        return to.emit.convert(value.type, result)

    emit.__name__, emit.__doc__ = name, doc
    return word(emit)


def _raised(to: Expressions, value: Value) -> Value:
    """Half types are computed in f32."""
    if value.type.is_float and value.type.bits == 16:
        return to.emit.convert(like(value.type, f32), value)
    return value


sqrt = _unary("sqrt", "sqrt", "The square root, correctly rounded.")
floor = _unary("floor", "floor", "Rounded down to an integer.")
ceil = _unary("ceil", "ceil", "Rounded up to an integer.")
trunc = _unary("trunc", "trunc", "Rounded towards 0 to an integer.")
rint = _unary("rint", "rint", "Rounded to the nearest integer, halves to even.")


@word
def absolute(to: Expressions, value: Any) -> Any:
    """|x|."""
    if not isinstance(value, Value):
        return abs(value)
    if value.type.is_float:
        wide = _raised(to, value)
        return to.emit.convert(value.type, to.emit.intrinsic("fabs", wide.type, wide))
    if value.type.kind in ("uint", "bool"):
        return value
    zero = constant(value.type, 0)
    return to.emit.select(to.emit.compare("lt", value, zero), to.negated(value), value)


@word
def copysign(to: Expressions, size: Value, sign: Value) -> Value:
    """|size| with the sign of `sign`."""
    size, sign = to.alike(size, sign)
    return to.emit.intrinsic("copysign", size.type, size, sign)


@word
def fma(to: Expressions, a: Any, b: Any, c: Any) -> Value:
    """a·b + c, rounded once."""
    typed = next(
        v for v in sorted((a, b, c), key=_lane_count, reverse=True) if isinstance(v, Value)
    )
    a, b, c = (to.adapt(v, typed.type) for v in (a, b, c))
    return to.emit.intrinsic("fma", typed.type, a, b, c)


def _lane_count(value: Any) -> int:
    return value.type.width if isinstance(value, Value) else 0


def _extremum(name: str, op: str) -> Word:
    def emit(to: Expressions, a: Any, b: Any) -> Any:
        if not isinstance(a, Value) and not isinstance(b, Value):
            return (max if op == "gt" else min)(a, b)
        is_number = not isinstance(a, Value) and a == a
        a, b = to.alike(a, b)
        if not a.type.is_float:
            return to.emit.select(to.emit.compare(op, a, b), a, b)
        # a where it wins or is nan, else b: where b is nan, the comparison fails
        wins = to.emit.compare(op, a, b)
        if is_number:
            return to.emit.select(wins, a, b)
        is_nan = to.emit.compare("ne", a, a)
        either = to.emit.define(wins.type, f"or {wins.typed}, {is_nan.text}")
        return to.emit.select(either, a, b)

    emit.__name__ = name
    emit.__doc__ = f"The {name} of two numbers; nan if either is nan."
    return word(emit)


maximum = _extremum("maximum", "gt")
minimum = _extremum("minimum", "lt")


def _fast_extremum(name: str, op: str) -> Word:
    def emit(to: Expressions, a: Any, b: Any) -> Any:
        a, b = to.alike(a, b)
        return to.emit.select(to.emit.compare(op, a, b), a, b)

    emit.__name__ = name
    emit.__doc__ = f"One instruction: `a if a {'>' if op == 'gt' else '<'} b else b`; b if nan."
    return word(emit)


larger = _fast_extremum("larger", "gt")
smaller = _fast_extremum("smaller", "lt")


@word
def select(to: Expressions, condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`, lane by lane."""
    if not isinstance(condition, Value):
        return a if condition else b
    if not isinstance(a, Value) and not isinstance(b, Value):
        a = to.as_value(a)
    a, b = to.alike(a, b)
    if isinstance(condition.type, Vector) and not isinstance(a.type, Vector):
        a, b = (to.emit.splat(v, condition.type.width) for v in (a, b))
    return to.emit.select(condition, a, b)


@word
def is_nan(to: Expressions, value: Value) -> Value:
    """Whether a number is nan."""
    return to.emit.compare("ne", value, value)


@word
def unordered(to: Expressions, a: Value, b: Value) -> Value:
    """Whether one of two floating-point numbers is nan: one instruction."""
    a, b = to.alike(_raised(to, a), _raised(to, b))
    return to.emit.define(like(a.type, boolean), f"fcmp uno {a.typed}, {b.text}")


@word
def popcount(to: Expressions, value: Value) -> Value:
    """How many bits are set."""
    return to.emit.intrinsic("ctpop", value.type, value)


@word
def count_trailing_zeros(to: Expressions, value: Value) -> Value:
    """How many zeros stand below the lowest set bit."""
    return to.emit.call(value.type, f"llvm.cttz.{mangled(value.type)}",
                        [value, constant(boolean, False)])  # type: ignore[no-any-return]  # fmt: skip


@word
def count_leading_zeros(to: Expressions, value: Value) -> Value:
    """How many zeros stand above the highest set bit."""
    return to.emit.call(value.type, f"llvm.ctlz.{mangled(value.type)}",
                        [value, constant(boolean, False)])  # type: ignore[no-any-return]  # fmt: skip


@word
def intrinsic(to: Expressions, name: str, result: Any, *values: Any) -> Any:
    """Call an LLVM function by its full name: `intrinsic("llvm.bswap.i32", i32, x)`."""
    return to.emit.call(result, name, [to.as_value(value) for value in values])


external = intrinsic
"""Call a C function of the process by its name: `external("usleep", i32, i32(50))`."""


# ---- threads


@word
def atomic_load(to: Expressions, address: Value) -> Value:
    """Read what other threads write (acquire)."""
    type = address.type.element
    return to.emit.define(
        type, f"load atomic {type.llvm}, {address.typed} acquire, align {type.size}"
    )


@word
def atomic_store(to: Expressions, address: Value, value: Any) -> None:
    """Write what other threads read (release)."""
    value = to.adapt(value, address.type.element)
    to.emit.line(f"store atomic {value.typed}, {address.typed} release, align {value.type.size}")


def _atomic(name: str, op: str, doc: str) -> Word:
    def emit(to: Expressions, address: Value, value: Any) -> Value:
        value = to.adapt(value, address.type.element)
        return to.emit.define(value.type, f"atomicrmw {op} {address.typed}, {value.typed} seq_cst")

    emit.__name__, emit.__doc__ = name, doc
    return word(emit)


atomic_add = _atomic(
    "atomic_add", "add", "Add to memory that threads share; what was there before."
)
atomic_exchange = _atomic("atomic_exchange", "xchg", "Write; what was there before.")


@word
def compare_exchange(to: Expressions, address: Value, expected: Any, value: Any) -> Value:
    """Write `value` if the memory holds `expected`; whether it did."""
    type = address.type.element
    expected, value = to.adapt(expected, type), to.adapt(value, type)
    name = f"%{to.emit.name()}"
    to.emit.line(
        f"{name} = cmpxchg {address.typed}, {expected.typed}, {value.typed} seq_cst seq_cst"
    )
    return to.emit.define(boolean, f"extractvalue {{{type.llvm}, i1}} {name}, 1")


@word
def call_address(to: Expressions, address: Value, *values: Any) -> None:
    """Call a function by its address; it returns nothing."""
    listed = ", ".join(to.as_value(value).typed for value in values)
    if not isinstance(address.type, Pointer):
        address = to.emit.define(pointer(i8), f"inttoptr {address.typed} to ptr")
    to.emit.line(f"call void {address.text}({listed})")


@word
def call_result(to: Expressions, type: Any, address: Value, *values: Any) -> Any:
    """Call a C function by its address; `type` is that of its result, or None."""
    if type is None:
        return call_address.emit(to, address, *values)
    listed = ", ".join(to.as_value(value).typed for value in values)
    address = to.emit.define(pointer(i8), f"inttoptr {address.typed} to ptr")
    return to.emit.define(type, f"call {type.llvm} {address.text}({listed})")


__all__ = [  # noqa: PLE0604  (the words are listed as they are made)
    "SCALARS", "WORDS", "Word", "b8", "bf16", "boolean", "external", "f16", "f32", "f64", "i8",
    "i16", "i32", "i64", "i128", "pointer", "static", "u8", "u16", "u32", "u64", "unroll", "vector",
    *WORDS,
]  # fmt: skip
