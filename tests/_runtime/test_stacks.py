"""Kernels are compiled for threads whose stack is too small for that."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from flambeau._runtime import stacks

PROGRAM = """
import sys, threading
import flambeau as torch
threading.stack_size(int(sys.argv[1]))
image, weight = torch.rand(1, 8, 32, 32), torch.rand(8, 8, 3, 3)
found = []
def work(k):
    found.append(torch.conv2d(image, weight).sum() + torch.softmax(image + k, 1).sum() * 0)
for turn in range(3):
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(len(found), len({round(float(x), 2) for x in found}))
"""


def in_thread(size: int, function: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    with stacks.changing:  # what runs in the thread may change the size, too
        before = threading.stack_size(size)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join()
    return found[0]


def test_the_size_of_a_stack_is_known() -> None:
    assert in_thread(1 << 18, stacks.size) < stacks.ENOUGH
    assert in_thread(1 << 24, stacks.size) >= stacks.ENOUGH


def test_work_goes_where_the_stack_is_large() -> None:
    here = threading.get_ident
    assert in_thread(1 << 24, lambda: stacks.with_enough(here) == here())
    assert in_thread(1 << 18, lambda: stacks.with_enough(here) != here())
    assert in_thread(1 << 18, lambda: stacks.with_enough(stacks.size)) >= stacks.ENOUGH
    before = threading.stack_size()
    in_thread(1 << 18, lambda: stacks.with_enough(here))
    assert threading.stack_size() == before


def test_errors_come_back() -> None:
    def fail() -> None:
        raise ValueError("no such kernel")

    def caught() -> str:
        with pytest.raises(ValueError, match="no such kernel") as error:
            stacks.with_enough(fail)
        return str(error.value)

    assert in_thread(1 << 18, caught) == "no such kernel"


@pytest.mark.parametrize("size", [1 << 16, 1 << 18])
def test_threads_with_small_stacks_compile(size: int, tmp_path: Path) -> None:
    """From an empty cache, several at once."""
    pytest.importorskip("llvmlite")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(size)],
        env={**os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split()[:2] == ["12", "1"]
