"""`flambeau warmup`: run the common operators once, so that their kernels are in the cache.

What a program would compile on its way (10 to 40 ms a kernel) is compiled before it: when an image
is built, or after an update. A group is a function of a dtype; `@group("name", dtypes)` adds one.

`flambeau warmup --library FILE` puts the kernels into one file that loads without LLVM: those of
the groups that are named, and those of a program (`-- SCRIPT ARGUMENT ...`).
"""

from __future__ import annotations

import contextlib
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flambeau as torch
from flambeau import hook

Case = Callable[[Any], Any]
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
TRAINED = (torch.float32, torch.bfloat16)
GROUPS: dict[str, list[tuple[Case, Any]]] = {}


def group(name: str, dtypes: Any) -> Callable[[Case], Case]:
    """Add a function to a group of the command line, once for each dtype."""

    def add(case: Case) -> Case:
        GROUPS.setdefault(name, []).extend((case, dtype) for dtype in dtypes)
        return case

    return add


def fill(names: list[str], say: Callable[[str], Any]) -> int:
    """Run groups and say how far they are; the command's exit code."""
    from ._runtime import cache, choice

    if choice.ENGINE == "numpy" or not choice.available():
        say("There is nothing to compile: kernels need llvmlite, and FLAMBEAU_ENGINE=auto.\n")
        return 1
    if cache.directory() is None:
        say("There is no cache: FLAMBEAU_CACHE_DIR is empty.\n")
        return 1
    cases = [(name, *case) for name in names for case in GROUPS[name]]
    start = time.perf_counter()
    for number, (name, case, dtype) in enumerate(cases, 1):
        before = cache.State.writes
        begin = time.perf_counter()
        _run(case, dtype)
        took = time.perf_counter() - begin
        what = f"[{number}/{len(cases)}] {name}, {case.__name__}, {str(dtype)[6:]}"
        say(f"{what:<48} {cache.State.writes - before:3} new {took:6.2f} s\n")
    count, total = cache.size()
    say(f"{count} kernels, {total / 2**20:.1f} MB in {cache.directory()}, "
        f"{time.perf_counter() - start:.1f} s\n")  # fmt: skip
    return 0


def into_library(
    path: Path, names: list[str], program: list[str], say: Callable[[str], Any]
) -> int:
    """Run groups and a program, and write the kernels that they needed to a library.

    `program`: a script and its arguments; it is run as `__main__`, with flambeau as torch.
    """
    from ._runtime import choice, features, library, machine_code

    if choice.ENGINE == "numpy" or choice.FROM_LIBRARY or not choice.available():
        say("There is nothing to compile: kernels need llvmlite, and FLAMBEAU_ENGINE=auto.\n")
        return 1
    if not machine_code.POSSIBLE:
        say("Libraries are for Linux on x86-64.\n")
        return 1
    library.Recording.kept = {}
    _basis()
    for name in names:
        for case, dtype in GROUPS[name]:
            _run(case, dtype)
    if program:
        _run_program(program)
    written = library.write(path, features.made_for())
    say(f"{written} kernels, {path.stat().st_size / 2**20:.1f} MB in {path}\n")
    return 0


def _basis() -> None:
    """What every process loads that runs kernels: the pool of memory and that of threads."""
    from ._runtime import allocator, denormals, threads

    allocator.ready()
    threads.the_pool()
    denormals.set_flush_denormal(False)


