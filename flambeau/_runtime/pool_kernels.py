"""The kernels of the thread pool: its threads' life, and how a job is handed to them.

A job is a kernel, its packed arguments and a number of tasks. One word holds the job's ticket and
its next task; a thread takes a task by counting that word up, so a thread that comes late finds
another ticket or no task and takes nothing, and nobody waits for a thread that has nothing to do.
While a job is being written down the ticket is odd: what a thread has read of a job is one job's if
it can take a task of it.

Who begins a job wakes two sleeping threads, and each of those two more, before the first task; one
more before each further task, as long as tasks are left. So the last of n threads is woken after
some log2(n) wake-ups, and a job that is over soon wakes few.
"""

from __future__ import annotations

import ctypes
import os
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
    stack,
)
from flambeau._compiler.native import native

# The state, in words of 64 bits; what different threads write lies in different cache lines.
NEXT = 0  # ticket << 32 | next task; tickets are even, odd ones of jobs that are not ready
DONE = 8  # tasks done
BUSY = 16  # whether a job is under way
SLEEPING = 24  # how many threads sleep
FUNCTION, ARGUMENTS, TASKS, LIMIT = 32, 33, 34, 35  # the job; how many threads may take part
FLOATS = 36  # how the job's caller treats denormal numbers: its register MXCSR
PLACES = 37  # where the threads' places begin
ROUSED = 40  # ticket << 32 | the first thread that nobody has thought of waking
WORDS = 48

# A thread's place, in words of 64 bits: what it is told when it begins, and what it tells.
STATE, NUMBER = 0, 1  # numbers count from 1; 0 is who begins the job
HANDLE = 2  # pthread's name of it
ASLEEP = 3  # whether it sleeps
AWAY = 4  # 1 + the processor that it was kept from, or 0
SPIN = 5  # nanoseconds that it looks for more work before it sleeps
MUTEX, CONDITION = 8, 16  # pthread's, with room to spare
PLACE = 24
MOST = 1024  # threads of a pool

TICKETS = 0x7FFFFFFE
BRANCHES = 2  # threads that each one wakes before it begins
ROUNDS = 256  # looks (of some 20 ns) between two looks at the clock
X86 = platform.machine().lower() in ("x86_64", "amd64", "i686")
FLUSH_RESULTS, FLUSH_OPERANDS = 0x8000, 0x40  # bits of MXCSR: FTZ and DAZ
POSIX = os.name == "posix"
CLOCK = 1 if platform.system() == "Linux" else 6  # CLOCK_MONOTONIC
PLACED = hasattr(ctypes.pythonapi, "pthread_setaffinity_np")  # whether threads have processors
SET = 16  # words of a set of processors


@native
def words(address: i64):
    """Words at an address."""
    return cast(pointer(i64), address)


@native
def pause():
    """Tell the core that this thread only waits."""
    if X86:
        intrinsic("llvm.x86.sse2.pause", None)


@native
def floats():
    """How this thread calculates: the register MXCSR of x86, 0 on other processors."""
    mode = i64(0)
    if X86:
        place = stack(i32, 1)
        intrinsic("llvm.x86.sse.stmxcsr", None, place)
        mode = i64(place[0])
    return mode


@native
def set_floats(mode):
    """Calculate as another thread does."""
    if X86:
        place = stack(i32, 1)
        place[0] = i32(mode)
        intrinsic("llvm.x86.sse.ldmxcsr", None, place)


@native
def flush_denormals(flush: i64):
    """Let this thread take denormal numbers, operands and results, for zero, or not (0)."""
    set_floats((floats() & ~(FLUSH_RESULTS | FLUSH_OPERANDS)) | flush)


@native
def wait_for(counter, count):
    """Until other threads have counted so far. Where there are more threads than cores, one that
    has still to count may need this core: it is offered now and then."""
    rounds = 0
    while atomic_load(counter) < count:
        pause()
        rounds += 1
        if POSIX:
            if rounds & 0x3FF == 0:
                external("sched_yield", i32)


@native
def now():
    """The time in nanoseconds."""
    place = stack(i64, 2)
    external("clock_gettime", i32, i32(CLOCK), place)
    return place[0] * 1_000_000_000 + place[1]


@native
def offered(state, place, seen):
    """The ticket of a job that a thread may join, other than the one it has seen; else 0."""
    ticket = atomic_load(state + NEXT) >> 32
    joins = (ticket != seen) & (ticket & 1 == 0) & (place[NUMBER] < atomic_load(state + LIMIT))
    return select(joins, ticket, i64(0))


@native
def take(state, ticket):
    """Run tasks of a job until none is left."""
    set_floats(state[FLOATS])
    function = state[FUNCTION]
    arguments = state[ARGUMENTS]
    tasks = state[TASKS]
    limit = state[LIMIT]
    wakes = i64(BRANCHES)
    while True:
        word = atomic_load(state + NEXT)
        task = word & 0xFFFFFFFF
        if (word >> 32 != ticket) | (task >= tasks):
            break
        if compare_exchange(state + NEXT, word, word + 1):
            if task + 1 < tasks:
                rouse(state, ticket, limit, wakes)
                wakes = i64(1)
            call_address(function, cast(pointer(i8), arguments), task, tasks)
            atomic_add(state + DONE, 1)


