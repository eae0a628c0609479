"""Kernels on a GPU: bits of pointwise rows against the CPU's kernels, rows against float64, then
the share of the speed of a copy, and what a launch costs. Beside PyTorch where it is installed.

    python scripts/gpu_check/kernels.py --out kernels.json [--seconds 50]

Without a GPU (FLAMBEAU_EMULATE_CUDA=1) small checks run on the emulated one, and nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ.setdefault("FLAMBEAU_ENGINE", "llvm")

import flambeau as fl
import flambeau.nn.functional as F
from flambeau._ops.cuda import host
from flambeau._runtime.cuda.driver import driver
from flambeau._runtime.cuda.memory import Current, running

HOT = """exp gelu silu tanh sigmoid log log1p expm1 sin cos erf atan sqrt rsqrt reciprocal relu
    floor neg abs sign square ceil trunc round frac exp2 log2 log10 tan asin acos sinh cosh asinh
    acosh atanh isnan isfinite softplus leaky_relu elu hardswish hardtanh mish logsigmoid"""
TWO = "add sub mul div pow maximum minimum atan2 fmod remainder eq lt ge where hypot fmax copysign"


class Results:
    """What is known so far, written after every item."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.found: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        self.found[name] = value
        self.path.write_text(json.dumps(self.found, indent=1))

    def attempt(self, name: str, function: Callable[[], Any]) -> None:
        """An item; what goes wrong is one more result."""
        start = time.perf_counter()
        try:
            value = function()
        except Exception as error:
            value = {"failed": f"{type(error).__name__}: {str(error)[-400:]}"}
        print(f"{name:42s} {value}  [{time.perf_counter() - start:.2f} s]", flush=True)
        self.put(name, value)


# ---- bits of pointwise rows


def patterns(dtype: Any, real: bool) -> Any:
    """Numbers of all kinds: nan, infinities and the smallest ones are among them."""
    if dtype is fl.float32:
        bits = np.arange(0, 1 << 32, 1 << (12 if real else 20), dtype=np.uint64).astype(np.uint32)
        return fl.from_numpy(bits.view(np.float32))
    words = np.arange(1 << 16, dtype=np.uint16)[:: 1 if real else 16].view(np.int16)
    return fl.from_numpy(words.copy()).view(dtype)


def differing(ours: Any, theirs: Any) -> int:
    """How many results have other bits, nan beside nan left out."""
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return -1
    if ours.is_floating_point():
        both = fl.isnan(ours) & fl.isnan(theirs)
        kind = {2: fl.int16, 4: fl.int32, 8: fl.int64}[ours.element_size()]
        return int(((ours.view(kind) != theirs.view(kind)) & ~both).sum())
    return int((ours != theirs).sum())


def bits_of(name: str, dtype: Any, real: bool) -> Any:
    function = getattr(fl, name, None) or getattr(F, name)
    x = patterns(dtype, real)
    operands = [x]
    if name in TWO.split():
        order = np.random.default_rng(1).permutation(x.numel())
        operands.append(x[fl.from_numpy(order)])
    if name == "where":
        operands = [operands[1] > 0, *operands]
    host.CALLS.clear()
    ours = function(*[operand.cuda() for operand in operands])
    calls = sum(host.CALLS.values())
    found = differing(ours.cpu(), function(*operands))
    return "on the host" if calls else found


def all_bits(results: Results, seconds: float, real: bool) -> None:
    start = time.perf_counter()
    table: dict[str, Any] = {}
    jobs = [(name, dtype) for name in HOT.split() + TWO.split()
            for dtype in (fl.float32, fl.bfloat16, fl.float16)]  # fmt: skip
    for name, dtype in jobs:
        if time.perf_counter() - start > seconds:
            table["left out"] = len(jobs) - len(table)
            break
        try:
            table[f"{name} {str(dtype)[6:]}"] = bits_of(name, dtype, real)
        except Exception as error:
            table[f"{name} {str(dtype)[6:]}"] = f"{type(error).__name__}: {str(error)[-200:]}"
    wrong = {name: found for name, found in table.items() if found != 0}
    results.put("bits", table)
    equal = len(table) - len(wrong)
    print(f"bits: {equal} of {len(table)} rows equal; others: {wrong}", flush=True)


# ---- rows against float64


