"""Modules: a class with parameters, buffers, numbers and layers, for a program to use."""

from __future__ import annotations

from collections.abc import Callable

import flambeau
from flambeau.jit.ir import types as T

from . import operators
from .loops import Bodies

LAYERS = (
    "Linear({0}, {0})", "LayerNorm({0})", "Dropout(0.5)", "ReLU()", "Linear({0}, {0}, bias=False)",
    "Tanh()", "GELU()", "Softmax(-1)", "Identity()", "Sequential(torch.nn.Linear({0}, {0}), "
    "torch.nn.Tanh())",
)  # fmt: skip


class ModuleBodies(Bodies):
    """A method of a module; it may set attributes."""

    def kinds(self) -> list[tuple[Callable[[], None], float]]:
        return [*super().kinds(), (self.set_attribute, 0.6)]

    def set_attribute(self) -> None:
        """`self.b = ...` for a buffer or a number."""
        names = [name for name in self.types if name in ("self.b", "self.s")]
        name = self.random.choice(names)
        found = self.expression(self.types[name], 1)
        if self.types[name] == T.TENSOR and self.chance(0.3):
            found = self.evaluated("{}.detach()", T.TENSOR, [found])
        text = f"{name} = {found.text}"
        self.run(text)
        self.line(text)


def head(body: ModuleBodies) -> list[str]:
    """The class up to its method; what it holds is known to the body."""
    first = body.value_of("x")
    size = first.shape[-1] if first.dim() else 1
    layers = [body.random.choice(LAYERS).format(size) for _ in range(body.random.randint(0, 2))]
    shape = body.random.choice((list(first.shape), [size], [size, size], []))
    lines = [
        "class M(torch.nn.Module):", "    def __init__(self):", "        super().__init__()",
        f"        self.w = torch.nn.Parameter(torch.randn({shape}))",
        f'        self.register_buffer("b", torch.ones({shape}))',
        f"        self.s = {body.random.choice(('0.5', '2.0', '-0.0'))}",
        *(f"        self.l{index} = torch.nn.{layer}" for index, layer in enumerate(layers)),
    ]  # fmt: skip
    flambeau.manual_seed(11)
    body.run("\n".join(lines))
    body.env["self"] = body.env["M"]()
    body.types.update({"self.w": T.TENSOR, "self.b": T.TENSOR, "self.s": T.FLOAT})
    body.unused.update(("self.w", "self.b"))
    for index in range(len(layers)):
        schema = operators.table.schema(f"local::l{index}(Tensor input) -> Tensor")
        text = f"self.l{index}({{more}})"
        body.locals.append(operators.Operator(f"l{index}", schema, (text,)))
    return lines
