"""What threads do under settings, told by their times and counts, in processes of their own.

`test_threads.py` compares what both libraries tell.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

LARGE = 1 << 21
"""Elements that every library shares among threads."""
IN_OTHERS = 0.1
"""Of the time of a calculation, what other threads at least have to work for it to be shared."""
ROUNDS = 3


def numbers_flushed(library: str) -> list[Any]:
    """How many elements of products too small for normal numbers are left: of few by the caller,
    and of many by a pool of threads, which begins after the first switch.
    """
    torch = importlib.import_module(library)
    torch.set_num_threads(2)
    found: list[Any] = [torch.set_flush_denormal(True)]
    given = [(torch.full((size,), 1e-30), torch.full((size,), 1e-10)) for size in (64, LARGE)]

    def left() -> list[int]:
        return [int(((a * b) != 0).sum()) for a, b in given]

    found.append(left())
    for wanted in (False, True):
        found += [torch.set_flush_denormal(wanted), left()]
    return found


def work_of_others(library: str, threads: int) -> dict[str, bool]:
    """Whether threads beside the caller's work for large calculations."""
    torch = importlib.import_module(library)
    torch.set_num_threads(threads)
    x, m = torch.rand(LARGE), torch.rand(700, 700)
    d, image = m.double(), torch.rand(4, 16, 128, 128)
    weight = torch.rand(16, 16, 3, 3)
    calculations: dict[str, Callable[[], Any]] = {
        "product": lambda: m @ m,
        "product of doubles": lambda: d @ d,
        "pointwise": lambda: (x * x + x).exp().sin(),
        "sum": lambda: x.view(1024, -1).exp().sum(0),
        "convolution": lambda: torch.nn.functional.conv2d(image, weight),
        "inverse": lambda: torch.linalg.inv(d),
    }
    return {name: _is_shared(calculation) for name, calculation in calculations.items()}


def _is_shared(calculation: Callable[[], Any]) -> bool:
    """The most of a few rounds: a busy machine may leave other threads nothing to do in one."""
    calculation()
    time.sleep(0.1)  # threads of OpenMP and BLAS look for more work for a while
    most = 0.0
    for _ in range(ROUNDS):
        everywhere, here = time.process_time(), time.thread_time()
        for _ in range(3):
            calculation()
        here = time.thread_time() - here
        most = max(most, time.process_time() - everywhere - here - IN_OTHERS * here)
    return most > 0


class Count:
    """How many are inside at once, and in which threads."""

    lock = threading.Lock()
    inside = most = 0
    threads: ClassVar[set[int]] = set()


def _counted(x: Any) -> Any:
    with Count.lock:
        Count.inside += 1
        Count.most = max(Count.most, Count.inside)
        Count.threads.add(threading.get_ident())
    time.sleep(0.2)
    with Count.lock:
        Count.inside -= 1
    return x


def forks_at_once(library: str, allowed: int) -> dict[str, Any]:
    """How many forks of a script run at once, and whether the thread that waits runs some."""
    torch = importlib.import_module(library)
    torch.set_num_interop_threads(allowed)
    result = _six_forks(torch)(torch.ones(1)).item()
    here = threading.get_ident() in Count.threads
    return {"result": result, "allowed": torch.get_num_interop_threads(), "at once": Count.most,
            "threads": len(Count.threads), "here": here}  # fmt: skip


def _six_forks(torch: Any) -> Any:
    # without types, of which a script would look for the names
    @torch.jit.ignore  # type: ignore[untyped-decorator]
    def counted(x):  # type: ignore[no-untyped-def]
        return _counted(x)

    def branch(x):  # type: ignore[no-untyped-def]
        return counted(x)

    @torch.jit.script  # type: ignore[untyped-decorator]
    def forks(x):  # type: ignore[no-untyped-def]
        waiting = [torch.jit.fork(branch, x) for _ in range(6)]
        total = x
        for one in waiting:
            total = total + torch.jit.wait(one)
        return total

    return forks
