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
SLOTS = 64
"""Words that a function has room for: as many as a record has bits for their kinds."""
FIRST = 4
"""What `Calls.spread` is given before a kernel's arguments."""
MOST = SLOTS - FIRST
"""Arguments of a kernel."""


def words(base: str, *names: str, first: int = 0) -> str:
    """The text that reads the words at a pointer, each "type name", from the word `first` on."""
    lines = []
    for k, (kind, name) in enumerate((word.split() for word in names), first):
        lines += [f"  %{name}.at = getelementptr i64, ptr %{base}, i64 {k}",
                  f"  %{name} = load {kind}, ptr %{name}.at"]  # fmt: skip
    return "\n".join(lines)


def record(*names: str) -> str:
    """The text that reads the record behind a function's `self`."""
    where = f"  %record = getelementptr i8, ptr %self, i64 {BYTES}\n"
    return where + words("record", *names)


HEAD = ("ptr entry", "i64 count", "i64 doubles", "ptr arrays", "i64 addresses")
"""The record's first words, see `head`."""


def head(entry: int, letters: str, any_class: bool = False) -> tuple[int, ...]:
    """What is called, and how the text of `FILL` reads the arguments: their number, a bit for each
    that is a floating-point number, the class of arrays, and a bit for each that is an array of
    `any_class` if it is not a number."""
    doubles, addresses = (
        sum(1 << k for k, letter in enumerate(letters) if letter == kind) for kind in "dQ"
    )
    return entry, len(letters), doubles, id(np.ndarray), addresses if any_class else 0


FILL = f"""
@PyLong_Type = external global i8
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyNumber_Long(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyLong_FromLong(i64)
declare i32 @PyErr_BadArgument()
declare void @Py_DecRef(ptr)

; a word for each object, as the record behind `self` says; whether one raised an error
define internal i1 @fill(ptr %self, ptr %objects, i64 %given, ptr %slots) alwaysinline nounwind {{
begin:
{record(*HEAD)}
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
  %double.shifted = lshr i64 %doubles, %k
  %is_double = trunc i64 %double.shifted to i1
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
  %address.shifted = lshr i64 %addresses, %k
  %is_address = trunc i64 %address.shifted to i1
  br i1 %is_address, label %array, label %convert
convert:
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
"""
"""The reading of arguments, for all functions whose records begin with `HEAD`."""


def function(name: str, body: str) -> str:
    """The text of a function whose arguments are in `slots` when its body, which ends with a
    `result`, begins."""
    return f"""
define ptr @{name}(ptr %self, ptr %objects, i64 %given) nounwind {{
begin:
  %slots = alloca [{SLOTS} x i64]
  %failed = call i1 @fill(ptr %self, ptr %objects, i64 %given, ptr %slots)
  br i1 %failed, label %raise, label %go
raise:
  ret ptr null
go:
{body}
  ret ptr %result
}}
"""


RECORD = struct.Struct(f"{len(HEAD) + 1}Q")
"""`HEAD`, and whether other threads of Python may go on meanwhile."""

# (*arguments): one task in this thread
CALL = function("call", f"""\
{record(*HEAD, "i64 shares")}
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
  %result = call ptr @PyLong_FromLong(i64 0)""")  # fmt: skip

# (run, state, tasks, limit, *arguments): by a pool's function, or one task after the other
SPREAD = function("spread", f"""\
{record("ptr entry")}
{words("slots", "i64 run", "i64 state", "i64 tasks", "i64 limit")}
  %own = getelementptr i64, ptr %slots, i64 {FIRST}
  %thread = call ptr @PyEval_SaveThread()
  %by_pool = icmp ne i64 %run, 0
  br i1 %by_pool, label %pool, label %next
pool:
  %pooled = inttoptr i64 %run to ptr
  %code = ptrtoint ptr %entry to i64
  %address = ptrtoint ptr %own to i64
  call void %pooled(i64 %state, i64 %code, i64 %address, i64 %tasks, i64 %limit)
  br label %done
next:
  %task = phi i64 [0, %go], [%after, %one]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %one, label %done
one:
  call void %entry(ptr %own, i64 %task, i64 %tasks)
  %after = add i64 %task, 1
  br label %next
done:
  call void @PyEval_RestoreThread(ptr %thread)
  %result = call ptr @PyLong_FromLong(i64 0)""")  # fmt: skip

SOURCE = (
    f"{FILL}\ndeclare ptr @PyEval_SaveThread()\ndeclare void @PyEval_RestoreThread(ptr)\n"
    + CALL
    + SPREAD
)


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
    call, spread = method(b"kernel", code()["call"]), method(b"tasks", code()["spread"])
    one = head(address, letters)
    tasks = RECORD.pack(*head(address, "q" * FIRST + letters), 1)
    waits, shares = (RECORD.pack(*one, shares) for shares in (0, 1))
    return Calls(builtin(call, waits), builtin(call, shares), builtin(spread, tasks))
