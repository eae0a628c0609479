"""The machine code of inline caches: find a call like this one, and do again what it did.

`inline_call` is a builtin function of Python (METH_FASTCALL); its `self` is a record, as those of
`trampoline`, that holds the address of a table. The table has room for some entries, each of which
describes a call: what its arguments were, which arrays come of it, and what computes them. How they
are written is `inline_cache`'s.
"""

from __future__ import annotations

from flambeau._compiler.language import (
    call_address,
    call_result,
    cast,
    external,
    i8,
    i32,
    i64,
    pointer,
    stack,
)
from flambeau._compiler.native import native

# The table, in words of 64 bits: its entries first.
PLACES = 8
MISSES = 8  # calls that no entry fitted
LEARN = 9  # the function of Python that is told of some of them
ARRAYS = 10  # NumPy's class of arrays
CREATE = 11  # its function PyArray_NewFromDescr
NONE = 12
WORDS = 16
EAGER = 32  # misses that are all told of
RARELY = 64  # afterwards every so many

# An argument in an entry: an object's address, or one of these with an array's description, which
# is its type, the number of its dims, their sizes and steps.
READ, WRITTEN = 0, 1

# NumPy's struct of an array, in words.
CLASS, DATA, DIMS, SIZES, STEPS, TYPE, FLAGS = 1, 2, 3, 4, 5, 7, 8
ALIGNED, WRITEABLE = 0x100, 0x400

# What follows the arguments, in words: what computes, and then results and slots. The results that
# are not returned are memory that only the kernel needs, among them a number, FLAG counted from 1,
# that says whether the kernel refuses the arguments.
CODE, KIND, STATE, COUNT, OUTER, RESULTS, RETURNED, FLAG, SLOTS, END = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
KERNEL, LOOP = 0, 1  # a kernel's entry; the loop of one of NumPy's ufuncs
NUMBER, ARGUMENT, RESULT = 0, 1, 2  # what a slot holds: a number, or an address in an array
POSITION, OFFSET = 0xFF, 8  # which array, and above these bits how many bytes behind its start

BYTES = bytes.__basicsize__ - 1  # where the contents of a bytes object begin
MOST_RESULTS = 4
MOST_SLOTS = 32


@native
def at(address: i64):
    """The words at an address."""
    return cast(pointer(i64), address)


@native
def is_described(known, array):
    """Whether an array is as an entry says."""
    wanted = select(known[0] == WRITTEN, i64(ALIGNED | WRITEABLE), i64(ALIGNED))
    dims = known[2]
    same = (array[TYPE] == known[1]) & (array[DIMS] & 0xFFFFFFFF == dims)
    same = same & (array[FLAGS] & wanted == wanted)
    if same:
        sizes, steps = at(array[SIZES]), at(array[STEPS])
        d = i64(0)
        while d < dims:
            if (sizes[d] != known[3 + d]) | (steps[d] != known[3 + dims + d]):
                same = False
                break
            d += 1
    return same


@native
def end_of_arguments(known, values, given, arrays):
    """Where the description of the arguments ends, if those of a call fit it; else 0."""
    here = select(known[0] == given, i64(1), i64(0))
    k = i64(0)
    while (k < given) & (here != 0):
        value = values[k]
        if known[here] > WRITTEN:
            here = select(known[here] == value, here + 1, i64(0))
        else:
            array = at(value)
            if array[CLASS] != arrays:
                here = i64(0)
            else:
                after = here + 3 + 2 * known[here + 2]
                here = select(is_described(known + here, array), after, i64(0))
        k += 1
    return here


@native
def made_anew(table, type, dims, sizes):
    """A new array; 0 where memory is out. NumPy takes over one count of its type."""
    external("Py_IncRef", None, type)
    return call_result(i64, table[CREATE], table[ARRAYS], type, i32(dims), sizes, i64(0), i64(0),
                       i32(0), i64(0))  # fmt: skip


@native
def returned_of(table, known, made):
    """What a call returns of the results: one, a tuple, or None where the kernel refused. The
    others are given up."""
    count = known[RETURNED]
    total = known[RESULTS]  # read before a tuple is made: what is collected then may call, too
    result = made[0]
    if known[FLAG] != 0:
        if at(at(made[known[FLAG] - 1])[DATA])[0] != 0:
            count = i64(0)
            result = table[NONE]
            external("Py_IncRef", None, result)
    if count > 1:
        result = external("PyTuple_New", i64, count)
        if result != 0:
            for k in range(count):
                external("PyTuple_SetItem", i32, result, k, made[k])
    for k in range(count, total):
        external("Py_DecRef", None, made[k])
    return result


@native
def done_again(table, known, values):
    """The result of a call: an array, or a tuple of several; 0 where memory is out."""
    count = known[RESULTS]
    made = stack(i64, MOST_RESULTS)
    here = i64(END)
    failed = i64(0)
    for k in range(count):
        type = known[here]
        if type == 0:  # one that is written to
            value = values[known[here + 1]]
            external("Py_IncRef", None, value)
            made[k] = value
            here += 2
        else:
            value = made_anew(table, type, known[here + 1], known + (here + 2))
            failed = select(value == 0, i64(1), failed)
            made[k] = value
            here += 2 + known[here + 1]
    result = i64(0)
    if failed != 0:
        for k in range(count):
            external("Py_DecRef", None, made[k])
    else:
        compute(known, known + here, values, made)
        result = returned_of(table, known, made)
    return result


@native
def compute(known, slots, values, made):
    """Fill the slots, and run what computes."""
    count = known[SLOTS]
    filled = stack(i64, MOST_SLOTS)
    for k in range(count):
        kind, word = slots[2 * k], slots[2 * k + 1]
        if kind == ARGUMENT:
            word = at(values[word & POSITION])[DATA] + (word >> OFFSET)
        elif kind == RESULT:
            word = at(made[word & POSITION])[DATA] + (word >> OFFSET)
        filled[k] = word
    if known[KIND] == KERNEL:
        call_address(known[CODE], cast(pointer(i8), filled), i64(0), i64(1))
    else:
        steps = slots + 2 * count  # from element to element, and then from row to row
        for _ in range(known[OUTER]):
            call_address(known[CODE], filled, known + COUNT, steps, known[STATE])
            for k in range(count):
                filled[k] = filled[k] + steps[count + k]


@native
def missed(table, values, given):
    """None; the function that learns is told of the call, now and then."""
    count = table[MISSES]
    table[MISSES] = count + 1
    result = table[NONE]
    if (count < EAGER) | (count % RARELY == 0):
        learned = external("PyObject_Vectorcall", i64, table[LEARN], values, given, i64(0))
        if learned == 0:
            result = i64(0)
        else:
            external("Py_DecRef", None, learned)
    if result != 0:
        external("Py_IncRef", None, result)
    return result


@native
def inline_call(record: i64, objects: i64, given: i64):
    """The result of a call like one before, or None."""
    table, values = at(at(record + BYTES)[0]), at(objects)
    found = i64(0)
    known = i64(0)
    k = i64(0)
    while k < PLACES:
        known = table[k]
        if known != 0:
            found = end_of_arguments(at(known), values, given, table[ARRAYS])
            if found != 0:
                break
        k += 1
    result = i64(0)
    if found != 0:
        result = done_again(table, at(known) + found, values)
    else:
        result = missed(table, values, given)
    return result
