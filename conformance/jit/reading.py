"""Reads torch's compiled functions into flambeau's graphs: each stage is compared by itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, CompilationUnit, Function, FunctionSchema, Parameter
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.graph_parser import Outside, parse_graph

from . import printed_programs as programs

UNIT = CompilationUnit()
PLACE = f"__torch__.{programs.__name__}"
POINT = T.TupleType((T.TENSOR, T.INT), f"{PLACE}.Point", ("x", "label"), (3,))
PACKED = T.TupleType(
    (T.TENSOR, T.TENSOR, T.optional(T.TENSOR), T.optional(T.TENSOR)),
    "__torch__.torch.nn.utils.rnn.PackedSequence",
    ("data", "batch_sizes", "sorted_indices", "unsorted_indices"),
)
TYPES: dict[str, T.Type] = {
    f"{PLACE}.Color": T.EnumType(f"{PLACE}.Color", T.INT, programs.Color),
    "NamedTuple(x, label)": POINT,
    f"NamedTuple({', '.join(PACKED.fields)})": PACKED,
}


class _AnyTensor(dict[str, Any]):
    """Texts do not hold the values of tensors; printing and passes do not need them."""

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return flambeau.zeros(2)


def compiled_functions() -> dict[str, Any]:
    """Torch's functions and methods of the programs, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls scripting deprecated
        return dict(_compiled())


def _compiled() -> Iterator[tuple[str, Any]]:
    for function in programs.FUNCTIONS:
        yield function.__name__, torch.jit.script(function)
    for module in programs.MODULES:
        for path, inner in torch.jit.script(module).named_modules():
            for method in inner._c._method_names():
                name = ".".join(filter(None, (type(module).__name__, path, method)))
                yield name, inner._c._get_method(method)


def read_graph(graph: Any) -> Graph:
    """A graph of torch's as one of ours."""
    outside = Outside(_AnyTensor(), _callees(graph), TYPES, UNIT)
    return parse_graph(str(graph), outside)


def _callees(graph: Any) -> dict[str, Function]:
    found = {}
    for node in graph.findAllNodes("prim::Constant"):
        type = node.output().type()
        if type.kind() == "FunctionType":
            found[node.s("name")] = Function(type.annotation_str, UNIT, graph=Graph())
    for node in graph.findAllNodes("prim::fork"):
        found |= _callees(node.g("Subgraph"))
    return found


def read_function(function: Any) -> Function:
    """A function or method of torch's as one of ours."""
    graph = read_graph(function.graph)
    arguments = []
    for argument, value in zip(function.schema.arguments, graph.inputs, strict=True):
        default = argument.default_value if argument.has_default_value() else REQUIRED
        arguments.append(Parameter(argument.name, value.type, default))
    returns = (Parameter("", graph.outputs[0].type),)
    owner = graph.inputs[0].type if arguments and arguments[0].name == "self" else None
    prefix = owner.qualified_name if isinstance(owner, T.ClassType) else "__torch__"
    schema = FunctionSchema(function.name, "", tuple(arguments), returns)
    return Function(f"{prefix}.{function.name}", UNIT, graph=graph, schema=schema)


def numbered(text: str, pattern: str) -> str:
    """The text with the names that fit a pattern numbered in order of appearance."""
    names: dict[str, str] = {}
    return re.sub(pattern, lambda found: names.setdefault(found[0], f"<{len(names)}>"), text)


def without_names(text: str) -> str:
    """The text of a graph with numbered values, constants where they are used, and without places
    in files and facts about tensors: what passes are compared by.
    """
    return "\n".join(map(_without_names, text.split("\nwith ")))


def _without_names(text: str) -> str:
    constants, lines = {}, []
    for line in re.sub(r" #.*", "", text).splitlines():
        found = re.match(r"\s*(%[\w.]+) : (.+) = prim::Constant(\[.*\])?\(\)$", line)
        if found is None:
            lines.append(line)
        else:
            constants[found[1]] = f"<{found[2]}{found[3] or ''}>"
    inlined = re.sub(r"%[\w.]+", lambda found: constants.get(found[0], found[0]), "\n".join(lines))
    plain = re.sub(r"\b(Tensor|Float|Long|Bool)\([^()]*\)", "Tensor", inlined)
    return numbered(plain, r"%[\w.]+")
