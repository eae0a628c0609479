"""float16 by integer arithmetic, for processors without instructions for it (x86 before F16C).

LLVM calls functions of its own runtime library there, which no Python process has. The bits are
those of the instructions: rounded to the nearest even, infinities and numbers below the smallest
normal one included; nan keeps its upper bits and becomes quiet.
"""

from __future__ import annotations

from flambeau._compiler.emitter import Emitter, Value, constant
from flambeau._compiler.types import f16, f32, i16, i32, like

SHIFT = 13  # how many bits of a mantissa f32 has more
BIAS = 127 - 15 << 23  # what the exponents differ by, in place
INFINITE_HALF = 0x7C00 << SHIFT
LARGE = 127 + 16 << 23  # from here on, numbers are infinite as halves
SMALL = 127 - 14 << 23  # below, they are subnormal
LAST_PLACE = 127 - 1 << 23  # 0.5, whose last place is that of subnormal halves
QUIET = 0x200


class _Words:
    """Arithmetic with lanes of 32 bits; positive numbers as bits compare like integers."""

    def __init__(self, emit: Emitter, like_this: Value) -> None:
        self.emit = emit
        self.type = like(like_this.type, i32)
        self.floats = like(like_this.type, f32)

    def number(self, value: int) -> Value:
        return constant(self.type, value)

    def do(self, op: str, a: Value, b: Value | int) -> Value:
        return self.emit.arithmetic(op, a, self.number(b) if isinstance(b, int) else b)

    def choose(self, op: str, a: Value, bound: int, yes: Value, no: Value) -> Value:
        return self.emit.select(self.emit.compare(op, a, self.number(bound)), yes, no)

    def as_floats(self, op: str, a: Value, bits: int) -> Value:
        """The bits of `a op b`, both read as floats."""
        left, right = (self.emit.bitcast(self.floats, v) for v in (a, self.number(bits)))
        return self.emit.bitcast(self.type, self.emit.arithmetic(op, left, right))


def widened(emit: Emitter, value: Value) -> Value:
    """f32 of f16. Subnormal halves get an exponent by a subtraction, which has no subnormal
    operands: processors may be set to take those for 0."""
    words = _Words(emit, value)
    bits = emit.bitcast(like(value.type, i16), value)
    wide = emit.define(words.type, f"zext {bits.typed} to {words.type.llvm}")
    size = words.do("shl", words.do("and", wide, 0x7FFF), SHIFT)
    normal = words.do("add", size, BIAS)
    special = words.do("add", normal, BIAS)
    quiet = words.do("or", special, QUIET << SHIFT)
    small = words.as_floats("sub", words.do("add", normal, 1 << 23), SMALL)
    found = words.choose("ge", size, INFINITE_HALF, special, normal)
    found = words.choose("gt", size, INFINITE_HALF, quiet, found)
    found = words.choose("lt", size, 1 << 23, small, found)
    sign = words.do("shl", words.do("and", wide, 0x8000), 16)
    return emit.bitcast(words.floats, words.do("or", found, sign))


def narrowed(emit: Emitter, value: Value) -> Value:
    """f16 of f32. The sum of a small number and 0.5 is rounded where the half ends."""
    words = _Words(emit, value)
    bits = emit.bitcast(words.type, value)
    size = words.do("and", bits, 0x7FFFFFFF)
    odd = words.do("and", words.do("shr", size, SHIFT), 1)
    rounded = words.do("add", words.do("add", size, (1 << SHIFT - 1) - 1 - BIAS), odd)
    normal = words.do("shr", rounded, SHIFT)
    small = words.do("sub", words.as_floats("add", size, LAST_PLACE), LAST_PLACE)
    payload = words.do("and", words.do("shr", size, SHIFT), 0x3FF)
    nan = words.do("or", payload, INFINITE_HALF >> SHIFT | QUIET)
    found = words.choose("lt", size, SMALL, small, normal)
    found = words.choose("ge", size, LARGE, words.number(INFINITE_HALF >> SHIFT), found)
    found = words.choose("gt", size, 255 << 23, nan, found)
    sign = words.do("and", words.do("shr", bits, 16), 0x8000)
    short = like(value.type, i16)
    both = words.do("or", found, sign)
    return emit.bitcast(
        like(value.type, f16), emit.define(short, f"trunc {both.typed} to {short.llvm}")
    )
