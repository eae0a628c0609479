"""Two dims turned: `out[i][j] = x[j][i]`."""

from __future__ import annotations

from flambeau._compiler.gpu.words import *
from flambeau._compiler.language import *
from flambeau._compiler.native import native


@native
def transpose(x: pointer(T), out: pointer(T), columns: i64, rows: i64, far: i64, pitch: i64,
              batch_from: i64, batch_to: i64, across: i64, down: i64, T: static, V: static,
              TILE: static, PITCH: static, THREADS: static):  # fmt: skip
    """A tile a block. Elements of x follow each other along `rows` and are `far` apart along
    `columns`; those of out follow each other along `columns` and are `pitch` apart along `rows`.
    V elements an access; rows, columns and steps are multiples of V."""
    tile = shared(T, TILE * PITCH)
    number = block()
    x0 = number % across * TILE
    y0 = number // across % down * TILE
    item = number // across // down
    source = x + item * batch_from
    target = out + item * batch_to
    lane = thread() % (TILE // V) * V
    line = thread() // (TILE // V)
    for step in unroll(TILE * TILE // V // THREADS):
        r = line + step * (THREADS // (TILE // V))
        if (x0 + r < columns) & (y0 + lane < rows):
            got = load(source + ((x0 + r) * far + (y0 + lane)), V, align=V * T.size)
            if V == 1:
                tile[r * PITCH + lane] = got
            else:
                for v in unroll(V):
                    tile[r * PITCH + lane + v] = got[v]
    barrier()
    for step in unroll(TILE * TILE // V // THREADS):
        r = line + step * (THREADS // (TILE // V))
        if (y0 + r < rows) & (x0 + lane < columns):
            place = target + ((y0 + r) * pitch + (x0 + lane))
            if V == 1:
                store(place, tile[lane * PITCH + r])
            else:
                row = registers(vector(T, V), 1)
                for v in unroll(V):
                    row[0] = insert(row[0], v, tile[(lane + v) * PITCH + r])
                store(place, row[0], align=V * T.size)
