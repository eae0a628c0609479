"""From the Python text of a kernel to LLVM IR: its statements.

The kernel language is a small part of Python with types that are known before the kernel runs.
An `if` on a constant keeps one branch, `for i in unroll(...)` writes its body out, and calls of
other kernels are taken in.
"""

from __future__ import annotations

import ast
from typing import Any

from flambeau._compiler.emitter import CompileError, Value, constant
from flambeau._compiler.expressions import Expressions, Registers, RuntimeRange, Variable
from flambeau._compiler.types import Pointer, boolean, i64


class Loop:
    """Where `break` and `continue` go."""

    __slots__ = ("after", "next")

    def __init__(self, after: str, next: str) -> None:
        self.after = after
        self.next = next


class Lowering(Expressions):
    """One function being lowered."""

    def __init__(self, module: Any, native: Any, names: dict[str, Any]) -> None:
        super().__init__(module, native, names)
        self.loops: list[Loop] = []
        self.result: Any = None  # the type of what is returned, once known

    # ---- statements

    def body(self, statements: list[ast.stmt]) -> None:
        """Lower statements until one of them leaves the block."""
        for statement in statements:
            if self.emit.terminated:
                return
            self.node = statement
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                raise self.error(f"no {type(statement).__name__} in kernels")
            method(statement)

    def do_Expr(self, statement: ast.Expr) -> None:
        """A call for its effect, or a docstring."""
        if not isinstance(statement.value, ast.Constant):
            self.value(statement.value)

    def do_Pass(self, statement: ast.Pass) -> None:
        """Nothing."""

    def do_Assert(self, statement: ast.Assert) -> None:
        """A condition that must hold while compiling."""
        if not self.value(statement.test):
            raise self.error(f"this kernel needs {ast.unparse(statement.test)}")

    def do_Return(self, statement: ast.Return) -> None:
        """Leave the function; several values leave as a tuple."""
        value = None if statement.value is None else self.value(statement.value)
        if isinstance(value, tuple):
            parts = tuple(self.as_value(part) for part in value)
            self._return_type(tuple(part.type for part in parts))
            text = "undef"
            kind = self.module.result_text(self.result)
            for position, part in enumerate(parts):
                name = f"%{self.emit.name()}"
                self.emit.line(f"{name} = insertvalue {kind} {text}, {part.typed}, {position}")
                text = name
            self.emit.line(f"ret {kind} {text}")
        elif value is None:
            self._return_type(None)
            self.emit.line("ret void")
        else:
            part = self.as_value(value)
            self._return_type(part.type)
            self.emit.line(f"ret {part.typed}")
        self.emit.terminated = True

    def _return_type(self, type: Any) -> None:
        if self.result not in (None, type):
            raise self.error(f"returns {type} here and {self.result} elsewhere")
        self.result = type

    def do_Assign(self, statement: ast.Assign) -> None:
        """`name = value`, `a, b = values`, `x[i] = value`."""
        value = self.value(statement.value)
        for target in statement.targets:
            self.assign(target, value)

    def do_AnnAssign(self, statement: ast.AnnAssign) -> None:
        """`name: T = value` converts the value to T."""
        type = self.value(statement.annotation)
        self.assign(
            statement.target, self.adapt(self.value(statement.value or statement.target), type)
        )

    def do_AugAssign(self, statement: ast.AugAssign) -> None:
        """`x += value` for names and elements."""
        target = statement.target
        read = ast.copy_location(_as_load(target), target)
        self.assign(
            target, self.binary(statement.op, self.value(read), self.value(statement.value))
        )

    def assign(self, target: ast.expr, value: Any) -> None:
        """Store a value under a name or in memory."""
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = list(value)
            if len(parts) != len(target.elts):
                raise self.error(f"{len(parts)} values for {len(target.elts)} names")
            for element, part in zip(target.elts, parts, strict=True):
                self.assign(element, part)
        elif isinstance(target, ast.Name):
            self._assign_name(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._assign_element(target, value)
        else:
            raise self.error(f"cannot assign to {ast.unparse(target)}")

    def _assign_name(self, name: str, value: Any) -> None:
        known = self.names.get(name)
        if isinstance(known, Variable):
            self.write(known, self.adapt(value, known.type))
            return
        if not isinstance(value, Value):
            fixed = name not in self.assigned or name.isupper()
            if fixed or not isinstance(value, (int, float)):
                self.names[name] = value
                return
            if isinstance(value, float):
                raise self.error(f"{name} changes: say its type, as in f32({value})")
            value = constant(boolean if isinstance(value, bool) else i64, value)
        if name not in self.assigned:
            self.names[name] = value
            return
        variable = self.variable(value.type, name, value.limits is not None)
        self.names[name] = variable
        self.write(variable, value)

    def _assign_element(self, target: ast.Subscript, value: Any) -> None:
        owner, index = self.value(target.value), self.value(target.slice)
        if isinstance(owner, Registers):
            if isinstance(index, Value):
                raise self.error("registers are indexed by constants")
            self.write(owner.items[index], self.adapt(value, owner.items[index].type))
            return
        if not isinstance(owner, Value) or not isinstance(owner.type, Pointer):
            raise self.error(f"cannot store into {ast.unparse(target.value)}")
        self.store(self.add(owner, index), self.adapt(value, owner.type.element))

    def do_If(self, statement: ast.If) -> None:
        """A branch; on a constant only the one that is taken is compiled."""
        condition = self.value(statement.test)
        if not isinstance(condition, Value):
            self.body(statement.body if condition else statement.orelse)
            return
        yes, no, after = (self.emit.name(hint) for hint in ("then", "else", "after"))
        condition = self.emit.convert(boolean, condition)
        self.emit.branch(condition, yes, no if statement.orelse else after)
        self.emit.label(yes)
        self._branch_body(statement.body, after)
        if statement.orelse:
            self.emit.label(no)
            self._branch_body(statement.orelse, after)
        self.emit.label(after)

    def _branch_body(self, statements: list[ast.stmt], after: str) -> None:
        self.body(statements)
        if not self.emit.terminated:
            self.emit.jump(after)

    def do_While(self, statement: ast.While) -> None:
        """Repeat while the condition holds."""
        test, inside, after = (self.emit.name(hint) for hint in ("while", "do", "done"))
        self.emit.label(test)
        condition = self.value(statement.test)
        if isinstance(condition, Value):
            self.emit.branch(self.emit.convert(boolean, condition), inside, after)
        elif condition:
            self.emit.jump(inside)
        else:
            self.emit.jump(after)
        self._loop_body(statement.body, inside, Loop(after, test), test)

    def _loop_body(self, statements: list[ast.stmt], inside: str, loop: Loop, back: str) -> None:
        self.emit.label(inside)
        self.loops.append(loop)
        self.body(statements)
        self.loops.pop()
        if not self.emit.terminated:
            self.emit.jump(back)
        self.emit.terminated = True
        self.emit.label(loop.after)

    def do_For(self, statement: ast.For) -> None:
        """`for i in range(...)` loops; over anything constant the body is written out."""
        items = self.value(statement.iter)
        if isinstance(items, RuntimeRange):
            self._range_loop(statement, items)
            return
        for item in items:
            self.assign(statement.target, item)
            self.body(statement.body)

    def _range_loop(self, statement: ast.For, items: RuntimeRange) -> None:
        if not isinstance(statement.target, ast.Name):
            raise self.error("a loop needs one name")
        counter = self.variable(i64, statement.target.id)
        self.write(counter, items.start)
        test, inside, step, after = (
            self.emit.name(hint) for hint in ("for", "body", "step", "done")
        )
        self.emit.label(test)
        here = self.read(counter)
        op = "gt" if items.downwards else "lt"
        self.emit.branch(self.emit.compare(op, here, items.stop), inside, after)
        # the body gets a name of its own, so that it may change it without changing the loop
        self.emit.label(inside)
        self._bind_counter(statement.target.id, counter)
        self.loops.append(Loop(after, step))
        self.body(statement.body)
        self.loops.pop()
        self.emit.label(step)
        stepped = self.emit.arithmetic("add", self.read(counter), items.step)
        self.write(counter, stepped)
        self.emit.jump(test)
        self.emit.label(after)

    def _bind_counter(self, name: str, counter: Variable) -> None:
        here = self.read(counter)
        if name not in self.assigned:
            self.names[name] = here
            return
        own = self.variable(i64, name)
        self.names[name] = own
        self.write(own, here)

    def do_Break(self, statement: ast.Break) -> None:
        """Leave the innermost loop."""
        self.emit.jump(self.loops[-1].after)

    def do_Continue(self, statement: ast.Continue) -> None:
        """Go on with the next round of the innermost loop."""
        self.emit.jump(self.loops[-1].next)


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    raise CompileError(f"cannot update {ast.unparse(target)}")
