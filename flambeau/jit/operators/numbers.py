"""Arithmetic of numbers, as C++ does it: ints have 64 bits, a division by zero gives inf."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

from flambeau.jit.operators.registry import SCOPE, functions, implements, in_scope, pieces

SMALLEST, LARGEST = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf
SCOPE.update(SMALLEST=SMALLEST, LARGEST=LARGEST)


@in_scope
def wrapped(value: int) -> int:
    """An int modulo 2^64, as 64 bits hold it."""
    return (value + 2**63) % 2**64 - 2**63


def wrapping(text: str) -> str:
    """A piece whose int result is kept within 64 bits."""
    return f"(r if SMALLEST <= (r := {text}) <= LARGEST else wrapped(r))"


ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
BITS = {"__and__": "&", "__or__": "|", "__xor__": "^"}
MIXED = ("float", "complex", "int_complex", "complex_int", "float_complex", "complex_float",
         "int_float", "float_int")  # fmt: skip

for name, sign in ARITHMETIC.items():
    plain = f"{{0}} {sign} {{1}}"
    pieces({f"{name}.int": wrapping(plain)})
    pieces({" ".join(f"{name}.{kind}" for kind in MIXED): f"({plain})"})
    pieces({name: "number({0} " + sign + " {1})"})
for name, sign in COMPARISONS.items():
    kinds = ("int", "float", "bool", "str", "device", "enum", "int_list", "float_list",
             "bool_list", "str_list", "complex", "int_float", "float_int", "float_complex",
             "complex_float", "")  # fmt: skip
    pieces({" ".join(f"{name}.{kind}".rstrip(".") for kind in kinds): f"({{0}} {sign} {{1}})"})
for name, sign in BITS.items():
    pieces({f"{name}.int {name}.bool": f"({{0}} {sign} {{1}})"})

pieces({
    "neg.int": wrapping("-{0}"), "neg.float neg.complex": "(-{0})", "neg.Scalar": "number(-{0})",
    "prim::abs.int": wrapping("abs({0})"),
    "prim::abs.float prim::abs.complex": "abs({0})", "prim::abs.Scalar": "number(abs({0}))",
    "__not__": "(not {0})",
    "Bool.int Bool.float": "({0} != 0)",
    "Int.bool": "int({0})", "Float.int Float.bool": "float({0})",
    "Float.Scalar": "float({0})",
    "floor.int ceil.int": "{0}", "fabs.int": "float(abs({0}))", "fabs.float": "abs({0})",
    "fabs.Scalar": "float(abs({0}))",
    "isnan.float": "({0} != {0})",
    "isinf.float": "(abs({0}) == inf)",
    "isfinite.float": "(abs({0}) < inf)",
    "prim::max.int": "({0} if {0} > {1} else {1})",
    "prim::min.int": "({0} if {0} < {1} else {1})",
    "prim::max.float": "({0} if {0} > {1} else {1})",
    "prim::min.float": "({0} if {0} < {1} else {1})",
    "prim::max": "widest({0}, {1}, {0} if {0} > {1} else {1})",
    "prim::min": "widest({0}, {1}, {0} if {0} < {1} else {1})",
    "prim::max.int_float prim::max.float_int": "float({0} if {0} > {1} else {1})",
    "prim::min.int_float prim::min.float_int": "float({0} if {0} < {1} else {1})",
    "prim::max.int_list prim::max.float_list prim::max.bool_list": "({0} if {0} > {1} else {1})",
    "prim::min.int_list prim::min.float_list prim::min.bool_list": "({0} if {0} < {1} else {1})",
    "__derive_index": "({1} + {0} * {2})",
    "prim::rangelist": "list(range({0}))",
})  # fmt: skip
SCOPE.update(inf=INF)


@in_scope
def number(value: Any) -> Any:
    """A number, an int of which is kept within 64 bits."""
    return wrapped(value) if value.__class__ is int and not -(2**63) <= value < 2**63 else value


@in_scope
def widest(a: Any, b: Any, chosen: Any) -> Any:
    """One of two numbers, as a float if either is one."""
    return chosen if _ints(a, b) else float(chosen)


# ---- division and powers


def _zero_division() -> RuntimeError:
    return RuntimeError("division by 0")


@implements("floordiv.int")
def floordiv_int(a: int, b: int) -> int:
    """Rounded down."""
    if not b:
        raise _zero_division()
    return wrapped(a // b)


@implements("floordiv.float", "floordiv.int_float", "floordiv.float_int")
def floordiv_float(a: float, b: float) -> float:
    """The floor of the quotient, which is inf or nan for b = 0."""
    quotient = div_float(a, b)
    return float(math.floor(quotient)) if math.isfinite(quotient) else quotient


def _ints(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int)


@implements("__round_to_zero_floordiv.int")
def round_to_zero_floordiv(a: int, b: int) -> int:
    """Rounded towards zero."""
    if not b:
        raise _zero_division()
    quotient = abs(a) // abs(b)
    return wrapped(quotient if (a < 0) == (b < 0) else -quotient)


@implements("remainder.int")
def remainder_int(a: int, b: int) -> int:
    """With the sign of b."""
    if not b:
        raise RuntimeError("ZeroDivisionError: integer modulo by zero")
    return a % b


@implements("remainder.float", "remainder.int_float", "remainder.float_int")
def remainder_float(a: float, b: float) -> float:
    """With the sign of b; nan for b = 0."""
    return a % b if b and math.isfinite(a) else NAN


@implements("div.int", "div.float")
def div_float(a: float, b: float) -> float:
    """The quotient; inf or nan for b = 0."""
    if b:
        return a / b
    if not a or a != a:
        return NAN
    return math.copysign(INF, a) * math.copysign(1.0, b)


@implements("div.complex")
def div_complex(a: complex, b: complex) -> complex:
    """The quotient; nan for b = 0."""
    return complex(a) / b if b else complex(NAN, NAN)


@implements("div")
def div(a: Any, b: Any) -> Any:
    """The quotient of any numbers."""
    return (
        div_complex(a, b) if isinstance(a, complex) or isinstance(b, complex) else div_float(a, b)
    )


@implements("mathremainder.int", "mathremainder.float", "mathremainder.int_float",
            "mathremainder.float_int", "mathremainder")  # fmt: skip
def mathremainder(a: float, b: float) -> float:
    """The IEEE remainder, of the quotient rounded to the nearest int."""
    return math.remainder(a, b) if b and math.isfinite(a) else NAN


@implements("divmod.int")
def divmod_int(a: int, b: int) -> tuple[int, int]:
    """Quotient, rounded down, and remainder."""
    if not b:
        raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")
    return divmod(a, b)


@implements("divmod.float", "divmod.int_float", "divmod.float_int")
def divmod_float(a: float, b: float) -> tuple[float, float]:
    """Quotient, rounded down, and remainder."""
    if not b:
        raise RuntimeError("ZeroDivisionError: float divmod()")
    return divmod(float(a), float(b))


@implements("pow.int", "pow.float", "pow.int_float", "pow.float_int", "pow.Scalar_Scalar")
def power(a: Any, b: Any) -> Any:
    """Always a float (or complex), as C's pow."""
    if isinstance(a, complex) or isinstance(b, complex):
        return power_complex(a, b)
    if not a and b < 0:
        raise RuntimeError("0.0 cannot be raised to a negative power")
    try:
        return math.pow(a, b)
    except OverflowError:
        return -INF if a < 0 and b % 2 == 1 else INF
    except ValueError:
        return NAN


