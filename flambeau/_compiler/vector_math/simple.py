"""What the processor does itself, and signs, under the names of the primitives."""

from __future__ import annotations

from flambeau._compiler import language as words
from flambeau._compiler.language import cast, select
from flambeau._compiler.native import native
from flambeau._compiler.vector_math.parts import FLOAT, SIGNED


@native
def sqrt(x):
    """The square root, correctly rounded."""
    return words.sqrt(x)


@native
def square(x):
    """x * x."""
    return x * x


@native
def reciprocal(x):
    """1 / x, correctly rounded."""
    return 1 / x


@native
def inverse_root(x):
    """1 / sqrt(x), from two correctly rounded steps."""
    return 1 / words.sqrt(x)


@native
def floor(x):
    """Rounded down."""
    return words.floor(x)


@native
def ceil(x):
    """Rounded up."""
    return words.ceil(x)


@native
def trunc(x):
    """Rounded towards 0."""
    return words.trunc(x)


@native
def rint(x):
    """Rounded to the nearest integer, halves to the even one."""
    return words.rint(x)


@native
def absolute(x):
    """The size of x."""
    return words.absolute(x)


@native
def copysign(x, y):
    """The size of x with the sign of y."""
    return words.copysign(x, y)


@native
def sign(x):
    """-1, 0 or 1; nan for nan, as in NumPy (torch's sign has 0 there: `sign_of`)."""
    return select(x == 0, 0, select(x == x, words.copysign(x.type(1), x), x))


@native
def sign_of(x):
    """-1, 0 or 1; 0 for nan."""
    return select(x > 0, x.type(1), select(x < 0, x.type(-1), 0))


@native
def signbit(x):
    """Whether the sign is minus, also that of a zero or of nan."""
    return words.copysign(x.type(1), x) < 0


@native
def nextafter(x, y):
    """The next number of this type from x towards y."""
    BITS = x.type.bits
    word = cast(SIGNED[BITS], x)
    grows = (x < y) ^ (word < 0)
    moved = cast(FLOAT[BITS], word + select(grows, word.type(1), word.type(-1)))
    smallest = words.copysign(cast(FLOAT[BITS], word * 0 + 1), y)
    found = select(x == 0, smallest, moved)
    found = select(x == y, y, found)
    return select((x == x) & (y == y), found, x + y)