def relative(ours: Any, wanted: np.ndarray) -> float:
    got = ours.detach().cpu().double().numpy()
    if got.shape != wanted.shape:
        return float("inf")
    if np.isnan(got).any():
        return float("nan")
    return float(np.linalg.norm(got - wanted) / max(np.linalg.norm(wanted), 1e-300))


def poison(*shapes: Any) -> None:
    """Fill memory that is given back with nan: what a kernel does not write shows."""
    held = [fl.full(shape, float("nan"), device="cuda") for shape in shapes]
    del held


def softmax64(x: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def rows(shape: tuple[int, ...], dtype: Any) -> dict[str, float]:
    """Relative errors of rows and reductions of one shape."""
    rng = np.random.default_rng(3)
    x = fl.from_numpy(rng.standard_normal(shape).astype(np.float32)).to(dtype)
    w = fl.from_numpy(rng.random(shape[-1]).astype(np.float32)).to(dtype)
    t = fl.from_numpy(rng.integers(0, shape[-1], shape[0]))
    wide, weight = x.double().numpy(), w.double().numpy()
    d, dw, dt = x.cuda(), w.cuda(), t.cuda()
    centered = wide - wide.mean(-1, keepdims=True)
    normal = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
    grad = rng.standard_normal(shape)
    jobs: dict[str, Any] = {
        "softmax": (lambda: d.softmax(-1), softmax64(wide, -1)),
        "softmax dim 0": (lambda: d.softmax(0), softmax64(wide, 0)),
        "layer_norm": (lambda: F.layer_norm(d, shape[-1:], dw, dw), normal * weight + weight),
        "sum": (lambda: (d * d).sum(dtype=fl.float64 if dtype is fl.float64 else fl.float32),
                np.asarray(((d * d).cpu().double().numpy()).sum())),
        "sum dim 1": (lambda: d.sum(-1), wide.sum(-1)),
        "sum dim 0": (lambda: d.sum(0), wide.sum(0)),
        "amax dim 0": (lambda: d.amax(0), wide.max(0)),
        "var": (lambda: d.var(-1), wide.var(-1, ddof=1)),
        "std of all": (lambda: d.std(), np.asarray(wide.std(ddof=1))),
        "argmax": (lambda: d.argmax(-1), wide.argmax(-1).astype(float)),
        "transposed": (lambda: d.t().contiguous(), np.ascontiguousarray(wide.T)),
        "logsumexp": (lambda: d.logsumexp(-1), np.log(np.exp(wide).sum(-1))),
        "embedding": (lambda: F.embedding(dt % shape[0], d), wide[t.numpy() % shape[0]]),
    }  # fmt: skip
    if len(shape) == 2:  # noqa: PLR2004
        picked = np.log(np.exp(wide).sum(-1)) - wide[np.arange(shape[0]), t.numpy()]
        jobs["cross_entropy"] = (lambda: F.cross_entropy(d, dt), np.asarray(picked.mean()))
    found = {}
    for name, (function, wanted) in jobs.items():
        try:
            poison(shape, (shape[-1],), (shape[0],))
            found[name] = float(f"{relative(function(), wanted):.1e}")
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error)[-200:]}"  # type: ignore[assignment]
    found["layer_norm backward"] = _backward(x, grad, wide)
    return found


def _backward(x: Any, grad: np.ndarray, wide: np.ndarray) -> Any:
    try:
        d = x.cuda().requires_grad_()
        g = fl.from_numpy(grad.astype(np.float32)).to(x.dtype).cuda()
        F.layer_norm(d, d.shape[-1:]).backward(g)
        centered = wide - wide.mean(-1, keepdims=True)
        rstd = 1 / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)
        normal = centered * rstd
        given = g.cpu().double().numpy()
        wanted = rstd * (given - given.mean(-1, keepdims=True)
                         - normal * (given * normal).mean(-1, keepdims=True))  # fmt: skip
        return float(f"{relative(d.grad, wanted):.1e}")
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-200:]}"


# ---- times


