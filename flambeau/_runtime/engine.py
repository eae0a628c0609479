"""LLVM behind llvmlite: text in, machine code out, loaded into this process.

Nothing here is imported before the first kernel is needed. Without llvmlite (`choice.available`)
only the attempt to use it fails: what may launch kernels can be imported all the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections.abc import Callable
from functools import cache as cache_once
from pathlib import Path
from typing import Any

from flambeau._compiler import native as compiler
from flambeau._compiler.module import Module
from flambeau._runtime import cache, choice, library, machine_code, processor, rooms, stacks
from flambeau._version import __version__


class _Absent:
    """Stands for llvmlite where it is not installed."""

    def __getattr__(self, name: str) -> Any:
        raise ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite")


try:
    import llvmlite
    import llvmlite.binding as llvm
except ModuleNotFoundError as missing:
    if missing.name != "llvmlite":
        raise
    llvmlite = llvm = _Absent()
    VERSION = 0
else:
    VERSION = llvm.llvm_version_info[0]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()

DEBUG = frozenset(os.environ.get("FLAMBEAU_DEBUG", "").split("|"))


@cache_once
def host() -> tuple[str, str, frozenset[str]]:
    """The processor's name and its features in LLVM's words, and those that it has."""
    found = llvm.get_host_cpu_features()
    present = frozenset(name for name, is_there in found.items() if is_there)
    return llvm.get_host_cpu_name(), found.flatten(), present


@cache_once
def made_for() -> tuple[str, str, frozenset[str]]:
    """The same of the processor that kernels are made for: this one, what FLAMBEAU_CPU asks, or the
    library's, where all kernels are from there."""
    if choice.FROM_LIBRARY:
        opened = library.opened()
        if opened is not None:
            return opened.made_for[:3]
    return processor.made_for(processor.CHOSEN, *host())


@cache_once
def has(feature: str) -> bool:
    """Whether kernels may use a feature: "avx512f", "avx512bf16", "neon", "f16c" ..."""
    return feature in made_for()[2]


@cache_once
def vector_bits() -> int:
    """The width of a vector register: 512 with AVX-512, 256 with AVX, else 128."""
    return 512 if has("avx512f") else 256 if has("avx") else 128


@cache_once
def target(level: int = 1) -> Any:
    """The machine that code is made for. `level`: how hard code is worked on, 0 to 3.

    What runs is as fast at 1 as at 3, and made in two thirds to three quarters of the time.
    """
    name, features, _ = made_for()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(cpu=name, features=features, opt=level, jit=True)


@cache_once
def linker() -> Any:
    """What loads machine code into the process."""
    return llvm.create_lljit_compiler(target())


@cache_once
def fingerprint() -> str:
    """All that the machine code of a kernel depends on besides the kernel: compiler, LLVM, CPU.

    The compiler is all of its files, those of its subfolders too: functions of `vector_math`, for
    one, are written into kernels that never name them. Files count by size and time: reading them
    would take longer than loading a kernel.
    """
    parts: list[Any] = [__version__, llvmlite.__version__, VERSION, sys.platform, *made_for()[:2]]
    folder = Path(compiler.__file__).parent
    for path in (Path(__file__), *sorted(folder.rglob("*.py"))):
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


def new_module(checked: bool = False) -> Module:
    """An empty module for the processor."""
    halves = has("f16c") or not processor.X86
    return Module(checked=checked, llvm_version=VERSION, halves=halves, room_key=rooms.kind())


def text_of(native: Any, statics: dict[str, Any], checked: bool) -> Module:
    """The kernel as LLVM IR."""
    module = new_module(checked)
    module.entry(native, statics)
    return module


def compile_object(native: Any, statics: dict[str, Any], checked: bool) -> bytes:
    """The kernel as machine code, in the system's object format."""
    text = text_of(native, statics, checked).text()
    if "loops" in DEBUG:
        sys.stderr.write(f"# kernel {native.name} {statics}\n{native.parts}{native.source}\n")
    if checked:
        return assemble(text, CHECKED_PASSES, 0)
    return assemble(text, None if native.vectorize else PASSES)


