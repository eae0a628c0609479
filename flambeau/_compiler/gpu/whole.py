"""Division of whole numbers on GPUs. Nobody is told of a divisor that is 0: the quotient is -1 then
(of unsigned numbers the largest), the rest the dividend."""

from __future__ import annotations

from flambeau._compiler.language import select, splat
from flambeau._compiler.native import native


@native
def divided_down(a, b):
    """Quotient and rest, the quotient rounded towards 0. No division leaves the type: -1 is left
    to a sign."""
    if a.type.element.kind == "uint":
        by = select(b == 0, splat(a.type.element(1), a.width), b)
        quotient = a // by
        return select(b == 0, splat(a.type.element(-1), a.width), quotient), select(
            b == 0, a, a - quotient * by)  # fmt: skip
    odd = (b == 0) | (b == -1)
    by = select(odd, splat(a.type.element(1), a.width), b)
    quotient = select(b == -1, -a, a // by)
    rest = select(odd, a - a, a - (a // by) * by)
    return select(b == 0, splat(a.type.element(-1), a.width), quotient), select(b == 0, a, rest)


@native
def is_below(rest, b):
    """Whether the quotient was rounded up: its rest has another sign than the divisor."""
    return (rest != 0) & ((rest < 0) != (b < 0)) & (b != 0)


@native
def trunc_division(a, b):
    """a / b rounded towards 0."""
    quotient, rest = divided_down(a, b)
    return quotient


@native
def fmod(a, b):
    """The rest with the sign of a."""
    quotient, rest = divided_down(a, b)
    return rest


@native
def floor_division(a, b):
    """a / b rounded down."""
    quotient, rest = divided_down(a, b)
    return select(is_below(rest, b), quotient - 1, quotient)


@native
def remainder(a, b):
    """The rest with the sign of b."""
    quotient, rest = divided_down(a, b)
    return select(is_below(rest, b), rest + b, rest)


WHOLE = {"trunc_division": trunc_division, "floor_division": floor_division,
         "checked_fmod": fmod, "checked_remainder": remainder}  # fmt: skip
"""Primitive -> what computes it."""
