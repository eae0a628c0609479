"""Schemas that rows imply: a row's own, that of its form with `out`, and that of its in-place form.

    logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
    logsumexp.out(Tensor self, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)

Rows whose names begin with `_`, and those of `nn.functional`, are no operators of programs.
"""

from __future__ import annotations

from collections.abc import Iterator

from flambeau._ops.table.op import BY_NAME, Op
from flambeau.jit.operators import derived
from flambeau.jit.operators.naming import PREFIXES, public_names

SPACES = {public.removesuffix("."): prefix for prefix, public in PREFIXES.items()}
"""Namespaces of rows, and how the names of their operators begin."""


def schemas(name: str) -> dict[str, str]:
    """The schemas of an operator ("aten::logsumexp") by full names; none if no row implies it."""
    space, _, short = name.partition("::")
    if space != "aten" or short.startswith("_"):
        return {}
    base = short.removesuffix("_")
    texts = [text for op in _rows(base) for text in _forms(op, base, in_place=base != short)]
    return {text.partition("(")[0]: text for text in texts}


def names() -> Iterator[str]:
    """All operators that rows imply."""
    for public in BY_NAME:
        for op in BY_NAME[public]:
            if op.namespace in SPACES and not op.name.startswith("_"):
                yield f"aten::{_name(op)}"
                if op.inplace:
                    yield f"aten::{_name(op)}_"


def _rows(base: str) -> list[Op]:
    """The rows of an operator's name."""
    return [op for public in public_names(base) for op in (BY_NAME.get(public) or ())
            if op.namespace in SPACES and _name(op) == base]  # fmt: skip


def _name(op: Op) -> str:
    prefix = SPACES[op.namespace]
    return op.name if op.name.startswith(prefix) else f"{prefix}{op.name}"


def _forms(op: Op, base: str, in_place: bool) -> Iterator[str]:
    overload = f".{op.overload}" if op.overload else ""
    text = _spelled(f"{base}{overload}{op.text[op.text.index('(') :]}")
    if in_place:
        yield from filter(None, [derived.in_place(text) if op.inplace else None])
        return
    yield text
    yield from filter(None, [derived.with_out(text) if op.out else None])


def _spelled(text: str) -> str:
    """A schema as those of PyTorch are spelled."""
    return "aten::" + " ".join(text.split()).replace("'", '"')
