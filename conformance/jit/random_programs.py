"""Draws programs in TorchScript for `test_optimised.py`: what the optimiser rewrites, mixed.

A program is a function `f(x, y, w, u, b)` of tensors [n, m], [n, m], [m, m], [m, m] and [m].
"""

from __future__ import annotations

import random

UNARY = ("torch.tanh({})", "torch.sigmoid({})", "torch.relu({})", "torch.sin({})", "-{}",
         "torch.abs({})", "torch.exp(-torch.abs({}))", "{}.clamp(-1.0, 0.75)",
         "torch.sqrt(torch.abs({}) + 1.5)", "{} * 0.5 + 0.25", "1.0 - {}", "{} ** 2",
         "torch.where({0} > 0.1, {0}, {0} * 0.1)")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{} / (torch.abs({}) + 1.0)",
          "torch.add({}, {}, alpha=0.5)", "torch.where({0} > {1}, {0}, {1} * 2.0)",
          "torch.lerp({}, {}, 0.3)")  # fmt: skip
ROWS = ("torch.softmax({}, -1)", "torch.log_softmax({}, -1)", "torch.layer_norm({}, [m], b)",
        "torch.layer_norm({}, [m])", "{0} - {0}.mean(-1, True)",
        "{0} / ({0} ** 2 + 1.0).sum(-1, True)")  # fmt: skip
LOSSES = ("(({0} - {1}) ** 2).mean()", "-(torch.log_softmax({0}, -1) * {1}).sum(-1).mean()",
          "torch.abs({0} - {1}).sum()")  # fmt: skip


class Drawn:
    """A program on its way: `lines` of its body, `known` tensors [n, m]."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.known = ["x", "y"]

    def one(self) -> str:
        """A tensor that is there, rather one of the last."""
        return self.random.choice([*self.known[-3:], *self.known])

    def named(self, text: str) -> str:
        """A new tensor."""
        name = f"v{len(self.known)}"
        self.lines.append(f"{name} = {text}")
        self.known.append(name)
        return name

    def chain(self) -> None:
        """A few operators after one another; the vector may take part."""
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.5:
                self.named(self.random.choice(UNARY).format(self.one()))
            else:
                other = "b" if self.random.random() < 0.2 else self.one()
                self.named(self.random.choice(BINARY).format(self.one(), other))

    def row(self) -> None:
        """Something along rows."""
        self.named(self.random.choice(ROWS).format(self.one()))

    def parts(self) -> None:
        """Halves that go different ways, put together again."""
        source, left = self.one(), f"l{len(self.lines)}"
        right = left.replace("l", "r")
        self.lines.append(f"{left}, {right} = {source}.chunk(2, 1)")
        self.named(f"torch.cat([torch.tanh({left}) * {right}, {right} - {left}], 1)")

    def branch(self) -> None:
        """What depends on a shape."""
        source, name = self.one(), f"v{len(self.known)}"
        self.lines += [f"if {source}.size(0) > 4:", f"    {name} = torch.tanh({source}) * 2.0",
                       "else:", f"    {name} = {source} * {self.one()} + 1.0"]  # fmt: skip
        self.known.append(name)

    def write(self) -> None:
        """A copy that is written to between other operators."""
        name = self.named(f"torch.sigmoid({self.one()}).clone()")
        alias = f"a{len(self.lines)}"
        self.lines += [f"{alias} = {name}[:1]", f"{name}.mul_(0.5)", f"{name}.add_({self.one()})"]
        self.named(f"{name} + {alias}")

    def loop(self) -> None:
        """Rounds without dependence."""
        source, other = self.one(), self.one()
        form = self.random.choice((
            "torch.tanh({0}[i]) * {1}[i] + b", "{0}[i] @ w + {1}[i]",
            "torch.softmax({0}[i] * {1}[i], 0)", "torch.where({0}[i] > b, {0}[i], {1}[i])",
            "{0}[i] - {1}[i].mean()",
        ))  # fmt: skip
        self._loop("i", form.format(source, other), [])

    def recurrence(self) -> None:
        """Rounds that need the ones before them."""
        source, state = self.one(), f"h{len(self.lines)}"
        form = self.random.choice((
            "torch.tanh({0}[t:t + 1] @ w + {1} @ u + b)", "{1} * torch.sigmoid({0}[t:t + 1]) + b",
            "torch.sigmoid({0}[t:t + 1] @ w + b) * {1} + torch.tanh({1} @ u) * 0.5",
            "torch.relu({0}[t:t + 1] @ w) * 0.3 + 0.5 * torch.tanh(b * {1})",
        ))  # fmt: skip
        self.lines.append(f"{state} = torch.zeros_like({source}[:1]) + b * 0.5")
        self._loop("t", state, [f"{state} = {form.format(source, state)}"], join="cat")

    def cell(self) -> None:
        """An LSTM, as it is or with gates that see the state."""
        source, state = self.one(), f"h{len(self.lines)}"
        wide, cell, peep = state.replace("h", "wide"), state.replace("h", "c"), ""
        if self.random.random() < 0.5:
            peep = f" + b * {cell}"
        first = f"torch.zeros_like({source}[:1])"
        self.lines += [f"{wide} = torch.cat([w, u, w, u], 1)", f"{state} = {first} + b",
                       f"{cell} = {first} - 0.5 * b"]  # fmt: skip
        self._loop("t", state, [
            f"g = {source}[t:t + 1] @ {wide} + {state} @ {wide}",
            "p, q, r, s = g.chunk(4, 1)",
            f"{cell} = torch.sigmoid(q{peep}) * {cell} + torch.sigmoid(p) * torch.tanh(r)",
            f"{state} = torch.sigmoid(s) * torch.tanh({cell})",
        ], join="cat")  # fmt: skip

    def _loop(self, index: str, element: str, before: list[str], join: str = "stack") -> None:
        """A loop that collects; without rounds there is nothing to join."""
        out, size = f"out{len(self.lines)}", self.one()
        add = self.random.choice((f"{out}.append({element})", f"{out} += [{element}]"))
        self.lines += [f"{out}: List[Tensor] = []", f"for {index} in range({size}.size(0)):"]
        self.lines += [f"    {line}" for line in (*before, add)]
        self.named(f"torch.{join}({out}, 0)")

    def text(self) -> str:
        """The whole function. It returns a tensor [n, m] and a loss; everything is used, because
        what raises and is not used may be left out, or not.
        """
        kinds = (self.chain, self.chain, self.chain, self.row, self.row, self.parts, self.branch,
                 self.write, self.loop, self.recurrence, self.cell)  # fmt: skip
        for _ in range(self.random.randint(2, 5)):
            self.random.choice(kinds)()
        last = self.named(" + 0.25 * ".join(reversed(self.known)))
        loss = self.random.choice(LOSSES).format(last, self.one())
        self.lines.append(f"return {last}, {loss}")
        parameters = ", ".join(f"{name}: Tensor" for name in "xywub")
        head = f"def f({parameters}) -> Tuple[Tensor, Tensor]:"
        return "\n".join([head, *(f"    {line}" for line in ("m = x.size(1)", *self.lines))]) + "\n"


def program(seed: int) -> str:
    """The text of a program."""
    return Drawn(seed).text()
