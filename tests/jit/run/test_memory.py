"""Limits of memory: whatever operator wants too much, it is refused before it is taken."""

from __future__ import annotations

import resource
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._runtime import allocator
from flambeau.jit.run import LimitExceeded, Limits, set_limits

LIMIT = 16 << 20
REFUSED = rf"more than ({LIMIT} bytes of memory|\d+ steps)"  # whichever is noticed first
GREEDY = """
x.expand(1000000, 1000, 3).contiguous()
x.repeat(1000000, 1000)
torch.cat([x.expand(1000000, 3)] * 1000)
torch.stack([x.expand(1000000, 3)] * 1000)
torch.ones(100000, 1) @ torch.ones(1, 100000)
torch.outer(torch.arange(100000.), torch.arange(100000.))
torch.einsum("i,j->ij", [torch.arange(100000.), torch.arange(100000.)])
torch.constant_pad_nd(x, [1000000000, 0])
torch.upsample_nearest2d(x[None, None], [100000, 100000], None)
torch.one_hot(torch.arange(100000), 100000)
torch.tile(x, [1000000, 1000])
torch.cdist(torch.ones(100000, 1), torch.ones(100000, 1))
torch.embedding(torch.ones(1, 1000), torch.zeros([1], dtype=torch.int64).expand(10000000))
torch.arange(10000000000)
torch.linspace(0, 1, 10000000000)
torch.full([100000, 100000], 1.0)
x.new_zeros([100000, 100000])
torch.zeros_like(x.expand(1000000, 1000, 3))
torch.empty([100000, 100000])
torch.randperm(10000000000)
x.clone().resize_([100000, 100000])
torch.ones(100000, 1) + torch.ones(1, 100000)
torch.kron(torch.ones(1000, 1000), torch.ones(1000, 1000))
torch.combinations(torch.arange(100000), 2)
torch.repeat_interleave(x, 1000000000)
torch.bincount(torch.tensor([10000000000]))
torch.index_select(x, 0, torch.zeros([1], dtype=torch.int64).expand(10000000000))
x.expand(1000000, 1000, 3).cumsum(0)
"".ljust(10000000000)
[0] * 10000000000
""".strip().splitlines()


def program(expression: str) -> Any:
    unit = torch.jit.CompilationUnit(f"def f(x):\n    return {expression}\n")
    set_limits(unit.f._function.unit, Limits(memory=LIMIT, steps=1 << 22))
    return unit.f


@pytest.mark.parametrize("expression", GREEDY)
def test_greedy_operators_are_refused(expression: str) -> None:
    function = program(expression)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LimitExceeded, match=REFUSED):
        function(torch.ones(1, 3))
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken * (1024 if sys.platform == "linux" else 1) < 32 * LIMIT


def test_what_fits_runs_and_outlives_the_program() -> None:
    function = program("x.expand(1000, 1000, 3) * 2")
    handler = allocator.capsule_pointer(allocator.get_handler())
    kept = [function(torch.ones(1, 3)) for _ in range(3)]
    assert allocator.capsule_pointer(allocator.get_handler()) == handler
    assert all(float(result.sum()) == 6e6 for result in kept)
    del kept
    assert np.zeros(LIMIT).size == LIMIT  # nobody asks outside of programs


def test_results_add_up() -> None:
    function = program("[torch.zeros([1000, 1000]) for i in range(5)]")
    with pytest.raises(LimitExceeded, match="bytes of memory"):
        function(torch.ones(1))
    grown = program("[i for i in range(10000000000)]")
    set_limits(grown._function.unit, Limits(memory=100_000))
    with pytest.raises(LimitExceeded, match="bytes of memory"):
        grown(torch.ones(1))
    appended = program("[i for i in range(20000)]")  # the list is counted once, not 20000 times
    assert len(appended(torch.ones(1))) == 20000


def test_other_threads_are_not_limited() -> None:
    function = program("torch.zeros([1000, 1000]) + x")
    found = []

    def work() -> None:
        found.append(np.ones(LIMIT).sum())

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(5):
        function(torch.ones(1))
    thread.join()
    assert found == [LIMIT]


def test_lists_made_of_tensors_are_counted() -> None:
    unit = torch.jit.CompilationUnit(
        "def f(x):\n    y: List[float] = x.tolist()\n    return len(y)\n"
        "def g(x):\n    return torch.combinations(x, 3).size(0)\n"
    )
    for limits, words in ((Limits(steps=10_000), "steps"), (Limits(memory=100_000), "memory")):
        set_limits(unit.f._function.unit, limits)
        assert unit.f(torch.ones(100)) == 100
        with pytest.raises(RuntimeError, match=words):
            unit.f(torch.ones(100_000))
    set_limits(unit.g._function.unit, Limits(steps=10_000))
    assert unit.g(torch.ones(5)) == 10
    with pytest.raises(RuntimeError, match="steps"):
        unit.g(torch.ones(150))


def test_what_takes_longer_than_is_left_is_not_begun() -> None:
    unit = torch.jit.CompilationUnit("def f(x):\n    return torch.linalg_svdvals(x)\n")
    set_limits(unit.f._function.unit, Limits(seconds=1))
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="more than 1 seconds"):
        unit.f(torch.ones(1, 1).expand(200_000, 3_000))
    assert time.monotonic() - began < 5
