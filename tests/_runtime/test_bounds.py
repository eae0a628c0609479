"""FLAMBEAU_DEBUG=bounds: an access outside of its array raises IndexError and harms nobody."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

PREPARE = """
import numpy as np
from flambeau._compiler.native import from_source
from flambeau._runtime.launch import kernel
def make(text, **statics):
    return kernel(from_source(text.split("(")[0][4:], text, {}), **statics)
def say(run, *arguments):
    try:
        run(*arguments)
        print("fine")
    except IndexError as error:
        print(error)
x = np.arange(10, dtype=np.float32)
"""


def run_python(code: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", PREPARE + code], capture_output=True, text=True, check=False,
        timeout=120, env={**os.environ, "FLAMBEAU_DEBUG": "bounds"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_name_and_line():
    said = run_python("""
run = make('''def double(x: pointer(f32), first: i64, last: i64):
    for i in range(first, last):
        y = x[i]
        x[i] = y + y
''')
say(run, x, 0, 10)
say(run, x, 0, 11)
say(run, x, -1, 3)
say(run, x, 3, 5)
print(x.tolist())
""")
    expected = [i * (8.0 if i < 5 else 4.0) for i in range(10)]
    assert said[0] == said[3] == "fine"
    assert said[1] == said[2] == "kernel double {}: access outside of its array, line 3"
    assert said[4] == str(expected)


@pytest.mark.parametrize(
    ("statement", "count"),
    [
        ("store(x + i, load(x + i, 4))", 6),
        ("m = lanes(i64, 4) + i < 10\n    store(x + i, load(x + i, 4, m), mask=m)", 12),
        ("x[i] = 1.0", 9),
        ("y = gather(x, lanes(i64, 4) + i)\n    x[0] = y[0]", 6),
    ],
)
def test_vectors_may_reach_the_end_and_no_further(statement: str, count: int):
    code = f"""
run = make('''def touch(x: pointer(f32), i: i64):
    {statement}
''')
for i in range(12):
    say(run, x, i)
"""
    expected = ["fine" if i <= count else "line" for i in range(12)]
    found = ["line" if "access outside" in line else line for line in run_python(code)]
    assert found == expected


def test_parallel_work_called_kernels_and_views():
    said = run_python("""
import flambeau as torch
torch.set_num_threads(2)
helper = from_source("helper", '''def helper(p, i):
    p[i] = 1.0
''', {})
native = from_source("outer", '''def outer(x: pointer(f32), n: i64, task: i64, tasks: i64):
    for i in range(n * task // tasks, n * (task + 1) // tasks):
        helper(x, i)
''', {"helper": helper})
run = kernel(native)
say(lambda *given: run.parallel(4, *given), x, 10)
say(lambda *given: run.parallel(4, *given), x, 11)
say(lambda *given: run.parallel(4, *given), x[2:6], 4)
say(lambda *given: run.parallel(4, *given), x[2:6], 5)
""")
    assert [line.startswith("kernel outer") for line in said] == [False, True, False, True]
    assert "line 2" in said[1]


def test_operators_in_the_checked_form():
    """The kernels behind common operators stay inside of their arrays, at odd sizes too."""
    code = """
import os
import flambeau as torch
for n in (1, 7, 33, 130):
    a = torch.rand(n, n, requires_grad=True)
    for result in (a + a.t(), a.exp(), a.softmax(1), a.softmax(0), a.sum(0), a.sum(1), a @ a,
                   a.sort(1).values, a.cumsum(0), torch.nn.functional.gelu(a)):
        result.sum().backward()
print("done")
"""
    os.environ["FLAMBEAU_ENGINE"] = "llvm"
    try:
        assert run_python(code) == ["done"]
    finally:
        del os.environ["FLAMBEAU_ENGINE"]
