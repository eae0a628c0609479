"""cublasLtMatmul as a builtin function of Python: all but seven of its arguments are in a record.

Through ctypes the sixteen arguments of a call cost 2 us more than the call itself.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

from flambeau._runtime import engine
from flambeau._runtime.cuda.trampoline import ADDRESS, DECLARATIONS, READ
from flambeau._runtime.trampoline import BYTES, builtin, method

RECORD = struct.Struct("10Q")
"""The function, then what stands still: handle, description, layouts of A, B, C and D, algorithm,
workspace and its size."""
GIVEN = ("alpha", "a", "b", "beta", "c", "d", "stream")


def source() -> str:
    """The function of Python (alpha, a, b, beta, c, d, stream): addresses, or arrays for theirs."""
    lines = ["define ptr @product(ptr %self, ptr %objects, i64 %given) {"]
    for k in range(len(GIVEN)):
        lines += [f"  %from{k} = getelementptr ptr, ptr %objects, i64 {k}",
                  f"  %object{k} = load ptr, ptr %from{k}", READ["Q"].format(k=k).rstrip(),
                  f"  %{GIVEN[k]} = inttoptr i64 %got{k} to ptr"]  # fmt: skip
    lines.append(f"  %record = getelementptr i8, ptr %self, i64 {BYTES}")
    for k, name in enumerate(("entry", "handle", "how", "la", "lb", "lc", "ld", "algorithm",
                              "space")):  # fmt: skip
        lines += [f"  %at{k} = getelementptr i64, ptr %record, i64 {k}",
                  f"  %{name} = load ptr, ptr %at{k}"]  # fmt: skip
    lines += [
        "  %at9 = getelementptr i64, ptr %record, i64 9",
        "  %size = load i64, ptr %at9",
        "  %code = call i32 %entry(ptr %handle, ptr %how, ptr %alpha, ptr %a, ptr %la, ptr %b, "
        "ptr %lb, ptr %beta, ptr %c, ptr %lc, ptr %d, ptr %ld, ptr %algorithm, ptr %space, "
        "i64 %size, ptr %stream)",
        "  %said = sext i32 %code to i64",
        "  %result = call ptr @PyLong_FromLong(i64 %said)",
        "  ret ptr %result",
        "}",
    ]
    return DECLARATIONS + ADDRESS + "\n".join(lines) + "\n"


@cache
def _code() -> int:
    return engine.symbols_of(source(), ("product",))["product"]


def calling(function: Any, *still: int) -> Any:
    """A builtin function that calls a C function with what stands still."""
    entry = ctypes.cast(function, ctypes.c_void_p).value or 0
    return builtin(method(b"product", _code()), RECORD.pack(entry, *still))
