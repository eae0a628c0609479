"""What runs the threads of a block on the CPU: fibers, and whose turn it is.

The kernels of this file are written into the module of each emulated kernel (`emulated.py`).
"""

from __future__ import annotations

import platform

from flambeau._compiler.emitter import Value
from flambeau._compiler.expressions import Expressions
from flambeau._compiler.language import Word, cast, i8, i64, pointer, static, unroll
from flambeau._compiler.native import native

MOST = 1024
"""Threads of a block."""
STACK = 1 << 17
"""Bytes of a fiber's stack."""
SLOTS = {"thread": 0, "block": 1, "blocks": 2, "scheduler": 3, "arguments": 4, "threads": 5,
         "distance": 6}  # fmt: skip
READY, DONE, BLOCK, WARP = 0, 1, 2, 3
"""What a fiber is: it can run, has ended, waits for its block or for its warp."""
HEAD = 9
"""Words before a kernel's arguments: blocks, threads, the first block and the step to the next,
the same for threads, the stacks, room for what went wrong, and how far from their addresses the
bytes of device memory lie."""
TABLES = {"state": 8, "saved": MOST, "status": MOST, "turn": MOST, "lanes": 2 * MOST,
          "stamps": 2 * MOST}  # fmt: skip
"""Arrays of the module, in words."""

SWITCHES = {
    "x86_64": (
        "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15;"
        "movq %rsp, (%rdi); movq (%rsi), %rsp;"
        "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; retq",
        7, 6,
    ),
    "aarch64": (
        "sub sp, sp, #160; stp x19, x20, [sp]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32];"
        "stp x25, x26, [sp, #48]; stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80];"
        "stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128];"
        "stp d14, d15, [sp, #144]; mov x9, sp; str x9, [x0]; ldr x9, [x1]; mov sp, x9;"
        "ldp x19, x20, [sp]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32];"
        "ldp x25, x26, [sp, #48]; ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80];"
        "ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128];"
        "ldp d14, d15, [sp, #144]; add sp, sp, #160; ret",
        20, 11,
    ),
}  # fmt: skip
"""Keep the registers that a called function must keep on the stack, the stack's end in memory, and
go on where another fiber stopped; words of such a frame, and which one is the address to go to."""
MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}.get(
    platform.machine().lower(), platform.machine().lower()
)
SWITCH, FRAME, START = SWITCHES.get(MACHINE, ("", 0, 0))


def _table(name: str) -> Word:
    return Word(name, lambda to: Value(pointer(i64), f"@emulated.{name}"))


state, saved, status, turn, lanes, stamps = (_table(name) for name in TABLES)


def _emit_switch(to: Expressions, here: Value, there: Value) -> None:
    to.emit.line(f"call void @emulated.switch({here.typed}, {there.typed})")


switch = Word("switch", _emit_switch)
begin = Word("begin", lambda to: Value(i64, "ptrtoint (ptr @emulated.begin to i64)"))
run_thread = Word("run_thread", lambda to: to.emit.line("call void @emulated.thread()"))
spoil = Word("spoil", lambda to: to.emit.line("call void @emulated.spoil()"))


# ---- what threads do


@native
def wait(KIND: static):
    """Stop until all others of the block, or of the warp, have come as far."""
    here = state()[0]
    status()[here] = KIND
    switch(saved() + here, state() + 3)


@native
def handed(bits: i64):
    """Where the lanes of the warp have put their words, one's own among them."""
    here = state()[0]
    number = turn()[here] + 1
    turn()[here] = number
    side = number % 2 * MOST  # lanes may be one exchange ahead of each other
    lanes()[side + here] = bits
    stamps()[side + here] = number
    wait(WARP)
    return side + here // 32 * 32


@native
def exchange(bits: i64, lane: i64, MODE: static):
    """The word of another lane."""
    own = state()[0] % 32
    if MODE == "bfly":
        source = own ^ lane
    elif MODE == "up":
        source = own - lane if own >= lane else own
    else:
        source = lane
    return lanes()[handed(bits) + source]


@native
def votes(bit: i64):
    """A bit of every lane; lanes that had ended before, or are not there, vote 0."""
    at = handed(bit)
    number = turn()[state()[0]]
    found = 0
    for lane in range(32):
        if stamps()[at + lane] == number:
            found = found | (lanes()[at + lane] << lane)
    return found


@native
def end():
    """A fiber has come to its end: never go on here."""
    here = state()[0]
    status()[here] = DONE
    switch(saved() + here, state() + 3)


# ---- whose turn it is


@native
def prepare(stacks: pointer(i8), threads: i64):
    """Every fiber at its beginning."""
    for t in range(threads):
        frame = cast(pointer(i64), stacks + (t + 1) * STACK - (FRAME + 8) // 2 * 16)
        for k in unroll(FRAME):
            frame[k] = 0
        frame[START] = begin()
        saved()[t] = i64(frame)
        status()[t] = READY
        turn()[t] = 0
    for k in range(2 * MOST):
        stamps()[k] = 0


@native
def wake(first: i64, stop: i64, KIND: static):
    """Let those go on that wait for one thing."""
    for t in range(first, stop):
        if status()[t] == KIND:
            status()[t] = READY


@native
def count(first: i64, stop: i64, KIND: static):
    """How many threads are of a kind."""
    found = 0
    for t in range(first, stop):
        if status()[t] == KIND:
            found += 1
    return found


@native
def go_on(threads: i64, left: i64):
    """Wake the block where all that are left wait for it, and each warp likewise."""
    if count(0, threads, BLOCK) == left:
        wake(0, threads, BLOCK)
    for w in range(0, threads, 32):
        stop = threads if threads < w + 32 else w + 32
        if count(w, stop, READY) + count(w, stop, BLOCK) == 0:
            wake(w, stop, WARP)


@native
def run_block(threads: i64, first: i64, step: i64, stacks: pointer(i8)):
    """Let the fibers of a block take turns until all have ended; 1 where all wait in vain."""
    prepare(stacks, threads)
    left = threads
    while left > 0:
        ran = 0
        t = first
        for _ in range(threads):
            if status()[t] == READY:
                state()[0] = t
                ran += 1
                switch(state() + 3, saved() + t)
                if status()[t] == DONE:
                    left -= 1
            t = (t + step) % threads
        if ran == 0:
            return 1
        go_on(threads, left)
    return 0


@native
def run_kernel(args: pointer(i64), WAITS: static):
    """All blocks, one after the other."""
    count, threads = args[0], args[1]
    state()[2] = count
    state()[4] = i64(args + HEAD)
    state()[5] = threads
    state()[6] = args[8]
    b = args[2]
    args[7] = 0
    for _ in range(count):
        state()[1] = b
        b = (b + args[3]) % count
        spoil()
        if WAITS:
            if run_block(threads, args[4], args[5], cast(pointer(i8), args[6])) != 0:
                args[7] = 1
                break
        else:
            t = args[4]
            for _ in range(threads):
                state()[0] = t
                run_thread()
                t = (t + args[5]) % threads
