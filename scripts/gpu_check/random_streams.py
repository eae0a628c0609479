"""Random numbers of PyTorch on this GPU beside flambeau's: of its kernels there, and of the CPU.

python scripts/gpu_check/random_streams.py --out FILE.json [--seconds 18] [--seed 1] [--emulated]

Programs of seeds, sizes, types and distributions run in both libraries, fixed ones first, then
drawn ones until the time is up; results and offsets are compared bit by bit, and what differs is
written with its first numbers. The card's approximate functions are sampled (by PyTorch's
run-time compiler), so that a model of them can be made, and fills are timed. Then all programs run
once more with flambeau's numbers made on the CPU, in a process that emulates the GPU and hands its
results over by a file. Without a GPU only flambeau's side runs.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FLOATS = ("float32", "float64", "float16", "bfloat16")
FILLS = ("uniform_()", "uniform_(-2, 3)", "uniform_(0.1, 0.7)", "normal_()", "normal_(1.5, 0.3)",
         "exponential_()", "exponential_(2.5)", "cauchy_()", "log_normal_(0.2, 0.7)",
         "bernoulli_(0.3)", "geometric_(0.2)")  # fmt: skip
VIEWS = (".transpose(0, 1)", ".permute(2, 0, 1)", "[:, ::2]", "[1:, 1:].transpose(0, 2)")
WHOLE = ("uint8", "int8", "int16", "int32", "int64", "bool")

FIXED = """
torch.empty(2**26, device=c).bernoulli_(1.0)
torch.empty(2**20, device=c, dtype=torch.float64).bernoulli_(0.5)
F.dropout(torch.ones(1000, device=c), 0.3)
F.dropout(torch.ones(1002, device=c), 0.3)
F.dropout(torch.ones(1002, device=c, dtype=torch.half), 0.3)
F.dropout(torch.ones(1004, device=c, dtype=torch.half), 0.3)
F.dropout(torch.ones(1008, device=c, dtype=torch.bfloat16), 0.3)
F.dropout(torch.ones(1001, device=c)[1:], 0.3)
F.dropout(torch.ones(1003, device=c, dtype=torch.half)[3:], 0.3)
F.dropout(torch.ones(1001, device=c, dtype=torch.float64)[1:], 0.3)
F.dropout(torch.ones(2**21, device=c), 0.5)
F.dropout(torch.ones(2**21, device=c, dtype=torch.half), 0.5)
F.dropout(torch.ones(3 * 2**20, device=c, dtype=torch.float64), 0.5)
F.dropout(torch.ones(2**21 + 1, device=c), 0.5)
F.dropout(torch.ones(60, 50, device=c).t(), 0.5)
F.dropout(torch.ones(61, 51, device=c).t(), 0.5)
F.dropout(torch.ones(64, 64, device=c)[:, ::2], 0.5)
F.dropout(torch.ones(61, 51, device=c)[:, ::2], 0.5)
F.dropout(torch.ones(4, 6, 5, 7, device=c).to(memory_format=torch.channels_last), 0.5)
F.dropout(torch.ones(4, 6, 5, 7, device=c).transpose(1, 2), 0.5)
F.dropout(torch.ones(1, 50, device=c).expand(20, 50), 0.5)
F.dropout(torch.ones(1000, device=c), 0.3, inplace=True)
torch.native_dropout(torch.ones(1000, device=c), 0.3, True)[1]
torch.native_dropout(torch.ones(999, device=c, dtype=torch.half), 0.3, True)[1]
torch.ones(60, 50, device=c).t().bernoulli_(torch.linspace(0, 1, 3000, device=c).view(60, 50).t())
torch.bernoulli(torch.linspace(0, 1, 3000, device=c).view(60, 50).t())
torch.bernoulli(torch.linspace(0, 1, 2**20, device=c))
torch.empty(4, 5, 6, device=c).mT.bernoulli_(torch.full((4, 5, 6), .5, device=c).mT)
torch.empty(6, 4, device=c, dtype=torch.int64).bernoulli_(torch.full((4,), .5, device=c))
torch.empty(6, 4, device=c)[:, ::2].bernoulli_(torch.full((6, 2), .5, device=c))
torch.bernoulli(torch.linspace(0, 1, 999, device=c).half())
torch.bernoulli(torch.ones(999, device=c), 0.4)
torch.poisson(torch.linspace(0, 63, 5000, device=c))
torch.poisson(torch.linspace(0, 63, 500, device=c, dtype=torch.float64))
torch.poisson(torch.linspace(0, 63, 500, device=c).half())
torch.poisson(torch.linspace(64, 4000, 3000, device=c))
torch.poisson(torch.linspace(4001, 90000, 1000, device=c))
torch.poisson(torch.full((2**19,), 3.0, device=c))
torch.poisson(torch.full((40, 50), 3.0, device=c).t())
torch._standard_gamma(torch.linspace(.01, 20, 3000, device=c))
torch._standard_gamma(torch.linspace(.01, 20, 500, device=c, dtype=torch.float64))
torch._standard_gamma(torch.linspace(.1, 20, 500, device=c).half())
torch._standard_gamma(torch.full((2**19,), 1.5, device=c))
torch._standard_gamma(torch.linspace(.1, 20, 600, device=c).view(20, 30).t())
torch._sample_dirichlet(torch.linspace(.1, 4, 600, device=c).view(200, 3))
torch.binomial(torch.full((5000,), 20., device=c), torch.linspace(0, 1, 5000, device=c))
torch.binomial(torch.full((3000,), 200., device=c), torch.linspace(0, 1, 3000, device=c))
torch.binomial(torch.full((600,), 200., device=c).double(), torch.rand(600, device=c).double())
torch.binomial(torch.full((20, 30), 9., device=c).t(), torch.rand(20, 30, device=c).t())
torch.multinomial(torch.linspace(0, 1, 1000, device=c), 5000, replacement=True)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).view(20, 50), 300, replacement=True)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).double().view(20, 50), 30, replacement=True)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).half().view(20, 50), 30, replacement=True)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).view(20, 50), 30)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).view(20, 50), 1)
torch.multinomial(torch.linspace(0, 1, 1000, device=c).view(20, 50), 1, replacement=True)
F.rrelu(torch.linspace(-2, 1, 3001, device=c), training=True)
F.rrelu(torch.linspace(-2, 1, 3001, device=c, dtype=torch.float64), training=True)
F.rrelu(torch.linspace(-2, 1, 3001, device=c).half(), training=True)
F.rrelu(torch.linspace(-2, 1, 3000, device=c).view(50, 60).t(), training=True)
F.rrelu(torch.linspace(-2, 1, 2**20, device=c), 0.2, 0.7, training=True)
F.gumbel_softmax(torch.zeros(100, 40, device=c))
F.alpha_dropout(torch.linspace(-1, 1, 1001, device=c), .3, True)
F.feature_alpha_dropout(torch.ones(40, 60, 3, device=c), .3, True)
F.dropout1d(torch.ones(40, 60, 3, device=c), .3)
F.dropout3d(torch.ones(4, 6, 3, 3, 3, device=c), .3)
torch.empty(50, 60, device=c).t().normal_()
torch.empty(50, 60, device=c)[::2, 3:].uniform_()
torch.empty(4, 6, 5, 7, device=c).to(memory_format=torch.channels_last).uniform_()
torch.empty(4, 6, 5, 7, device=c)[:, 1:, ::2].permute(3, 1, 0, 2).normal_()
torch.rand_like(torch.ones(4, 6, 5, 7, device=c).to(memory_format=torch.channels_last))
torch.view_as_real(torch.randn(999, device=c, dtype=torch.cfloat))
torch.view_as_real(torch.empty(999, device=c, dtype=torch.cdouble).normal_(1, 2))
torch.view_as_real(torch.rand(999, device=c, dtype=torch.cfloat))
torch.normal(torch.linspace(0, 9, 999, device=c), 2.0)
torch.normal(torch.linspace(0, 9, 999, device=c), torch.linspace(1, 2, 999, device=c))
torch.normal(2.0, torch.linspace(1, 2, 999, device=c))
torch.empty(999, device=c, dtype=torch.int64).random_(-2**63, None)
torch.empty(999, device=c, dtype=torch.float32).random_(-2**63, None)
torch.empty(999, device=c, dtype=torch.int32).random_(5, None)
torch.empty(999, device=c, dtype=torch.bool).random_()
torch.empty(999, device=c, dtype=torch.int8).random_()
torch.empty(999, device=c, dtype=torch.bfloat16).random_()
torch.empty(999, device=c, dtype=torch.int64).geometric_(0.01)
torch.empty(999, device=c, dtype=torch.uint8).geometric_(0.2)
torch.empty(999, device=c, dtype=torch.int32).geometric_(1e-6)
torch.empty(999, device=c, dtype=torch.uint8).bernoulli_(0.5)
torch.empty(999, device=c, dtype=torch.int64).bernoulli_(0.5)
torch.randint(0, 2**28 - 1, (999,), device=c)
torch.randint(0, 2**28, (999,), device=c)
torch.randint(0, 2**28, (999,), device=c, dtype=torch.int32)
torch.randint(-2**31, 2**31 - 1, (999,), device=c, dtype=torch.int32)
torch.nn.init.trunc_normal_(torch.empty(30, 40, device=c))
torch.nn.init.orthogonal_(torch.empty(3, 4, device=c)).abs()
torch.nn.init.sparse_(torch.empty(30, 40, device=c), 0.3)
torch.cat([torch.randperm(7, device=c) for _ in range(300)])
torch.cat([torch.randperm(300, device=c) for _ in range(60)])
torch.cat([torch.randperm(3000, device=c) for _ in range(12)])
torch.randperm(200, device=c, dtype=torch.half)
torch.randperm(30000, device=c, dtype=torch.float32)
F.scaled_dot_product_attention(*[torch.ones(1, 1, 4, 8, device=c)] * 3, dropout_p=.5) * 0
torch.tensor(torch.nn.LSTM(4, 4, 2, dropout=.5, device=c)(torch.ones(3, 2, 4, device=c))[0].shape)
torch.tensor(torch.nn.TransformerEncoderLayer(8, 2, 16, device=c)(torch.ones(3, 2, 8).cuda()).shape)
torch.nn.MultiheadAttention(8, 2, dropout=.5, device=c)(*[torch.ones(3, 2, 8, device=c)] * 3)[1]
torch.nn.RReLU().train()(torch.linspace(-2, 1, 300, device=c))
torch.nn.Dropout(.4)(torch.ones(1000, device=c, requires_grad=True)).detach()
torch.empty(2**24, device=c).uniform_()[-4096:]
torch.empty(2**24, device=c).exponential_()[-4096:]
F.fractional_max_pool2d(torch.arange(400., device=c).view(1, 4, 10, 10), 2, output_size=3)
torch.distributions.Normal(torch.zeros(99, device=c), torch.ones(99, device=c)).sample()
torch.distributions.Beta(torch.full((99,), 2., device=c), torch.full((99,), 3., device=c)).sample()
torch.distributions.Categorical(torch.ones(7, device=c)).sample((99,))
torch.distributions.Gumbel(torch.zeros(99, device=c), torch.ones(99, device=c)).sample()
"""

ERRORS = """
torch.empty(3, device=c, dtype=torch.int32).uniform_()
torch.empty(3, device=c, dtype=torch.int32).normal_()
torch.empty(3, device=c, dtype=torch.int32).exponential_()
torch.empty(3, device=c, dtype=torch.int32).cauchy_()
torch.empty(3, device=c, dtype=torch.int32).log_normal_()
torch.empty(3, device=c, dtype=torch.bool).geometric_(.5)
torch.empty(3, device=c, dtype=torch.cfloat).bernoulli_(.5)
torch.empty(3, device=c, dtype=torch.cfloat).random_()
torch.empty(3, device=c, dtype=torch.int32).random_(-2**63, None)
torch.empty(3, device=c).uniform_(3, 1)
torch.empty(3, device=c).normal_(0, -1)
torch.empty(3, device=c).bernoulli_(2)
torch.bernoulli(torch.ones(3, device=c, dtype=torch.int32))
torch.poisson(torch.ones(3, device=c, dtype=torch.int32))
torch._standard_gamma(torch.ones(3, device=c, dtype=torch.int32))
torch.binomial(torch.ones(3, device=c, dtype=torch.int32), torch.ones(3, device=c))
torch.multinomial(torch.ones(3, device=c), 5)
torch.multinomial(torch.ones(3, device=c, dtype=torch.int32), 5)
torch.randperm(-1, device=c)
torch.randperm(300, device=c, dtype=torch.int8)
torch.randperm(3000, device=c, dtype=torch.half)
torch.randperm(30, device=c, dtype=torch.bool)
g.set_state(torch.zeros(5, dtype=torch.uint8))
g.set_state(torch.zeros(16, dtype=torch.int32))
g.set_state(torch.zeros(16, dtype=torch.uint8, device=c))
g.set_state(3)
g.set_offset(-4)
g.set_offset(5)
g.manual_seed(2**64)
g.manual_seed(-1).initial_seed()
torch.Generator().get_offset()
torch.Generator().set_offset(4)
torch.cuda.set_rng_state(torch.zeros(5, dtype=torch.uint8))
torch.cuda.get_rng_state('cpu')
torch.Generator('cuda').device
torch.Generator('cuda:0').device
torch.Generator('cuda:9')
type(g)
g.clone_state().get_offset()
torch.rand(3, generator=g)
torch.ones(3).uniform_(generator=g)
torch.ones(3, device=c).uniform_(generator=torch.Generator())
torch.randperm(3, device=c, generator=torch.Generator())
torch.multinomial(torch.ones(3, device=c), 1, generator=torch.Generator())
torch.bernoulli(torch.ones(3, device=c), generator=torch.Generator())
torch.normal(torch.ones(3, device=c), generator=torch.Generator())
torch.poisson(torch.ones(3, device=c), generator=torch.Generator())
torch.randint(4, (3,), device=c, generator=torch.Generator())
"""


def drawn(rng: random.Random) -> str:
    """A program of random numbers, as text."""
    size = rng.choice((rng.randrange(1, 40), rng.randrange(1, 3000), rng.randrange(1, 3000),
                       rng.randrange(1, 300_000), rng.randrange(1, 3_000_000)))  # fmt: skip
    dtype = rng.choice(FLOATS)
    shape = f"({size},)"
    if size < 5000 and rng.random() < 0.4:
        shape = f"({rng.randrange(1, 60)}, {rng.randrange(1, 60)}, {rng.randrange(1, 5)})"
    empty = f"torch.empty({shape}, device=c, dtype=torch.{dtype})"
    if shape.count(",") > 1 and rng.random() < 0.7:
        empty += rng.choice(VIEWS)
    if rng.random() < 0.5:
        return f"{empty}.{rng.choice(FILLS)}"
    low = rng.randrange(-50, 50)
    extent = rng.choice((2, 7, 100, 1000, 2**20, 2**28 - 1, 2**28, 2**31 - 60, 2**40, 2**62))
    whole = "int64" if extent > 2**30 else "int32"
    return rng.choice((
        f"torch.rand({shape}, device=c, dtype=torch.{dtype})",
        f"torch.randn({shape}, device=c, dtype=torch.{dtype})",
        f"torch.randint({low}, {low + extent}, {shape}, device=c, dtype=torch.{whole})",
        f"torch.empty({shape}, device=c, dtype=torch.{rng.choice(WHOLE)}).random_()",
        f"torch.empty({shape}, device=c, dtype=torch.{dtype}).random_()",
        f"torch.randperm({rng.randrange(0, 50_000)}, device=c)",
        f"F.dropout(torch.ones({shape}, device=c, dtype=torch.{dtype}), {rng.random():.3f})",
        f"torch.bernoulli(torch.rand({shape}, device=c, dtype=torch.{dtype}))",
        f"torch.multinomial(torch.rand({size % 199 + 1}, device=c), {size % 900 + 2}, True)",
    ))  # fmt: skip


class Library:
    """PyTorch or flambeau: runs a program from a seed and an offset."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        torch.cuda.init()  # PyTorch has no generators before
        self.generator = torch.cuda.default_generators[0]

    def run(self, text: str, seed: int, offset: int) -> tuple[Any, int]:
        """The result as an ndarray (bfloat16 as float32), or as text, and the offset after it."""
        torch = self.torch
        torch.manual_seed(seed)
        self.generator.set_offset(offset)
        space = {"torch": torch, "F": torch.nn.functional, "c": "cuda", "g": self.generator}
        result = eval(text, space)
        if not torch.is_tensor(result):
            return str(result), self.generator.get_offset()
        if result.dtype == torch.bfloat16:
            result = result.float()
        return result.detach().cpu().contiguous().numpy(), self.generator.get_offset()

    def answer(self, text: str, seed: int, offset: int) -> tuple[Any, int | None]:
        """What `run` gives, or what it raises as text, without an offset."""
        try:
            return self.run(text, seed, offset)
        except Exception as error:
            return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", None


