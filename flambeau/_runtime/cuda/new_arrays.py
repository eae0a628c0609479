"""New arrays over device memory, made by one builtin function for each layout.

    make = maker(kind, shape, dtype, steps, layout)
    array = make(block, address)       # an array of the class `kind`, which holds `block`

Through Python an array over an address takes a memoryview, the array and its attributes, 1.1 us;
the function calls NumPy's C interface, 0.2 us. Without llvmlite it is Python.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache as cache_once
from typing import Any

import numpy as np

from flambeau._runtime import choice
from flambeau._runtime.cpu import NEW_FROM_DESCRIPTION, numpy_function
from flambeau._runtime.trampoline import builtin, method, record, words

SET_BASE = 282
"""The place of PyArray_SetBaseObject in NumPy's table of functions."""
WRITABLE = 0x0400
"""NumPy's flag."""
HEAD = 8
"""Words of a record before its shape and steps."""
PIECE = 0x200
"""Python's flag for memory that may be written to."""
NAME = "layout"
RECORD = ("ptr create", "ptr settle", "ptr kind", "ptr type", "ptr name", "ptr layout")
SOURCE = f"""
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i32 @PyObject_SetAttr(ptr, ptr, ptr)

define ptr @make(ptr %self, ptr %objects, i64 %given) {{
{record(*RECORD, "i64 dims")}
  %shape = getelementptr i64, ptr %record, i64 {HEAD}
  %steps = getelementptr i64, ptr %shape, i64 %dims
  %count = trunc i64 %dims to i32
{words("objects", "ptr block", "ptr number")}
  %address = call i64 @PyLong_AsUnsignedLongLongMask(ptr %number)
  %data = inttoptr i64 %address to ptr
  call void @Py_IncRef(ptr %type)
  %array = call ptr %create(ptr %kind, ptr %type, i32 %count, ptr %shape, ptr %steps, ptr %data,
                            i32 {WRITABLE}, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %raise, label %hold
raise:
  ret ptr null
hold:
  call void @Py_IncRef(ptr %block)
  %held = call i32 %settle(ptr %array, ptr %block)
  %named = call i32 @PyObject_SetAttr(ptr %array, ptr %name, ptr %layout)
  %status = or i32 %held, %named
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %drop, label %done
drop:
  call void @Py_DecRef(ptr %array)
  ret ptr null
done:
  ret ptr %array
}}
"""


@cache_once
def _numpy_functions() -> tuple[int, int]:
    """The addresses of the two functions of NumPy."""
    return numpy_function(NEW_FROM_DESCRIPTION), numpy_function(SET_BASE)


@cache_once
def _definition() -> Any:
    """The builtin functions' definition: one piece of code serves all."""
    from flambeau._runtime import engine

    return method(b"make", engine.symbols_of(SOURCE, ("make",))["make"])


def maker(kind: Any, shape: tuple[int, ...], dtype: np.dtype[Any], steps: tuple[int, ...],
          layout: Any) -> Any:  # fmt: skip
    """The function (block, address) -> a new array.

    Args:
        kind: a class of arrays.
        steps: strides in bytes.
        layout: what the array's attribute `layout` is to be.
    """
    if not choice.available():
        return _in_python(kind, shape, dtype, steps, layout)
    create, settle = _numpy_functions()
    read = struct.pack(f"{HEAD + 2 * len(shape)}q", create, settle, id(kind), id(dtype), id(NAME),
                       id(layout), len(shape), 0, *shape, *steps)  # fmt: skip
    return builtin(_definition(), read, kept=(kind, dtype, layout))


def _in_python(kind: Any, shape: Any, dtype: Any, steps: Any, layout: Any) -> Any:
    window = ctypes.pythonapi.PyMemoryView_FromMemory
    window.restype = ctypes.py_object
    window.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)

    def make(block: Any, address: int) -> Any:
        memory = window(address, block.nbytes, PIECE)
        result = np.ndarray.__new__(kind, shape, dtype, memory, 0, steps)
        result.held, result.layout = block, layout
        return result

    return make
