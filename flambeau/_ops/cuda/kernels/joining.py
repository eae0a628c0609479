"""What the threads of a row have found, joined."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def extreme_of(a, b, LARGEST: static):
    """The larger or the smaller of two; nan if either is."""
    if a.type.is_float:
        return top(a, b) if LARGEST else bottom(a, b)
    return larger(a, b) if LARGEST else smaller(a, b)


@native
def join_total(a, b):
    """Sums."""
    return a + b


@native
def join_product(a, b):
    """Products."""
    return a * b


@native
def join_amax(a, b):
    """The largest."""
    return extreme_of(a, b, True)


@native
def join_amin(a, b):
    """The smallest."""
    return extreme_of(a, b, False)


@native
def join_first(a, b):
    """The first place."""
    return extreme_of(a, b, False)


@native
def spread(value, W: static):
    """A vector: of a single number in all lanes."""
    return splat(value, W) if value.width == 1 else value


@native
def numbered(first, A: static, V: static):
    """first, first + 1, ... in V lanes: places, which all types hold that they are counted in."""
    return splat(first, V) + A(lanes(i32, V))


@native
def joined_lanes(value, JOIN: static, V: static):
    """All lanes of a vector, by halves."""
    if V == 1:
        return value
    if V == 2:
        return JOIN(value[0], value[1])
    low = shuffle(value, None, unroll(V // 2))
    high = shuffle(value, None, unroll(V // 2, V))
    return joined_lanes(JOIN(low, high), JOIN, V // 2)


@native
def joined_along(value, FIRST, JOIN: static, cells, t: i64, local: i64, G: static, ROWS: static):
    """What G threads of neighbouring numbers have: over warps by shuffles, then by shared memory.
    `cells` has room for a number of every warp; all threads of the block come here."""
    found = registers(value.type, 1)
    found[0] = value
    for STEP in unroll(halving(min(G, WARP))):
        found[0] = JOIN(found[0], lane_across(found[0], STEP))
    if G > WARP:
        if t % WARP == 0:
            cells[local * (G // WARP) + t // WARP] = found[0]
        barrier()
        found[0] = cells[local * (G // WARP) + t % (G // WARP)]
        for STEP in unroll(halving(G // WARP)):
            found[0] = JOIN(found[0], lane_across(found[0], STEP))
    return found[0]


@native
def joined_across(value, FIRST, JOIN: static, cells, t: i64, local: i64, G: static, ROWS: static):
    """What G threads have that lie ROWS apart, by shared memory: room for the numbers of each."""
    V = value.width
    found = registers(value.type, 1)
    found[0] = value
    if G > 1:
        store(cells + (t * ROWS + local) * V, value)
        barrier()
        found[0] = load(cells + local * V, V)
        for k in unroll(1, G):
            found[0] = JOIN(found[0], load(cells + (k * ROWS + local) * V, V))
    return found[0]
