"""Kernels in this process: from a library, from the cache on disk, or made by LLVM (`llvm`).

LLVM is loaded when something must be compiled, not before: 0.16 s and 45 MB that a program has no
use for whose kernels lie in the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache as cache_once
from pathlib import Path
from typing import Any

from flambeau._compiler import native as compiler
from flambeau._core import forks
from flambeau._runtime import cache, choice, features, library, machine_code, rooms
from flambeau._version import __version__


@cache_once
def fingerprint() -> str:
    """All that the machine code of a kernel depends on besides the kernel: compiler, LLVM, CPU.

    The compiler is all of its files, those of its subfolders too: functions of `vector_math`, for
    one, are written into kernels that never name them. Files count by size and time: reading them
    would take longer than loading a kernel.
    """
    made_with = (*features.compiler_stamp(), *features.made_for()[:2])
    parts: list[Any] = [__version__, sys.platform, *made_with]
    folder = Path(compiler.__file__).parent
    maker = Path(__file__).with_name("llvm.py")
    for path in (maker, *sorted(folder.rglob("*.py"))):
        status = path.stat()
        parts += [os.path.relpath(path, folder), status.st_size, status.st_mtime_ns]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def key_of(natives: tuple[Any, ...], statics: dict[str, Any], form: str) -> str:
    """The name of machine code in the cache; `form`: how it is called, and whether checked."""
    digest = hashlib.sha256()
    listed = [f"{name}={compiler.stamp(value)}" for name, value in sorted(statics.items())]
    made_of = [native.digest() for native in natives]
    for part in (fingerprint(), *made_of, *listed, form):
        digest.update(f"{part}\0".encode())
    return digest.hexdigest()


def symbols(native: Any, statics: dict[str, Any], checked: bool) -> dict[str, int]:
    """Addresses of a kernel's `entry` (and `fault`), from a library, the cache or the compiler."""
    form = "checked" if checked else "entry"
    wanted = ("entry", "fault") if checked else ("entry",)

    def made() -> bytes:
        from flambeau._runtime import llvm

        return llvm.compile_object(native, statics, checked)

    return _found((native,), statics, form, wanted, made)


def functions(natives: tuple[Any, ...], **statics: Any) -> dict[str, int]:
    """Addresses of kernels as C functions that share one piece of machine code."""

    def made() -> bytes:
        from flambeau._runtime import llvm

        return llvm.compile_functions(natives, statics)

    wanted = tuple(native.name for native in natives)
    return _found(natives, statics, "functions", wanted, made)


def symbols_of(text: str, names: tuple[str, ...]) -> dict[str, int]:
    """The addresses of functions that are written as LLVM IR."""
    return _found((), {"text": text}, " ".join(names), names, lambda: assembled(text))


def assembled(text: str) -> bytes:
    """Functions written as LLVM IR, as machine code."""
    from flambeau._runtime import llvm

    return llvm.assemble(text, llvm.PASSES)


def _found(
    natives: tuple[Any, ...], statics: dict[str, Any], form: str, wanted: tuple[str, ...],
    made: Callable[[], bytes],
) -> dict[str, int]:  # fmt: skip
    """Addresses of symbols: from the library if it has them, else by `loaded`.

    Raises:
        KernelMissing: the library has them not, and there is no llvmlite.
    """
    opened = usable_library()
    name = ""
    if opened is not None or library.Recording.kept is not None:
        name = library.name_of(natives, statics, form)
    code = None if opened is None else opened.read(name)
    if code is not None:
        library.keep(name, code)
        return _link(name, code, wanted)
    if choice.FROM_LIBRARY:
        asked = f"kernel {natives[0].name} for {statics}" if natives else f"function {form}"
        raise choice.KernelMissing(
            f"{choice.LIBRARY} has no {asked}: make it again by "
            "`flambeau warmup --library` with a program that needs it, or install llvmlite"
        )
    return loaded(key_of(natives, statics, form), wanted, made, name)


@cache_once
def usable_library() -> library.Library | None:
    """The library of kernels, if those are what would be compiled here."""
    opened = library.opened()
    if opened is None or opened.made_for[:2] != features.made_for()[:2]:
        return None
    return opened


def loaded(key: str, wanted: tuple[str, ...], made: Callable[[], bytes],
           name: str = "") -> dict[str, int]:  # fmt: skip
    """Addresses of symbols in machine code that the cache has under a key, or that is made now.
    `name`: under which a library keeps it, while one is recorded."""
    with forks.held_off():
        code = cache.read(key)
        if code is None:
            code = made()
            cache.write(key, code)
        try:
            found = _link(key, code, wanted)
        except RuntimeError:  # what LLVM says of machine code that it cannot load
            cache.remove(key)
            code = made()
            found = _link(key, code, wanted)
    library.keep(name, code)
    return found


def _link(key: str, code: bytes, wanted: tuple[str, ...]) -> dict[str, int]:
    if machine_code.POSSIBLE:
        with contextlib.suppress(machine_code.NotPlain):
            return machine_code.place(code, wanted, rooms.symbols())
    from flambeau._runtime import llvm

    return llvm.link(key, code, wanted)
