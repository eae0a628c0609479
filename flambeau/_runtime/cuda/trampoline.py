"""A launch as a builtin function of Python: 0.2 us around the driver's own three.

The function's `self` is the record of a kernel; its machine code reads the addresses out of arrays,
the numbers out of Python's objects, and calls cuLaunchKernel. (Measured: 2.9-3.5 us, through ctypes
4.4-7.4.)
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache as cache_once
from typing import Any

from flambeau._runtime import engine
from flambeau._runtime.cuda.driver import Driver
from flambeau._runtime.trampoline import (
    FILL,
    HEAD,
    SLOTS,
    builtin,
    function,
    head,
    method,
    record,
    words,
)

NUMBERS = "qq"
"""What a launch is given before a kernel's arguments: the stream and the number of blocks."""
MOST = SLOTS - len(NUMBERS)
"""Arguments of a kernel."""
RECORD = struct.Struct(f"{len(HEAD) + 3}Q")
"""`HEAD`, with the address of cuLaunchKernel; the kernel's function, threads of a block, and what
is called with a status that is not 0."""
KEPT: list[Any] = []
"""Functions of Python that records name by their addresses."""

# (stream, blocks, *arguments)
LAUNCH = function("launch", f"""\
  %places = alloca [{SLOTS} x ptr]
{record(*HEAD, "ptr function", "i64 wide", "ptr teller")}
{words("slots", "ptr stream", "i64 number")}
  br label %next
next:
  %k = phi i64 [2, %go], [%after, %point]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %point, label %call
point:
  %slot = getelementptr i64, ptr %slots, i64 %k
  %place = getelementptr ptr, ptr %places, i64 %k
  store ptr %slot, ptr %place
  %after = add i64 %k, 1
  br label %next
call:
  %own = getelementptr ptr, ptr %places, i64 2
  %threads = trunc i64 %wide to i32
  %blocks = trunc i64 %number to i32
  %code = call i32 %entry(ptr %function, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1,
                          i32 0, ptr %stream, ptr %own, ptr null)
  %said = sext i32 %code to i64
  %result = call ptr @PyLong_FromLong(i64 %said)
  %refused = icmp ne i32 %code, 0
  br i1 %refused, label %tell, label %done
tell:
  %told = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %teller, ptr %result, ptr null)
  ret ptr %told
done:""")  # fmt: skip
SOURCE = f"{FILL}\ndeclare ptr @PyObject_CallFunctionObjArgs(ptr, ...)\n{LAUNCH}"


@cache_once
def code() -> int:
    """The address of that function."""
    return engine.symbols_of(SOURCE, ("launch",))["launch"]


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
    return launcher(entry, letters, function, threads, refused)


def launcher(entry: int, letters: str, function: int, threads: int, told: Any) -> Any:
    """The same for a launching function at an address, and what is told of other results than 0."""
    record = RECORD.pack(
        *head(entry, NUMBERS + letters, any_class=True), function, threads, id(told)
    )
    return builtin(method(b"launch", code()), record)
