"""Kernels in threads with small stacks: what is large lies in the thread's room instead."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from flambeau._compiler import rooms
from flambeau._compiler.emitter import CompileError
from flambeau._compiler.language import f64, i32, i64, pointer, stack  # noqa: F401
from flambeau._compiler.module import Module
from flambeau._compiler.native import native
from flambeau._runtime.launch import kernel

pytest.importorskip("llvmlite")

from flambeau._runtime import llvm

STACK = 1 << 18
"""Bytes of a thread's stack. Python itself needs half of it to compile and import."""

FAMILIES = {
    "products": """
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    for size in (3, 300, 500):
        x = torch.ones(size, size, dtype=dtype)
        assert (x @ x)[0, 0] == size and (x @ x.T)[1, 1] == size
        F.linear(x, x, x[0])
    torch.ones(4, 50, 50, dtype=dtype) @ torch.ones(4, 50, 50, dtype=dtype)
x = torch.ones(400, 1500)
assert (x @ x.T)[5, 5] == 1500
torch._int_mm(torch.ones(200, 200, dtype=torch.int8), torch.ones(200, 200, dtype=torch.int8))
""",
    "convolution": """
for size, groups in ((3, 1), (1, 1), (3, 8), (7, 1)):
    x, weight = learning(2, 8, 40, 40), learning(16, 8 // groups, size, size)
    F.conv2d(x, weight, groups=groups, padding=1).sum().backward()
F.conv1d(learning(2, 8, 400), learning(8, 8, 3)).sum().backward()
F.conv3d(learning(2, 4, 10, 10, 10), learning(8, 4, 3, 3, 3)).sum().backward()
F.conv_transpose2d(learning(2, 8, 40, 40), learning(8, 16, 3, 3)).sum().backward()
last = torch.randn(2, 64, 40, 40).contiguous(memory_format=torch.channels_last)
F.conv2d(last, learning(64, 64, 3, 3)).sum().backward()
""",
    "sorting": """
x = torch.randn(100_000)
for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8):
    y = (x * 100).to(dtype)
    torch.sort(y), torch.topk(y, 10), torch.argsort(y.reshape(250, 400), 0), y.unique(), y.median()
    y.cumsum(0), y.reshape(250, 400).T.contiguous(), y.reshape(250, 400).sum(0)
torch.searchsorted(torch.sort(x)[0], x), torch.histc(x), torch.bincount((x.abs() * 9).long())
""",
    "attention and recurrence": """
q = learning(2, 4, 200, 32)
F.scaled_dot_product_attention(q, q, q).sum().backward()
for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
    for dtype in (torch.float32, torch.float64):
        made = kind(32, 64, dtype=dtype)
        made(torch.randn(12, 20, 32, dtype=dtype))[0].sum().backward()
""",
    "rows": """
x = learning(20, 30, 40)
F.layer_norm(x, (40,)).sum().backward(), F.batch_norm(x, None, None, training=True).sum().backward()
F.group_norm(x, 5).sum().backward(), F.softmax(x, 1).sum().backward()
F.cross_entropy(learning(500, 1000), torch.randint(0, 1000, (500,))).backward()
torch.cdist(torch.randn(100, 20), torch.randn(90, 20))
""",
    "images": """
F.interpolate(learning(2, 3, 64, 64), scale_factor=2.0, mode="bicubic").sum().backward()
F.max_pool2d(learning(2, 3, 64, 64), 3).sum().backward()
F.avg_pool2d(learning(2, 3, 64, 64), 3).sum().backward()
grid = torch.rand(2, 10, 10, 2)
F.grid_sample(learning(2, 3, 32, 32), grid, align_corners=False).sum().backward()
""",
    "numbers of random, indices, elements": """
F.gelu(torch.randn(50_000)).erf().tanh().exp()
torch.randperm(50_000), torch.bernoulli(torch.rand(999)), torch.multinomial(torch.rand(99), 9)
torch.nn.Embedding(1000, 64)(torch.randint(0, 1000, (500,))).sum().backward()
torch.zeros(1000).scatter_add(0, torch.randint(0, 1000, (50_000,)), torch.randn(50_000))
""",
    "linear algebra, spectra, steps": """
a = torch.randn(60, 60)
b = a @ a.T + torch.eye(60) * 60
for name in ("inv", "cholesky", "qr", "svd", "eigh", "eig", "lu", "det"):
    getattr(torch.linalg, name)(b)
torch.fft.rfft2(torch.randn(250, 400))
for kind in (torch.optim.Adam, torch.optim.SGD, torch.optim.Muon, torch.optim.Adafactor):
    weight = learning(200, 200)
    weight.grad = torch.randn(200, 200)
    kind([weight], lr=0.1).step()
""",
}

SCRIPT = """
import threading
import flambeau as torch
import flambeau.nn.functional as F

def learning(*size):
    return torch.randn(size, requires_grad=True)

def work():
    global done
    exec(TEXT, globals())
    done = True

done = False
threading.stack_size(STACK)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("threads", ["1", "2"])
def test_small_stacks(family: str, threads: str) -> None:
    """Every kernel there is, in a thread that has little more stack than Python needs."""
    code = f"STACK = {STACK}\nTEXT = {FAMILIES[family]!r}\n{SCRIPT}"
    surroundings = {**os.environ, "FLAMBEAU_ENGINE": "llvm", "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env=surroundings, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@native
def backwards(x: pointer(f64), n: i64):
    """x in the reverse order, through memory of the kernel's own."""
    own = stack(f64, 4096)
    for i in range(n):
        own[i] = x[i]
    for i in range(n):
        x[i] = own[n - 1 - i]


@native
def twice_backwards(x: pointer(f64), n: i64):
    """As it was: the caller's memory is apart from that of what it calls."""
    own = stack(f64, 4096)
    for i in range(n):
        own[i] = x[i]
    backwards(x, n)
    for i in range(n):
        x[i] = x[i] + own[i]


def test_memory_of_callers_and_called_is_apart() -> None:
    x = np.arange(4096.0)
    kernel(twice_backwards)(x, 4096)
    assert (x == 4095).all()


def test_where_threads_keep_nothing_it_is_on_the_stack() -> None:
    """As on systems without POSIX threads."""
    for key, wanted in ((None, "alloca double, i64 4096"), (i32, rooms.KEY)):
        module = Module(llvm_version=llvm.VERSION, room_key=key)
        module.entry(backwards, {})
        assert wanted in module.text()
    assert "alloca double" not in module.text()


def test_a_kernel_that_asks_for_too_much_is_refused() -> None:
    @native
    def greedy(x: pointer(f64)):
        own = stack(f64, 1 << 18)
        x[0] = own[0]

    with pytest.raises(CompileError, match="2097152 bytes"):
        Module(room_key=i32).entry(greedy, {})


PRODUCTS = """
import resource, threading
import flambeau as torch

def multiply():
    x = torch.ones(300, 300, dtype=torch.float64)
    assert (x @ x)[0, 0] == 300

def threads(count):
    for _ in range(count):
        thread = threading.Thread(target=multiply)
        thread.start()
        thread.join()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = threads(20)
print(threads(300) - before)
"""


def test_rooms_end_with_their_threads() -> None:
    """300 threads, one after the other, need no more memory than 20 (in KiB)."""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", PRODUCTS], capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 100_000
