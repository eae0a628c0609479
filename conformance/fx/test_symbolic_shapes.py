"""Sizes that are symbols, beside PyTorch's: what programs give for other sizes, when guards hold,
and which operators graphs call."""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch as reference
from torch.fx.experimental import proxy_tensor as reference_proxy_tensor

import flambeau
from flambeau._core import modes
from flambeau.fx.experimental import proxy_tensor

SIZES = ((4, 6), (2, 3), (5, 8), (6, 6), (8, 12), (9, 4), (4, 2))
"""Sizes of the first input. The first pair is the one that is traced with."""
Program = Callable[..., Any]

PROGRAMS: dict[str, Program] = {
    "add": lambda t, x, y: x + y,
    "numbers": lambda t, x, y: x * x.shape[0] + x.shape[1],
    "quotient": lambda t, x, y: x.sum() / x.shape[0],
    "product": lambda t, x, y: x @ y.T,
    "flatten": lambda t, x, y: x.flatten(),
    "reshape": lambda t, x, y: x.reshape(-1),
    "reshape to sizes": lambda t, x, y: x.reshape(x.shape[1], x.shape[0]),
    "view": lambda t, x, y: x.view(x.shape[0], -1, 2),
    "view of a product": lambda t, x, y: x.view(x.shape[0] * x.shape[1]),
    "unflatten": lambda t, x, y: x.unflatten(1, (-1, 2)),
    "transpose": lambda t, x, y: x.t().contiguous(),
    "permute": lambda t, x, y: x[None].permute(2, 0, 1),
    "cat": lambda t, x, y: t.cat([x, y, x]),
    "cat along the last": lambda t, x, y: t.cat([x, y], 1),
    "stack": lambda t, x, y: t.stack([x, y], 1),
    "half": lambda t, x, y: x[: x.shape[0] // 2],
    "rest": lambda t, x, y: x[1:],
    "all but one": lambda t, x, y: x[:, :-1],
    "every second": lambda t, x, y: x[::2],
    "steps": lambda t, x, y: x[:, 1::2],
    "row": lambda t, x, y: x[0],
    "last row": lambda t, x, y: x[-1],
    "narrow": lambda t, x, y: x.narrow(1, 0, x.shape[1] - 1),
    "chunk": lambda t, x, y: x.chunk(2),
    "split": lambda t, x, y: x.split(x.shape[0] // 2)[0],
    "sum": lambda t, x, y: x.sum(0),
    "kept sum": lambda t, x, y: x.sum(1, keepdim=True),
    "mean": lambda t, x, y: x.mean(),
    "largest": lambda t, x, y: x.max(1),
    "softmax": lambda t, x, y: t.softmax(x, -1),
    "layer norm": lambda t, x, y: t.nn.functional.layer_norm(x, (x.shape[1],)),
    "zeros": lambda t, x, y: t.zeros(x.shape[0], 3) + 1,
    "ones of a sum": lambda t, x, y: t.ones(x.shape[0] + x.shape[1]),
    "range": lambda t, x, y: t.arange(x.shape[0]),
    "full": lambda t, x, y: t.full((x.shape[1],), 2.0),
    "new zeros": lambda t, x, y: x.new_zeros(x.shape[1], x.shape[0]),
    "empty like": lambda t, x, y: t.zeros_like(x),
    "eye": lambda t, x, y: t.eye(x.shape[0]),
    "expand": lambda t, x, y: x[0].expand(x.shape[0], x.shape[1]),
    "repeat": lambda t, x, y: x.repeat(2, 3),
    "tile": lambda t, x, y: x.tile(2),
    "pad": lambda t, x, y: t.nn.functional.pad(x, (1, 2)),
    "pad by a size": lambda t, x, y: t.nn.functional.pad(x, (0, x.shape[0])),
    "convolution": lambda t, x, y: t.nn.functional.conv1d(x[None, None, 0], t.ones(1, 1, 2)),
    "strided convolution": lambda t, x, y: t.nn.functional.conv1d(
        x[None, None, 0], t.ones(1, 1, 2), stride=2, padding=1
    ),
    "pool": lambda t, x, y: t.nn.functional.max_pool1d(x[None], 2),
    "average pool": lambda t, x, y: t.nn.functional.avg_pool1d(x[None], 2, 1),
    "larger": lambda t, x, y: x.repeat_interleave(2, dim=1),
    "linear": lambda t, x, y: t.nn.functional.linear(x, y),
    "outer": lambda t, x, y: t.outer(x[0], y[:, 0]),
    "batch product": lambda t, x, y: t.bmm(x[None], y.t()[None]),
    "einsum": lambda t, x, y: t.einsum("ij,kj->ik", x, y),
    "index": lambda t, x, y: x[t.arange(x.shape[0])],
    "index select": lambda t, x, y: x.index_select(0, t.arange(2)),
    "gather": lambda t, x, y: x.gather(1, x.argsort(1)),
    "sort": lambda t, x, y: x.sort(1)[0],
    "cumulative": lambda t, x, y: x.cumsum(0),
    "flip": lambda t, x, y: x.flip(0).roll(1, 0),
    "triangle": lambda t, x, y: x.tril(),
    "diagonal": lambda t, x, y: (x @ x.T).diagonal(),
    "where": lambda t, x, y: t.where(x > 0, x, y),
    "in place": lambda t, x, y: x.clone().add_(1).mul_(x.shape[0]),
    "write to a part": lambda t, x, y: x.clone()[0].fill_(0),
    "branch": lambda t, x, y: x + 1 if x.shape[0] > 3 else x.sum(),
    "branch on two": lambda t, x, y: x[0] if x.shape[0] < x.shape[1] else x[:, 0],
    "branch on a rest": lambda t, x, y: x[::2] if x.shape[1] % 2 == 0 else x * 2,
    "loop": lambda t, x, y: sum(x[i] for i in range(x.shape[0])),
    "maximum": lambda t, x, y: t.zeros(t.sym_max(x.shape[0], x.shape[1])),
    "minimum": lambda t, x, y: t.zeros(t.sym_min(x.shape[0], 3)),
    "float": lambda t, x, y: x * t.sym_float(x.shape[0]),
    "root": lambda t, x, y: x / t.sym_sqrt(x.shape[1]),
    "check": lambda t, x, y: (t._check(x.shape[0] >= 3), x + 1)[1],
    "sizes": lambda t, x, y: (x.shape[0], x.shape[1] * 2 - 1, x.numel()),
    "remainder": lambda t, x, y: x.shape[1] % 3,
    "unfold": lambda t, x, y: x.unfold(1, 2, 1),
    "gradient": lambda t, x, y: t.func.grad(lambda z: (z.flatten() ** 2).sum())(x),
    "batch": lambda t, x, y: t.vmap(lambda row: row * 2)(x),
    "attention": lambda t, x, y: t.softmax(x @ y.T / x.shape[-1] ** 0.5, -1) @ y,
}  # fmt: skip
OTHER_OPERATORS = {
    "all but one", "steps", "outer", "gather", "root", "sizes", "attention", "pool", "einsum",
    "gradient",
}  # fmt: skip
"""Programs whose graphs differ from PyTorch's, though not in what they compute."""
STRICTER = {"unflatten", "pool", "loop"}
"""Programs with guards that PyTorch has not: a size that may be 1 is said to be none, and a size
that became a number is one."""


def traced(library: Any, make: Any, program: Program, sizes: Any) -> Any:
    x, y = inputs(library, sizes)
    return make(lambda x, y: program(library, x, y), tracing_mode="symbolic")(x, y)


def inputs(library: Any, sizes: Any) -> Any:
    rows, columns = sizes
    x = library.arange(1.0, rows * columns + 1).reshape(rows, columns)
    return x, x.flip(0)


def both(name: str) -> Any:
    """The graphs of a program: ours and PyTorch's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = traced(reference, reference_proxy_tensor.make_fx, PROGRAMS[name], SIZES[0])
    return traced(flambeau, proxy_tensor.make_fx, PROGRAMS[name], SIZES[0]), theirs


@pytest.fixture(autouse=True)
def collected() -> Any:
    """Graphs hold their tensors in circles."""
    yield
    if modes.watch.active:
        gc.collect()


def placeholders(graph: Any) -> list[Any]:
    return [node.meta["val"] for node in graph.graph.nodes if node.op == "placeholder"]


def holds(graph: Any, library: Any, sizes: Any) -> bool:
    env = graph.shape_env
    return bool(env.evaluate_guards_for_args(placeholders(graph), inputs(library, sizes)))


def leaves(library: Any, value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(itertools.chain(*[leaves(library, part) for part in value]))
    return [value.tolist() if isinstance(value, library.Tensor) else value]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    ours, theirs = both(name)
    _other_sizes(name, ours)
    _guards(name, ours, theirs)
    assert (targets(ours) == targets(theirs)) == (name not in OTHER_OPERATORS), ours.code


def _other_sizes(name: str, graph: Any) -> None:
    """The graph computes what the program does, for all sizes for which its guards hold."""
    run = 0
    for sizes in SIZES:
        if holds(graph, flambeau, sizes):
            got = leaves(flambeau, graph(*inputs(flambeau, sizes)))
            want = leaves(reference, PROGRAMS[name](reference, *inputs(reference, sizes)))
            reference.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
            run += 1
    assert run > 1, graph.shape_env.guards


def _guards(name: str, ours: Any, theirs: Any) -> None:
    """Guards hold where PyTorch's hold."""
    wrong = [sizes for sizes in SIZES
             if holds(theirs, reference, sizes) and not holds(ours, flambeau, sizes)]  # fmt: skip
    assert bool(wrong) == (name in STRICTER), (wrong, ours.shape_env.guards)


def targets(graph: Any) -> list[str]:
    """What a graph calls."""
    found = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    return sorted(str(t) if "aten" in str(t) else t.__name__.lstrip("_") for t in found)