@implements("pow.complex", "pow.float_complex", "pow.complex_float")
def power_complex(a: complex, b: complex) -> complex:
    """The principal value."""
    if not a and b:
        return complex(INF, NAN) if complex(b).real < 0 else 0j
    return complex(a) ** b


@implements("pow.int_to_int")
def power_int(a: int, b: int) -> int:
    """Within 64 bits; 0 for negative exponents of large bases, as C++ rounds them."""
    if b < 0:
        return int(math.pow(a, b)) if a else 0
    return wrapped(pow(a, b, 2**64))


def _to_int(x: float, whole: Callable[[float], int]) -> int:
    if isinstance(x, int):
        return x
    if not -(2.0**63) <= x < 2.0**63:
        raise RuntimeError(f"Cannot convert float {x:f} to integer")
    return whole(x)


functions({
    "floordiv": lambda a, b: floordiv_int(a, b) if _ints(a, b) else floordiv_float(a, b),
    "remainder": lambda a, b: remainder_int(a, b) if _ints(a, b) else remainder_float(a, b),
    # With the sign of a; nan for b = 0.
    "fmod.int fmod.float fmod.int_float fmod.float_int fmod": (
        lambda a, b: math.fmod(a, b) if b and math.isfinite(a) else NAN
    ),
    # Shifts are taken modulo 64, as processors do.
    "__lshift__.int": lambda a, b: wrapped(a << (b & 63)),
    "__rshift__.int": lambda a, b: a >> (b & 63),
    # To the nearest int, as a float; halves to even ones.
    "round.int round.float round.Scalar": (
        lambda x: float(round(x)) if math.isfinite(x) else float(x)
    ),
    "floor.float floor.Scalar": lambda x: _to_int(x, math.floor),
    "ceil.float ceil.Scalar": lambda x: _to_int(x, math.ceil),
})  # fmt: skip


