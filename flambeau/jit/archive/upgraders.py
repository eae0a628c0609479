"""Older operators: what an archive of an earlier version meant by names that mean more today.

A file's version says how far the operators had come when it was written. Each row has the version
from which on an operator means what it means now, and for older files a program, in the language of
scripts, that does what it did (pytorch.org, "TorchScript operator versioning").
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from functools import cache

from flambeau.jit.frontend.source import Definition
from flambeau.jit.ir.function import CompilationUnit, Function
from flambeau.jit.ir.graph import Graph, Node, Value
from flambeau.jit.ir.source import Source

NEWEST = 10
"""The newest version of archives."""
LEAST_WRITTEN = 3

_TRUNCATING = """
def {name}(self: Tensor, other: {other}) -> Tensor:
    if self.is_floating_point() or {is_float}:
        return self.true_divide{suffix}(other)
    return self.divide{suffix}(other, rounding_mode="trunc")
"""


def _division(name: str, other: str, suffix: str) -> str:
    is_float = "isinstance(other, float)" if other == "number" else "other.is_floating_point()"
    return _TRUNCATING.format(name=name, other=other, is_float=is_float, suffix=suffix)


_DIVISION_OUT = """
def div_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    if self.is_floating_point() or other.is_floating_point() or out.is_floating_point():
        return torch.true_divide(self, other, out=out)
    return torch.divide(self, other, rounding_mode="trunc", out=out)
"""
_STEPS = """
def {name}(start: number, end: number, steps: Optional[int]=None{base},
           dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None,
           pin_memory: Optional[bool]=None) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.{name}(start, end, count{given}, dtype=dtype, layout=layout, device=device,
                        pin_memory=pin_memory)
"""
_STEPS_OUT = """
def {name}(start: number, end: number, steps: Optional[int]=None{base}, *, out: Tensor) -> Tensor:
    count = 100
    if steps is not None:
        count = steps
    return torch.{name}(start, end, count{given}, out=out)
"""
_FULL = """
def full(size: List[int], fill_value: number, dtype: Optional[int], layout: Optional[int],
         device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    if dtype is None:
        return torch.full(size, float(fill_value), dtype=dtype, layout=layout, device=device,
                          pin_memory=pin_memory)
    return torch.full(size, fill_value, dtype=dtype, layout=layout, device=device,
                      pin_memory=pin_memory)
"""

UPGRADERS: dict[str, tuple[int, str]] = {
    "aten::div.Tensor": (4, _division("div_tensor", "Tensor", "")),
    "aten::div.Scalar": (4, _division("div_scalar", "number", "")),
    "aten::div_.Tensor": (4, _division("div_tensor_", "Tensor", "_")),
    "aten::div_.Scalar": (4, _division("div_scalar_", "number", "_")),
    "aten::div.out": (4, _DIVISION_OUT),
    "aten::full": (5, _FULL),
}
"""Operators whose meaning has changed: the version of the change, and what they did before."""
_LINSPACE = {"name": "linspace", "base": "", "given": ""}
_LOGSPACE = {"name": "logspace", "base": ", base: float=10.", "given": ", base"}
RENAMED: dict[str, tuple[int, tuple[str, ...]]] = {
    "aten::linspace": (8, (_STEPS.format(**_LINSPACE), _STEPS_OUT.format(**_LINSPACE))),
    "aten::logspace": (9, (_STEPS.format(**_LOGSPACE), _STEPS_OUT.format(**_LOGSPACE))),
}
"""Names whose calls do not fit today's parameters: programs stand for the name itself."""
UNCHANGED = {
    "aten::gelu": 10, "aten::gelu.out": 10, "aten::full.out": 5, "aten::linspace.out": 8,
    "aten::logspace.out": 9, "aten::div.Tensor_mode": 4, "aten::div.Scalar_mode": 4,
    "aten::div.out_mode": 4, "aten::div_.Tensor_mode": 4, "aten::div_.Scalar_mode": 4,
}  # fmt: skip
"""Operators that older files do not have, or that do what they did; and names within the above."""
VERSIONS: dict[str, int] = {
    **{name: version for name, (version, _) in UPGRADERS.items()},
    **{name: version for name, (version, _) in RENAMED.items()},
    **UNCHANGED,
}
"""The version that a file needs that uses an operator as it is now."""


def upgrade(graph: Graph, version: int) -> None:
    """Let the operators of a graph do what they did in a version of archives."""
    if version >= max(VERSIONS.values()):
        return
    for node in list(graph.walk()):
        if node.kind == "prim::CallFunction":
            _inline_older(node)
            continue
        found = UPGRADERS.get(node.schema.full_name) if node.schema is not None else None
        if found is not None and version < found[0]:
            _replace(node, _compiled(found[1]))


def older(name: str, version: int) -> tuple[Function, ...]:
    """What stands for an operator's name in an archive of a version: overloads; none as a rule."""
    since, texts = RENAMED.get(name, (0, ()))
    return tuple(map(_compiled, texts)) if version < since else ()


def _inline_older(node: Node) -> None:
    """Put the nodes of a program of the table in place of its call."""
    target, *inputs = node.inputs
    function = getattr(target.type, "function", None)
    if function is not None and function.unit is _unit():
        _replace(node, function, inputs)


def _replace(node: Node, function: Function, inputs: Sequence[Value] = ()) -> None:
    with node.graph.inserting(node):
        (result,) = node.graph.inline(function.graph, inputs or node.inputs)
    result.name = node.output.name
    node.output.replace_by(result)
    node.destroy()


@cache
def _unit() -> CompilationUnit:
    return CompilationUnit()


@cache
def _compiled(text: str) -> Function:
    """A program of the table."""
    from flambeau.jit.archive.importer import Importer

    source = Source(textwrap.dedent(text))
    (node,) = ast.parse(source.text).body
    assert isinstance(node, ast.FunctionDef)
    importer = Importer(_unit(), lambda path: None, (), lambda graph: None)
    return importer.function(node.name, Definition(node, source))


def version_needed(graphs: list[Graph]) -> int:
    """The version of an archive with these programs."""
    needed = LEAST_WRITTEN
    for graph in graphs:
        for node in graph.walk():
            if node.schema is not None:
                needed = max(needed, VERSIONS.get(node.schema.full_name, 0))
    return needed