class Clock:
    """Microseconds of a call between two events, the median of rounds."""

    def __init__(self) -> None:
        self.use = running()
        self.events = [self.use.new_event(True) for _ in range(2)]

    def __call__(self, function: Callable[[], Any], seconds: float = 0.04) -> float:
        for _ in range(2):
            function()
        self.use.synchronize()
        start = time.perf_counter()
        function()
        self.use.synchronize()
        many = max(3, min(200, int(seconds / 3 / max(time.perf_counter() - start, 1e-5))))
        took = []
        for _ in range(3):
            self.use.record(self.events[0], Current.stream)
            for _ in range(many):
                function()
            self.use.record(self.events[1], Current.stream)
            self.use.synchronize()
            took.append(self.use.elapsed(*self.events) / many * 1e3)
        return statistics.median(took)


def torch_clock(torch: Any) -> Callable[..., float]:
    """The same for PyTorch."""

    def clock(function: Callable[[], Any], seconds: float = 0.04) -> float:
        for _ in range(2):
            function()
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        many = max(3, min(200, int(seconds / 3 / max(time.perf_counter() - start, 1e-5))))
        took = []
        for _ in range(3):
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            for _ in range(many):
                function()
            b.record()
            torch.cuda.synchronize()
            took.append(a.elapsed_time(b) / many * 1e3)
        return statistics.median(took)

    return clock


def work(t: Any, f: Any, dtype: Any) -> dict[str, tuple[Callable[[], Any], int]]:
    """name -> (call, bytes moved), for flambeau and PyTorch alike."""
    size = 4 if "float32" in str(dtype) else 2

    def made(*shape: int) -> Any:
        return t.full(shape, 0.5, device="cuda").to(dtype)

    jobs: dict[str, Any] = {}
    n = 1 << 26
    x, y = made(n), made(n)
    for name in ("exp", "tanh", "sin", "gelu", "sigmoid", "log"):
        function = getattr(t, name, None) or getattr(f, name)
        jobs[f"{name} 64M"] = (lambda function=function: function(x), 2 * n * size)
    jobs["add 64M"] = (lambda: x + y, 3 * n * size)
    jobs["sum 64M"] = (lambda: x.sum(), n * size)
    jobs["cast 64M"] = (lambda: x.to(t.float16 if size == 4 else t.float32), n * 6)  # noqa: PLR2004
    for rows_, n_ in ((8192, 8192), (1 << 19, 128), (1024, 100000), (4096, 50257)):
        m, w = made(rows_, n_), made(n_)
        target = t.full((rows_,), 3, device="cuda", dtype=t.int64)
        whole = rows_ * n_ * size
        label = f"{rows_}x{n_}"
        jobs[f"softmax {label}"] = (lambda m=m: f.softmax(m, -1), 2 * whole)
        jobs[f"layer_norm {label}"] = (
            lambda m=m, w=w, n_=n_: f.layer_norm(m, (n_,), w, w), 2 * whole)  # fmt: skip
        jobs[f"cross_entropy {label}"] = (
            lambda m=m, target=target: f.cross_entropy(m, target), whole)  # fmt: skip
        if rows_ == 8192:  # noqa: PLR2004
            jobs[f"sum dim 1 {label}"] = (lambda m=m: m.sum(1), whole)
            jobs[f"sum dim 0 {label}"] = (lambda m=m: m.sum(0), whole)
            jobs[f"transposed {label}"] = (lambda m=m: m.t().contiguous(), 2 * whole)
            jobs[f"x + row {label}"] = (lambda m=m, w=w: m + w, 2 * whole)
            jobs[f"argmax {label}"] = (lambda m=m: m.argmax(1), whole)
    table, index = made(50257, 768), t.full((4096,), 7, device="cuda", dtype=t.int64)
    jobs["embedding 4096 of 50257x768"] = (lambda: f.embedding(index, table), 2 * 4096 * 768 * size)
    return jobs