@native
def spin(state, place, seen):
    """Look out for a job for a while: its ticket, or 0. The core is not left to others meanwhile:
    they would keep it for milliseconds, and the jobs of that time would run without this thread."""
    end = now() + place[SPIN]
    rounds = 0
    ticket = offered(state, place, seen)
    while ticket == 0:
        pause()
        rounds += 1
        if rounds & (ROUNDS - 1) == 0:
            if now() > end:
                break
        ticket = offered(state, place, seen)
    return ticket


@native
def processor():
    """The number of the processor that this thread runs on; 0 where the system does not say."""
    number = i64(0)
    if PLACED:
        number = i64(external("sched_getcpu", i32))
    return number


@native
def allow(handle, here, allowed):
    """Say whether (0 or 1) a thread may run on a processor: 1 if that was otherwise before, and it
    has a processor left."""
    done = i64(0)
    places = stack(i64, SET)
    size = i64(8 * SET)
    if (here < 64 * SET) & (external("pthread_getaffinity_np", i32, handle, size, places) == 0):
        if (places[here >> 6] >> (here & 63)) & 1 != allowed:
            places[here >> 6] = places[here >> 6] ^ (i64(1) << (here & 63))
            done = i64(external("pthread_setaffinity_np", i32, handle, size, places) == 0)
    return done


@native
def be_anywhere(place):
    """Give a thread back the processor that it was kept from."""
    if PLACED:
        if place[AWAY] > 0:
            allow(place[HANDLE], place[AWAY] - 1, 1)
            place[AWAY] = 0


@native
def sleep(state, place, seen):
    """Wait without using the processor, unless there is a job by now that this thread may join.

    Who sleeps says so first and looks then; who hands out a job does the reverse.
    """
    external("pthread_mutex_lock", i32, place + MUTEX)
    place[ASLEEP] = 1
    atomic_add(state + SLEEPING, 1)
    atomic_add(state + NEXT, 0)  # what is read from here on is not older than that
    if offered(state, place, seen) == 0:
        be_anywhere(place)
        while place[ASLEEP] != 0:
            external("pthread_cond_wait", i32, place + CONDITION, place + MUTEX)
    place[ASLEEP] = 0
    atomic_add(state + SLEEPING, -1)
    external("pthread_mutex_unlock", i32, place + MUTEX)
    be_anywhere(place)


@native
def wake(place):
    """Wake a thread if it sleeps: whether it did (0 or 1).

    Systems begin a woken thread on the processor of the one that woke it, above all in virtual
    machines, whose idle processors look taken. It would wait there behind that thread, for a dozen
    milliseconds before the system moves it: it is kept from this processor first.
    """
    woken = i64(0)
    if atomic_load(place + ASLEEP) != 0:
        external("pthread_mutex_lock", i32, place + MUTEX)
        if place[ASLEEP] != 0:
            woken = i64(1)
            if PLACED:
                here = processor()
                if place[AWAY] == 0:
                    place[AWAY] = (1 + here) * allow(place[HANDLE], here, 0)
            place[ASLEEP] = 0
            external("pthread_cond_signal", i32, place + CONDITION)
        external("pthread_mutex_unlock", i32, place + MUTEX)
    return woken


@native
def rouse(state, ticket, limit, most):
    """Wake up to `most` of a job's threads that sleep, each of them thought of by one thread."""
    woken = i64(0)
    while woken < most:
        word = atomic_load(state + ROUSED)
        number = word & 0xFFFFFFFF
        if (word >> 32 != ticket) | (number >= limit):
            break
        if compare_exchange(state + ROUSED, word, word + 1):
            woken += wake(words(state[PLACES] + (number - 1) * (8 * PLACE)))


@native
def pool_worker(address: i64):
    """The life of a thread: wait for a ticket, take part, wait again."""
    place = words(address)
    state = words(place[STATE])
    place[HANDLE] = external("pthread_self", i64)
    seen = i64(0)
    while True:
        ticket = spin(state, place, seen)
        if ticket != 0:
            seen = ticket
            take(state, ticket)
        else:
            sleep(state, place, seen)


@native
def pool_run(place: i64, function: i64, arguments: i64, jobs: i64, limit: i64):
    """Run a job with up to `limit` threads, this one among them; alone where the pool is busy."""
    state = words(place)
    if atomic_exchange(state + BUSY, 1) != 0:
        for task in range(jobs):
            call_address(function, cast(pointer(i8), arguments), task, jobs)
    else:
        ticket = (state[NEXT] >> 32) & TICKETS
        atomic_exchange(state + NEXT, (ticket + 1) << 32)
        ticket = (ticket + 2) & TICKETS
        state[FUNCTION] = function
        state[ARGUMENTS] = arguments
        state[TASKS] = jobs
        state[FLOATS] = floats()
        atomic_store(state + LIMIT, limit)
        atomic_store(state + DONE, 0)
        atomic_exchange(state + NEXT, ticket << 32)
        if atomic_add(state + SLEEPING, 0) > 0:
            atomic_store(state + ROUSED, (ticket << 32) + 1)
        take(state, ticket)
        wait_for(state + DONE, jobs)
        atomic_store(state + BUSY, 0)
