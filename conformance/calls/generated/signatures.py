"""Signatures as data: parameters with the kind of value that each takes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

REQUIRED: Any = object()


@dataclass(frozen=True)
class Parameter:
    """One parameter. `kind` is one of the words of `KINDS`, or "" where nothing is known."""

    name: str
    kind: str = ""
    optional: bool = False
    """Whether None may be given."""
    default: Any = REQUIRED
    keyword_only: bool = False
    variadic: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Target:
    """What is called: `torch.add`, `Tensor.add_`, `nn.Linear`, each with its signatures."""

    path: str
    signatures: tuple[tuple[Parameter, ...], ...]

    @property
    def is_method(self) -> bool:
        return self.path.startswith("Tensor.")


KINDS = {
    r"(tuple|list|sequence)\W*(of )?\W*Tensor": "tensors",
    r"Tensor.*(Number|float|int|scalar|number|value)": "operand",
    r"Tensor": "tensor",
    r"Generator": "generator",
    r"[Dd]evice": "device",
    r"layout": "layout",
    r"memory.?format": "memory_format",
    r"dtype": "dtype",
    r"Sequence\[(Number|_float|float)|tuple.*float|list of float": "floats",
    r"Number|_complex|complex": "number",
    r"Sequence|_size|ize_.*_t|ratio_any|tuple|list|Size": "ints",
    r"[Bb]ool|Literal": "bool",
    r"float|double": "float",
    r"int": "int",
    r"str": "str",
}  # fmt: skip
"""What an annotation, or what documentation says of a parameter, has to contain for its kind."""
UNIONS = {"_int | _size": "int or ints", "_int | SymInt | Sequence": "int or ints",
          "int or tuple": "int or ints", "int | Sequence": "int or ints"}  # fmt: skip


NAMED = {
    "tensor": "input A B a b x x1 x2 weight bias target index tensor other input1 input2 mat1 mat2 "
              "module_input sequence hidden query key value running_mean running_var",
    "dtype": "dtype", "device": "device", "generator": "generator", "layout": "layout",
    "int": "dim groups offset dim1 dim2 n M embed_dim num_heads kdim vdim",
    "int or ints": "kernel_size stride padding dilation output_size output_padding dims size",
    "float": "p eps negative_slope threshold dropout lr alpha",
    "bool": "size_average reduce batch_first sorted return_inverse return_counts ceil_mode "
            "count_include_pad keepdim inplace return_indices",
    "module": "module", "optimizer": "optimizer", "tensors": "tensors", "str": "mode approximate",
}  # fmt: skip
"""Kinds of parameters of which nothing is told but the name."""


def parameter(name: str, told: str, default: Any = REQUIRED, **flags: bool) -> Parameter:
    """A parameter of which `told` says the type."""
    optional = "None" in told or "optional" in told or default is None
    return Parameter(name, kind_of(name, told), optional, default, **flags)


def kind_of(name: str, told: str) -> str:
    """The kind of value that a text about a type asks for."""
    if name == "out":
        return "out"
    for text, kind in UNIONS.items():
        if text in told:
            return kind
    for pattern, kind in KINDS.items():
        if re.search(pattern, told):
            return kind
    return next((kind for kind, names in NAMED.items() if name in names.split()), "")


def from_definition(node: ast.FunctionDef) -> tuple[Parameter, ...]:
    """The parameters of a function in a stub, without `self` and `cls` where those are bound."""
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    gaps: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    found = [_read(a, d) for a, d in zip(plain, [*gaps, *arguments.defaults], strict=True)]
    if arguments.vararg:
        found.append(_read(arguments.vararg, None, variadic=True))
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [_read(a, d, keyword_only=True) for a, d in pairs]
    return tuple(found)


def _read(node: ast.arg, default: ast.expr | None, **flags: bool) -> Parameter:
    told = ast.unparse(node.annotation) if node.annotation else ""
    return parameter(node.arg, told, REQUIRED if default is None else _literal(default), **flags)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...


HEAD = re.compile(r"^\s*(?:\w+\.)*\w+\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.MULTILINE)
ITEM = re.compile(r"^\s+\*?(\w+(?:, ?\w+)*) ?\(([^)]*)\)", re.MULTILINE)


def from_documentation(text: str) -> tuple[Parameter, ...] | None:
    """The parameters that the first line of a docstring lists, with the types further down."""
    head = HEAD.search(text)
    if head is None:
        return None
    types = {n.strip(): told for names, told in ITEM.findall(text) for n in names.split(",")}
    try:
        node = ast.parse(f"def f({head[1]}): ...").body[0]
    except SyntaxError:
        return None
    assert isinstance(node, ast.FunctionDef)
    return tuple(
        p if p.kind else parameter(
            p.name, types.get(p.name, ""), p.default,
            keyword_only=p.keyword_only, variadic=p.variadic,
        )
        for p in from_definition(node)
    )  # fmt: skip
