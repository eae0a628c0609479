"""Images read at any positions, and the gradients of that.

A block of positions is turned into a table of the elements around them first: where each lies in a
plane (-1: outside), its weight, and the weight's derivative for each spatial dim. The planes of all
channels are then read through the table. The formulas are those of `numpy_grid`.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.conv.kernels.depthwise import fill_memory, load_some, store_some

IMAGES, CHANNELS, GROUPS, POINTS, PLANE, SPATIAL = range(6)
"""What `sizes` holds; the spatial dims come last."""
BLOCK = 64
"""Positions of a table."""
BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
CUBIC = -0.75


def corners(RANK, MODE):
    """How many elements count for a position."""
    return {NEAREST: 1, BICUBIC: 4**RANK}.get(MODE, 2**RANK)


@native
def unnormalized(coordinate, size, RANK: static, ALIGN: static):
    """Where a coordinate from -1 to 1 lies among `size` elements, and the derivative of that."""
    if ALIGN:
        return (coordinate + 1.0) * ((size - 1) * 0.5), (size - 1) * 0.5
    elif RANK == 3:
        return (coordinate + 1.0) * (size * 0.5) - 0.5, size * 0.5
    else:
        return fma(coordinate + 1.0, size * 0.5, -0.5), size * 0.5


@native
def clipped(position, size, A: static, W: static):
    """The position between the first and the last element, and its derivative; NaN is the first."""
    inside = (position > 0.0) & (position < size - 1)
    place = smaller(larger(position, splat(A(0), W)), splat(size - 1, W))
    return place, select(inside, splat(A(1), W), splat(A(0), W))


@native
def reflected(position, size, A: static, W: static, ALIGN: static):
    """The position mirrored at both borders until it lies inside, and its derivative's sign."""
    low = A(0) if ALIGN else A(-0.5)
    span = larger(size - 1, A(1)) if ALIGN else size
    shifted = position - low
    distance = absolute(shifted)
    flips = floor(distance / span)
    extra = fma(-flips, splat(span, W), distance)
    even = floor(flips * 0.5) * 2.0 == flips
    sign = select(shifted < 0.0, splat(A(-1), W), splat(A(1), W))
    return select(even, extra + low, span - extra + low), select(even, sign, -sign)


@native
def folded(position, size, A: static, W: static, PADDING: static, ALIGN: static):
    """What the padding makes of a position, and the derivative of that."""
    if PADDING == ZEROS:
        return position, splat(A(1), W)
    elif PADDING == BORDER:
        return clipped(position, size, A, W)
    else:
        mirrored, sign = reflected(position, size, A, W, ALIGN)
        place, inside = clipped(mirrored, size, A, W)
        return place, sign * inside


@native
def cubic(part, shift, A: static):
    """Keys' weight of the neighbour at `shift` (-1 to 2) of a position, and its derivative with
    respect to `part`, how far the position lies behind the neighbour 0."""
    signed = part - A(shift)
    x = absolute(signed)
    sign = copysign(x * 0.0 + 1.0, signed)
    if shift == 0 or shift == 1:  # noqa: PLR1714
        weight = ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1.0
        return weight, (3 * (CUBIC + 2) * x - 2 * (CUBIC + 3)) * x * sign
    else:
        weight = ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC
        return weight, ((3 * CUBIC * x - 10 * CUBIC) * x + 8 * CUBIC) * sign


def shift_of(corner, dim, RANK, MODE):
    """How far an element lies behind the one below its position; the last dim's changes fastest."""
    around = 4 if MODE == BICUBIC else 2
    return corner // around ** (RANK - 1 - dim) % around - (1 if MODE == BICUBIC else 0)


