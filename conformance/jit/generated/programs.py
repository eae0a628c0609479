"""Whole programs: parameters, helpers, a body, results; and the calls."""

from __future__ import annotations

import random

import flambeau
from flambeau.jit.ir import types as T

from . import operators
from .calls import Parameter, calls, parameters
from .cases import Case
from .expressions import Refused, Taste
from .loops import Bodies
from .making import made
from .modules import ModuleBodies, head
from .running import quiet
from .statements import TENSORS


def case(seed: str) -> Case:
    """The case of a seed."""
    drawn = random.Random(seed)
    given = parameters(drawn)
    taste = _taste(drawn)
    called = calls(drawn, given, taste.writes > 1)
    text = ""
    while not text:
        flambeau.manual_seed(3)
        try:
            with quiet():
                text = _text(drawn, taste, given, called[0].arguments)
        except Refused:
            continue
    return Case(text, tuple(called), drawn.random() < 0.75, seed)


def _taste(drawn: random.Random) -> Taste:
    """What the program is rather made of."""
    everywhere = [op for op in operators.catalogue() if op.name in operators.EVERYDAY]
    some = drawn.sample(everywhere, drawn.randint(20, 80))
    rare = drawn.sample(operators.catalogue(), drawn.randint(0, 10))
    return Taste(
        everyday=drawn.choice((0.5, 0.8, 0.95, 1.0, 1.0)), vocabulary=(*some, *rare),
        loops=drawn.choice((0.0, 0.3, 1.0, 1.5, 3.0)),
        writes=drawn.choice((0.0, 0.3, 0.6, 1.5, 3.0)),
        depth=drawn.choice((1, 2, 2, 3)),
    )  # fmt: skip


def _text(drawn: random.Random, taste: Taste, given: list[Parameter], values: object) -> str:
    in_module = drawn.random() < 0.1
    body = (ModuleBodies if in_module else Bodies)(drawn, taste)
    arguments = made(values, flambeau).values  # type: ignore[arg-type]
    for parameter, value in zip(given, arguments, strict=True):
        body.define(parameter.name, parameter.type, value)
    body.env["List"], body.env["Tensor"] = list, flambeau.Tensor
    before = head(body) if isinstance(body, ModuleBodies) else []
    if not in_module and body.chance(0.12):
        before = _helpers(body)
    body.statements(drawn.choice((2, 3, 4, 5, 6, 7, 8, 10, 12)))
    results = _results(body)
    names = ", ".join(f"{p.name}: {p.type.annotation}" for p in given)
    first = f"    def forward(self, {names}):" if in_module else f"def f({names}):"
    margin = " " * (8 if in_module else 4)
    lines = [first, *(margin + line for line in (*body.written, f"return {results}"))]
    return "\n".join([*before, *lines]) + "\n"


def _helpers(body: Bodies) -> list[str]:
    """A small function that the body may call."""
    name = body.new_name("g")
    inner = Bodies(body.random, body.taste)
    inner.define("p", T.TENSOR, body.variable(T.TENSOR).value)
    inner.define("q", T.TENSOR, body.variable(T.TENSOR).value)
    inner.nesting = 1
    inner.statements(body.random.randint(1, 3))
    result = inner.variable(T.TENSOR)
    lines = [f"def {name}(p: Tensor, q: Tensor) -> Tensor:"]
    lines += [f"    {line}" for line in inner.written]
    lines.append(f"    return {result.text}")
    body.run("\n".join(lines))
    schema = operators.table.schema(f"local::{name}(Tensor p, Tensor q) -> Tensor")
    body.locals.append(operators.Operator(name, schema, (name + "({more})",)))
    return [*lines, ""]


def _results(body: Bodies) -> str:
    """What the program gives: rather what nothing else has used."""
    kinds = (T.TENSOR, TENSORS, T.FLOAT, T.INT, T.BOOL)
    known = [name for name, type in body.types.items() if type in kinds and name.isidentifier()]
    fresh = [name for name in known if name in body.unused and name[0] != "a"]
    picked = fresh[-8:]
    if not known:
        return body.variable(T.TENSOR).text
    more = body.random.choice((0, 0, 1, 1, 2))
    picked += [body.random.choice(known[-8:]) for _ in range(more) if known]
    if body.chance(0.05):
        picked.append("x")
    if not picked:
        picked = [body.variable(T.TENSOR).text]
    body.random.shuffle(picked)
    if len(picked) == 1:
        return picked[0]
    if body.chance(0.04):
        return f"({', '.join(picked[:-1])},), {picked[-1]}"
    return ", ".join(picked)
