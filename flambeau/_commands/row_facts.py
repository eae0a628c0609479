"""What follows from a row of the operator table, in words and as text; for `flambeau ops`."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flambeau._compiler import numpy_source, row_numpy
from flambeau._compiler.fuse import plan
from flambeau._ops.table import pointwise
from flambeau._ops.table.op import BY_NAME, UNKNOWN, Folded, Further, Op
from flambeau._ops.transforms import batch_rules
from flambeau.debug.kernel_text import expression, text_of
from flambeau.jit.operators import implied, naming, table

ROOT = Path(__file__).parents[2]
KINDS = {
    "pointwise": "an expression of elements", "rows": "a formula over the rows along dims",
    "kernel": "arrays in, new arrays out", "view": "another layout of the same memory",
    "composite": "made of other operators", "factory": "a new tensor",
}  # fmt: skip
GRADIENTS = {"grad", "grads", "given", "wanted"}
"""Parameters of formulas that nothing has to be saved for."""
BATCHED = {
    "elements": "one call, elements lined up", "dims": "one call, dims counted from the next on",
    "new dim": "one call, which adds a dim", "index": "one call, with the batch as an index more",
    "folded": "one call, the batch folded into the items", "items": "one call for batches of items",
    "like": "one call, like the whole batch", "new": "one call, sizes of the batch in front",
    "new strided": "one call, sizes and strides of the batch in front",
    "draws": "random numbers, for all examples or for each", "examples": "example by example",
    "draws like": "random numbers, for all examples or for each",
}  # fmt: skip


def facts(op: Op) -> Iterator[tuple[str, str]]:
    """What is derived, a title and words for each."""
    yield "kind", f"{op.kind}: {KINDS[op.kind]}"
    yield "stands in", _place(op)
    yield "called", ", ".join(_calls(op))
    operators = [schema.full_name for schema in _operators(op)]
    if operators:
        yield "operators", ", ".join(operators)
    if op.kind == "pointwise":
        yield "types", ", ".join(_types(op))
    if op.autocast:
        yield "autocast", op.autocast
    yield "gradient", _gradient(op)
    yield "forward mode", _forward(op)
    yield "vmap", _batching(op)
    yield "meta", _layout(op)
    yield "below autograd", _seen(op)
    for word in Further.__annotations__:
        value = getattr(op, word)
        if value and word in vars(op):
            yield word.replace("_", " "), _shown(value)


def _shown(value: Any) -> str:
    """A further word's value; of one with a condition, that there is one."""
    if isinstance(value, tuple):
        return f"{value[0]}, for some arguments"
    if isinstance(value, dict):
        return ", ".join(f"{name} for {argument}" for argument, name in value.items())
    return "yes" if value is True else str(value)


def texts(op: Op) -> Iterator[tuple[str, str]]:
    """The row, and the texts that are made of it for float32: a title and source for each."""
    yield "row", source(op)
    if op.kind == "pointwise":
        names = pointwise.Kernels(op).names
        yield "NumPy", numpy_source.render(expression(op), names)
    if op.formula is not None:
        found = plan(op.formula, tuple(op.formula.kinds.items()))
        yield "NumPy", row_numpy.render(found, list(op.formula.kinds))
    kernel = text_of(op)
    if kernel:
        yield "kernel", kernel


def source(op: Op) -> str:
    """The row as it is written."""
    function = op.formula.function if op.formula is not None else op.body
    return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))


def _place(op: Op) -> str:
    function = op.formula.function if op.formula is not None else op.body
    code = inspect.unwrap(function).__code__
    return f"{Path(code.co_filename).relative_to(ROOT).as_posix()}, line {code.co_firstlineno}"


def _calls(op: Op) -> Iterator[str]:
    public = f"{op.namespace}.{op.public}" if op.namespace else op.public
    if op.function:
        yield f"torch.{public}"
    if op.method:
        yield f"Tensor.{op.public}"
    if op.inplace:
        yield f"Tensor.{op.public}_"
    if op.out:
        yield "out="


def _operators(op: Op) -> Iterator[Any]:
    """The overloads of ATen that a row's own name has."""
    if op.namespace not in implied.SPACES:
        return
    prefix = implied.SPACES[op.namespace]
    name = op.name if op.name.startswith(prefix) else f"{prefix}{op.name}"
    for found in table.overloads(f"aten::{name}"):
        if found.overload.partition("_out")[0] in (op.overload, "out"):
            yield found


def _types(op: Op) -> Iterator[str]:
    from flambeau._core import dtype as dt

    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64",
                 "complex64"):  # fmt: skip
        if pointwise.supports(op, getattr(dt, "bool_" if name == "bool" else name)):
            yield name


def _gradient(op: Op) -> str:
    if op.underived:
        return "none: asking for it is an error"
    if op.backward is None:
        differentiable = op.kind == "composite"
        return "that of what it is made of" if differentiable else "none"
    told = []
    for key, formula in op.backward.items():
        of = " and ".join(key if isinstance(key, tuple) else (key,))
        saved = [n for n in inspect.signature(formula).parameters if n not in GRADIENTS]
        told.append(f"of {of}, from {', '.join(saved) or 'nothing'}")
    return f"{op.node}: {'; '.join(told)}"


def _forward(op: Op) -> str:
    if op.tangent is not None:
        return "a formula of its own"
    if op.underived:
        return "none"
    if op.linear:
        return f"the operator of the tangent, linear in {', '.join(op.linear)}"
    if op.kind == "view":
        return "the same view of the tangent"
    if op.backward is None:
        return "that of what it is made of" if op.kind == "composite" else "none"
    return "the gradient's formulas, turned round"


def _batching(op: Op) -> str:
    if op.kind == "composite" and op.batch is None:
        return "that of what it is made of"
    if isinstance(op.batch, Folded):
        return BATCHED["folded"]
    if callable(op.batch):
        return "one call, by a rule of its own"
    return BATCHED[batch_rules.kind_of(op) or "examples"]


def _layout(op: Op) -> str:
    if op.shape == UNKNOWN:
        return "refused, since numbers decide on the shape"
    if op.kind == "pointwise":
        return "from the plan of the call"
    return "itself" if op.kind in ("view", "composite") else "its own body on zeros without memory"


def _seen(op: Op) -> str:
    if op.aten is not None:
        return "as the call that `aten=` names"
    if op.decomposition is not None:
        return "as the calls that `decomposition=` names"
    if op.kind == "composite":
        return "as what it is made of"
    found = next(iter(_operators(op)), None)
    if found is not None:
        return f"as {found.full_name.replace('::', '.')}"
    return "as its expression" if op.kind == "pointwise" else "not"


def rows_of(name: str) -> list[Op]:
    """The rows that a public name or an operator's name stands for; none if there is no such."""
    plain = name.removeprefix("torch.").removeprefix("aten::").removeprefix("Tensor.")
    candidates: Callable[[str], Iterator[str]] = naming.public_names
    for public in (plain, plain.removesuffix("_"), *candidates(plain), f"nn.functional.{plain}"):
        if public in BY_NAME:
            return list(BY_NAME[public])
    return []