@native
def place_points(points, index, weight, slopes, sizes, A: static, W: static, RANK: static,
                 MODE: static, PADDING: static, ALIGN: static, SLOPES: static):  # fmt: skip
    """Fill a table for the coordinates of a block, `points[dim][i]`, the last spatial dim first."""
    low = stack(A, RANK * W)
    part = stack(A, RANK * W)
    change = stack(A, RANK * W)
    for i in range(0, BLOCK, W):
        for d in unroll(RANK):
            coordinate = load(points + ((RANK - 1 - d) * BLOCK + i), W)
            size = A(sizes[SPATIAL + d])
            position, slope = unnormalized(coordinate, size, RANK, ALIGN)
            store(change + d * W, splat(slope, W))
            if MODE != BICUBIC:
                position, sign = folded(position, size, A, W, PADDING, ALIGN)
                store(change + d * W, sign * slope)
            below = rint(position) if MODE == NEAREST else floor(position)
            store(low + d * W, below)
            store(part + d * W, position - below)
        for corner in unroll(corners(RANK, MODE)):
            at = corner * BLOCK + i
            place_corner(low, part, change, corner, index + at, weight + at,
                         slopes + (corner * RANK * BLOCK + i), sizes, A, W, RANK, MODE, PADDING,
                         ALIGN, SLOPES)  # fmt: skip


@native
def place_corner(low, part, change, corner: static, index, weight, slopes, sizes, A: static,
                 W: static, RANK: static, MODE: static, PADDING: static, ALIGN: static,
                 SLOPES: static):  # fmt: skip
    """One of the elements around W positions: where it lies, its weight, the weight's slopes."""
    flat = splat(i32(0), W)
    valid = splat(A(0), W) == splat(A(0), W)
    factors = registers(vector(A, W), RANK, 1)
    slope = registers(vector(A, W), RANK, 0)
    for d in unroll(RANK):
        size = A(sizes[SPATIAL + d])
        shift = shift_of(corner, d, RANK, MODE)
        place = load(low + d * W, W)
        beyond = load(part + d * W, W)
        bend = load(change + d * W, W)
        if MODE == BILINEAR:
            place = place + A(shift)
            factors[d] = beyond if shift else 1.0 - beyond
            slope[d] = bend if shift else -bend
        elif MODE == BICUBIC:
            near, steep = cubic(beyond, shift, A)
            factors[d] = near
            slope[d] = steep * bend
            place, _ = folded(place + A(shift), size, A, W, PADDING, ALIGN)
            if PADDING != ZEROS:
                place = rint(place)
        here = (place >= 0.0) & (place < size)
        valid = valid & here
        flat = flat * i32(sizes[SPATIAL + d]) + i32(select(here, place, splat(A(0), W)))
    store(index, select(valid, flat, splat(i32(-1), W)))
    whole = factors[0]
    for d in unroll(1, RANK):
        whole = whole * factors[d]
    store(weight, whole)
    if SLOPES:
        for d in unroll(RANK):
            steep = slope[d]
            for other in unroll(RANK):
                if other != d:
                    steep = steep * factors[other]
            store(slopes + d * BLOCK, steep)


@native
def take_points(grid, points, count, RANK: static, A: static):
    """The coordinates of a block of `count` positions, those of one dim behind the other."""
    for i in range(BLOCK):
        here = smaller(i, count - 1) * RANK
        for d in unroll(RANK):
            points[d * BLOCK + i] = A(grid[here + d])


@native
def read(plane, index, A: static, W: static):
    """The elements of a plane that W entries of a table name; 0 for those that lie outside."""
    at = load(index, W)
    return select(at >= 0, A(gather(plane, larger(at, splat(i32(0), W)))), splat(A(0), W))


@native
def sample(x: pointer(T), grid: pointer(T), out: pointer(T), sizes: pointer(i64), task: i64,
           tasks: i64, T: static, A: static, W: static, RANK: static, MODE: static,
           PADDING: static, ALIGN: static):  # fmt: skip
    """`out[n, c, p]`: the plane (n, c) of x at the position `grid[n, p]`."""
    points = stack(A, RANK * BLOCK)
    index = stack(i32, corners(RANK, MODE) * BLOCK)
    weight = stack(A, corners(RANK, MODE) * BLOCK)
    count = sizes[POINTS]
    blocks = (count + BLOCK - 1) // BLOCK
    units = sizes[IMAGES] * blocks
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        image = unit // blocks
        start = unit % blocks * BLOCK
        some = smaller(count - start, i64(BLOCK))
        take_points(grid + (image * count + start) * RANK, points, some, RANK, A)
        place_points(points, index, weight, weight, sizes, A, W, RANK, MODE, PADDING, ALIGN, False)
        for channel in range(sizes[CHANNELS]):
            plane = image * sizes[CHANNELS] + channel
            for i in range(0, some, W):
                total = splat(A(0), W)
                for corner in unroll(corners(RANK, MODE)):
                    value = read(x + plane * sizes[PLANE], index + (corner * BLOCK + i), A, W)
                    total = total + value * load(weight + (corner * BLOCK + i), W)
                store_some(out + (plane * count + start + i), total, some - i, T, W)


