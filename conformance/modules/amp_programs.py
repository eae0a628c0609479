"""Random programs of mixed precision: operators and modules in nested regions, and their gradients.

A seed draws a program; what it logs (types, shapes, values, kinds of errors) has to be the same in
both libraries.
"""

from __future__ import annotations

import math
import random
from typing import Any

Shapes = tuple[tuple[int, ...], ...]
WIDE, CUBE = (2, 3), (2, 2, 3)
OPERATORS: dict[str, tuple[Any, Shapes]] = {
    "mm": (lambda t, a, b: t.mm(a, mat2=b), (WIDE, (3, 4))),
    "matmul": (lambda t, a, b: a @ b, (WIDE, (3, 4))),
    "row": (lambda t, a, b: t.matmul(a, b), ((3,), (3, 4))),
    "column": (lambda t, a, b: t.matmul(a, other=b), (WIDE, (3,))),
    "batch": (lambda t, a, b: a @ b, (CUBE, (3, 4))),
    "mv": (lambda t, a, b: t.mv(a, b), (WIDE, (3,))),
    "bmm": (lambda t, a, b: t.bmm(a, b), (CUBE, (2, 3, 2))),
    "addmm": (lambda t, a, b, c: t.addmm(a, b, c, beta=0.5), ((2, 4), WIDE, (3, 4))),
    "addmm_": (lambda t, a, b, c: a.clone().addmm_(b, c), ((2, 4), WIDE, (3, 4))),
    "baddbmm": (lambda t, a, b, c: t.baddbmm(a, b, c), ((2, 2, 2), CUBE, (2, 3, 2))),
    "linear": (lambda t, a, b, c: t.nn.functional.linear(a, b, c), (WIDE, (4, 3), (4,))),
    "conv1d": (lambda t, a, b, c: t.conv1d(a, b, c), ((1, 2, 5), (3, 2, 3), (3,))),
    "prelu": (lambda t, a, b: t.nn.functional.prelu(a, b), (WIDE, (1,))),
    "einsum": (lambda t, a, b: t.einsum("ij,jk->ik", a, b), (WIDE, (3, 2))),
    "vecdot": (lambda t, a, b: t.linalg.vecdot(a, b), (WIDE, WIDE)),
    "outer": (lambda t, a, b: t.outer(a, b), ((2,), (3,))),
    "attention": (lambda t, a, b: t.nn.functional.scaled_dot_product_attention(a, b, b),
                  ((1, 2, 4), (1, 3, 4))),
    "cat": (lambda t, a, b: t.cat([a, b]), (WIDE, (1, 3))),
    "cat of three": (lambda t, a, b, c: t.cat((a, b, c), dim=0), (WIDE, WIDE, WIDE)),
    "stack": (lambda t, a, b: t.stack(tensors=[a, b]), (WIDE, WIDE)),
    "mse_loss": (lambda t, a: t.nn.functional.mse_loss(a, a.detach() + 0.25), (WIDE,)),
    "cross_entropy": (lambda t, a: t.nn.functional.cross_entropy(a, t.tensor([0, 2])), (WIDE,)),
    "prod": (lambda t, a: a.prod(1), (WIDE,)),
    "prod with a type": (lambda t, a: a.prod(1, dtype=t.float64), (WIDE,)),
    "trace": (lambda t, a: t.trace(a), ((3, 3),)),
    "quantile": (lambda t, a: t.quantile(a, 0.3), ((5,),)),
    "pad": (lambda t, a: t.nn.functional.pad(a, (1, 1), "reflect"), ((1, 2, 5),)),
    "softmax": (lambda t, a: a.softmax(-1), (WIDE,)),
    "layer_norm": (lambda t, a: t.nn.functional.layer_norm(a, (3,)), (WIDE,)),
    "arithmetic": (lambda t, a, b: (a * b + b).tanh(), (WIDE, (3,))),
    "out": (lambda t, a: t.mm(a.detach(), a.detach(), out=t.empty(3, 3)), ((3, 3),)),
}  # fmt: skip
MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "Linear": (lambda n: n.Linear(3, 4), WIDE),
    "Conv1d": (lambda n: n.Conv1d(2, 3, 2), (1, 2, 5)),
    "LSTM": (lambda n: n.LSTM(3, 2), (4, 2, 3)),
    "GRU": (lambda n: n.GRU(3, 2), (4, 2, 3)),
    "RNN": (lambda n: n.RNN(3, 2, bidirectional=True), (4, 2, 3)),
    "LSTMCell": (lambda n: n.LSTMCell(3, 2), WIDE),
    "Sequential": (lambda n: n.Sequential(n.Linear(3, 4), n.LayerNorm(4), n.Linear(4, 2)), WIDE),
}
TYPES = ("float32", "float32", "float32", "float32", "bfloat16", "float16", "float64")


