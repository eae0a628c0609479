"""`x[…]`: elements, slices, and several dimensions of tensors."""

from __future__ import annotations

import ast

from flambeau.jit.frontend.compiler import Compiler, expression
from flambeau.jit.frontend.simple_value import SimpleValue, shown, tuple_index
from flambeau.jit.frontend.sugar import SugaredValue
from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Value
from flambeau.jit.ir.source import ScriptError, SourceRange
from flambeau.jit.operators.matching import Argument, emit_builtin

OPTIONAL_TENSOR = T.OptionalType(T.TENSOR)
INT64 = 4


def index_nodes(node: ast.Subscript) -> list[ast.expr]:
    """The indices, one for each dimension; `x[()]` has one, the empty tuple."""
    if isinstance(node.slice, ast.Tuple) and node.slice.elts:
        return node.slice.elts
    return [node.slice]


@expression(ast.Subscript)
def _subscript(c: Compiler, node: ast.Subscript, wanted: T.Type | None) -> SugaredValue | Value:
    where, base_place = c.place(node), c.place(node.value)
    base = c.sugared(node.value)
    indices = index_nodes(node)
    if len(indices) != 1:
        return index_tensor(c, where, base.as_value(c.graph, base_place), indices)
    index = indices[0]
    if isinstance(index, ast.Slice):
        if not isinstance(base, SimpleValue):
            base = base.as_tuple_value(c.graph, base_place)
        if not isinstance(base, SimpleValue):
            return slice_sugared(c, where, base, index)
        return slice_value(c, where, base.value, index)
    if _is_ellipsis(index):
        return index_tensor(c, where, base.as_value(c.graph, base_place), indices)
    item = c.value(index)
    if not isinstance(base, SimpleValue):
        return base.getitem(c.graph, where, item, wanted)
    if isinstance(base.type, T.TupleType):
        return _tuple_element(c, where, base.value, item)
    if base.type == T.TENSOR:
        return index_tensor(c, where, base.value, indices)
    return base.getitem(c.graph, where, item, wanted)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


# ---- tuples


def constant_index(value: Value) -> int | None:
    """The number that an index is, if it is known now."""
    if value.is_constant and isinstance(value.constant, int):
        return value.constant
    return None


def _tuple_element(c: Compiler, where: SourceRange, value: Value, index: Value) -> Value:
    type = value.type
    assert isinstance(type, T.TupleType)
    number = constant_index(index)
    if index.type != T.INT:
        raise ScriptError("tuple index must be an integer", where)
    if number is None:
        if not type.elements or any(element != type.elements[0] for element in type.elements):
            raise ScriptError(
                f"Cannot index into a {shown(type)} with a non-integer literal because we cannot "
                "resolve the output type", where
            )  # fmt: skip
        return c.insert("prim::TupleIndex", (value, index), type.elements[:1], None).output
    length = len(type.elements)
    if not -length <= number < length:
        raise ScriptError(f"Tuple index out of range. Tuple is length {length} and index is "
                          f"{number}", where)  # fmt: skip
    element = type.elements[number]
    return c.insert("prim::TupleIndex", (value, index), (element,), None).output


def _static_bounds(c: Compiler, node: ast.Slice, where: SourceRange) -> slice:
    """The bounds of a slice of a tuple, which have to be known now."""
    bounds: list[int | None] = []
    for part in (node.lower, node.upper, node.step):
        if part is None:
            bounds.append(None)
            continue
        number = constant_index(c.value(part))
        if number is None:
            raise ScriptError("tuple slice indices must be integer constants", where)
        bounds.append(number)
    return slice(*bounds)


def slice_sugared(c: Compiler, where: SourceRange, base: SugaredValue, node: ast.Slice
                  ) -> SugaredValue:  # fmt: skip
    """A slice of a tuple of things that are no values, as of modules."""
    from flambeau.jit.frontend.iteration import SugaredTuple

    return SugaredTuple(base.as_tuple(c.graph, where)[_static_bounds(c, node, where)])


# ---- slices


def slice_value(c: Compiler, where: SourceRange, value: Value, node: ast.Slice) -> Value:
    """`x[a:b:c]` of a tensor, list, text or tuple."""
    if isinstance(value.type, T.TupleType):
        numbers = range(len(value.type.elements))[_static_bounds(c, node, where)]
        return c.tuple_of([tuple_index(c.graph, where, value, number) for number in numbers])
    dim = c.constant(0, where) if value.type == T.TENSOR else None
    return _slice(c, where, value, dim, node)


