"""The approximate sine and cosine of NVIDIA's GPUs, as float32 normal and Cauchy numbers have them.

The unit takes an angle in turns, cut to 25 bits: two name the quarter, 23 are the place x in it.
The cosine is the sine of the complement, whose bits are those of x turned over, so that it is
2**-23 of a quarter short. A quarter has 64 segments (Oberman and Siu, 2005), in each of which the
sine is a polynomial of degree two with the smallest error; in the first one it is 0 at 0.
The segments, the cut and the complement were found by comparing numbers recorded on an H100, whose
last bits (how coefficients and sums are rounded) they do not tell: results differ by some 2**-24.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

TURNS = np.float32(1 / (2 * math.pi))
SEGMENTS = 64
PLACE_BITS, SEGMENT_BITS = 23, 17
_LAST = (1 << PLACE_BITS) - 1


@cache
def coefficients() -> np.ndarray:
    """Of each segment the factors of 1, d and d**2, d being the distance from its start as a
    fraction of the quarter: float64 of shape (64, 3)."""
    width = 1 / SEGMENTS
    # between the roots of a Chebyshev polynomial the error of degree three is spread evenly
    roots = np.array([-math.sqrt(3) / 2, 0.0, math.sqrt(3) / 2])
    rows = [_through((roots + 1) * (width / 2), segment * width) for segment in range(SEGMENTS)]
    rows[0] = _through((roots - roots[0]) / (1 - roots[0]) * width, 0.0)
    return np.array(rows)


def _through(places: np.ndarray, start: float) -> list[float]:
    """The polynomial that meets the sine at three places after a start."""
    a, b, c = places.tolist()
    at_a, at_b, at_c = np.sin((places + start) * (math.pi / 2)).tolist()
    slope, other = (at_b - at_a) / (b - a), (at_c - at_b) / (c - b)
    bend = (other - slope) / (c - a)
    return [at_a - a * slope + a * b * bend, slope - (a + b) * bend, bend]


def _in_turns(angle: np.ndarray) -> np.ndarray:
    """Angles (float32) in turns of 2**-25, cut towards zero, without sign: int64."""
    exact = np.abs(angle).astype(np.float64) * float(TURNS)
    turns = exact.astype(np.float32)
    turns = np.where(turns > exact, np.nextafter(turns, np.float32(0)), turns)
    return (turns.astype(np.float64) * 2.0 ** (PLACE_BITS + 2)).astype(np.int64)


def _sine_at(place: np.ndarray) -> np.ndarray:
    """The sine of a place in the turn."""
    quarter = place >> PLACE_BITS
    inside = np.where(quarter & 1, _LAST - (place & _LAST), place & _LAST)
    rows = coefficients()[inside >> SEGMENT_BITS]
    distance = (inside & ((1 << SEGMENT_BITS) - 1)) * 2.0**-PLACE_BITS
    values = (rows[..., 2] * distance + rows[..., 1]) * distance + rows[..., 0]
    return np.where(quarter & 2, -values, values)


def sine(angle: np.ndarray) -> np.ndarray:
    """The sine of float32 angles, float64 with the unit's error."""
    return np.copysign(1.0, angle) * _sine_at(_in_turns(angle))


def cosine(angle: np.ndarray) -> np.ndarray:
    """The cosine of float32 angles, float64 with the unit's error."""
    return _sine_at(_in_turns(angle) + (1 << PLACE_BITS))
