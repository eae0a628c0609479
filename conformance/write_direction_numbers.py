"""Write `flambeau/quasirandom/joe_kuo_6.bin`: the published direction numbers, packed.

    python conformance/write_direction_numbers.py [new-joe-kuo-6.21201]

Without the published file they are read off the state of PyTorch's SobolEngine, which has them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flambeau.quasirandom.directions import BITS, FILE, MOST, primitive_polynomials


def from_published(file: Path) -> Iterator[list[int]]:
    """m_1, m_2, ... of each dimension from the second; a line is: d s a m_1 m_2 ..."""
    for line in file.read_text().splitlines()[1:]:
        yield [int(word) for word in line.split()[3:]]


def from_pytorch() -> Iterator[list[int]]:
    from torch.quasirandom import SobolEngine

    rows = SobolEngine(MOST).sobolstate.numpy() >> np.arange(BITS)[::-1]
    degree, left = 0, 0
    for row in rows[1:].tolist():
        if not left:
            degree += 1
            left = len(primitive_polynomials(degree))
        yield row[:degree]
        left -= 1


def packed(numbers: Iterator[list[int]]) -> bytes:
    bits: list[int] = []
    for row in numbers:
        for index, number in enumerate(row):
            bits += [number >> 1 + place & 1 for place in range(index)]
    return np.packbits(np.array(bits, np.uint8)).tobytes()


if __name__ == "__main__":
    FILE.write_bytes(packed(from_published(Path(sys.argv[1])) if sys.argv[1:] else from_pytorch()))