def _run_program(program: list[str]) -> None:
    """Run a script; that it ends by `sys.exit(0)` is no reason to stop."""
    before = sys.argv[:]
    sys.argv[:] = program
    hook.install()
    try:
        runpy.run_path(program[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv[:] = before


def _run(case: Case, dtype: Any) -> None:
    state = torch.get_rng_state()
    case(dtype)
    torch.set_rng_state(state)


def _try(name: str, *arguments: Any) -> None:
    """Call an operator; what it refuses for a dtype has no kernel."""
    with contextlib.suppress(NotImplementedError, RuntimeError, TypeError):
        getattr(torch, name)(*arguments)


def _data(dtype: Any, *shape: int, grad: bool = False) -> Any:
    if not dtype.is_floating_point:
        return torch.ones(shape, dtype=dtype)
    return torch.rand(*shape).to(dtype).requires_grad_(grad)


def _backward(result: Any) -> None:
    result.sum().backward()


UNARY = (
    "neg abs exp log sqrt rsqrt reciprocal square sin cos tanh sigmoid relu erf floor round sign"
).split()
BINARY = "add sub mul div maximum minimum pow eq ne lt le gt ge".split()


@group("pointwise", (*FLOATS, torch.int64))
def arithmetic(dtype: Any) -> None:
    """Operators of one and two tensors, and of a tensor and a number."""
    x, y = _data(dtype, 256, 1024), _data(dtype, 256, 1024)
    for name in UNARY if dtype.is_floating_point else ("neg", "abs"):
        _try(name, x)
    for name in BINARY:
        _try(name, x, y)
        _try(name, x, 2)
    torch.add(x, y[0])
    torch.where(x > 1, x, y)
    x.clamp(0, 1)
    x.copy_(y.t().reshape(256, 1024))


@group("pointwise", TRAINED)
def activations(dtype: Any) -> None:
    """Activations and their gradients."""
    for name in ("relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus"):
        x = _data(dtype, 256, 1024, grad=True)
        _backward(getattr(torch.nn.functional, name)(x))
    _backward(torch.nn.functional.dropout(_data(dtype, 256, 1024, grad=True), 0.1))


@group("pointwise", (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64))
def conversions(dtype: Any) -> None:
    """From this dtype to the usual others."""
    x = _data(dtype, 256, 1024)
    for other in (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool):
        x.to(other)


@group("reductions", (*FLOATS, torch.int64))
def totals(dtype: Any) -> None:
    """Sums and extremes, of everything and along either dim."""
    x = _data(dtype, 256, 1024)
    for name in ("sum", "amax", "amin", "argmax", "cumsum", "sort"):
        _try(name, x, 1)
        _try(name, x, 0)
    for name in ("sum", "max", "min", "any", "all"):
        _try(name, x)
    torch.topk(x, 8)
    if dtype.is_floating_point:
        for result in (x.mean(1), x.mean(0), x.mean(), x.var(1), x.std(), x.norm(), x.norm(dim=1)):
            result.sum()


@group("reductions", TRAINED)
def rows(dtype: Any) -> None:
    """Softmax, normalisation and losses, with gradients."""
    functional = torch.nn.functional
    weight, bias = _data(dtype, 1024, grad=True), _data(dtype, 1024, grad=True)
    target = torch.zeros(256, dtype=torch.int64)
    runs: tuple[Case, ...] = (
        lambda x: functional.softmax(x, 1),
        lambda x: functional.log_softmax(x, 1),
        lambda x: functional.layer_norm(x, (1024,), weight, bias),
        lambda x: functional.rms_norm(x, (1024,), weight),
        lambda x: functional.cross_entropy(x, target),
        lambda x: functional.mse_loss(x, x.detach()),
    )
    for run in runs:
        _backward(run(_data(dtype, 256, 1024, grad=True)))


@group("matmul", FLOATS)
def products(dtype: Any) -> None:
    """Products of matrices, plain and transposed, and batches of them."""
    a, b = _data(dtype, 192, 192), _data(dtype, 192, 192)
    for left in (a, a.t()):
        for right in (b, b.t()):
            left @ right
    torch.bmm(_data(dtype, 4, 128, 128), _data(dtype, 4, 128, 128))
    a @ b[0]


@group("matmul", TRAINED)
def linear(dtype: Any) -> None:
    """A linear layer and its gradients."""
    weight, bias = _data(dtype, 256, 256, grad=True), _data(dtype, 256, grad=True)
    _backward(torch.nn.functional.linear(_data(dtype, 128, 256, grad=True), weight, bias))


@group("images", TRAINED)
def convolutions(dtype: Any) -> None:
    """Convolutions of the usual shapes and their gradients."""
    for size, stride, groups in ((1, 1, 1), (3, 1, 1), (3, 2, 1), (7, 2, 1), (3, 1, 32)):
        x = _data(dtype, 2, 32, 32, 32, grad=True)
        weight = _data(dtype, 32, 32 // groups, size, size, grad=True)
        bias = _data(dtype, 32, grad=True)
        _backward(torch.nn.functional.conv2d(x, weight, bias, stride, size // 2, 1, groups))


@group("images", TRAINED)
def pooling(dtype: Any) -> None:
    """Pooling and batch normalisation with gradients."""
    functional = torch.nn.functional
    norm: Any = torch.nn.BatchNorm2d(32)
    norm.to(dtype)
    for run in (
        lambda x: functional.max_pool2d(x, 2),
        lambda x: functional.max_pool2d(x, 3, 2, 1),
        lambda x: functional.avg_pool2d(x, 2),
        lambda x: functional.adaptive_avg_pool2d(x, 1),
        norm,
    ):
        _backward(run(_data(dtype, 4, 32, 32, 32, grad=True)))
    norm.eval()(_data(dtype, 4, 32, 32, 32))


@group("sequences", TRAINED)
def attention(dtype: Any) -> None:
    """Attention with and without a causal mask, and its gradients."""
    for is_causal in (False, True):
        q, k, v = (_data(dtype, 2, 4, 128, 64, grad=True) for _ in range(3))
        attend = torch.nn.functional.scaled_dot_product_attention
        _backward(attend(q, k, v, is_causal=is_causal))


@group("sequences", (torch.float32,))
def recurrent(dtype: Any) -> None:
    """Recurrent layers, a training step each."""
    for layer in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        _backward(layer(64, 128)(_data(dtype, 16, 32, 64))[0])


@group("sequences", TRAINED)
def tables(dtype: Any) -> None:
    """Embeddings, gathering and scattering."""
    weight = _data(dtype, 1000, 128, grad=True)
    index = torch.arange(4096) % 1000
    _backward(torch.nn.functional.embedding(index, weight))
    rows_of = _data(dtype, 4096, 128)
    _data(dtype, 1000, 128).index_add_(0, index, rows_of)
    rows_of.index_select(0, index)
    rows_of.gather(0, index[:, None].expand(4096, 128))


@group("training", (torch.float32,))
def optimizers(dtype: Any) -> None:
    """A step of the usual optimizers."""
    optim = torch.optim
    for make in (
        lambda p: optim.SGD(p, lr=0.1),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-4),
        optim.Adam,
        optim.AdamW,
        optim.RMSprop,
        optim.Adagrad,
    ):
        weight = torch.nn.Parameter(_data(dtype, 256, 256))
        optimizer = make([weight])
        for _ in range(2):
            optimizer.zero_grad()
            _backward(torch.mul(weight, weight))
            torch.nn.utils.clip_grad_norm_([weight], 1.0)
            optimizer.step()


@group("random", (torch.float32, torch.float64))
def numbers(dtype: Any) -> None:
    """Random tensors."""
    torch.rand(65536, dtype=dtype)
    torch.randn(65536, dtype=dtype)
    torch.empty(65536, dtype=dtype).exponential_()
    torch.randint(0, 100, (65536,))
    torch.randperm(65536)
    torch.bernoulli(torch.full((65536,), 0.5, dtype=dtype))
