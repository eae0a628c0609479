"""What Python's built-in names mean, and the order in which meanings are looked for."""

from __future__ import annotations

from functools import cache

from flambeau.jit.frontend.compiler import Resolver
from flambeau.jit.frontend.simple_value import BuiltinFunction
from flambeau.jit.frontend.special_forms import Cast, ExceptionClass, Magic, Print, SpecialForm
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph
from flambeau.jit.ir.source import SourceRange

OPERATORS = {
    "hash": "aten::hash", "min": "prim::min", "max": "prim::max", "abs": "prim::abs",
    "all": "aten::all", "any": "aten::any", "divmod": "aten::divmod", "sum": "aten::sum",
    "id": "prim::id", "ord": "aten::ord", "chr": "aten::chr", "bin": "aten::bin",
    "pow": "aten::pow", "rangelist": "prim::rangelist", "sorted": "aten::sorted",
}  # fmt: skip
MAGIC_OPERATORS = {
    "len": "aten::len", "hex": "aten::hex", "oct": "aten::oct", "round": "aten::round",
}  # fmt: skip
CASTS = {
    "float": (T.FLOAT, "aten::Float"), "complex": (T.COMPLEX, "aten::Complex"),
    "int": (T.INT, "aten::Int"), "bool": (T.BOOL, "aten::Bool"), "str": (T.STRING, "aten::str"),
}  # fmt: skip
FORMS = "tuple getattr hasattr isinstance list dict range zip enumerate".split()


@cache
def builtin_names() -> dict[str, SugaredValue]:
    """The names that every program knows."""
    found: dict[str, SugaredValue] = {name: SpecialForm(name) for name in FORMS}
    found |= {name: BuiltinFunction(kind) for name, kind in OPERATORS.items()}
    for name, kind in MAGIC_OPERATORS.items():
        found[name] = Magic(f"__{name}__", BuiltinFunction(kind))
    for name, (type, kind) in CASTS.items():
        found[name] = Magic(f"__{name}__", Cast(type, kind))
    found["_to_tensor"] = Cast(T.TENSOR, "prim::NumToTensor")
    found["print"] = Print()
    found["AssertionError"] = ExceptionClass()
    return found


def global_meaning(name: str, graph: Graph, where: SourceRange, resolver: Resolver
                   ) -> SugaredValue | None:  # fmt: skip
    """What a name means that is no variable; None if nothing."""
    return builtin_names().get(name) or resolver.value(name, graph, where)
