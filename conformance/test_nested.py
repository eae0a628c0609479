"""Nested tensors of both layouts beside PyTorch's: rows, gradients, shapes and errors."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

ROWS = [np.linspace(-2, 2, n * 4, dtype=np.float32).reshape(n, 4) for n in (2, 5, 1)]
Program = Callable[[Any, Any], Any]

BOTH: dict[str, Program] = {
    "relu": lambda t, x: t.relu(x),
    "tanh": lambda t, x: t.tanh(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "silu": lambda t, x: t.nn.functional.silu(x),
    "add": lambda t, x: x + x,
    "number": lambda t, x: 2 * x + 1,
    "tensor of one number": lambda t, x: x * t.tensor(2.0),
    "div": lambda t, x: x / 2,
    "isnan": lambda t, x: t.isnan(x),
    "linear": lambda t, x: t.nn.functional.linear(x, t.linspace(-1, 1, 8).reshape(2, 4)),
    "softmax": lambda t, x: x.softmax(-1),
    "transpose": lambda t, x: x.transpose(1, 2),
    "unsqueeze": lambda t, x: x.unsqueeze(-1),
    "chunk": lambda t, x: x.chunk(2, -1)[1],
    "clone": lambda t, x: x.clone(),
    "double": lambda t, x: x.to(t.float64),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "fill_": lambda t, x: x.clone().fill_(3),
    "mul_": lambda t, x: x.clone().mul_(x),
    "masked_fill": lambda t, x: x.masked_fill(x > 0, 0.0),
    "row": lambda t, x: x[1],
    "number in a row": lambda t, x: x[1, 3],
    "dim": lambda t, x: (x.dim(), x.size(0), x.size(-1), x.numel(), x.is_nested, x.is_contiguous()),
    "padded": lambda t, x: t.nested.to_padded_tensor(x, -1.0),
    "padded further": lambda t, x: x.to_padded_tensor(0.0, (3, 6, 4)),
    "no dim 3": lambda t, x: x.size(3),
    "unbind 1": lambda t, x: x.unbind(1),
    "item": lambda t, x: x.item(),
    "bool": lambda t, x: bool(x),
    "layer norm": lambda t, x: t.nn.LayerNorm(4)(x).detach(),
}
JAGGED: dict[str, Program] = {
    "exp": lambda t, x: x.exp(),
    "pow": lambda t, x: x**2,
    "eq": lambda t, x: x == x,
    "ordinary": lambda t, x: x + t.arange(4),
    "ordinary, a row each": lambda t, x: x + t.arange(12).reshape(3, 1, 4),
    "ordinary, padded": lambda t, x: x + t.arange(60).reshape(3, 5, 4),
    "sum": lambda t, x: x.sum(),
    "sum over rows": lambda t, x: x.sum(1),
    "sum, kept": lambda t, x: x.sum(1, keepdim=True),
    "sum over the last": lambda t, x: x.sum(-1),
    "sum of all rows": lambda t, x: x.sum((0, 1)),
    "sum over the batch": lambda t, x: x.sum(0),
    "sum over the ragged and last": lambda t, x: x.sum((1, 2)),
    "mean": lambda t, x: x.mean(1),
    "mean over the last": lambda t, x: x.mean(-1, keepdim=True),
    "amax": lambda t, x: x.amax(1),
    "max": lambda t, x: x.max(),
    "argmax": lambda t, x: x.argmax(-1),
    "any": lambda t, x: (x > 1).any(),
    "softmax over rows": lambda t, x: x.softmax(1),
    "softmax over the batch": lambda t, x: x.softmax(0),
    "log_softmax": lambda t, x: x.log_softmax(-1),
    "rms": lambda t, x: t.nn.RMSNorm(4)(x).detach(),
    "permute": lambda t, x: x.permute(0, 2, 1),
    "transpose the batch": lambda t, x: x.transpose(0, 1),
    "matmul": lambda t, x: x @ t.linspace(0, 1, 8).reshape(4, 2),
    "bmm": lambda t, x: x @ t.linspace(0, 1, 24).reshape(3, 4, 2),
    "view": lambda t, x: x.view(3, -1, 2, 2),
    "reshape": lambda t, x: x.reshape(3, -1, 1, 4),
    "unflatten": lambda t, x: x.unflatten(-1, (2, 2)),
    "flatten": lambda t, x: x.unflatten(-1, (2, 2)).flatten(-2),
    "unsqueeze in front": lambda t, x: x.unsqueeze(1),
    "squeeze": lambda t, x: x.unsqueeze(-1).squeeze(-1),
    "chunk of rows": lambda t, x: x.chunk(2, 0)[0],
    "split": lambda t, x: x.split([1, 3], -1)[1],
    "select": lambda t, x: x.select(-1, 0),
    "slice": lambda t, x: x[..., 1:],
    "slice the batch": lambda t, x: x[:1],
    "narrow": lambda t, x: x.narrow(-1, 1, 2),
    "cat": lambda t, x: t.cat([x, x], -1),
    "cat of batches": lambda t, x: t.cat([x, x], 0),
    "where": lambda t, x: t.where(x > 0, x, 0.0),
    "clamp": lambda t, x: x.clamp(-1, 1),
    "shape": lambda t, x: x.shape,
    "stride": lambda t, x: x.transpose(1, 2).stride(),
    "text": lambda t, x: str(x),
    "text of the turned": lambda t, x: str(x.transpose(1, 2)),
    "cut": lambda t, x: x.to_padded_tensor(0.0, (3, 3, 4)),
    "length": lambda t, x: len(x),
    "iter": lambda t, x: list(x)[1],
    "no such row": lambda t, x: x[3],
    "others": lambda t, x: x + t.nested.nested_tensor([t.ones(2, 4)] * 3, layout=t.jagged),
}
STRIDED: dict[str, Program] = {
    "sum": lambda t, x: x.sum(-1, keepdim=True),
    "sum without": lambda t, x: x.sum(-1),
    "sum over rows": lambda t, x: x.sum(1, keepdim=True),
    "softmax over rows": lambda t, x: x.softmax(1),
    "softmax over the batch": lambda t, x: x.softmax(0),
    "transpose the batch": lambda t, x: x.transpose(0, 1),
    "matmul": lambda t, x: t.matmul(x, x.transpose(1, 2)),
    "ordinary": lambda t, x: x + t.ones(4),
    "ordinary matmul": lambda t, x: x @ t.ones(4, 2),
    "cut": lambda t, x: x.to_padded_tensor(0.0, (3, 3, 4)),
    "fewer dims": lambda t, x: x.to_padded_tensor(0.0, (3, 3)),
    "shape": lambda t, x: x.shape,
    "size": lambda t, x: x.size(1),
    "len": lambda t, x: len(x),
    "iter": lambda t, x: list(x),
    "no such row": lambda t, x: x[3],
    "text": lambda t, x: str(x),
    "sizes": lambda t, x: x._nested_tensor_size(),
    "steps": lambda t, x: x.transpose(1, 2)._nested_tensor_strides(),
    "starts": lambda t, x: x._nested_tensor_storage_offsets(),
    "cat": lambda t, x: t.cat([x, x], 0),
    "cat in rows": lambda t, x: t.cat([x, x], -1),
    "reshape": lambda t, x: x.reshape(3, -1, 2, 2),
    "others": lambda t, x: x + t.nested.nested_tensor([t.ones(2, 4)] * 3),
    "chunk of rows": lambda t, x: x.chunk(2, 0),
}
MADE: dict[str, Callable[[Any], Any]] = {
    "lists": lambda t: t.nested.nested_tensor([[1, 2], [3]]),
    "of a type": lambda t: t.nested.nested_tensor([[1, 2], [3]], dtype=t.float64),
    "of nothing": lambda t: t.nested.nested_tensor([], layout=t.jagged),
    "uneven dims": lambda t: t.nested.nested_tensor([t.ones(2), t.ones(2, 2)]),
    "uneven, jagged": lambda t: t.nested.nested_tensor([t.ones(2), t.ones(2, 2)], layout=t.jagged),
    "two ragged dims": lambda t: t.nested.nested_tensor(
        [t.ones(2, 3), t.ones(3, 4)], layout=t.jagged
    ),
    "two in strided": lambda t: t.nested.nested_tensor([t.ones(2, 3), t.ones(3, 4)]),
    "the second ragged": lambda t: t.nested.nested_tensor(
        [t.ones(2, 3), t.ones(2, 4)], layout=t.jagged
    ),
    "numbers": lambda t: t.nested.nested_tensor([t.tensor(1.0)], layout=t.jagged),
    "no list": lambda t: t.nested.nested_tensor(t.ones(2, 2)),
    "sparse": lambda t: t.nested.nested_tensor([t.ones(2)], layout=t.sparse_coo),
    "as": lambda t: t.nested.as_nested_tensor([t.ones(2), t.ones(3)]),
    "as, of one tensor": lambda t: t.nested.as_nested_tensor(t.ones(2, 3, 4), layout=t.jagged),
    "as, of a vector": lambda t: t.nested.as_nested_tensor(t.ones(3)),
    "as, of a number": lambda t: t.nested.as_nested_tensor(3),
    "jagged": lambda t: t.nested.nested_tensor_from_jagged(t.arange(6), t.tensor([0, 2, 6])),
    "by lengths": lambda t: t.nested.nested_tensor_from_jagged(
        t.arange(6), lengths=t.tensor([2, 4])
    ),
    "with holes": lambda t: t.nested.nested_tensor_from_jagged(
        t.arange(6), t.tensor([0, 2, 6]), t.tensor([1, 3])
    ),
    "holes filled": lambda t: t.nested.nested_tensor_from_jagged(
        t.arange(6), t.tensor([0, 2, 6]), t.tensor([1, 3])
    ).contiguous(),
    "without either": lambda t: t.nested.nested_tensor_from_jagged(t.arange(6)),
    "narrow": lambda t: t.nested.narrow(
        t.arange(20).reshape(2, 5, 2), 1, t.tensor([0, 1]), t.tensor([2, 3]), layout=t.jagged
    ),
    "narrow by numbers": lambda t: t.nested.narrow(
        t.arange(20).reshape(2, 5, 2), 1, 0, 3, layout=t.jagged
    ),
    "narrow elsewhere": lambda t: t.nested.narrow(t.ones(2, 3, 4), 2, 0, 1, layout=t.jagged),
    "narrow, strided": lambda t: t.nested.narrow(t.ones(2, 3), 1, t.tensor([0, 1]), 1),
    "masked_select": lambda t: t.nested.masked_select(
        t.arange(6).reshape(2, 3), t.tensor([[True, False, True], [False, True, False]])
    ),
}


def outcome(run: Callable[[], Any]) -> Any:
    """What a program gives, as NumPy arrays and words; the class and words of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _plain(run())
        except Exception as error:
            return type(error).__name__, _words(str(error))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and type(value).__name__ != "Size":
        return [_plain(one) for one in value]
    if getattr(value, "is_nested", False):
        return [_plain(row) for row in value.unbind()]
    if hasattr(value, "detach"):
        return value.detach().numpy()
    return _words(str(value))


