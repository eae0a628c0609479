"""Direction numbers of Sobol' sequences, in up to 21,201 dimensions.

A dimension has a primitive polynomial over the field of two elements, and so many odd numbers
m_1, m_2, ... as the polynomial's degree is, m_i below 2**i; a recurrence gives the rest. The
polynomials are all there are, in the order of their degrees and coefficients, so they are computed.
The numbers are those that S. Joe and F. Y. Kuo found ("Constructing Sobol sequences with better
two-dimensional projections", SIAM J. Sci. Comput. 30, 2635-2654, 2008) and published as
new-joe-kuo-6.21201 at https://web.maths.unsw.edu.au/~fkuo/sobol/. `joe_kuo_6.bin` holds them
dimension after dimension, lowest bits first, without the bits that are always one;
`conformance/write_direction_numbers.py` writes it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

BITS = 30
"""Binary digits of a point's coordinates."""
MOST = 21201
FILE = Path(__file__).with_name("joe_kuo_6.bin")

FIRST = (0, 3, 7, 11, 19, 37, 67, 131, 285, 529, 1033, 2053, 4179, 8219, 16427, 32771, 65581,
         131081, 262183)  # fmt: skip
"""The lowest primitive polynomial of each degree, its coefficients as binary digits."""


def directions(dimensions: int) -> np.ndarray:
    """The direction numbers as fractions of 2**30, a row of 30 for each dimension."""
    found = [np.ones((1, BITS), np.int64)]
    degree, first = 1, 0
    left = dimensions - 1
    while left > 0:
        polynomials = primitive_polynomials(degree)[:left]
        size = degree * (degree - 1) // 2
        starts = _starts(degree, first, len(polynomials))
        found.append(_continued(starts, polynomials, degree))
        first += size * len(polynomials)
        left -= len(polynomials)
        degree += 1
    return np.concatenate(found) << np.arange(BITS)[::-1]


def _starts(degree: int, first: int, count: int) -> np.ndarray:
    """m_1 ... m_degree of so many dimensions, which begin at a bit of the file."""
    size = degree * (degree - 1) // 2
    begin, end = first // 8, -(-(first + size * count) // 8)
    with FILE.open("rb") as file:
        file.seek(begin)
        packed = np.frombuffer(file.read(end - begin), np.uint8)
    bits = np.unpackbits(packed)[first - 8 * begin :][: size * count].reshape(count, size)
    numbers = np.ones((count, degree), np.int64)
    place = 0
    for index in range(1, degree):
        weights = 2 << np.arange(index)
        numbers[:, index] += bits[:, place : place + index] @ weights
        place += index
    return numbers


def _continued(starts: np.ndarray, polynomials: np.ndarray, degree: int) -> np.ndarray:
    """All numbers of some dimensions, by the recurrence of their polynomials."""
    numbers = np.empty((len(starts), BITS), np.int64)
    numbers[:, :degree] = starts
    for index in range(degree, BITS):
        oldest = numbers[:, index - degree]
        value = oldest ^ (oldest << degree)
        for back in range(1, degree):
            has_term = (polynomials >> (degree - back)) & 1
            value ^= has_term * (numbers[:, index - back] << back)
        numbers[:, index] = value
    return numbers


@cache
def primitive_polynomials(degree: int) -> np.ndarray:
    """All primitive polynomials of a degree over two elements, as numbers in rising order.

    In the field of 2**degree elements they are the minimal polynomials of the powers of a
    generator with exponents prime to the order; exponents k, 2k, 4k, ... share one.
    """
    order = (1 << degree) - 1
    powers, logs = _tables(degree)
    exponents = np.arange(1, order + 1, dtype=np.int64)
    conjugates = np.array([exponents << shift for shift in range(degree)]) % order
    is_first = (exponents % order == conjugates.min(axis=0)) & (np.gcd(exponents, order) == 1)
    roots = conjugates[:, is_first]
    coefficients = np.zeros((degree + 1, roots.shape[1]), np.int64)
    coefficients[0] = 1
    for root in roots:  # a factor: the unknown plus the root
        scaled = powers[(logs[coefficients] + root) % order]
        scaled[coefficients == 0] = 0
        coefficients = np.roll(coefficients, 1, axis=0) ^ scaled
    return np.sort((coefficients << np.arange(degree + 1)[:, None]).sum(axis=0))


def _tables(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The powers of a generator of the field, and the exponent of each element."""
    order = (1 << degree) - 1
    powers = np.empty(order, np.int64)
    value = 1
    for exponent in range(order):
        powers[exponent] = value
        value <<= 1
        if value >> degree:
            value ^= FIRST[degree]
    logs = np.zeros(order + 1, np.int64)
    logs[powers] = np.arange(order)
    return powers, logs
