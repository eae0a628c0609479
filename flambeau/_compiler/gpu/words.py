"""The words of kernels that run on a GPU: which thread this is, and how threads meet.

A kernel is run by `blocks()` blocks of threads. Threads of a block share memory and wait for each
other; 32 of them are a warp, whose lanes hand each other numbers. Each word is written for the
module at hand: PTX, or the CPU's form of it (`emulated.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._compiler.emitter import Value, constant
from flambeau._compiler.expressions import Expressions
from flambeau._compiler.language import Word
from flambeau._compiler.types import Vector, f32, i32, i64, pointer

WARP = 32
WORDS: dict[str, Any] = {"WARP": WARP}
"""All of them by name: the scope of kernels from generated text."""


def word(emit: Callable[..., Any]) -> Word:
    """Make a function that writes instructions a word of kernels on GPUs."""
    made = WORDS[emit.__name__] = Word(emit.__name__, emit)
    return made


# ---- which thread this is


def _place(name: str, register: str, slot: str, limit: int, doc: str) -> Word:
    def emit(to: Expressions) -> Value:
        if to.module.emulated:
            return to.module.state(to.emit, slot)  # type: ignore[no-any-return]
        full = f"llvm.nvvm.read.ptx.sreg.{register}"
        to.module.declare(f"declare i32 @{full}()")
        found = to.emit.define(i32, f"call range(i32 0, {limit}) i32 @{full}()")
        return to.emit.define(i64, f"zext nneg i32 {found.text} to i64")

    emit.__name__, emit.__doc__ = name, doc
    return word(emit)


thread = _place("thread", "tid.x", "thread", 1024, "The number of this thread in its block.")
block = _place("block", "ctaid.x", "block", 2**31 - 1, "The number of this block.")
blocks = _place("blocks", "nctaid.x", "blocks", 2**31 - 1, "How many blocks there are.")


# ---- the threads of a block


@word
def barrier(to: Expressions) -> None:
    """All threads of the block wait for each other; what they wrote is seen by all."""
    if to.module.emulated:
        to.module.wait(to)
        return
    to.module.declare("declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)")
    to.emit.line("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")


@word
def shared(to: Expressions, type: Any, count: int, align: int = 16) -> Value:
    """Memory of the block for `count` elements; its contents are undefined."""
    return Value(pointer(type), to.module.shared(type, count, align))


@word
def at_address(to: Expressions, type: Any, address: Value) -> Value:
    """The pointer to elements at an address of device memory, which came as a number."""
    if to.module.emulated:
        far = to.emit.arithmetic("add", address, to.module.state(to.emit, "distance"))
        return to.emit.define(pointer(type), f"inttoptr {far.typed} to ptr")
    place = f"%{to.emit.name()}"
    to.emit.line(f"{place} = inttoptr {address.typed} to ptr addrspace(1)")
    return to.emit.define(pointer(type), f"addrspacecast ptr addrspace(1) {place} to ptr")


# ---- the lanes of a warp


def _shuffle(name: str, mode: str, clamp: int, doc: str) -> Word:
    def emit(to: Expressions, value: Value, lane: Any) -> Value:
        lane = to.as_value(lane)
        if value.type.bits == 64:
            return _in_halves(to, WORDS[name], value, lane)
        if to.module.emulated:
            return to.module.exchange(to, mode, value, lane)  # type: ignore[no-any-return]
        kind = "f32" if value.type.is_float else "i32"
        operands = [constant(i32, -1), value, to.emit.convert(i32, lane), constant(i32, clamp)]
        return to.emit.call(value.type, f"llvm.nvvm.shfl.sync.{mode}.{kind}", operands)  # type: ignore[no-any-return]

    emit.__name__, emit.__doc__ = name, f"{doc} All lanes take part."
    return word(emit)


def _in_halves(to: Expressions, shuffle: Word, value: Value, lane: Value) -> Value:
    """A number of 64 bits, handed over as two of 32."""
    emit = to.emit
    bits = emit.bitcast(i64, value)
    high = emit.define(i64, f"lshr {bits.typed}, 32")
    low, high = (shuffle.emit(to, emit.convert(i32, part), lane) for part in (bits, high))
    low, high = (emit.define(i64, f"zext {part.typed} to i64") for part in (low, high))
    above = emit.define(i64, f"shl {high.typed}, 32")
    return emit.bitcast(value.type, emit.define(i64, f"or {above.typed}, {low.text}"))


lane_across = _shuffle("lane_across", "bfly", 31, "The value of lane `own number ^ lane`.")
lane_below = _shuffle("lane_below", "up", 0, "The value of so many lanes below; else one's own.")
lane_at = _shuffle("lane_at", "idx", 31, "The value of a lane.")


@word
def ballot(to: Expressions, condition: Value) -> Value:
    """An i32 with a bit for each lane of the warp for which a condition holds."""
    if to.module.emulated:
        return to.module.ballot(to, condition)  # type: ignore[no-any-return]
    operands = [constant(i32, -1), condition]
    return to.emit.call(i32, "llvm.nvvm.vote.ballot.sync", operands)  # type: ignore[no-any-return]


# ---- memory that blocks share


def _scope(to: Expressions) -> str:
    return "" if to.module.emulated else 'syncscope("device") '


@word
def ticket(to: Expressions, address: Value) -> Value:
    """Add 1 to a counter that blocks share; what was there before. Memory is in order with it."""
    type = address.type.element
    text = f"atomicrmw add {address.typed}, {type.llvm} 1 {_scope(to)}acq_rel, align {type.size}"
    return to.emit.define(type, text)


@word
def release(to: Expressions, address: Value, value: Value) -> None:
    """Write what other blocks read by `acquire`, and with it all that was written before."""
    value = to.adapt(value, address.type.element)
    to.emit.line(f"store atomic {value.typed}, {address.typed} {_scope(to)}release, "
                 f"align {value.type.size}")  # fmt: skip


@word
def acquire(to: Expressions, address: Value) -> Value:
    """Read what another block has written by `release`."""
    type = address.type.element
    return to.emit.define(type, f"load atomic {type.llvm}, {address.typed} {_scope(to)}acquire, "
                                f"align {type.size}")  # fmt: skip


@word
def shared_add(to: Expressions, address: Value, value: Value) -> Value:
    """Add to memory that threads share. Returns what was there before."""
    value = to.adapt(value, address.type.element)
    op = "fadd" if value.type.is_float else "add"
    text = f"atomicrmw {op} {address.typed}, {value.typed} {_scope(to)}monotonic"
    return to.emit.define(value.type, f"{text}, align {value.type.size}")


# ---- arithmetic


@word
def top(to: Expressions, a: Any, b: Any) -> Value:
    """The larger of two floats in one instruction; nan if either is."""
    a, b = to.alike(a, b)
    return to.emit.intrinsic("maximum", a.type, a, b)


@word
def bottom(to: Expressions, a: Any, b: Any) -> Value:
    """The smaller of two floats in one instruction; nan if either is."""
    a, b = to.alike(a, b)
    return to.emit.intrinsic("minimum", a.type, a, b)


def _special(name: str, ptx: str, host: str, doc: str) -> Word:
    def one(to: Expressions, value: Value) -> Value:
        if not to.module.emulated:
            return to.emit.define(f32, f'call float asm "{ptx} $0, $1;", "=f,f"({value.typed})')
        if host in ("exp2", "log2"):
            return to.emit.intrinsic(host, f32, value)
        found = to.emit.intrinsic("sqrt", f32, value) if host == "rsqrt" else value
        return to.emit.arithmetic("div", constant(f32, 1.0), found)

    def emit(to: Expressions, value: Value) -> Value:
        if not isinstance(value.type, Vector):
            return one(to, value)
        result = Value(value.type, "poison")
        for lane in range(value.type.width):
            item = to.emit.define(f32, f"extractelement {value.typed}, i32 {lane}")
            found = one(to, item)
            result = to.emit.define(
                value.type, f"insertelement {result.typed}, {found.typed}, i32 {lane}"
            )
        return result

    emit.__name__ = name
    emit.__doc__ = f"{doc} of f32 by the special function unit: good to some 22 bits."
    return word(emit)


fast_exp2 = _special("fast_exp2", "ex2.approx.ftz.f32", "exp2", "2 to the power")
fast_log2 = _special("fast_log2", "lg2.approx.f32", "log2", "The logarithm to base 2")
fast_inverse = _special("fast_inverse", "rcp.approx.ftz.f32", "rcp", "1 / x")
fast_inverse_root = _special("fast_inverse_root", "rsqrt.approx.f32", "rsqrt", "1 / sqrt(x)")


@word
def fast_quotient(to: Expressions, a: Value, b: Value) -> Value:
    """a / b of f32 by the special function unit: good to 2 units of the last place."""

    def one(left: Value, right: Value) -> Value:
        if to.module.emulated:
            return to.emit.arithmetic("div", left, right)
        text = f'call float asm "div.full.f32 $0, $1, $2;", "=f,f,f"({left.typed}, {right.typed})'
        return to.emit.define(f32, text)

    a, b = to.alike(a, b)
    if not isinstance(a.type, Vector):
        return one(a, b)
    result = Value(a.type, "poison")
    for lane in range(a.type.width):
        parts = [to.emit.define(f32, f"extractelement {v.typed}, i32 {lane}") for v in (a, b)]
        found = one(*parts)
        text = f"insertelement {result.typed}, {found.typed}, i32 {lane}"
        result = to.emit.define(a.type, text)
    return result


@word
def asm(to: Expressions, type: Any, text: str, constraints: str, *values: Any) -> Any:
    """PTX as it stands; `type` is that of its result, or None. There is no form for the CPU."""
    if to.module.emulated:
        raise to.error("PTX has no form for the CPU")
    listed = ", ".join(to.as_value(value).typed for value in values)
    kind = "void" if type is None else type.llvm
    body = f'call {kind} asm sideeffect "{text}", "{constraints}"({listed}) convergent'
    return to.emit.line(body) if type is None else to.emit.define(type, body)


@word
def is_emulated(to: Expressions) -> bool:
    """Whether this is the CPU's form: a constant."""
    return bool(to.module.emulated)


@word
def high_product(to: Expressions, a: Value, b: Value) -> Value:
    """The upper 32 bits of the product of two u32."""
    wide = [to.emit.define(i64, f"zext {value.typed} to i64") for value in (a, b)]
    whole = to.emit.define(i64, f"mul {wide[0].typed}, {wide[1].text}")
    above = to.emit.define(i64, f"lshr {whole.typed}, 32")
    return to.emit.define(a.type, f"trunc {above.typed} to i32")


def halving(width: int) -> tuple[int, ...]:
    """width / 2, ..., 2, 1: the distances at which `width` lanes are joined."""
    return tuple(1 << k for k in range(width.bit_length() - 1))[::-1]


WORDS["halving"] = halving

__all__ = ["WORDS", "halving", *WORDS]  # noqa: PLE0604  (the words are listed as they are made)