def assemble(text: str, passes: tuple[str, ...] | None, level: int = 1) -> bytes:
    """LLVM IR as machine code; see `optimise` and `target`."""
    if "llvm" in DEBUG:
        sys.stderr.write(text)
    return stacks.with_enough(lambda: _assembled(text, passes, level))


def _assembled(text: str, passes: tuple[str, ...] | None, level: int) -> bytes:
    parsed = llvm.parse_assembly(text)
    parsed.verify()
    optimise(parsed, passes)
    if "asm" in DEBUG:
        sys.stderr.write(target(level).emit_assembly(parsed))
    return target(level).emit_object(parsed)  # type: ignore[no-any-return]


PASSES = (
    "always_inliner", "sroa", "instruction_combine", "simplify_cfg", "loop_rotate", "new_gvn",
    "instruction_combine", "dead_store_elimination", "simplify_cfg", "aggressive_dce",
)  # fmt: skip
"""What kernels need: calls taken in, variables in registers, common subexpressions. They are
vectors already and unrolled where that pays; the code is as fast as that of LLVM's own list of
passes (-O2), which takes three times as long (benchmarks/runtime.py, "compile")."""


CHECKED_PASSES = ("always_inliner", "sroa", "simplify_cfg")
"""What checked kernels get. They run a few times, so that compiling is what they cost: with these
passes, and code that nobody works on, it is done in a sixth of the time."""


def optimise(parsed: Any, passes: tuple[str, ...] | None) -> None:
    """LLVM's passes: those named, or all of -O2 with its vectorisers for None."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = passes is None
    options.loop_unrolling = options.loop_interleaving = passes is None
    builder = llvm.create_pass_builder(target(), options)
    if passes is None:
        builder.getModulePassManager().run(parsed, builder)
        return
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    manager.run(parsed, builder)


def symbols(native: Any, statics: dict[str, Any], checked: bool) -> dict[str, int]:
    """Addresses of a kernel's `entry` (and `fault`), from a library, the cache or the compiler."""
    form = "checked" if checked else "entry"
    wanted = ("entry", "fault") if checked else ("entry",)
    return _found((native,), statics, form, wanted,
                  lambda: compile_object(native, statics, checked))  # fmt: skip


def functions(natives: tuple[Any, ...], **statics: Any) -> dict[str, int]:
    """Addresses of kernels as C functions that share one piece of machine code."""

    def made() -> bytes:
        module = new_module()
        for native in natives:
            named = {p.name: statics[p.name] for p in native.parameters if p.static}
            module.export(native, named)
        return assemble(module.text(), PASSES)

    wanted = tuple(native.name for native in natives)
    return _found(natives, statics, "functions", wanted, made)


def symbols_of(text: str, names: tuple[str, ...]) -> dict[str, int]:
    """The addresses of functions that are written as LLVM IR."""
    return _found((), {"text": text}, " ".join(names), names, lambda: assemble(text, PASSES))


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
    if opened is None or opened.made_for[:2] != made_for()[:2]:
        return None
    return opened


def loaded(key: str, wanted: tuple[str, ...], made: Callable[[], bytes],
           name: str = "") -> dict[str, int]:  # fmt: skip
    """Addresses of symbols in machine code that the cache has under a key, or that is made now.
    `name`: under which a library keeps it, while one is recorded."""
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


class Linked:
    """How many pieces of machine code LLVM has loaded: each gets a name of its own."""

    count = 0
    lock = threading.Lock()


def _link(key: str, code: bytes, wanted: tuple[str, ...]) -> dict[str, int]:
    if machine_code.POSSIBLE:
        with contextlib.suppress(machine_code.NotPlain):
            return machine_code.place(code, wanted, rooms.symbols())
    return _link_by_llvm(key, code, wanted)


def _link_by_llvm(key: str, code: bytes, wanted: tuple[str, ...]) -> dict[str, int]:
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name, address in rooms.symbols().items():
        builder = builder.import_symbol(name, address)
    for name in wanted:
        builder = builder.export_symbol(name)
    with Linked.lock:  # one linker for all: code goes with the linker that has loaded it
        Linked.count += 1
        name = f"{key}.{Linked.count}"
        library = stacks.with_enough(lambda: builder.link(linker(), name))
    addresses = {name: library[name] for name in wanted}
    # Code is never unloaded: threads and arrays may need it until the process is gone.
    library.detach()
    return addresses
