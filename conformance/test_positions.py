"""Small calls that read, write, join and move by position: values and strides against PyTorch."""

from __future__ import annotations

import random
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare
from tests.random_seeds import generator

SIZES = (1, 2, 3, 5, 8)
TYPES = ("float32", "int64", "bool", "float16")


def values(lib: Any, rng: random.Random, shape: list[int], kind: str = "") -> Any:
    """Small numbers of a type, plain, transposed or every other one."""
    count = 1
    for size in shape:
        count *= size
    x = lib.tensor([float(rng.randint(-3, 3)) for _ in range(count)]).reshape(shape)
    x = x.to(getattr(lib, kind or rng.choice(TYPES)))
    layout = rng.random()
    if layout < 0.2 and len(shape) > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    return lib.stack([x, x], -1)[..., 0] if layout < 0.4 else x


def places(lib: Any, rng: random.Random, shape: list[int], size: int) -> Any:
    """Positions in a dim."""
    count = 1
    for length in shape:
        count *= length
    return lib.tensor([rng.randrange(size) for _ in range(count)]).reshape(shape)


def writes(lib: Any, rng: random.Random) -> Any:
    shape = [rng.choice(SIZES) for _ in range(rng.randint(1, 3))]
    dim = rng.randrange(-len(shape), len(shape))
    x = values(lib, rng, shape, rng.choice(["float32", "int64", "float16"]))
    kind = str(x.dtype).removeprefix("torch.")
    counts = [rng.randint(1, size) for size in shape]
    counts[dim] = rng.randint(1, 9)
    index = places(lib, rng, counts, shape[dim])
    source = values(lib, rng, counts, kind)
    rows = [*shape]
    rows[dim] = counts[dim]
    line = places(lib, rng, [counts[dim]], shape[dim])
    slices = values(lib, rng, rows, kind)
    return [
        attempt(x.gather, dim, index),
        attempt(x.scatter, dim, index, source),
        attempt(x.scatter, dim, index, 2),
        attempt(x.scatter_add, dim, index, source),
        attempt(x.index_select, dim, line),
        attempt(x.index_add, dim, line, slices),
        attempt(x.index_copy, dim, line, slices),
        attempt(x.scatter_, dim, index, source),
        attempt(x.index_add_, dim, line, slices),
        x,
        x._version,
    ]


def moves(lib: Any, rng: random.Random) -> Any:
    shape = [rng.choice(SIZES) for _ in range(rng.randint(2, 4))]
    dim = rng.randrange(-len(shape), len(shape))
    kind = rng.choice(TYPES)
    x, y = values(lib, rng, shape, kind), values(lib, rng, shape, kind)
    mask = values(lib, rng, shape, "bool")
    pad = [rng.randint(0, 2) for _ in range(2 * rng.randint(1, len(shape)))]
    shift = rng.randint(-9, 9)
    functional = lib.nn.functional
    return [
        attempt(x.roll, shift, dim),
        attempt(x.roll, (shift, 1), (0, dim)),
        attempt(x.roll, shift),
        attempt(x.flip, dim),
        attempt(x.tril, shift // 2),
        attempt(x.triu, shift // 2),
        attempt(x.diff, dim=dim),
        attempt(x.nonzero),
        attempt(lib.cat, [x, y], dim),
        attempt(lib.stack, [x, y], dim),
        attempt(lib.where, mask, x, y),
        attempt(x.masked_fill, mask, 1),
        attempt(lib.kron, x.contiguous(), y[0].contiguous()),
        attempt(functional.pad, x.contiguous(), pad, "constant", 1),
    ]


def writes_to_parts(lib: Any, rng: random.Random) -> Any:
    x = values(lib, rng, [4, 5], "float32")
    line, mask = places(lib, rng, [3], 4), values(lib, rng, [4, 5], "bool")
    rows = values(lib, rng, [3, 5], "float32")
    x[1:3] += 1
    x[:, 0] = rows[0, 0]
    x[0:2] = rows[1:]
    failed = attempt(x.__setitem__, line, rows)
    x[mask] = 7.0
    many = attempt(x.__setitem__, mask, rows)
    return [
        failed,
        many,
        x,
        x._version,
        x[:, None],
        x[..., None, :],
        x[:, line.abs() % 4],
        x[line[0]],
    ]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("scenario", [writes, moves, writes_to_parts])
def test_the_same_results(scenario: Any, seed: int) -> None:
    compare(lambda lib: scenario(lib, generator(seed)), strides=True)
