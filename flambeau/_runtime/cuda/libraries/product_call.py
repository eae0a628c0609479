"""cublasLtMatmul as a builtin function of Python: all but seven of its arguments are in a record.

Through ctypes the sixteen arguments of a call cost 2 us more than the call itself.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache
from typing import Any

from flambeau._runtime import engine
from flambeau._runtime.trampoline import FILL, HEAD, builtin, function, head, method, record, words

STILL = ("ptr handle", "ptr how", "ptr la", "ptr lb", "ptr lc", "ptr ld", "ptr algorithm",
         "ptr space", "i64 size")  # fmt: skip
"""What stands still: handle, description, layouts of A, B, C and D, algorithm, workspace and its
size."""
GIVEN = ("ptr alpha", "ptr a", "ptr b", "ptr beta", "ptr c", "ptr d", "ptr stream")
"""Addresses, or arrays for theirs."""
RECORD = struct.Struct(f"{len(HEAD) + len(STILL)}Q")
SOURCE = FILL + function("product", f"""\
{record(*HEAD, *STILL)}
{words("slots", *GIVEN)}
  %code = call i32 %entry(ptr %handle, ptr %how, ptr %alpha, ptr %a, ptr %la, ptr %b, ptr %lb,
                          ptr %beta, ptr %c, ptr %lc, ptr %d, ptr %ld, ptr %algorithm, ptr %space,
                          i64 %size, ptr %stream)
  %said = sext i32 %code to i64
  %result = call ptr @PyLong_FromLong(i64 %said)""")  # fmt: skip


@cache
def _code() -> int:
    return engine.symbols_of(SOURCE, ("product",))["product"]


def calling(product: Any, *still: int) -> Any:
    """A builtin function (alpha, a, b, beta, c, d, stream), which calls a C function with what
    stands still."""
    entry = ctypes.cast(product, ctypes.c_void_p).value or 0
    start = head(entry, "Q" * len(GIVEN), any_class=True)
    return builtin(method(b"product", _code()), RECORD.pack(*start, *still))
