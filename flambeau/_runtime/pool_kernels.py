"""The kernels of the thread pool: its threads' life, and how a job is handed to them."""

from __future__ import annotations

import platform

from flambeau._compiler.language import (
    atomic_add,
    atomic_exchange,
    atomic_load,
    atomic_store,
    call_address,
    cast,
    compare_exchange,
    external,
    i8,
    i32,
    i64,
    intrinsic,
    pointer,
)
from flambeau._compiler.native import native

# The state, in words of 64 bits; what different threads write lies in different cache lines.
NEXT = 0  # ticket << 32 | next task
DONE = 8  # tasks done
BUSY = 16  # whether a job is under way
SLEEPING = 24  # how many threads sleep
FUNCTION, ARGUMENTS, TASKS, LIMIT = 32, 33, 34, 35  # the job; how many threads may take part
MUTEX, CONDITION = 48, 64  # pthread's, with room to spare
WORDS = 96
SPINS = 10_000
"""Rounds (of some 20 ns) that a thread waits for more work before it sleeps."""
X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")


@native
def pause():
    """Tell the core that this thread only waits."""
    if X86:
        intrinsic("llvm.x86.sse2.pause", None)


@native
def take(state, ticket):
    """Run tasks of a job until none is left."""
    function = state[FUNCTION]
    arguments = state[ARGUMENTS]
    tasks = state[TASKS]
    while True:
        word = atomic_load(state + NEXT)
        task = word & 0xFFFFFFFF
        if (word >> 32 != ticket) | (task >= tasks):
            break
        if compare_exchange(state + NEXT, word, word + 1):
            call_address(function, cast(pointer(i8), arguments), task, tasks)
            atomic_add(state + DONE, 1)


@native
def worker(state: pointer(i64), number: i64):
    """The life of a thread: wait for a ticket, take part, wait again."""
    seen = i64(0)
    while True:
        spins = 0
        while (atomic_load(state + NEXT) >> 32 == seen) & (spins < SPINS):
            pause()
            spins += 1
        if atomic_load(state + NEXT) >> 32 == seen:
            external("pthread_mutex_lock", i32, state + MUTEX)
            atomic_add(state + SLEEPING, 1)
            while atomic_load(state + NEXT) >> 32 == seen:
                external("pthread_cond_wait", i32, state + CONDITION, state + MUTEX)
            atomic_add(state + SLEEPING, -1)
            external("pthread_mutex_unlock", i32, state + MUTEX)
        seen = atomic_load(state + NEXT) >> 32
        if number < atomic_load(state + LIMIT):
            take(state, seen)


@native
def run_job(state: pointer(i64), function: i64, arguments: i64, jobs: i64, limit: i64):
    """Run a job with the pool; alone where the pool is busy with another."""
    if atomic_exchange(state + BUSY, 1) != 0:
        for task in range(jobs):
            call_address(function, cast(pointer(i8), arguments), task, jobs)
    else:
        ticket = ((state[NEXT] >> 32) + 1) & 0x7FFFFFFF
        state[FUNCTION] = function
        state[ARGUMENTS] = arguments
        state[TASKS] = jobs
        atomic_store(state + LIMIT, limit)
        atomic_store(state + DONE, 0)
        atomic_exchange(state + NEXT, ticket << 32)
        if atomic_load(state + SLEEPING) > 0:
            external("pthread_mutex_lock", i32, state + MUTEX)
            external("pthread_cond_broadcast", i32, state + CONDITION)
            external("pthread_mutex_unlock", i32, state + MUTEX)
        take(state, ticket)
        spins = 0
        while atomic_load(state + DONE) < jobs:
            pause()
            spins += 1
            if spins & 0xFFF == 0:
                external("sched_yield", i32)
        atomic_store(state + BUSY, 0)