@implements("Int.float", "Int.Scalar")
def to_int(x: float) -> int:
    """Rounded towards zero; what does not fit gives the smallest int, as in C++."""
    if isinstance(x, int):
        return int(x)
    if isinstance(x, complex):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(x) if -(2.0**63) <= x < 2.0**63 else SMALLEST


@implements("Int.str")
def int_of_text(text: str) -> int:
    """A decimal number; no blanks."""
    stripped = text.lstrip(" \t\n\v\f\r").removeprefix("-").removeprefix("+")
    if not stripped[:1].isdigit() or not stripped.isascii():
        raise RuntimeError("stoll")
    if not stripped.isdigit():
        raise RuntimeError(f"invalid literal for int() with base 10: '{text}'")
    value = int(text) if len(stripped) < 30 else 2**64
    if not SMALLEST <= value <= LARGEST:
        raise RuntimeError("stoll")
    return value


@implements("Float.str")
def float_of_text(text: str) -> float:
    """A number as C's strtod reads it."""
    try:
        return float(text.replace("_", "x"))
    except ValueError:
        if not text[:1].isdigit():
            raise RuntimeError("stod") from None
        raise RuntimeError(f"could not convert string to float: '{text}'") from None


# ---- others


@implements("factorial.int")
def factorial(n: int) -> int:
    """Modulo 2^64."""
    if n < 0:
        raise RuntimeError("factorial() not defined for negative values")
    return wrapped(math.factorial(n)) if n < 66 else 0


@implements("ldexp")
def ldexp(x: float, exponent: int) -> float:
    """x 2^exponent."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(INF, x)


@implements("angle.int", "angle.float", "angle.complex", "angle.Scalar")
def angle(x: Any) -> float:
    """The phase; 0 or pi of a real number."""
    return x if x != x else cmath.phase(x)


@implements(
    *(f"Complex.{a}_{b}" for a in ("int", "float", "bool") for b in ("int", "float", "bool"))
)
def to_complex(real: float, imaginary: float) -> complex:
    """A complex number of two parts."""
    return complex(real, imaginary)


functions({
    "gcd.int": lambda a, b: wrapped(math.gcd(a, b)),
    "copysign.int copysign.float copysign.int_float copysign.float_int copysign": math.copysign,
    "atan2.int atan2.float atan2.int_float atan2.float_int atan2.Scalar_Scalar": math.atan2,
    "frexp": math.frexp,
    "modf": math.modf,
    "polar.int polar.float polar.int_float polar.float_int polar.Scalar_Scalar": (
        lambda size, angle: complex(size * math.cos(angle), size * math.sin(angle))
    ),
    "isnan.complex": cmath.isnan,
    "isinf.complex": cmath.isinf,
    "isfinite.complex": cmath.isfinite,
    "Complex.Scalar": complex,
})  # fmt: skip


@implements("__range_length")
def range_length(low: int, high: int, step: int) -> int:
    """How many numbers `range(low, high, step)` has."""
    if not step:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


@implements("chr")
def chr_(code: int) -> str:
    """A character; codes beyond 127 keep their lowest byte only, as in C++."""
    if not 0 <= code < 0x110000:
        raise RuntimeError(f"chr() arg not in range(0x110000), found {code}")
    return bytes([code & 255]).decode("utf-8", "surrogateescape")


implements("hex")(hex)
implements("oct")(oct)
implements("bin")(bin)
