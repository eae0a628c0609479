"""What the kernels of row formulas share: partial vectors, and lanes joined into one number."""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native

NOWHERE = 0x7FFFFFFF
"""The place of what is not found."""
nan = float("nan")


def halves(width: int) -> tuple[int, ...]:
    """8 -> 4, 2, 1."""
    return tuple(1 << k for k in reversed(range(width.bit_length() - 1)))


def turned(width: int, by: int) -> tuple[int, ...]:
    """Lanes turned round by some places."""
    return tuple((lane + by) % width for lane in range(width))


@native
def joined(v, OP: static):
    """All lanes joined by an operation of two."""
    for half in unroll(halves(v.width)):
        v = OP(v, shuffle(v, None, turned(v.width, half)))
    return v[0]


@native
def multiply(a, b):
    """The product."""
    return a * b


@native
def seen_nan(seen, a, b):
    """`seen`, and nan in the lanes in which a or b is nan."""
    if a.type.element.is_float:
        return select(unordered(a, b), nan, seen)
    return seen


@native
def or_nan(value, seen):
    """A number, or nan if there is one among the lanes of `seen`."""
    if seen.type.element.is_float:
        return nan if any_lane(is_nan(seen)) else value
    return value


@native
def load_part(address, count, W: static):
    """The first `count` of W elements; the other lanes are 0 and their memory is not touched."""
    if address.element.size >= 4:
        return load(address, W, lanes(i32, W) < i32(count))
    buffer = stack(address.element, W)
    store(buffer, splat(address.element(0), W))
    copy_memory(buffer, address, smaller(count, W))
    return load(buffer, W)


@native
def store_part(address, value, count, W: static):
    """Write the first `count` of W elements."""
    if address.element.size >= 4:
        store(address, value, lanes(i32, W) < i32(count))
    else:
        buffer = stack(address.element, W)
        store(buffer, value)
        copy_memory(address, buffer, smaller(count, W))
