"""Kernels as builtin functions of Python: 0.1 us around the kernel, where packing the
arguments and calling through ctypes take 2.

The functions' `self` is the record of a kernel. Their machine code, one for all kernels, reads the
addresses out of arrays and the numbers out of Python's objects, and calls the kernel, as one task
or as several.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any, NamedTuple

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

; words of the objects from `first` on, as the record says; whether one raised an error
define internal i1 @fill(ptr %record, ptr %objects, i64 %first, i64 %given, ptr %slots)
    alwaysinline nounwind {{
begin:
  %at1 = getelementptr i64, ptr %record, i64 1
  %count = load i64, ptr %at1
  %at2 = getelementptr i64, ptr %record, i64 2
  %doubles = load i64, ptr %at2
  %at3 = getelementptr i64, ptr %record, i64 3
  %arrays = load ptr, ptr %at3
  %all = add i64 %count, %first
  %fits = icmp eq i64 %given, %all
  br i1 %fits, label %next, label %refuse
next:
  %k = phi i64 [0, %begin], [%after, %keep]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %read, label %check
read:
  %place = add i64 %k, %first
  %from = getelementptr ptr, ptr %objects, i64 %place
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
  br i1 %none, label %raised, label %converted
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
  ret i1 %failed
refuse:
  %said = call i32 @PyErr_BadArgument()
  br label %raised
raised:
  ret i1 true
}}

; (*arguments): one task in this thread
define ptr @call(ptr %self, ptr %objects, i64 %given) nounwind {{
begin:
  %slots = alloca [{MOST} x i64]
  %record = getelementptr i8, ptr %self, i64 {BYTES}
  %failed = call i1 @fill(ptr %record, ptr %objects, i64 0, i64 %given, ptr %slots)
  br i1 %failed, label %raise, label %go
go:
  %entry = load ptr, ptr %record
  %at4 = getelementptr i64, ptr %record, i64 4
  %shares = load i64, ptr %at4
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
raise:
  ret ptr null
}}

; (run, state, tasks, limit, *arguments): by a pool's function, or one task after the other
define ptr @spread(ptr %self, ptr %objects, i64 %given) nounwind {{
begin:
  %slots = alloca [{MOST} x i64]
  %few = icmp slt i64 %given, 4
  br i1 %few, label %refuse, label %start
start:
  %record = getelementptr i8, ptr %self, i64 {BYTES}
  %object0 = load ptr, ptr %objects
  %run = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object0)
  %from1 = getelementptr ptr, ptr %objects, i64 1
  %object1 = load ptr, ptr %from1
  %state = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object1)
  %from2 = getelementptr ptr, ptr %objects, i64 2
  %object2 = load ptr, ptr %from2
  %tasks = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object2)
  %from3 = getelementptr ptr, ptr %objects, i64 3
  %object3 = load ptr, ptr %from3
  %limit = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object3)
  %failed = call i1 @fill(ptr %record, ptr %objects, i64 4, i64 %given, ptr %slots)
  br i1 %failed, label %raise, label %go
go:
  %entry = load ptr, ptr %record
  %thread = call ptr @PyEval_SaveThread()
  %by_pool = icmp ne i64 %run, 0
  br i1 %by_pool, label %pool, label %next
pool:
  %pooled = inttoptr i64 %run to ptr
  %code = ptrtoint ptr %entry to i64
  %words = ptrtoint ptr %slots to i64
  call void %pooled(i64 %state, i64 %code, i64 %words, i64 %tasks, i64 %limit)
  br label %done
next:
  %task = phi i64 [0, %go], [%after, %one]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %one, label %done
one:
  call void %entry(ptr %slots, i64 %task, i64 %tasks)
  %after = add i64 %task, 1
  br label %next
done:
  call void @PyEval_RestoreThread(ptr %thread)
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
def code() -> dict[str, int]:
    """The addresses of the machine code that calls kernels; none where it cannot be loaded: a
    library of kernels is without it, or the system does not tell where Python's functions are."""
    from flambeau._runtime import engine

    try:
        return engine.symbols_of(SOURCE, ("call", "spread"))
    except RuntimeError:
        return {}


class Calls(NamedTuple):
    """A kernel's builtin functions."""

    direct: Any
    """(*arguments): as one task; other threads of Python wait meanwhile."""
    alone: Any
    """(*arguments): as one task; other threads of Python go on, which takes 0.05 us."""
    spread: Any
    """(run, state, tasks, limit, *arguments): by a pool's function at an address, `pool_run`; one
    task after the other where it is 0."""


def calls(address: int, letters: str) -> Calls | None:
    """The builtin functions of a kernel, whose arguments have a letter each: "d" for a
    floating-point number, "Q" for an array or an address, "q" for a whole number.

    Returns:
        None where there are no such functions.
    """
    if len(letters) > MOST or not code():
        return None
    doubles = sum(1 << k for k, letter in enumerate(letters) if letter == "d")
    call, spread = method(b"kernel", code()["call"]), method(b"tasks", code()["spread"])
    waits, shares = [
        RECORD.pack(address, len(letters), doubles, id(np.ndarray), shares) for shares in (0, 1)
    ]
    return Calls(builtin(call, waits), builtin(call, shares), builtin(spread, shares))
