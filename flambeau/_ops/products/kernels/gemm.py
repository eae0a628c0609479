"""Matrix products: the register tile, and what is done to its sums.

A tile is MR rows by NR = NV vectors of W columns of C; its sums stay in registers while k runs.
`packing` lays operands out as the tile reads them (any strides, any element type), `gemm_tile` adds
up the products, and `finish_tile` does to the sums what belongs to the product (factors, a bias,
another matrix) and writes them as C's type, for tiles that reach over the edge too. What C = A B
costs besides is small when panels of B stay in the first cache and blocks of A in the second:
Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008.
"""

from __future__ import annotations

from flambeau._compiler.language import *
from flambeau._compiler.native import native
from flambeau._ops.products.kernels.packing import pack_panel, pack_panels

NO_BIAS, BIAS_OF_COLUMN, BIAS_OF_ROW = 0, 1, 2
PANEL_STEPS, STEPS = 4, 2
"""Steps of k in a row: of panels, whose strides are constants, and of other operands. A loop of one
step spends a sixth of its instructions on itself. A core that works alone has room for them, but
not one that is shared with another thread (benchmarks/RESULTS.md, "Products")."""


# ---- the tile


@native
def gemm_tile(a, a_row, a_step, b, b_step, depth, c, c_row, add, MR: static, NV: static, W: static,
              STEPS: static):  # fmt: skip
    """c[i, j] = sum over k < depth of a[i, k] * b[k, j] for i < MR, j < NV * W; `add`: added to c.

    a[i, k] lies at a + i * a_row + k * a_step, b[k, j] at b + k * b_step + j, c[i, j] at
    c + i * c_row + j: packed panels have a_row = 1, a_step = MR and b_step = NV * W, other strides
    multiply matrices where they lie. All are of one type, in which the sums are kept, each by one
    chain of fma in the order of k: bits do not depend on the tile that an element is in. STEPS of k
    are written out in a row.
    """
    V = vector(b.type.element, W)
    total = registers(V, MR * NV)
    right = registers(V, NV)
    for i in unroll(MR):
        prefetch(c + i * c_row, 1)
    for _ in range(depth // STEPS):
        for k in unroll(STEPS):
            for v in unroll(NV):
                right[v] = load(b + (k * b_step + v * W), W)
            for i in unroll(MR):
                left = a[i * a_row + k * a_step]
                for v in unroll(NV):
                    total[i * NV + v] = fma(left, right[v], total[i * NV + v])
        a = a + STEPS * a_step
        b = b + STEPS * b_step
    for _ in range(depth % STEPS):
        for v in unroll(NV):
            right[v] = load(b + v * W, W)
        for i in unroll(MR):
            left = a[i * a_row]
            for v in unroll(NV):
                total[i * NV + v] = fma(left, right[v], total[i * NV + v])
        a = a + a_step
        b = b + b_step
    if add:
        for i in unroll(MR):
            for v in unroll(NV):
                place = c + (i * c_row + v * W)
                store(place, load(place, W) + total[i * NV + v])
    else:
        for i in unroll(MR):
            for v in unroll(NV):
                store(c + (i * c_row + v * W), total[i * NV + v])


# ---- after the sums


@native
def finished(value, row, column, bias, other, other_row, alpha, beta, BIAS: static,
             SCALED: static, OTHER: static):  # fmt: skip
    """What becomes of sums: alpha * value + bias + beta * other[row, column].

    `value` is one sum or a vector of sums along the columns from `column` on. Static: BIAS (none,
    one per column, one per row), SCALED (whether alpha counts), OTHER (whether there is another
    matrix to add, its rows other_row elements apart).
    """
    T = value.type.element
    W = value.type.width
    result = registers(value.type, 1, value)
    if SCALED:
        result[0] = result[0] * alpha
    if BIAS == BIAS_OF_COLUMN:
        result[0] = result[0] + T(load(bias + column, W))
    if BIAS == BIAS_OF_ROW:
        result[0] = result[0] + T(bias[row])
    if OTHER:
        result[0] = result[0] + T(load(other + (row * other_row + column), W)) * beta
    return result[0]


@native
def finish_part(tile, c, row, column, partial, add, bias, other, other_row, alpha, beta,
                BIAS: static, SCALED: static, OTHER: static,
                W: static):  # fmt: skip
    """`finish_tile` for W neighbours of a row; all pointers are at the first of them."""
    value = registers(vector(tile.type.element, W), 1, load(tile, W))
    if add:
        value[0] = value[0] + load(partial, W)
    done = finished(value[0], row, column, bias, other, other_row, alpha, beta, BIAS, SCALED,
                    OTHER)  # fmt: skip
    store(c, c.type.element(done))


@native
def finish_tile(tile, tile_row, c, c_row, rows, columns, row, column, partial, partial_row, add,
                bias, other, other_row, alpha, beta, BIAS: static, SCALED: static, OTHER: static,
                NV: static, W: static):  # fmt: skip
    """c[i, j] = finished(tile[i, j] (+ partial[i, j] where `add`)) for i < rows, j < columns.

    `tile` holds sums in rows tile_row apart (what `gemm_tile` wrote into memory of the kernel's
    own); c, partial and the tile point at element (row, column) of the whole product, at which
    bias and other are read. The result is rounded to c's type once.
    """
    for i in range(rows):
        line = tile + i * tile_row
        to = c + i * c_row
        sums = partial + i * partial_row
        if columns == NV * W:
            for v in unroll(NV):
                finish_part(line + v * W, to + v * W, row + i, column + v * W, sums + v * W, add,
                            bias, other, other_row, alpha, beta, BIAS, SCALED, OTHER,
                            W)  # fmt: skip
        else:
            for j in range(columns):
                finish_part(line + j, to + j, row + i, column + j, sums + j, add, bias, other,
                            other_row, alpha, beta, BIAS, SCALED, OTHER,
                            1)  # fmt: skip


@native
def keep_sums(tile, tile_row, partial, partial_row, rows, columns, add):
    """partial[i, j] = tile[i, j] (+ partial[i, j] where `add`), for i < rows, j < columns."""
    for i in range(rows):
        for j in range(columns):
            sum = tile[i * tile_row + j]
            place = partial + (i * partial_row + j)
            place[0] = select(add, sum + place[0], sum)


# ---- large products: both operands packed, then multiplied


@native(apart=True)
def pack_operands(a: pointer(S), b: pointer(S), panels_a: pointer(T), panels_b: pointer(T),
                  a_row: i64, a_step: i64, b_step: i64, b_column: i64, rows: i64, columns: i64,
                  depth: i64, depth_blocks: i64, task: i64, tasks: i64, S: static, T: static,
                  MR: static, NV: static, W: static):  # fmt: skip
    """Panels of MR rows of a [rows, depth], of NR columns of b [depth, columns], in blocks of k."""
    NR = NV * W
    of_a = (rows + MR - 1) // MR
    of_b = (columns + NR - 1) // NR
    first = (of_a + of_b) * task // tasks
    last = (of_a + of_b) * (task + 1) // tasks
    row = first * MR
    column = larger(first - of_a, i64(0)) * NR
    row_end = smaller(rows, last * MR)
    column_end = smaller(columns, (last - of_a) * NR)
    for block in range(depth_blocks):
        begin = depth * block // depth_blocks
        size = depth * (block + 1) // depth_blocks - begin
        if row < row_end:
            pack_panels(a + (row * a_row + begin * a_step), a_row, a_step, row_end - row, size,
                        panels_a + (begin * of_a * MR + row * size), MR, W)  # fmt: skip
        if column < column_end:
            pack_panels(b + (column * b_column + begin * b_step), b_column, b_step,
                        column_end - column, size,
                        panels_b + (begin * of_b * NR + column * size), NR, W)  # fmt: skip


# ---- small products and batches of them: operands where they lie, or packed on the stack

DEPTH = 1024
"""The most that `multiply_direct` sums over."""
PACKED = 56 * 1024
"""The most elements of a block of A that is packed: with what else a tile reads it fits the second
cache."""
IN_PLACE, PACK, PANELS = 0, 1, 2
"""How B comes: read where it lies, packed by each unit, or in panels that all units share."""


@native
def multiply_direct(a: pointer(S), b: pointer(S), c: pointer(O), bias: pointer(O),
                    other: pointer(O), a_outer: i64, a_inner: i64, a_row: i64, a_step: i64,
                    pack_a: i64, b_outer: i64, b_inner: i64, b_step: i64, b_column: i64,
                    b_form: i64, matrices: i64, inner: i64, rows: i64, columns: i64, depth: i64,
                    row_blocks: i64, column_blocks: i64, depth_blocks: i64, other_matrix: i64,
                    other_row: i64, alpha: T, beta: T, task: i64, tasks: i64, S: static,
                    O: static, T: static, BIAS: static, SCALED: static, OTHER: static,
                    MR: static, NV: static, W: static):  # fmt: skip
    """`matrices` products of [rows, depth] and [depth, columns], in two dims of batches.

    The units of work are blocks of row_blocks by column_blocks of each matrix. What is not packed
    is read where it lies (S is T then): A with at least MR rows, B with at least NR columns that
    follow each other; tiles at an edge reach back into the matrix then. B may also be a matrix's
    panels, one after the other (b_step is NR then). Packed blocks of A have at most PACKED elements
    with an edge of less than MR rows. Only where neither is read where it lies, and C has the type
    of the sums, may there be several blocks of k; C holds the sums of those that are done.
    """
    NR = NV * W
    of_a = (rows + MR - 1) // MR
    of_b = (columns + NR - 1) // NR
    units = matrices * row_blocks * column_blocks
    panels = stack(T, PACKED)
    panel = stack(T, NR * DEPTH)
    tile = stack(T, MR * NR)
    FINISHES = not (O is T and BIAS == NO_BIAS) or SCALED or OTHER
    for unit in range(units * task // tasks, units * (task + 1) // tasks):
        column_block = unit % column_blocks
        row_block = unit // column_blocks % row_blocks
        matrix = unit // (column_blocks * row_blocks)
        to = c + matrix * rows * columns
        added = other + matrix * other_matrix
        first = of_a * row_block // row_blocks
        last = of_a * (row_block + 1) // row_blocks
        for depth_block in range(depth_blocks):
            begin = depth * depth_block // depth_blocks
            size = depth * (depth_block + 1) // depth_blocks - begin
            add = depth_block > 0
            ends = depth_block == depth_blocks - 1
            left = a + (matrix // inner * a_outer + matrix % inner * a_inner + begin * a_step)
            right = b + (matrix // inner * b_outer + matrix % inner * b_inner + begin * b_step)
            if pack_a != 0:
                row = first * MR
                pack_panels(left + row * a_row, a_row, a_step, smaller(rows, last * MR) - row,
                            size, panels, MR, W)  # fmt: skip
            for j in range(of_b * column_block // column_blocks,
                           of_b * (column_block + 1) // column_blocks):  # fmt: skip
                column = j * NR
                width = smaller(columns - column, NR)
                b_from = panel
                b_by = NR
                from_column = column
                if b_form == PACK:
                    pack_panel(right + column * b_column, b_column, b_step, width, size, panel,
                               NR, W)  # fmt: skip
                if S is T:
                    if b_form == PANELS:
                        b_from = right + column * depth
                    if b_form == IN_PLACE:
                        from_column = smaller(column, columns - NR)
                        b_from = right + from_column
                        b_by = b_step
                for i in range(first, last):
                    row = i * MR
                    height = smaller(rows - row, MR)
                    a_from = panels + (i - first) * MR * size
                    a_by = MR
                    a_next = 1
                    from_row = row
                    if S is T:
                        if pack_a == 0:
                            from_row = smaller(row, rows - MR)
                            a_from = left + from_row * a_row
                            a_by = a_step
                            a_next = a_row
                    # what reaches back is computed again, with the same bits
                    whole = (height == MR) | (pack_a == 0)
                    whole = whole & ((width == NR) | (b_form == IN_PLACE))
                    if FINISHES:
                        whole = whole & (ends == False)  # noqa: E712
                    place = tile
                    step = NR
                    partial = tile
                    if O is T:
                        place = select(whole, to + (from_row * columns + from_column), tile)
                        step = select(whole, columns, NR)
                        partial = to + (row * columns + column)
                    if (pack_a != 0) & (b_form != IN_PLACE):
                        gemm_tile(a_from, 1, MR, b_from, NR, size, place, step, add & whole, MR,
                                  NV, W, PANEL_STEPS)  # fmt: skip
                    elif S is T:
                        if (a_by == 1) & (b_form != IN_PLACE):
                            gemm_tile(a_from, a_next, 1, b_from, NR, size, place, step,
                                      add & whole, MR, NV, W, PANEL_STEPS)  # fmt: skip
                        else:
                            gemm_tile(a_from, a_next, a_by, b_from, b_by, size, place, step,
                                      add & whole, MR, NV, W, STEPS)  # fmt: skip
                    if whole == False:  # noqa: E712
                        sums = tile + ((row - from_row) * NR + column - from_column)
                        if ends:
                            finish_tile(sums, NR, to + (row * columns + column), columns, height,
                                        width, row, column, partial, columns, add, bias, added,
                                        other_row, alpha, beta, BIAS, SCALED, OTHER,
                                        NV, W)  # fmt: skip
                        else:
                            keep_sums(tile, NR, partial, columns, height, width, add)
