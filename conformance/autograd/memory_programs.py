"""Random programs that give tensors other memory while a graph holds them.

`x.data = y` and `x.set_(y)` change what a tensor lies in and leave its history alone. Mixed with
views, in-place operators and backward, they ask what the graph remembers of the memory that was
there before. Programs are run as those of `version_programs.py` are.
"""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from conformance.autograd import version_programs

START = (
    "h = t.tensor([[.5, 1.25, 2.], [1.5, .75, .25]], requires_grad=True)",
    "k = t.tensor([1., .5, .75], requires_grad=True)",
    "c = t.tensor([[.5, 2., 1.], [.75, .25, 1.5]])",
)
COMPUTED = (
    "{a} * 2", "{a}.clone()", "{a} * {b}", "{a} + {b}", "{a}.sin()", "{a}.tanh()", "{a} * {a}",
    "{a}.sigmoid()", "{a}.sum(0)", "{a} ** 2", "t.cat([{a}.flatten(), {b}.flatten()])",
)  # fmt: skip
VIEWS = (
    "{a}[0]", "{a}[:, 1:]", "{a}.T", "{a}.view(-1)", "{a}[:1]", "{a}[1:]", "{a}[:2]", "{a}[:]",
    "{a}.unsqueeze(0)", "{a}.reshape(3, 2)", "{a}.flatten()", "{a}.diagonal()", "{a}.detach()",
    "{a}.data", "{a}.view_as({a})", "{a}.as_strided((2,), (1,))", "{a}.expand(2, 2, 3)",
    "{a}.as_strided((2,), (2,), 1)", "{a}.unbind(0)[1]", "{a}.narrow(0, 0, 1)",
)  # fmt: skip
WRITES = (
    "{a}.mul_(2)", "{a}.mul_({b}.clone())", "{a}.add_({b}.clone())", "{a}.sin_()", "{a}.cos_()",
    "{a}.copy_({b}.clone())",
    "{a}[0] = {b}.clone()", "{a}[0] = 3.", "{a}[:1].mul_(k[:1])", "{a}.zero_()", "{a}.mul_(k)",
    "{a}[..., :1].mul_(2)", "{a}.detach().mul_(3)", "{a}.data.add_(1)", "{a}.t_()",
    "{a}.unsqueeze_(0)", "{a}.squeeze_()",
)  # fmt: skip
OTHER_MEMORY = (
    "give({a}, {b})", "give({a}, {b}.data)", "give({a}, {b}.detach().clone())",
    "give({a}, t.ones_like({a}))", "give({a}, {a}.data.clone())", "give({a}, t.full((2, 3), 2.))",
    "give({a}, t.full((3,), .5))", "give({a}, t.full((4,), 1.5))", "give({a}, {a}.data.T)",
    "give({a}, {a}.data[:1])", "give({a}, {a}.detach()[..., 1:])", "give({a}, t.ones(2, 2))",
    "give({a}, t.arange(12.).view(4, 3)[1:3])", "give({a}, t.arange(6.).view(3, 2).T)",
    "point({a}, {b}.detach())", "quiet(lambda: point({a}, {b}.detach().clone()))",
    "{a}.detach().set_({b}.detach().clone())", "{a}.data.set_({b}.data)",
    "give({a}, t.ones(2, 3, dtype=t.float64))",
)  # fmt: skip


def _check(x: Any, other: Any) -> None:
    """A leaf keeps its shape: PyTorch refuses gradients of another one as long as a graph from
    before is alive, and computes others than those of the new shape where it can; here a leaf has
    the shape that it has."""
    kept = x.shape == other.shape and x.dtype == other.dtype
    if x.requires_grad and x.is_leaf and not kept:
        raise ValueError("another shape of a leaf")


def give(x: Any, other: Any) -> None:
    """Assign `.data`."""
    _check(x, other)
    x.data = other


def point(x: Any, other: Any) -> None:
    """Call `set_`."""
    _check(x, other)
    x.set_(other)


def back(total: Any, *leaves: Any) -> None:
    """Call backward; where it fails, PyTorch has filled some leaves, which are emptied again."""
    before = [leaf.grad if leaf.grad is None else leaf.grad.clone() for leaf in leaves]
    try:
        total.backward(retain_graph=True)
    except RuntimeError:
        for leaf, grad in zip(leaves, before, strict=True):
            leaf.grad = grad
        raise


WORDS = {"give": give, "point": point, "back": back}


class Writer:
    """Draws one program."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.names = ["h", "k", "c"]
        self.lines: list[str] = []

    def program(self) -> list[str]:
        """Its lines."""
        kinds = (self._define, self._define, self._view, self._view, self._write, self._write,
                 self._replace, self._replace, self._wanted)  # fmt: skip
        self._define()
        for _ in range(self.draw.randint(3, 12)):
            self.draw.choice(kinds)()
        self._wanted()
        return self.lines

    def _fill(self, text: str) -> str:
        return text.replace("{a}", self._name()).replace("{b}", self._name())

    def _name(self) -> str:
        late = self.names[-4:]
        return self.draw.choice(late if self.draw.random() < 0.7 else self.names)

    def _define(self, texts: tuple[str, ...] = COMPUTED) -> None:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self._fill(self.draw.choice(texts))}")
        self.names.append(name)

    def _view(self) -> None:
        self._define(VIEWS)

    def _write(self) -> None:
        self.lines.append(self._fill(self.draw.choice(WRITES)))

    def _replace(self) -> None:
        self.lines.append(self._fill(self.draw.choice(OTHER_MEMORY)))

    def _wanted(self) -> None:
        name = self._name()
        kind = self.draw.choice((f"L.append({name}.sum())", f"L.append(({name} * {name}).sum())"))
        self.lines.append(kind)
        if self.draw.random() < 0.3:
            self.lines.append("back(L[-1], h, k)")


def run(program: list[str], t: ModuleType) -> list[Any]:
    """What a library makes of a program."""
    return version_programs.run(program, t, START, WORDS)


def difference(theirs: list[Any], ours: list[Any]) -> str | None:
    """The first thing in which two runs differ.

    Operators that broadcast give an operand a gradient of the shape that it had when they were
    called. PyTorch's give it that of the result, which may also fit what the operand was before it
    got other memory: what is refused here may be computed, or fail later, there. What comes after
    that is not compared.
    """
    for place, (their, our) in enumerate(zip(theirs, ours, strict=False)):
        if isinstance(our, str) and REFUSED in our and their != our:
            return version_programs.difference(theirs[:place], ours[:place])
    return version_programs.difference(theirs, ours)


REFUSED = "returned an invalid gradient"
