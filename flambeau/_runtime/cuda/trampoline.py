"""A launch as a builtin function of Python: 0.2 us around the driver's own three.

The function's `self` is the record of a kernel; its machine code reads the addresses out of arrays,
the numbers out of Python's objects, and calls cuLaunchKernel. One piece of code serves all kernels
that take the same kinds of arguments. (Measured: 2.9-3.5 us, through ctypes 4.4-7.4.)
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache as cache_once
from typing import Any

from flambeau._runtime import engine
from flambeau._runtime.cpu import _HEADER
from flambeau._runtime.cuda.driver import Driver
from flambeau._runtime.trampoline import BYTES, KIND, builtin, method

RECORD = struct.Struct("QQQQ")
"""The address of cuLaunchKernel, the kernel's function, threads of a block, and what is called with
a status that is not 0."""
KEPT: list[Any] = []
"""Functions of Python that records name by their addresses."""
READ = {
    "Q": "  %got{k} = call i64 @address(ptr %object{k})\n",
    "q": "  %got{k} = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object{k})\n",
    "d": "  %number{k} = call double @PyFloat_AsDouble(ptr %object{k})\n"
         "  %got{k} = bitcast double %number{k} to i64\n",
}  # fmt: skip

ADDRESS = f"""
define internal i64 @address(ptr %object) alwaysinline {{
  %place = getelementptr i8, ptr %object, i64 {KIND}
  %kind = load ptr, ptr %place
  %is_int = icmp eq ptr %kind, @PyLong_Type
  br i1 %is_int, label %int, label %array
int:
  %number = call i64 @PyLong_AsUnsignedLongLongMask(ptr %object)
  ret i64 %number
array:
  %field = getelementptr i8, ptr %object, i64 {_HEADER}
  %found = load i64, ptr %field
  ret i64 %found
}}
"""
REFUSING = (
    "  %said = sext i32 %code to i64",
    "  %result = call ptr @PyLong_FromLong(i64 %said)",
    "  %refused = icmp ne i32 %code, 0",
    "  br i1 %refused, label %tell, label %done",
    "tell:",
    "  %at3 = getelementptr i64, ptr %record, i64 3",
    "  %teller = load ptr, ptr %at3",
    "  %told = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %teller, ptr %result, "
    "ptr null)",
    "  ret ptr %told",
    "done:",
    "  ret ptr %result",
)
"""The end of a function: a status that is not 0 goes to what raises an error."""
DECLARATIONS = """
@PyLong_Type = external global i8
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyLong_FromLong(i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
"""


def source(letters: str) -> str:
    """The function of Python for arguments of these kinds: (stream, blocks, *arguments)."""
    count = len(letters)
    lines = [
        "define ptr @launch(ptr %self, ptr %objects, i64 %given) {",
        f"  %slots = alloca [{max(count, 1)} x i64]",
        f"  %places = alloca [{max(count, 1)} x ptr]",
    ]
    for k in range(count + 2):
        lines += [f"  %from{k} = getelementptr ptr, ptr %objects, i64 {k}",
                  f"  %object{k} = load ptr, ptr %from{k}"]  # fmt: skip
    for k, letter in enumerate("qq" + letters):
        lines.append(READ[letter].format(k=k).rstrip())
    for k in range(count):
        lines += [f"  %slot{k} = getelementptr i64, ptr %slots, i64 {k}",
                  f"  store i64 %got{k + 2}, ptr %slot{k}",
                  f"  %place{k} = getelementptr ptr, ptr %places, i64 {k}",
                  f"  store ptr %slot{k}, ptr %place{k}"]  # fmt: skip
    lines += [
        "  %error = call ptr @PyErr_Occurred()",
        "  %failed = icmp ne ptr %error, null",
        "  br i1 %failed, label %raise, label %go",
        "raise:",
        "  ret ptr null",
        "go:",
        f"  %record = getelementptr i8, ptr %self, i64 {BYTES}",
        "  %entry = load ptr, ptr %record",
        "  %at1 = getelementptr i64, ptr %record, i64 1",
        "  %function = load ptr, ptr %at1",
        "  %at2 = getelementptr i64, ptr %record, i64 2",
        "  %wide = load i64, ptr %at2",
        "  %threads = trunc i64 %wide to i32",
        "  %blocks = trunc i64 %got1 to i32",
        "  %stream = inttoptr i64 %got0 to ptr",
        "  %code = call i32 %entry(ptr %function, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, "
        "i32 1, i32 0, ptr %stream, ptr %places, ptr null)",
        *REFUSING,
        "}",
    ]
    return DECLARATIONS + ADDRESS + "\n".join(lines) + "\n"


@cache_once
def code(letters: str) -> int:
    """The address of that function."""
    return engine.symbols_of(source(letters), ("launch",))["launch"]


def launch_address(driver: Driver) -> int:
    """Where cuLaunchKernel is; 0 for drivers without."""
    library = getattr(driver, "library", None)
    if library is None:
        return 0
    return ctypes.cast(library.cuLaunchKernel, ctypes.c_void_p).value or 0


def made(driver: Any, entry: int, letters: str, function: int, threads: int) -> Any:
    """The launching function of a kernel; raises CudaError where the driver refuses."""

    def refused(status: int) -> None:
        raise driver.error(status)

    KEPT.append(refused)
    record = RECORD.pack(entry, function, threads, id(refused))
    return builtin(method(b"launch", code(letters)), record)