class Apart:
    """flambeau on an emulated GPU, in a process of its own: that of a GPU can emulate none.

    A program goes there as a line; what comes back is a line too, and arrays a file.
    """

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="flambeau-random-")
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", self.folder.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "FLAMBEAU_EMULATE_CUDA": "1"},
        )  # fmt: skip

    def answer(self, text: str, seed: int, offset: int) -> tuple[Any, int | None]:
        """What `Library.answer` gives there."""
        assert self.process.stdin is not None and self.process.stdout is not None  # noqa: PT018
        print(json.dumps([text, seed, offset]), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the emulating process ended: {self.process.wait()} at {text}")
        result, after = json.loads(line)
        if result is None:
            result = np.load(Path(self.folder.name, RESULT))
        return result, after

    def close(self) -> None:
        """End the process."""
        self.process.communicate()
        self.folder.cleanup()


Side = Library | Apart
RESULT = "result.npy"


def serve(folder: Path) -> None:
    """Be the process that `Apart` asks."""
    import flambeau

    lines_out, sys.stdout = sys.stdout, sys.stderr
    library = Library(flambeau)
    for line in sys.stdin:
        result, after = library.answer(*json.loads(line))
        if not isinstance(result, str):
            np.save(folder / RESULT, result)
            result = None
        print(json.dumps([result, after]), file=lines_out, flush=True)


def packed(array: np.ndarray, most: int = 4096) -> dict[str, Any]:
    """An array for JSON: at most so many numbers of it."""
    flat = np.ascontiguousarray(array.reshape(-1)[:most])
    data = base64.b64encode(zlib.compress(flat.tobytes(), 9)).decode()
    return {"shape": list(array.shape), "dtype": str(flat.dtype), "data": data}


def difference(ours: Any, theirs: Any) -> dict[str, Any] | None:
    """How two results differ; None if not at all."""
    if isinstance(ours, str) or isinstance(theirs, str):
        return None if str(ours) == str(theirs) else {"ours": str(ours), "theirs": str(theirs)}
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return {"ours": f"{ours.dtype} {ours.shape}", "theirs": f"{theirs.dtype} {theirs.shape}"}
    unequal = (ours != theirs) & ~((ours != ours) & (theirs != theirs))
    if not unequal.any():
        return None
    with np.errstate(all="ignore"):
        a, b = ours[unequal].astype(np.float64), theirs[unequal].astype(np.float64)
        far = np.abs(a - b) / (np.abs(b) + 1e-3)
    return {"count": int(unequal.sum()), "of": ours.size, "worst": float(np.nanmax(far)),
            "median": float(np.nanmedian(far))}  # fmt: skip


def compare(text: str, seed: int, offset: int, ours: Side, theirs: Side | None) -> dict[str, Any]:
    """One program in both libraries."""
    result: dict[str, Any] = {"text": text, "seed": seed, "offset": offset}
    if theirs is not None:
        their_numbers, result["theirs_offset"] = theirs.answer(text, seed, offset)
    numbers, result["ours_offset"] = ours.answer(text, seed, offset)
    if theirs is None:
        return result
    found = difference(numbers, their_numbers)
    result["same"] = found is None and result["ours_offset"] == result["theirs_offset"]
    if found is not None:
        result["difference"] = found
        if isinstance(their_numbers, np.ndarray):
            result["data"] = packed(their_numbers, 4096 if text in FIXED else 64)
    return result


def sampled(torch: Any) -> Iterator[tuple[str, Any]]:
    """The card's approximate functions at places of all their segments, as packed float32."""
    words = np.arange(1 << 11, dtype=np.int64)
    spread = np.concatenate([words << 12, (words & 31) + ((words >> 5) << 17) + 4096])
    quarter = (spread.astype(np.float64) * 2.0**-23).astype(np.float32)
    angle, beyond = quarter * np.float32(np.pi / 2), 1 + quarter
    places = {"sin": angle, "cos": angle, "lg2": beyond, "lg2 below 1": quarter, "ex2": quarter,
              "rcp": beyond, "rsqrt": beyond}  # fmt: skip
    for name, arguments in places.items():
        instruction = f'asm("{name.split()[0]}.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));'
        text = f"template <typename T> T sample(T x) {{ float y; {instruction} return y; }}"
        try:
            compiled = torch.cuda.jiterator._create_jit_fn(text)
            values = compiled(torch.from_numpy(arguments).cuda()).cpu().numpy()
            yield name, {"arguments": packed(arguments), "values": packed(values)}
        except Exception:
            yield name, traceback.format_exc().strip().splitlines()[-1]


def lines(text: str) -> list[str]:
    return [line for line in text.strip().split("\n") if line]


TIMED = {
    "uniform_": "x.uniform_()", "normal_": "x.normal_()", "exponential_": "x.exponential_()",
    "bernoulli_": "x.bernoulli_(0.3)", "random_": "i.random_(0, 1000)",
    "dropout": "F.dropout(x, 0.5)", "dropout half": "F.dropout(h, 0.5)",
}  # fmt: skip


def timed(torch: Any) -> dict[str, float]:
    """Microseconds of each fill of 64 Mi elements, the median of 7 between events."""
    space = {"torch": torch, "F": torch.nn.functional, "x": torch.ones(1 << 26, device="cuda")}
    space["h"], space["i"] = space["x"].half(), space["x"].int()
    found = {}
    for name, text in TIMED.items():
        try:
            code, times = compile(text, name, "eval"), []
            for _ in range(9):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                eval(code, space)
                end.record()
                end.synchronize()
                times.append(start.elapsed_time(end) * 1000)
            found[name] = sorted(times[2:])[3]
        except Exception:
            found[name] = traceback.format_exc().strip().splitlines()[-1]
    return found


Write = Callable[[dict[str, Any]], None]


def torch_with_cuda() -> Any:
    """PyTorch, where it is installed and has a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def on_the_card(torch: Any, arguments: argparse.Namespace, write: Write) -> dict[str, Any]:
    """flambeau's kernels on the GPU."""
    import flambeau

    report: dict[str, Any] = {"flambeau": flambeau.cuda.get_device_name(), "unit": {}}
    ours = Library(flambeau)
    if torch is not None:
        for name, library in (("ours", flambeau), ("theirs", torch)):
            report[f"{name}_us"] = timed(library)
            write(report)
        for name, found in sampled(torch):
            report["unit"][name] = found
    return check(report, ours, torch, arguments, write)


def emulated(torch: Any, arguments: argparse.Namespace, write: Write) -> dict[str, Any]:
    """flambeau's numbers as the CPU makes them."""
    ours = Apart()
    try:
        return check({"flambeau": "emulated"}, ours, torch, arguments, write)
    finally:
        ours.close()


def check(report: dict[str, Any], ours: Side, torch: Any, arguments: argparse.Namespace,
          write: Write) -> dict[str, Any]:  # fmt: skip
    """Errors, fixed programs and drawn ones, as far as the time goes; `write` after each item."""
    report |= {"programs": 0, "same": 0, "differing": [], "errors": [], "torch": "no GPU for it"}
    end = time.monotonic() + arguments.seconds
    theirs = None
    if torch is not None:
        theirs = Library(torch)
        report |= {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    _check_errors(report, ours, theirs)
    write(report)
    rng = random.Random(arguments.seed)
    texts = lines(FIXED)
    while time.monotonic() < end:
        text = texts.pop(0) if texts else drawn(rng)
        seed = rng.choice((rng.randrange(2**63), rng.randrange(100)))
        result = compare(text, seed, 4 * rng.choice((0, 0, 1, rng.randrange(2**20))), ours, theirs)
        report["programs"] += 1
        if result.get("same"):
            report["same"] += 1
        else:
            report["differing"].append(result)
            write(report)
    write(report)
    return report


def _check_errors(report: dict[str, Any], ours: Side, theirs: Side | None) -> None:
    for text in lines(ERRORS):
        pair = [str(side.answer(text, 1, 0)[0]) for side in (ours, theirs) if side is not None]
        if len(set(pair)) > 1 or theirs is None:
            report["errors"].append([text, *pair])


def told(report: dict[str, Any]) -> None:
    """The report as lines."""
    for item in report["differing"]:
        offsets = item.get("ours_offset"), item.get("theirs_offset")
        found = str(item.get("difference", ""))[:200]
        print(item["text"][:100], found, *offsets)
    for item in report["errors"]:
        print(*item, sep="\n    ")
    print("us:", report.get("ours_us"), report.get("theirs_us"))
    print(f"flambeau {report['flambeau']}: {report['same']} of {report['programs']} programs have "
          "the same bits and offsets")  # fmt: skip


class Writer:
    """Writes a report, at most once a second; that of a second part beside the `first`."""

    def __init__(self, out: Path) -> None:
        self.out, self.last = out, 0.0
        self.first: dict[str, Any] | None = None

    def __call__(self, report: dict[str, Any]) -> None:
        if time.monotonic() > self.last + 1:
            self.now(report)

    def now(self, report: dict[str, Any]) -> None:
        """Write it whenever the last one was."""
        whole = report if self.first is None else {**self.first, "emulated": report}
        self.out.write_text(json.dumps(whole, indent=1))
        self.last = time.monotonic()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("random.json"))
    parser.add_argument("--seconds", type=float, default=18, help="for each of the two parts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--emulated", action="store_true", help="flambeau's side on the CPU only")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        return serve(arguments.serve)
    import flambeau

    torch, write = torch_with_cuda(), Writer(arguments.out)
    on_gpu = flambeau.cuda.is_available() and not arguments.emulated
    parts = [on_the_card, emulated] if on_gpu else [emulated]
    for part in parts:
        report = part(torch, arguments, write)
        write.now(report)
        told(report)
        write.first = report
    return None


if __name__ == "__main__":
    main()
