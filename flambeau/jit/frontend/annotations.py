"""Annotations: syntax to types."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from flambeau.jit.ir import types as T
from flambeau.jit.ir.source import ScriptError, SourceRange

if TYPE_CHECKING:
    from flambeau.jit.frontend.compiler import Resolver
    from flambeau.jit.frontend.source import Places

NAMES: dict[str, T.Type] = {
    "Tensor": T.TENSOR, "int": T.INT, "float": T.FLOAT, "complex": T.COMPLEX, "bool": T.BOOL,
    "str": T.STRING, "Device": T.DEVICE, "Generator": T.GENERATOR, "Stream": T.STREAM,
    "number": T.NUMBER, "None": T.NONE, "NoneType": T.NONE, "Any": T.ANY, "Capsule": T.CAPSULE,
    "QScheme": T.QSCHEME, "AnyClassType": T.ANY_CLASS, "AnyEnumType": T.ANY_ENUM,
    "NotImplemented": T.NONE, "AnyListType": T.ANY_LIST, "AnyTupleType": T.ANY_TUPLE,
}  # fmt: skip
"""Names of types that need no import in programs."""
BROADCASTING = {f"BroadcastingList{n}" for n in range(1, 7)}
BARE = {
    "List": "List[int]", "Tuple": "Tuple[int, int]", "Dict": "Dict[int, int]",
    "Optional": "Optional[int]", "Union": "Union[int, None]",
}  # fmt: skip
KEYS = (T.INT, T.BOOL, T.FLOAT, T.COMPLEX, T.STRING, T.TENSOR, T.DEVICE, T.ANY)


def type_of_expression(node: ast.expr, places: Places, resolver: Resolver) -> T.Type:
    """The type that an annotation names.

    Raises:
        ScriptError: none.
    """
    return _Reader(places, resolver).type(node)


def broadcasting_length(node: ast.expr | None) -> int | None:
    """2 for `BroadcastingList2[int]`, also where it is optional: one number stands for two."""
    while isinstance(node, ast.Subscript):
        name = dotted(node.value)
        if name in BROADCASTING:
            return int(name[-1])
        node = node.slice
    return None


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


class _Reader:
    def __init__(self, places: Places, resolver: Resolver) -> None:
        self.places = places
        self.resolver = resolver

    def type(self, node: ast.expr) -> T.Type:
        if isinstance(node, ast.Constant):
            return self.literal(node)
        if isinstance(node, ast.Subscript):
            return self.parts(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return T.union((self.type(node.left), self.type(node.right)))
        name = dotted(node)
        where = self.places.of(node)
        if not name:
            raise ScriptError("Expected type specifier to be an identifier or a type", where)
        found = NAMES.get(name) or self.resolver.type(name, where) or DOTTED.get(name)
        if found is not None:
            return found
        self.refuse_bare(name.rpartition(".")[2], where)
        raise ScriptError(f"Unknown type name '{name}'", where)

    def refuse_bare(self, name: str, where: SourceRange) -> None:
        if name in BARE:
            raise ScriptError(
                f"Attempted to use {name} without a contained type. Please add a contained type, "
                f"e.g. {BARE[name]}", where
            )  # fmt: skip

    def literal(self, node: ast.Constant) -> T.Type:
        """None, and annotations that are written as a text."""
        if node.value is None:
            return T.NONE
        where = self.places.of(node)
        if isinstance(node.value, str):
            found = self.resolver.type(node.value, where)
            if found is not None:
                return found
            inner = ast.parse(node.value, mode="eval").body
            for part in ast.walk(inner):
                self.places.known[part] = where
            return self.type(inner)
        raise ScriptError("Expected type specifier to be an identifier or a type", where)

    def parts(self, node: ast.Subscript) -> T.Type:
        """`List[int]` and the like."""
        name = dotted(node.value).rpartition(".")[2]
        elements = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.slice, ast.Tuple) and not node.slice.elts:
            elements = []
        rule = RULES.get(name)
        where = self.places.of(node)
        if name in BROADCASTING:
            rule = _list
        if rule is None:
            raise ScriptError(f"Unknown type constructor {name}", where)
        return rule([self.type(element) for element in elements], where)


def _one(name: str, parts: list[T.Type], where: SourceRange) -> T.Type:
    if len(parts) != 1:
        raise ScriptError(f" expected exactly one element type but found {len(parts)}", where)
    return parts[0]


def _list(parts: list[T.Type], where: SourceRange) -> T.Type:
    return T.ListType(_one("List", parts, where))


def _dict(parts: list[T.Type], where: SourceRange) -> T.Type:
    if len(parts) != 2:
        raise ScriptError(f" expected exactly two element types but found {len(parts)}", where)
    if parts[0] not in KEYS and not isinstance(parts[0], T.EnumType):
        raise ScriptError(
            f"Cannot create dict for key type '{parts[0]}', only int, float, complex, Tensor, "
            "device and string keys are supported"
        )
    return T.DictType(*parts)


def _union(parts: list[T.Type], where: SourceRange) -> T.Type:
    if set(parts) == {T.INT, T.FLOAT, T.COMPLEX}:
        return T.NUMBER
    return T.union(parts)


RULES: dict[str, Callable[[list[T.Type], SourceRange], T.Type]] = {
    "List": _list, "list": _list, "Dict": _dict, "dict": _dict,
    "Tuple": lambda parts, where: T.TupleType(tuple(parts)),
    "tuple": lambda parts, where: T.TupleType(tuple(parts)),
    "Optional": lambda parts, where: T.optional(_one("Optional", parts, where)),
    "Union": _union,
    "Future": lambda parts, where: T.FutureType(_one("Future", parts, where)),
    "Final": lambda parts, where: _one("Final", parts, where),
}  # fmt: skip
"""What makes a type of others."""
DOTTED = {"torch.Tensor": T.TENSOR, "torch.device": T.DEVICE, "torch.Generator": T.GENERATOR,
          "torch.dtype": T.INT, "torch.Stream": T.STREAM}  # fmt: skip
