"""Sorting and selecting: words that hold a key and an index, and radix sort of these words.

A key is a signed integer that orders like the element: NaN is the greatest, -0.0 equals 0.0. For
types of up to 32 bits one word (i64) holds the key above the index, `WORDS` is 1; wider types take
two words, key and index. Elements come as integers of their bits; `INF` is the pattern of infinity
for floats and 0 for integers, and `flip` is -1 to sort downwards, else 0.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    cast,
    i8,
    i16,
    i32,
    i64,
    load,
    pointer,
    reduce_add,
    select,
    splat,
    stack,
    static,
    unroll,
    zero_memory,
)
from flambeau._compiler.native import native

SIGNED = {8: i8, 16: i16, 32: i32, 64: i64}
FEW = 96
"""Up to this many words are sorted by counting how many come before each."""


@native
def key_of(x, K: static, INF: static):
    """The key of an element, or of a vector of them."""
    BITS = x.type.bits
    if INF:
        sign = x >> (BITS - 1)
        magnitude = x & ((1 << (BITS - 1)) - 1)
        ordered = (magnitude ^ sign) - sign
        return K(select(magnitude > INF, ordered.type((1 << (BITS - 1)) - 1), ordered))
    if x.type.kind == "uint":
        return K(cast(SIGNED[BITS], x ^ (1 << (BITS - 1))))
    return K(x)


@native
def element_of(key, T: static, INF: static):
    """The element that has a key; of -0.0 and of NaN nothing but that is left."""
    if INF:
        sign = key >> (key.type.bits - 1)
        magnitude = (key ^ sign) - sign
        return T(magnitude) | T(sign << (T.bits - 1))
    if T.kind == "uint":
        return cast(T, SIGNED[T.bits](key)) ^ (1 << (T.bits - 1))
    return T(key)


@native
def put_word(words, place, key, index, WORDS: static):
    """Write a word."""
    if WORDS == 1:
        words[place] = (i64(key) << 32) | index
    else:
        words[2 * place] = key
        words[2 * place + 1] = index


@native
def index_of(words, place, WORDS: static):
    """The index that a word holds."""
    if WORDS == 1:
        return words[place] & 0xFFFFFFFF
    return words[2 * place + 1]


@native
def rank_sort(source, target, n, W: static):
    """Words that are one number each go to the place that is the number of words before them: no
    branch depends on the data. What is behind the words, up to a whole vector, is overwritten."""
    padded = (n + (W - 1)) // W * W
    for i in range(n, padded):
        source[i] = (1 << 63) - 1
    one = splat(i64(1), W)
    none = splat(i64(0), W)
    for i in range(n):
        word = source[i]
        before = splat(i64(0), W)
        for j in range(0, padded, W):
            before += select(load(source + j, W) < word, one, none)
        target[reduce_add(before)] = word


@native
def insertion_sort(source, target, n):
    """Words of two numbers, one after the other, go in front of greater ones."""
    for i in range(n):
        key = source[2 * i]
        index = source[2 * i + 1]
        place = i + 0
        while place > 0:
            if target[2 * place - 2] <= key:
                break
            target[2 * place] = target[2 * place - 2]
            target[2 * place + 1] = target[2 * place - 1]
            place -= 1
        target[2 * place] = key
        target[2 * place + 1] = index


@native
def count_digits(words, n, counts, DIGITS: static, WORDS: static):
    """How often each byte of the keys has each value: [DIGITS, 256]."""
    zero_memory(counts, DIGITS * 256)
    for i in range(n):
        word = words[i * WORDS]
        for d in unroll(DIGITS):
            digit = (word >> (8 * d + (32 if WORDS == 1 else 0))) & 255
            counts[d * 256 + digit] = counts[d * 256 + digit] + 1


@native
def sum_counts(counts, TOP):
    """Counts become the places where each digit begins; the top digit is signed."""
    total = i64(0)
    for k in range(256):
        digit = k ^ TOP
        count = counts[digit]
        counts[digit] = total
        total += count


@native
def radix_sort(source, target, n, DIGITS: static, WORDS: static):
    """Sort words byte by byte from the lowest, stably; whether they end in `target`."""
    counts = stack(i64, DIGITS * 256)
    count_digits(source, n, counts, DIGITS, WORDS)
    a = source + 0
    b = target + 0
    moved = i64(0)
    for d in range(DIGITS):
        shift = 8 * d + (32 if WORDS == 1 else 0)
        places = counts + d * 256
        if places[(a[0] >> shift) & 255] != n:
            sum_counts(places, select(d == DIGITS - 1, i64(128), i64(0)))
            for i in range(n):
                word = a[i * WORDS]
                digit = (word >> shift) & 255
                place = places[digit]
                places[digit] = place + 1
                b[place * WORDS] = word
                if WORDS == 2:
                    b[2 * place + 1] = a[2 * i + 1]
            t = a + 0
            a = b + 0
            b = t + 0
            moved = moved ^ 1
    return moved


@native(outline=True)
def sort_words(source, target, n, DIGITS: static, WORDS: static, W: static):
    """Sort n words; whether they end in `target`."""
    moved = i64(1)
    if n > FEW:
        moved = radix_sort(source, target, n, DIGITS, WORDS)
    elif WORDS == 1:
        rank_sort(source, target, n, W)
    else:
        insertion_sort(source, target, n)
    return moved


@native(apart=True)
def sort_rows(x: pointer(T), values: pointer(T), indices: pointer(i64), scratch: pointer(i64),
              rows: i64, n: i64, room: i64, kept: i64, flip: K, task: i64, tasks: i64,
              T: static, K: static, INF: static, WORDS: static, W: static):  # fmt: skip
    """Sort every row of x [rows, n] into values and indices [rows, kept]. Scratch has, for each
    task, two parts of `room` numbers."""
    a = scratch + task * 2 * room
    b = a + room
    for row in range(rows * task // tasks, rows * (task + 1) // tasks):
        line = x + row * n
        for i in range(n):
            put_word(a, i, key_of(line[i], K, INF) ^ flip, i, WORDS)
        moved = sort_words(a, b, n, T.bits // 8, WORDS, W)
        ordered = select(moved != 0, b, a)
        for i in range(kept):
            index = index_of(ordered, i, WORDS)
            indices[row * kept + i] = index
            values[row * kept + i] = line[index]


# ---- one long row, sorted by all threads: a launch to count the digits of each task's part, and
# one that moves its words; BITS is the size of a digit


@native
def part(n, task, tasks):
    """First and last of a task's part."""
    return n * task // tasks, n * (task + 1) // tasks


