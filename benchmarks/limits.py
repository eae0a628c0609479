"""From which size on is a kernel faster than NumPy? `choice.LIMITS` beside what is measured.

    python benchmarks/limits.py [KIND ...]

Each case runs over growing sizes in two processes, one with its kind's limit at 0 and one without
kernels of that kind; small sizes cost their call. The table has the times of both in microseconds
of this thread, and the size from which on the kernel was the faster one for good.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

SIZES = [1 << power for power in range(6, 17)]
ROUNDS, SECONDS = 3, 0.012
SETUP = """
n = size; c = 64; x = torch.randn(n); y = torch.randn(n); m = torch.randn(n // c, c)
h = torch.randn(n).half(); p = torch.randn(n).abs() + 1
rows = torch.randint(0, n // c, (n // c,)); places = torch.randint(0, c, (n // c, c))
labels = torch.randint(0, c, (n // c,)); table = torch.randn(c, c)
"""
CASES = {
    "pointwise": ["x + y", "x * 2", "x > y", "x.abs()"],
    "pointwise float16": ["h + h", "x.half()", "h.float()"],
    "pointwise function": ["x.exp()", "x.tanh()", "p.log()", "x.sin()"],
    "pointwise element": ["torch.erf(x)", "torch.lgamma(p)"],
    "pointwise chain": ["F.silu(x)", "F.gelu(x)", "torch.lerp(x, y, 0.5)", "F.hardswish(x)"],
    "reduction": ["x.amax()", "m.amax(1)", "m.amax(0)", "(x > 0).any()", "m.argmax(1)"],
    "sum": ["x.sum()", "m.sum(1)", "m.sum(0)", "m.mean(1)"],
    "variance": ["x.var()", "m.var(1)"],
    "softmax": ["m.softmax(1)", "m.log_softmax(1)", "m.logsumexp(1)"],
    "norm": ["F.layer_norm(m, (c,))", "F.rms_norm(m, (c,))"],
    "loss": ["F.mse_loss(x, y)", "F.l1_loss(x, y)", "F.smooth_l1_loss(x, y)"],
    "loss function": ["F.binary_cross_entropy_with_logits(x, y)", "F.cross_entropy(m, labels)"],
    "scan": ["x.cumsum(0)", "m.cumsum(1)"],
    "gather": ["m.gather(1, places)", "m[rows]", "m.index_select(0, rows)",
               "F.embedding(labels, table)"],
    "scatter": ["m.scatter(1, places, m)", "m.scatter_add(1, places, m)"],
    "scatter rows": ["m.index_copy(0, rows, m)", "m.index_add(0, rows, m)"],
    "sort": ["x.sort()", "m.sort(1)", "x.argsort()"],
}  # fmt: skip


def measure(kind: str, limit: int) -> None:
    """The times of a kind's cases with a limit, as JSON: the child's part."""
    from flambeau._runtime import choice

    choice.LIMITS[kind] = limit
    import flambeau as torch

    torch.set_num_threads(1)
    found = {}
    for case in CASES[kind]:
        times = []
        for size in SIZES:
            names = {"torch": torch, "F": torch.nn.functional, "size": size}
            exec(SETUP, names)
            step = eval(f"lambda: {case}", names)
            times.append(fastest(step))
        found[case] = times
    print(json.dumps(found))


def fastest(step) -> float:  # type: ignore[no-untyped-def]
    """The least time of a call, in microseconds of this thread."""
    for _ in range(20):
        step()
    least = 1e18
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.thread_time_ns()
        for _ in range(5):
            step()
        least = min(least, (time.thread_time_ns() - start) / 5)
    return least / 1000


def child(kind: str, limit: int) -> dict[str, list[float]]:
    """What `measure` prints in a process of its own."""
    command = [sys.executable, __file__, "--measure", kind, str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def least(first: list[float], second: list[float]) -> list[float]:
    """The lesser of each."""
    return [min(pair) for pair in zip(first, second, strict=True)]


def crossing(kernels: list[float], numpy: list[float]) -> str:
    """The size from which on kernels are faster."""
    faster = [a <= b for a, b in zip(kernels, numpy, strict=True)]
    for number, size in enumerate(SIZES):
        if all(faster[number:]):
            return str(size)
    return "never"


def main() -> None:
    if "--measure" in sys.argv:
        measure(sys.argv[2], int(sys.argv[3]))
        return
    from flambeau._runtime import choice

    print(f"{'':46}" + "".join(f"{size:>12}" for size in SIZES))
    for kind in sys.argv[1:] or CASES:
        both: list[dict[str, list[float]]] = [{}, {}]
        for _ in range(ROUNDS):
            for kept, limit in zip(both, (0, choice.NEVER), strict=True):
                for case, times in child(kind, limit).items():
                    kept[case] = least(kept.get(case, times), times)
        print(f"{kind}: {choice.LIMITS[kind]} now")
        for case, times in both[0].items():
            pairs = zip(times, both[1][case], strict=True)
            cells = "".join(f"{f'{a:.1f}/{b:.1f}':>12}" for a, b in pairs)
            print(f"  {case:36}{crossing(times, both[1][case]):>8}{cells}", flush=True)


if __name__ == "__main__":
    main()