class Program:
    """One run of a program in one library."""

    def __init__(self, library: Any, seed: int) -> None:
        self.library = library
        self.rng = random.Random(seed)
        self.log: list[Any] = []

    def tensor(self, shape: tuple[int, ...], dtype: str) -> Any:
        numbers = [(self.rng.randrange(13) - 6) / 4 for _ in range(math.prod(shape))]
        made = self.library.tensor(numbers).reshape(shape).to(getattr(self.library, dtype))
        return made.requires_grad_(self.rng.random() < 0.7)

    def region(self, module: bool = False) -> Any:
        """PyTorch has no LSTM in float16 on most processors."""
        halves = ("bfloat16",) if module else ("bfloat16", "bfloat16", "float16")
        dtype = getattr(self.library, self.rng.choice(halves))
        return self.library.autocast("cpu", dtype=dtype, enabled=self.rng.random() < 0.85)

    def note(self, what: str, *tensors: Any) -> None:
        for tensor in tensors:
            kind = None if tensor is None else (str(tensor.dtype).rpartition(".")[2], tensor.shape)
            values = () if tensor is None else tensor.detach().double().flatten().tolist()
            self.log.append((what, kind and (kind[0], tuple(kind[1])), values))

    def operator(self) -> None:
        name = self.rng.choice(list(OPERATORS))
        function, shapes = OPERATORS[name]
        main = self.rng.choice(TYPES)
        mixed = [main if self.rng.random() < 0.75 else self.rng.choice(TYPES) for _ in shapes]
        leaves = [self.tensor(s, dtype) for s, dtype in zip(shapes, mixed, strict=True)]
        self.within(name, lambda: function(self.library, *leaves), leaves, module=False)

    def module(self) -> None:
        name = self.rng.choice(list(MODULES))
        make, shape = MODULES[name]
        made = make(self.library.nn)
        for number, weight in enumerate(made.parameters()):
            values = (self.library.arange(weight.numel()) * 7 + number) % 11 - 5
            weight.data.copy_(values.reshape(weight.shape) / 8)
        given = self.tensor(shape, self.rng.choice(("float32", "float32", "bfloat16")))
        self.within(name, lambda: made(given), [given, *made.parameters()], module=True)

    def within(self, name: str, call: Any, leaves: list[Any], module: bool) -> None:
        """Forward and backward, each perhaps in a region of its own."""
        try:
            with self.region(module):
                results = self.flat(call())
                self.note(name, *results)
                inside = self.rng.random() < 0.4
                if inside:
                    self.backward(name, results, leaves, module)
            if not inside:
                self.backward(name, results, leaves, module)
        except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
            self.log.append((name, type(error).__name__, ()))

    def flat(self, value: Any) -> list[Any]:
        if isinstance(value, self.library.Tensor):
            return [value]
        return [tensor for part in value for tensor in self.flat(part)]

    def backward(self, name: str, results: list[Any], leaves: list[Any], module: bool) -> None:
        outputs = [r for r in results if r.requires_grad]
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        again = self.rng.random() < 0.5
        with self.region(module) if again else self.library.autocast("cpu", enabled=False):
            if not outputs or not wanted:
                return
            total = sum((output.float() ** 2).sum() for output in outputs)
            self.note(f"gradients of {name}", *self.library.autograd.grad(total, wanted))


def run(library: Any, seed: int) -> list[Any]:
    """What a program logs."""
    program = Program(library, seed)
    for _ in range(4):
        program.operator() if program.rng.random() < 0.75 else program.module()
    program.log.append(
        (library.is_autocast_enabled("cpu"), str(library.get_autocast_dtype("cpu")), ())
    )
    return program.log


def compare(mine: list[Any], theirs: list[Any], seed: int) -> None:
    """The same logs, values to the digits that the half types have."""
    assert [line[:2] for line in mine] == [line[:2] for line in theirs], seed
    for ours, other in zip(mine, theirs, strict=True):
        size = max([abs(v) for v in other[2] if math.isfinite(v)], default=0.0)
        for value, wanted in zip(ours[2], other[2], strict=True):
            alike = value == wanted or (value != value and wanted != wanted)
            assert alike or abs(value - wanted) <= 0.05 * max(size, 0.5), (seed, ours, other)
