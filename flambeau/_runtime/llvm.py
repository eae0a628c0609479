"""LLVM behind llvmlite: text in, machine code out.

Imported by what compiles, when it does; without llvmlite that is a ModuleNotFoundError.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache as cache_once
from typing import Any

import llvmlite.binding as binding

from flambeau._compiler.module import Module
from flambeau._runtime import features, processor, rooms, stacks

VERSION = binding.llvm_version_info[0]
binding.initialize_native_target()
binding.initialize_native_asmprinter()

DEBUG = frozenset(os.environ.get("FLAMBEAU_DEBUG", "").split("|"))


def host() -> tuple[str, str, list[str]]:
    """This processor's name, its features as LLVM takes them, and those that it has."""
    found = binding.get_host_cpu_features()
    present = [name for name, is_there in found.items() if is_there]
    return binding.get_host_cpu_name(), found.flatten(), present


@cache_once
def target(level: int = 1) -> Any:
    """The machine that code is made for. `level`: how hard code is worked on, 0 to 3.

    What runs is as fast at 1 as at 3, and made in two thirds to three quarters of the time.
    """
    name, flags, _ = features.made_for()
    triple = binding.Target.from_default_triple()
    return triple.create_target_machine(cpu=name, features=flags, opt=level, jit=True)


@cache_once
def linker() -> Any:
    """What loads machine code into the process."""
    return binding.create_lljit_compiler(target())


def new_module(checked: bool = False) -> Module:
    """An empty module for the processor."""
    halves = features.has("f16c") or not processor.X86
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


def compile_functions(natives: tuple[Any, ...], statics: dict[str, Any]) -> bytes:
    """Kernels as C functions, as one piece of machine code."""
    module = new_module()
    for native in natives:
        named = {p.name: statics[p.name] for p in native.parameters if p.static}
        module.export(native, named)
    return assemble(module.text(), PASSES)


def assemble(text: str, passes: tuple[str, ...] | None, level: int = 1) -> bytes:
    """LLVM IR as machine code; see `optimise` and `target`."""
    if "llvm" in DEBUG:
        sys.stderr.write(text)
    return stacks.with_enough(lambda: _assembled(text, passes, level))


def _assembled(text: str, passes: tuple[str, ...] | None, level: int) -> bytes:
    parsed = binding.parse_assembly(text)
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
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = passes is None
    options.loop_unrolling = options.loop_interleaving = passes is None
    builder = binding.create_pass_builder(target(), options)
    if passes is None:
        builder.getModulePassManager().run(parsed, builder)
        return
    manager = binding.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    manager.run(parsed, builder)


class Linked:
    """How many pieces of machine code LLVM has loaded: each gets a name of its own."""

    count = 0
    lock = threading.Lock()


def link(key: str, code: bytes, wanted: tuple[str, ...]) -> dict[str, int]:
    """Load an object by LLVM's linker; the addresses of the symbols that are wanted."""
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
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