def copy_speed(clock: Clock) -> float:
    """TB/s of a copy of 1 GiB, bytes read and written."""
    use, nbytes = running(), 1 << 30
    source, target = (fl.full((nbytes // 4,), 1.0, device="cuda") for _ in range(2))
    us = clock(lambda: use.copy(target.data_ptr(), source.data_ptr(), nbytes, Current.stream))
    return 2 * nbytes / us / 1e6


def pytorch() -> Any:
    """PyTorch, if it is installed and finds the GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def theirs(torch: Any, name: str) -> dict[str, Any]:
    """The same work for PyTorch; nothing where its memory does not suffice."""
    if torch is None:
        return {}
    try:
        import torch.nn.functional as functional

        return work(torch, functional, getattr(torch, name))
    except Exception as error:
        print("PyTorch:", str(error)[-200:], flush=True)
        return {}


def timed(clock: Clock, speed: float, job: Any, beside: Any, their_clock: Any) -> dict[str, Any]:
    """What a piece of work takes, here and there."""
    function, moved = job
    host.CALLS.clear()
    us = clock(function)
    found = {"us": round(us, 1), "share": round(moved / us / 1e6 / speed, 3)}
    if host.CALLS:
        found["host"] = dict(host.CALLS)
    if beside is not None:
        found["torch us"] = round(their_clock(beside[0]), 1)
    return found


def times(results: Results, deadline: float) -> None:
    clock = Clock()
    speed = copy_speed(clock)
    results.put("copy TB/s", speed)
    print(f"copy {speed:.3f} TB/s", flush=True)
    torch = pytorch()
    their_clock = None if torch is None else torch_clock(torch)
    for ours, name in ((fl.float32, "float32"), (fl.bfloat16, "bfloat16")):
        beside = theirs(torch, name)
        for title, job in work(fl, F, ours).items():
            if time.perf_counter() > deadline:
                results.put(f"{title} {name}", "left out")
                continue
            other = beside.get(title)
            results.attempt(f"{title} {name}", lambda j=job, o=other: timed(
                clock, speed, j, o, their_clock))  # fmt: skip


def host_us(function: Callable[[], Any], many: int = 150, rounds: int = 15) -> float:
    """Microseconds of the host for a call; the queue is emptied between rounds."""
    use = running()
    for _ in range(20):
        function()
    took = []
    for _ in range(rounds):
        use.synchronize()
        start = time.perf_counter()
        for _ in range(many):
            function()
        took.append((time.perf_counter() - start) / many * 1e6)
    return round(statistics.median(took), 2)


def costs() -> dict[str, float]:
    """What a launch and a whole operator cost the host."""
    from flambeau._ops.cuda.pointwise import ROWS

    x, y = fl.full((1024,), 0.5, device="cuda"), fl.full((1024,), 0.5, device="cuda")
    out = x + y
    found = {"operator x + y": host_us(lambda: x + y), "exp(x)": host_us(lambda: x.exp()),
             "x.add_(y)": host_us(lambda: x.add_(y))}  # fmt: skip
    row = next(row for op, row in ROWS.items() if op.full_name == "add.Tensor")
    found["row alone"] = host_us(lambda: row(x._data, y._data))
    plan = next(iter(next(iter(row.fusions.values())).plans.values()))  # type: ignore[union-attr]
    found["plan.run"] = host_us(lambda: plan.run((x._data, y._data), (out._data,)))
    go = plan.kernel.devices[0]  # type: ignore[union-attr]
    arguments = (0, plan.blocks, x._data, y._data, out._data, *plan.rest)  # type: ignore[union-attr]
    found["launch alone"] = host_us(lambda: go(*arguments))
    m = fl.full((64, 1024), 0.5, device="cuda")
    found["softmax 64x1024"] = host_us(lambda: m.softmax(-1))
    found["sum 64x1024"] = host_us(lambda: m.sum())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="kernels.json")
    parser.add_argument("--seconds", type=float, default=50)
    given = parser.parse_args()
    results = Results(given.out)
    begin = time.perf_counter()
    use = driver()
    if use is None:
        results.put("device", "none")
        print("no GPU; FLAMBEAU_EMULATE_CUDA=1 runs small checks")
        return
    real = not use.fake
    results.put("device", use.device_name(0))
    print(use.device_name(0), flush=True)
    shapes = ((8, 1000), (5, 8192), (70, 33)) if not real else (
        (512, 8192), (2003, 128), (5, 100000), (33, 50257))  # fmt: skip
    for dtype in (fl.float32, fl.bfloat16):
        for shape in shapes:
            results.attempt(f"errors {shape} {str(dtype)[6:]}", lambda s=shape, d=dtype: rows(s, d))
    results.attempt("host us", costs)
    if real:
        try:
            times(results, begin + given.seconds * 0.7)
        except Exception as error:
            results.put("times", f"{type(error).__name__}: {str(error)[-300:]}")
    left = given.seconds - (time.perf_counter() - begin)
    all_bits(results, max(left, 3), real)
    results.put("seconds", round(time.perf_counter() - begin, 1))


if __name__ == "__main__":
    main()