@native(apart=True)
def make_words(x: pointer(T), words: pointer(i64), special: pointer(i64), n: i64, flip: K,
               task: i64, tasks: i64,
               T: static, K: static, INF: static, WORDS: static):  # fmt: skip
    """Words of a long row; `special[task]`: whether an element cannot be told from its key."""
    first, last = part(n, task, tasks)
    found = i64(0)
    for i in range(first, last):
        bits = x[i]
        if INF:
            lost = (bits == (-1 << (T.bits - 1))) | ((bits & ((1 << (T.bits - 1)) - 1)) > INF)
            found = found | select(lost, i64(1), i64(0))
        put_word(words, i, key_of(bits, K, INF) ^ flip, i, WORDS)
    special[task] = found


@native(apart=True)
def count_part(words: pointer(i64), counts: pointer(i32), n: i64, shift: i64, task: i64,
               tasks: i64, BITS: static, WORDS: static):  # fmt: skip
    """How often each digit occurs in each task's part: [tasks, 2**BITS]."""
    first, last = part(n, task, tasks)
    mine = counts + task * (1 << BITS)
    zero_memory(mine, 1 << BITS)
    for i in range(first, last):
        digit = (words[i * WORDS] >> shift) & ((1 << BITS) - 1)
        mine[digit] = mine[digit] + 1


@native(apart=True)
def move_part(words: pointer(i64), target: pointer(i64), counts: pointer(i32), n: i64, shift: i64,
              top: i64, task: i64, tasks: i64, BITS: static, WORDS: static):  # fmt: skip
    """Move each task's words to their places; `top` flips the sign bit of the last digit."""
    first, last = part(n, task, tasks)
    places = stack(i64, 1 << BITS)
    total = i64(0)
    for k in range(1 << BITS):
        digit = k ^ top
        for other in range(tasks):
            if other == task:
                places[digit] = total
            total += i64(counts[other * (1 << BITS) + digit])
    for i in range(first, last):
        word = words[i * WORDS]
        digit = (word >> shift) & ((1 << BITS) - 1)
        place = places[digit]
        places[digit] = place + 1
        target[place * WORDS] = word
        if WORDS == 2:
            target[2 * place + 1] = words[2 * i + 1]


@native(apart=True)
def read_words(x: pointer(T), words: pointer(i64), values: pointer(T), indices: pointer(i64),
               n: i64, flip: K, special: i64, task: i64, tasks: i64,
               T: static, K: static, INF: static, WORDS: static):  # fmt: skip
    """Values and indices of sorted words; `special`: values are read from x."""
    first, last = part(n, task, tasks)
    for i in range(first, last):
        index = index_of(words, i, WORDS)
        indices[i] = index
        if special != 0:
            values[i] = x[index]
        else:
            key = words[i * WORDS] >> (32 if WORDS == 1 else 0)
            values[i] = element_of(K(key) ^ flip, T, INF)
