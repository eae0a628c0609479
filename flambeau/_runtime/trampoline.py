"""A kernel's call as a builtin function of Python: 0.1 us around the kernel, where packing the
arguments and calling through ctypes take 2.

The function's `self` is the record of a kernel. Its machine code, one for all kernels, reads the
addresses out of arrays and the numbers out of Python's objects, and calls the kernel as one task.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

import numpy as np

from flambeau._runtime.cpu import _HEADER

FASTCALL = 0x80  # METH_FASTCALL: called with an array of its arguments and their number
BYTES = bytes.__basicsize__ - 1
"""Where the contents of a bytes object begin."""
KIND = object.__basicsize__ - 8
"""Where the class of an object stands."""
MOST = 64
"""Arguments of a kernel."""
RECORD = struct.Struct("5Q")
"""The kernel's address, the number of its arguments, a bit for each that is a floating-point
number, the class of arrays, and whether other threads of Python may go on meanwhile."""

SOURCE = f"""
@PyLong_Type = external global i8
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyNumber_Long(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyLong_FromLong(i64)
declare i32 @PyErr_BadArgument()
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define ptr @call(ptr %self, ptr %objects, i64 %given) nounwind {{
begin:
  %slots = alloca [{MOST} x i64]
  %record = getelementptr i8, ptr %self, i64 {BYTES}
  %entry = load ptr, ptr %record
  %at1 = getelementptr i64, ptr %record, i64 1
  %count = load i64, ptr %at1
  %at2 = getelementptr i64, ptr %record, i64 2
  %doubles = load i64, ptr %at2
  %at3 = getelementptr i64, ptr %record, i64 3
  %arrays = load ptr, ptr %at3
  %at4 = getelementptr i64, ptr %record, i64 4
  %shares = load i64, ptr %at4
  %fits = icmp eq i64 %given, %count
  br i1 %fits, label %next, label %refuse
next:
  %k = phi i64 [0, %begin], [%after, %keep]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %read, label %check
read:
  %from = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %from
  %where = getelementptr i8, ptr %object, i64 {KIND}
  %kind = load ptr, ptr %where
  %is_array = icmp eq ptr %kind, %arrays
  br i1 %is_array, label %array, label %number
array:
  %field = getelementptr i8, ptr %object, i64 {_HEADER}
  %start = load i64, ptr %field
  br label %keep
number:
  %shifted = lshr i64 %doubles, %k
  %bit = and i64 %shifted, 1
  %is_double = icmp ne i64 %bit, 0
  br i1 %is_double, label %double, label %whole
double:
  %real = call double @PyFloat_AsDouble(ptr %object)
  %bits = bitcast double %real to i64
  br label %keep
whole:
  %is_int = icmp eq ptr %kind, @PyLong_Type
  br i1 %is_int, label %int, label %other
int:
  %own = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
  br label %keep
other:
  %made = call ptr @PyNumber_Long(ptr %object)
  %none = icmp eq ptr %made, null
  br i1 %none, label %raise, label %converted
converted:
  %its = call i64 @PyLong_AsUnsignedLongLongMask(ptr %made)
  call void @Py_DecRef(ptr %made)
  br label %keep
keep:
  %word = phi i64 [%start, %array], [%bits, %double], [%own, %int], [%its, %converted]
  %slot = getelementptr i64, ptr %slots, i64 %k
  store i64 %word, ptr %slot
  %after = add i64 %k, 1
  br label %next
check:
  %error = call ptr @PyErr_Occurred()
  %failed = icmp ne ptr %error, null
  br i1 %failed, label %raise, label %go
go:
  %is_shared = icmp ne i64 %shares, 0
  br i1 %is_shared, label %shared, label %alone
alone:
  call void %entry(ptr %slots, i64 0, i64 1)
  br label %done
shared:
  %state = call ptr @PyEval_SaveThread()
  call void %entry(ptr %slots, i64 0, i64 1)
  call void @PyEval_RestoreThread(ptr %state)
  br label %done
done:
  %result = call ptr @PyLong_FromLong(i64 0)
  ret ptr %result
refuse:
  %said = call i32 @PyErr_BadArgument()
  br label %raise
raise:
  ret ptr null
}}
"""


class MethodDef(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = [  # noqa: RUF012
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]  # fmt: skip


@cache
def method(name: bytes, address: int) -> MethodDef:
    """The definition of a function in machine code; functions of one code share it."""
    return MethodDef(name, address, FASTCALL, b"")


_new: Any = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object
)(("PyCFunction_NewEx", ctypes.pythonapi))


def builtin(definition: MethodDef, record: bytes, kept: Any = None) -> Any:
    """A builtin function of that code, whose `self` is a record; `kept` lives as long as it."""
    return _new(ctypes.addressof(definition), record, kept)


@cache
def code() -> int:
    """The address of the machine code that calls kernels; 0 where it cannot be loaded: a library
    of kernels is without it, or the system does not tell where Python's functions are."""
    from flambeau._runtime import engine

    try:
        return engine.symbol_of(SOURCE, "call")
    except RuntimeError:
        return 0


def calling(address: int, letters: str, shares: bool) -> Any:
    """A builtin function of a kernel's arguments, a letter for each: "d" for a floating-point
    number, "Q" for an array or an address, "q" for a whole number.

    `shares`: whether other threads of Python may go on meanwhile, which takes 0.05 us.

    Returns:
        None where there is no such function.
    """
    if len(letters) > MOST or not code():
        return None
    doubles = sum(1 << k for k, letter in enumerate(letters) if letter == "d")
    record = RECORD.pack(address, len(letters), doubles, id(np.ndarray), shares)
    return builtin(method(b"kernel", code()), record)