def _words(text: str) -> str:
    return re.sub(r"j\d+", "j", text)


def check(found: Any, expected: Any) -> None:
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
    else:
        assert found == expected


def nested(library: Any, layout: str, **words: Any) -> Any:
    rows = [library.from_numpy(row.copy()) for row in ROWS]
    return library.nested.nested_tensor(rows, layout=getattr(library, layout), **words)


CASES = [(layout, name, program)
         for layout, own in (("jagged", JAGGED), ("strided", STRIDED))
         for name, program in {**BOTH, **own}.items()]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "name", "program"), CASES, ids=[f"{layout}-{name}" for layout, name, _ in CASES]
)
def test_programs(layout: str, name: str, program: Program) -> None:
    found, expected = (
        outcome(lambda: program(library, nested(library, layout)))  # noqa: B023
        for library in (flambeau, torch)
    )
    check(found, expected)


@pytest.mark.parametrize("name", MADE)
def test_making(name: str) -> None:
    found, expected = (outcome(lambda: MADE[name](library)) for library in (flambeau, torch))  # noqa: B023
    check(found, expected)


DERIVED: dict[str, Program] = {
    "padded": lambda t, x: (x * 2).to_padded_tensor(0.0).square().sum(),
    "row": lambda t, x: x.unbind()[1].square().sum(),
    "relu": lambda t, x: t.relu(x).to_padded_tensor(0.0).square().sum(),
    "linear": lambda t, x: (
        t.nn.functional.linear(x, t.linspace(-1, 1, 8).reshape(2, 4))
        .to_padded_tensor(0.0).square().sum()
    ),
    "softmax": lambda t, x: x.softmax(-1).to_padded_tensor(0.0).square().sum(),
}  # fmt: skip


@pytest.mark.parametrize("layout", ["strided", "jagged"])
@pytest.mark.parametrize("name", DERIVED)
def test_gradients(layout: str, name: str) -> None:
    def gradient(library: Any) -> Any:
        x = nested(library, layout, requires_grad=True)
        DERIVED[name](library, x).backward()
        return x.grad

    found, expected = (outcome(lambda: gradient(library)) for library in (flambeau, torch))  # noqa: B023
    check(found, expected)


def test_attention() -> None:
    def attended(library: Any) -> Any:
        rows = [library.linspace(-1, 1, n * 8).reshape(n, 2, 4) for n in (3, 5)]
        x = library.nested.nested_tensor(rows, layout=library.jagged, requires_grad=True)
        q = x.transpose(1, 2)
        found = library.nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2)
        found.to_padded_tensor(0.0).square().sum().backward()
        return [found, x.grad]

    check(*(outcome(lambda: attended(library)) for library in (flambeau, torch)))  # noqa: B023