def _slice(c: Compiler, where: SourceRange, value: Value, dim: Value | None, node: ast.Slice
           ) -> Value:  # fmt: skip
    args = [Argument(value, where)]
    if dim is not None:
        args.append(Argument(dim, where))
    bounds = []
    for name, part in (("start", node.lower), ("end", node.upper)):
        if part is not None:
            bounds.append(Argument(c.value(part), where, name))
    step = c.constant(1, where) if node.step is None else c.value(node.step)
    bounds.append(Argument(step, where, "step"))
    return emit_builtin(c.graph, where, "aten::slice", args, bounds)


# ---- tensors


def index_tensor(c: Compiler, where: SourceRange, value: Value, nodes: list[ast.expr]) -> Value:
    """`x[i, a:b, None, t]`."""
    if value.type != T.TENSOR:
        raise ScriptError(
            "Unsupported operation: attempted to use multidimensional indexing on a non-tensor "
            "type", where
        )  # fmt: skip
    viewed, tensors = view_of(c, where, value, nodes)
    if not tensors:
        return viewed
    return c.builtin("aten::index", where, viewed, c.list_of(tensors, OPTIONAL_TENSOR))


def view_of(c: Compiler, where: SourceRange, value: Value, nodes: list[ast.expr]
            ) -> tuple[Value, list[Value]]:  # fmt: skip
    """The view that numbers, slices and None make, and the tensors that index it, by dimension."""
    found = _Indices(c, where, nodes)
    tensors: dict[int, Value] = {}
    for node, dim, index in zip(nodes, found.dims, found.values, strict=True):
        if isinstance(node, ast.Slice):
            value = _slice(c, where, value, c.constant(dim, where), node)
        elif index is None:
            continue
        elif index.type == T.NONE:
            value = c.builtin("aten::unsqueeze", where, value, c.constant(dim, where))
        elif index.type == T.INT:
            value = c.builtin("aten::select", where, value, c.constant(dim, where), index)
        else:
            tensors[dim] = index
    filled = []
    for dim in range(max(tensors, default=-1) + 1):
        filled.append(tensors[dim] if dim in tensors else c.constant(None, where))
    return value, filled


class _Indices:
    """The indices of a tensor: their values, and the dimension that each is for. What stands
    behind an ellipsis counts from the end.
    """

    def __init__(self, c: Compiler, where: SourceRange, nodes: list[ast.expr]) -> None:
        self.c = c
        self.where = where
        self.values: list[Value | None] = [None] * len(nodes)
        self.dims = [0] * len(nodes)
        dots = next((i for i, node in enumerate(nodes) if _is_ellipsis(node)), len(nodes))
        dim = 0
        for i in range(dots):
            self.dims[i] = dim
            dim += self.step(i, nodes[i], False)
        dim = -1
        for i in range(len(nodes) - 1, dots, -1):
            if _is_ellipsis(nodes[i]):
                raise ScriptError("An index can only have a single ellipsis ('...')", where)
            self.dims[i] = dim
            dim += self.step(i, nodes[i], True)

    def step(self, position: int, node: ast.expr, reverse: bool) -> int:
        """How far the dimension goes on behind an index."""
        if isinstance(node, ast.Slice):
            return -1 if reverse else 1
        c, where = self.c, self.where
        if not isinstance(node, (ast.Constant, ast.Name)):
            c.value(node)  # torch first looks whether it is a slice, and does it all again
        index = c.value(node)
        if isinstance(index.type, T.ListType):
            dtype = Argument(INT64, None, "dtype")
            index = emit_builtin(c.graph, None, "aten::tensor", [Argument(index)], [dtype])
        self.values[position] = index
        if index.type == T.NONE:
            return 0 if reverse else 1
        if index.type == T.INT:
            return -1 if reverse else 0
        if not index.type.is_subtype_of(OPTIONAL_TENSOR):
            raise ScriptError(
                "Unsupported operation: indexing tensor with unsupported index type "
                f"'{shown(index.type)}'. Only ints, slices, lists and tensors are supported", where
            )  # fmt: skip
        if reverse:
            raise ScriptError(
                "Ellipses followed by tensor indexing is currently not supported", where
            )
        return 1