@native
def spread(grad: pointer(T), grid: pointer(T), out: pointer(T), work: pointer(A),
           sizes: pointer(i64), task: i64, tasks: i64, T: static, A: static, W: static,
           RANK: static, MODE: static, PADDING: static, ALIGN: static):  # fmt: skip
    """The gradient of x: every number of `grad` is added to the elements that were read for it.

    A task has the planes of some channels of an image; in half types it adds up in `work`.
    """
    points = stack(A, RANK * BLOCK)
    index = stack(i32, corners(RANK, MODE) * BLOCK)
    weight = stack(A, corners(RANK, MODE) * BLOCK)
    count = sizes[POINTS]
    size = sizes[PLANE]
    units = sizes[IMAGES] * sizes[GROUPS]
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        image = unit // sizes[GROUPS]
        group = unit % sizes[GROUPS]
        first = image * sizes[CHANNELS] + sizes[CHANNELS] * group // sizes[GROUPS]
        last = image * sizes[CHANNELS] + sizes[CHANNELS] * (group + 1) // sizes[GROUPS]
        sums = cast(pointer(A), out + first * size) if T is A else work + first * size
        fill_memory(sums, (last - first) * size, A(0), W)
        for start in range(0, count, BLOCK):
            some = smaller(count - start, i64(BLOCK))
            take_points(grid + (image * count + start) * RANK, points, some, RANK, A)
            place_points(points, index, weight, weight, sizes, A, W, RANK, MODE, PADDING, ALIGN,
                         False)  # fmt: skip
            for plane in range(first, last):
                target = sums + (plane - first) * size
                for i in range(some):
                    pushed = A(grad[plane * count + start + i])
                    for corner in unroll(corners(RANK, MODE)):
                        at = index[corner * BLOCK + i]
                        if at >= 0:
                            target[at] = target[at] + pushed * weight[corner * BLOCK + i]
        if T is not A:
            for i in range((last - first) * size):
                out[first * size + i] = T(sums[i])


@native
def pull(x: pointer(T), grad: pointer(T), grid: pointer(T), out: pointer(T), sizes: pointer(i64),
         task: i64, tasks: i64, T: static, A: static, W: static, RANK: static, MODE: static,
         PADDING: static, ALIGN: static):  # fmt: skip
    """The gradient of the grid: how fast `grad`'s sum changes with each coordinate."""
    points = stack(A, RANK * BLOCK)
    index = stack(i32, corners(RANK, MODE) * BLOCK)
    weight = stack(A, corners(RANK, MODE) * BLOCK)
    slopes = stack(A, RANK * corners(RANK, MODE) * BLOCK)
    count = sizes[POINTS]
    blocks = (count + BLOCK - 1) // BLOCK
    units = sizes[IMAGES] * blocks
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        image = unit // blocks
        start = unit % blocks * BLOCK
        some = smaller(count - start, i64(BLOCK))
        take_points(grid + (image * count + start) * RANK, points, some, RANK, A)
        place_points(points, index, weight, slopes, sizes, A, W, RANK, MODE, PADDING, ALIGN, True)
        for i in range(0, some, W):
            total = registers(vector(A, W), RANK, 0)
            here = smaller(some - i, i64(W))
            for corner in unroll(corners(RANK, MODE)):
                pulled = splat(A(0), W)
                for channel in range(sizes[CHANNELS]):
                    plane = image * sizes[CHANNELS] + channel
                    value = read(x + plane * sizes[PLANE], index + (corner * BLOCK + i), A, W)
                    pushed = load_some(grad + (plane * count + start + i), here, T, A, W)
                    pulled = pulled + value * pushed
                for d in unroll(RANK):
                    bend = load(slopes + ((corner * RANK + d) * BLOCK + i), W)
                    total[d] = total[d] + pulled * bend
            for d in unroll(RANK):
                store(points + ((RANK - 1 - d) * BLOCK + i), total[d])
        for i in range(some):
            for d in unroll(RANK):
                out[(image * count + start + i) * RANK + d] = T(points[d * BLOCK + i])
