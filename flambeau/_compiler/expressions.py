"""Expressions of the kernel language: what a piece of a kernel is worth.

What can be computed while compiling is: constants, types, functions and tuples are ordinary Python
objects here, everything else is a `Value`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from flambeau._compiler.emitter import CompileError, Emitter, Value, constant
from flambeau._compiler.types import Pointer, Scalar, Vector, boolean, i64

BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add), ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul), ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("div", operator.floordiv), ast.Mod: ("rem", operator.mod),
    ast.BitAnd: ("and", operator.and_), ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor), ast.LShift: ("shl", operator.lshift),
    ast.RShift: ("shr", operator.rshift), ast.Pow: ("pow", operator.pow),
}  # fmt: skip
UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
    ast.UAdd: operator.pos,
}  # fmt: skip
COMPARE: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", operator.lt), ast.LtE: ("le", operator.le), ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge), ast.Eq: ("eq", operator.eq), ast.NotEq: ("ne", operator.ne),
}  # fmt: skip


class Variable:
    """A name that is assigned when the kernel runs: a stack slot, and one for each end in debug."""

    __slots__ = ("limits", "slot", "type")

    def __init__(self, type: Any, slot: str, limits: tuple[str, str] | None) -> None:
        self.type = type
        self.slot = slot
        self.limits = limits


class Registers:
    """`registers(T, n)`: n variables of one type, indexed by constants."""

    __slots__ = ("items",)

    def __init__(self, items: list[Variable]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


class RuntimeRange:
    """`range(...)` in a kernel."""

    __slots__ = ("downwards", "start", "step", "stop")

    def __init__(self, start: Value, stop: Value, step: Value, downwards: bool) -> None:
        self.start, self.stop, self.step, self.downwards = start, stop, step, downwards


class Expressions:
    """The values of one function; `module` compiles the functions that it calls."""

    def __init__(self, module: Any, native: Any, names: dict[str, Any]) -> None:
        self.module = module
        self.native = native
        self.emit = Emitter(module)
        self.names: dict[str, Any] = names  # Variable, Value or a constant
        self.assigned = native.assigned_often
        self.node: Any = None

    def error(self, message: str) -> CompileError:
        """An error that names the kernel and the line."""
        line = getattr(self.node, "lineno", 0) + self.native.first_line - 1
        return CompileError(f"{self.native.name}, line {line}: {message}")

    # ---- variables and memory

    def variable(self, type: Any, name: str = "v", limited: bool = False) -> Variable:
        """A stack slot for a name."""
        limits = None
        if limited:
            limits = (self.emit.slot(i64), self.emit.slot(i64))
        return Variable(type, self.emit.slot(type), limits)

    def read(self, variable: Variable) -> Value:
        """What a variable holds."""
        text = f"load {variable.type.llvm}, ptr {variable.slot}"
        value = self.emit.define(variable.type, text)
        if variable.limits is not None:
            low, high = (self.emit.define(i64, f"load i64, ptr {slot}").text
                         for slot in variable.limits)  # fmt: skip
            value.limits = (low, high)
        return value

    def write(self, variable: Variable, value: Value) -> None:
        """Change what a variable holds."""
        self.emit.line(f"store {value.typed}, ptr {variable.slot}")
        if variable.limits is not None and value.limits is not None:
            for slot, text in zip(variable.limits, value.limits, strict=True):
                self.emit.line(f"store i64 {text}, ptr {slot}")

    def load(self, address: Value, width: int = 1, align: int = 0) -> Value:
        """Read from memory; the debug form checks the place first."""
        return self.emit.load(self.checked(address, width), width, align)

    def store(self, address: Value, value: Value, align: int = 0, hint: str = "") -> None:
        """Write to memory; the debug form checks the place first."""
        width = 1 if isinstance(value.type, Pointer) else value.type.width
        self.emit.store(self.checked(address, width), value, align, hint)

    def checked(self, address: Value, width: int = 1, wanted: Value | None = None) -> Value:
        """In the debug form: an address outside its memory is noted, and memory of no meaning
        takes its place; the launcher raises when the kernel has ended. `wanted` says whether the
        access takes place at all."""
        if address.limits is None:
            return address
        emit = self.emit
        low, high = address.limits
        here = emit.define(i64, f"ptrtoint ptr {address.text} to i64")
        end = emit.define(i64, f"add i64 {here.text}, {width * address.type.element.size}")
        before = emit.define(boolean, f"icmp ult i64 {here.text}, {low}")
        behind = emit.define(boolean, f"icmp ugt i64 {end.text}, {high}")
        outside = emit.define(boolean, f"or i1 {before.text}, {behind.text}")
        if wanted is not None:
            outside = emit.define(boolean, f"and i1 {outside.text}, {wanted.text}")
        line = getattr(self.node, "lineno", 0) + self.native.first_line - 1
        self.module.note_fault(emit, outside, self.native, line)
        return emit.define(
            address.type, f"select i1 {outside.text}, ptr @nowhere, ptr {address.text}"
        )

    def checked_lanes(self, address: Value, mask: Value) -> Value:
        """As `checked`, for an access of the lanes of a mask alone."""
        if address.limits is None:
            return address
        result = address
        for lane in range(mask.type.width):
            used = self.emit.define(boolean, f"extractelement {mask.typed}, i32 {lane}")
            here = self.emit.offset(address, constant(i64, lane))
            safe = self.checked(here, 1, used)
            moved = self.emit.compare("ne", safe, here)
            nowhere = Value(address.type, "@nowhere", address.limits)
            result = self.emit.select(moved, nowhere, result)
        return result

    # ---- expressions

    def value(self, node: ast.expr) -> Any:
        """A Value, or a Python object where everything is known."""
        method = getattr(self, f"get_{type(node).__name__}", None)
        if method is None:
            raise self.error(f"no {type(node).__name__} in kernels: {ast.unparse(node)}")
        return method(node)

    def as_value(self, value: Any) -> Value:
        """A Value of anything: ints are i64, bools boolean; floats have to say their type."""
        if isinstance(value, Value):
            return value
        if isinstance(value, bool):
            return constant(boolean, value)
        if isinstance(value, int):
            return constant(i64, value)
        raise self.error(f"what type has {value!r}? Say it, as in f32({value!r})")

    def adapt(self, value: Any, type: Any) -> Value:
        """`value` for a place of a type: constants take it, one number fills all lanes."""
        if not isinstance(value, Value):
            return constant(type, value)
        if value.type == type:
            return value
        if isinstance(type, Vector) and value.type == type.element:
            return self.emit.splat(value, type.width)
        if isinstance(type, Pointer) and isinstance(value.type, Pointer):
            raise self.error(f"{value.type} for {type}: use cast(pointer({type.element}), x)")
        raise self.error(f"{value.type} does not fit {type}: convert it, as in {type}(x)")

    def get_Constant(self, node: ast.Constant) -> Any:
        """A literal."""
        return node.value

    def get_Name(self, node: ast.Name) -> Any:
        """A variable, or a name of the kernel's module."""
        known = self.names.get(node.id, self)
        if known is self:
            return self.native.lookup(node.id)
        return self.read(known) if isinstance(known, Variable) else known

    def get_Attribute(self, node: ast.Attribute) -> Any:
        """An attribute of a constant, or `.type`, `.width`, `.element` of a value."""
        owner = self.value(node.value)
        if isinstance(owner, Value):
            return owner.type if node.attr == "type" else getattr(owner.type, node.attr)
        return getattr(owner, node.attr)

    def get_Tuple(self, node: ast.Tuple) -> Any:
        """Several values."""
        return tuple(self.value(element) for element in node.elts)

    get_List: Any = get_Tuple

    def get_Slice(self, node: ast.Slice) -> slice:
        """A slice of constants, for constant tuples."""
        bounds = (node.lower, node.upper, node.step)
        return slice(*[None if bound is None else self.value(bound) for bound in bounds])

    def get_Subscript(self, node: ast.Subscript) -> Any:
        """`x[i]`: an element of memory, of registers, a lane of a vector, an item of a tuple."""
        owner, index = self.value(node.value), self.value(node.slice)
        if isinstance(owner, Registers):
            if isinstance(index, Value):
                raise self.error("registers are indexed by constants")
            return self.read(owner.items[index])
        if not isinstance(owner, Value):
            return owner[index]
        if isinstance(owner.type, Pointer):
            return self.load(self.add(owner, index))
        if isinstance(owner.type, Vector):
            lane = self.as_value(index)
            return self.emit.define(
                owner.type.element, f"extractelement {owner.typed}, {lane.typed}"
            )
        raise self.error(f"{ast.unparse(node.value)} cannot be indexed")

    def add(self, address: Value, index: Any) -> Value:
        """A pointer some elements further."""
        if index.__class__ is int and index == 0:
            return address
        index = self.as_value(index)
        if index.type.bits != 64:
            index = self.emit.convert(i64, index)
        return self.emit.offset(address, index)

    def get_BinOp(self, node: ast.BinOp) -> Any:
        """Arithmetic."""
        return self.binary(node.op, self.value(node.left), self.value(node.right))

    def binary(self, op: ast.operator, a: Any, b: Any) -> Any:
        """`a op b` for values and constants."""
        name, function = BINARY[type(op)]
        if not isinstance(a, Value) and not isinstance(b, Value):
            return function(a, b)
        if isinstance(a, Value) and isinstance(a.type, Pointer):
            if isinstance(b, Value) and isinstance(b.type, Pointer):
                return self._distance(a, b)
            if name == "sub":
                b = -b if not isinstance(b, Value) else self.negated(b)
            return self.add(a, b)
        a, b = self.alike(a, b)
        if isinstance(op, ast.FloorDiv) and a.type.is_float:
            raise self.error("// is for integers; floor(a / b) is for floats")
        return self.emit.arithmetic(name, a, b)

    def _distance(self, a: Value, b: Value) -> Value:
        """How many elements lie between two pointers."""
        ends = [self.emit.define(i64, f"ptrtoint ptr {p.text} to i64") for p in (a, b)]
        apart = self.emit.arithmetic("sub", *ends)
        return self.emit.arithmetic("div", apart, constant(i64, a.type.element.size))

    def alike(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Both operands as one type."""
        if not isinstance(a, Value):
            if isinstance(a, float) and not b.type.is_float:
                raise self.error(f"{a} beside {b.type}")
            return constant(b.type, a), b
        if not isinstance(b, Value):
            if isinstance(b, float) and not a.type.is_float:
                raise self.error(f"{b} beside {a.type}")
            return a, constant(a.type, b)
        if a.type == b.type:
            return a, b
        if isinstance(a.type, Vector) and a.type.element == b.type:
            return a, self.emit.splat(b, a.type.width)
        if isinstance(b.type, Vector) and b.type.element == a.type:
            return self.emit.splat(a, b.type.width), b
        raise self.error(f"{a.type} beside {b.type}: convert one of them")

    def negated(self, value: Value) -> Value:
        """`-value`."""
        if value.type.is_float and value.type.bits >= 32:
            return self.emit.define(value.type, f"fneg {value.typed}")
        return self.emit.arithmetic("sub", constant(value.type, 0), value)

    def get_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`-x`, `not x`, `~x`."""
        value = self.value(node.operand)
        if not isinstance(value, Value):
            return UNARY[type(node.op)](value)
        if isinstance(node.op, ast.USub):
            return self.negated(value)
        if isinstance(node.op, ast.UAdd):
            return value
        ones = constant(value.type, -1 if value.type.kind != "bool" else True)
        return self.emit.define(value.type, f"xor {value.typed}, {ones.text}")

    def get_Compare(self, node: ast.Compare) -> Any:
        """`a < b`, also in chains."""
        left = self.value(node.left)
        result: Any = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            part = self._compare(op, left, right)
            result = part if result is None else self.both(ast.BitAnd(), result, part)
            left = right
        return result

    def _compare(self, op: ast.cmpop, a: Any, b: Any) -> Any:
        if isinstance(op, (ast.Is, ast.IsNot)):
            return (a is b) == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)):
            return (a in b) == isinstance(op, ast.In)
        name, function = COMPARE[type(op)]
        if not isinstance(a, Value) and not isinstance(b, Value):
            return function(a, b)
        return self.emit.compare(name, *self.alike(a, b))

    def both(self, op: ast.operator, a: Any, b: Any) -> Any:
        """Combine two conditions, of which either may be known."""
        if isinstance(a, Value) and isinstance(b, Value):
            return self.binary(op, a, b)
        known, other = (b, a) if isinstance(a, Value) else (a, b)
        if isinstance(op, ast.BitAnd):
            return other if known else known
        return known if known else other

    def get_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and`, `or`: known conditions decide early; others are all computed."""
        op = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        result: Any = None
        for operand in node.values:
            value = self.value(operand)
            result = value if result is None else self.both(op, result, value)
            decided = not isinstance(result, Value) and bool(result) == isinstance(op, ast.BitOr)
            if decided:
                return result
        return result

    def get_IfExp(self, node: ast.IfExp) -> Any:
        """`a if condition else b`: a choice; both are computed unless the condition is known."""
        condition = self.value(node.test)
        if not isinstance(condition, Value):
            return self.value(node.body if condition else node.orelse)
        a, b = self.value(node.body), self.value(node.orelse)
        if not isinstance(a, Value) and not isinstance(b, Value):
            a = self.as_value(a)
        return self.emit.select(condition, *self.alike(a, b))

    def get_Call(self, node: ast.Call) -> Any:
        """A type (conversion), a word of the language, another kernel, or Python on constants."""
        function = self.value(node.func)
        arguments = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                arguments += list(self.value(argument.value))
            else:
                arguments.append(self.value(argument))
        named = {keyword.arg: self.value(keyword.value) for keyword in node.keywords}
        if isinstance(function, (Scalar, Vector)):
            return self.convert(function, *arguments)
        if function is range:
            return self._range(arguments)
        return self.module.call(self, function, arguments, named)

    def convert(self, type: Any, value: Any) -> Value:
        """`f32(x)`, with as many lanes as x has; a vector type spreads a number over its lanes."""
        if not isinstance(value, Value):
            return constant(type, value)
        if isinstance(value.type, Pointer):
            return self.emit.define(i64, f"ptrtoint ptr {value.text} to i64")
        converted = self.emit.convert(type.element, value)
        if isinstance(type, Vector) and not isinstance(converted.type, Vector):
            return self.emit.splat(converted, type.width)
        return converted

    def _range(self, arguments: list[Any]) -> Any:
        if len(arguments) == 1:
            arguments = [0, *arguments]
        start, stop, step = (*arguments, 1)[:3]
        downwards = isinstance(step, int) and step < 0
        first, last, by = (self._index(bound) for bound in (start, stop, step))
        return RuntimeRange(first, last, by, downwards)

    def _index(self, bound: Any) -> Value:
        value = self.as_value(bound)
        return self.emit.convert(i64, value)
