"""The first k elements of rows in sorted order, without sorting the rows.

Of the least keys of some groups of elements the k-th bounds the keys that can be among the first
k: few elements pass, and only they are sorted. Keys and words are those of `sort`.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    count_trailing_zeros,
    i64,
    load,
    mask_bits,
    pointer,
    select,
    smaller,
    splat,
    static,
)
from flambeau._compiler.native import native
from flambeau._ops.sorting.kernels.sort import index_of, key_of, put_word, sort_words


@native
def kth_least(a, b, line, n, k, flip, K: static, INF: static, WORDS: static, W: static):
    """The k-th smallest of the least keys of groups: at least k keys are not above it. A group is
    one lane of a run of vectors, and there are three times as many groups as are needed."""
    vectors = n // W
    runs = smaller(vectors, (3 * k + (W - 1)) // W)
    for run in range(runs):
        first = vectors * run // runs
        least = key_of(load(line + first * W, W), K, INF) ^ flip
        for i in range(first + 1, vectors * (run + 1) // runs):
            least = smaller(key_of(load(line + i * W, W), K, INF) ^ flip, least)
        for lane in range(W):
            put_word(a, run * W + lane, least[lane], run * W + lane, WORDS)
    moved = sort_words(a, b, runs * W, K.bits // 8, WORDS, 256 // K.bits)
    ordered = select(moved != 0, b, a)
    return K(ordered[(k - 1) * WORDS] >> (32 if WORDS == 1 else 0))


@native
def keep_passing(a, line, n, bound, offset, flip, K: static, INF: static, WORDS: static,
                 W: static):  # fmt: skip
    """Write a word for each key that is not above the bound; how many there are."""
    count = i64(0)
    bounds = splat(bound, W)
    for i in range(0, n // W * W, W):
        keys = key_of(load(line + i, W), K, INF) ^ flip
        passing = mask_bits(keys <= bounds)
        while passing != 0:
            lane = count_trailing_zeros(passing)
            put_word(a, count, key_of(line[i + lane], K, INF) ^ flip, offset + i + lane, WORDS)
            count += 1
            passing = passing & (passing - 1)
    for i in range(n // W * W, n):
        key = key_of(line[i], K, INF) ^ flip
        if key <= bound:
            put_word(a, count, key, offset + i, WORDS)
            count += 1
    return count


@native(apart=True)
def select_rows(x: pointer(T), values: pointer(T), indices: pointer(i64), scratch: pointer(i64),
                rows: i64, n: i64, parts: i64, room: i64, k: i64, flip: K, task: i64, tasks: i64,
                T: static, K: static, INF: static, WORDS: static, W: static):  # fmt: skip
    """The first k elements of each of `parts` parts of each row of x [rows, n]: values and
    indices [rows, parts, k]. Parts have at least k + 2 W elements. Scratch as for `sort_rows`."""
    a = scratch + task * 2 * room
    b = a + room
    for item in range(rows * parts * task // tasks, rows * parts * (task + 1) // tasks):
        row = item // parts
        first = n * (item % parts) // parts
        length = n * (item % parts + 1) // parts - first
        line = x + row * n + first
        bound = kth_least(a, b, line, length, k, flip, K, INF, WORDS, W)
        count = keep_passing(a, line, length, bound, first, flip, K, INF, WORDS, W)
        moved = sort_words(a, b, count, T.bits // 8, WORDS, 256 // K.bits)
        ordered = select(moved != 0, b, a)
        for i in range(k):
            index = index_of(ordered, i, WORDS)
            indices[item * k + i] = index
            values[item * k + i] = x[row * n + index]
