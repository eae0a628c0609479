"""`torch.SymInt`, `SymFloat`, `SymBool`: numbers that are expressions over symbols.

    s = mode.from_tensor(torch.ones(4, 3)).shape[0]       # s0
    s * 2 + 1, s // 2                                     # 2*s0 + 1, (s0//2)
    if s > 3: ...                                         # true of 4: now a guard, s0 > 3

A number knows its expression, the environment of its symbols (`fx/experimental/symbolic_shapes.py`)
and the operation that it comes from, so that a trace can write it down. Whoever asks for the plain
number gets the one that it has in this run, its hint, and that becomes a guard.

They pass for Python's numbers where `isinstance` asks: rules of operators are Python on ints.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._core.missing import missing

WORDS = ("add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "and", "or", "lt", "le", "gt",
         "ge", "eq", "ne")  # fmt: skip

COMPARISONS = WORDS[9:]
"""Those that have no swapped form of their own."""


def __getattr__(name: str) -> Any:
    return missing(__name__, name)


class _Int(int):
    """The class that symbols name: `isinstance(s, int)` holds, `s.__class__ is int` does not."""


class _Float(float):
    """The same for floats."""


class SymNode:
    """What is behind a symbolic number.

    Args:
        expr: the expression, of sympy.
        shape_env: the environment of its symbols.
        pytype: int, float or bool.
        origin: the function and the arguments that it is the result of, or None.
    """

    __slots__ = ("_expr", "origin", "pytype", "shape_env")

    def __init__(self, expr: Any, shape_env: Any, pytype: type, hint: Any = None,
                 origin: Any = None) -> None:  # fmt: skip
        self._expr = expr
        self.shape_env = shape_env
        self.pytype = pytype
        self.origin = origin

    @property
    def expr(self) -> Any:
        """The expression, as simple as guards allow by now."""
        return self.shape_env.replace(self._expr)

    @property
    def hint(self) -> Any:
        """The number that it is in this run; None where only elements of tensors tell."""
        return self.shape_env._hint(self.expr)

    def has_hint(self) -> bool:
        """Whether its number is known in this run."""
        return self.hint is not None

    def require_hint(self) -> Any:
        """The number that it is in this run.

        Raises:
            GuardOnDataDependentSymNode: only elements of tensors tell.
        """
        return self.shape_env.size_hint(self.expr)

    def is_symbolic(self) -> bool:
        """Whether it is an expression and no number."""
        return True

    def is_constant(self) -> bool:
        """Whether it is the same number whatever its symbols are."""
        return bool(self.expr.is_number)

    def maybe_as_int(self) -> int | None:
        """The number, if it is the same whatever the symbols are."""
        expr = self.expr
        return int(expr) if expr.is_Integer else None

    def is_int(self) -> bool:
        """Whether it stands for an int."""
        return self.pytype is int

    def is_float(self) -> bool:
        """Whether it stands for a float."""
        return self.pytype is float

    def is_bool(self) -> bool:
        """Whether it stands for a bool."""
        return self.pytype is bool

    def guard_int(self, file: Any, line: Any) -> Any:
        """The number of this run, which becomes a guard."""
        return self.shape_env._specialized(self.expr)

    guard_float = guard_int

    def guard_bool(self, file: Any, line: Any) -> bool:
        """The truth of this run, which becomes a guard."""
        return self.shape_env._decide(self.expr)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self.expr)

    __repr__ = __str__


class _Symbolic:
    """What the three classes share."""

    __slots__ = ("node",)
    node: SymNode

    def __init__(self, node: SymNode) -> None:
        self.node = node

    def __repr__(self) -> str:
        return str(self.node)

    def __str__(self) -> str:
        return str(self.node)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: {type(self).__name__}")

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


def expression_of(value: Any) -> Any:
    """A number as an expression; None for what is no number."""
    if isinstance(value, _Symbolic):
        return value.node.expr
    if type(value) in (int, float, bool) or isinstance(value, (np.integer, np.floating)):
        return _sympified(value)
    return None


def as_int(value: Any) -> Any:
    """`int(value)`; a symbol as it is."""
    return value if isinstance(value, SymInt) else int(value)


def _sympified(value: Any) -> Any:
    import sympy

    return sympy.sympify(value.item() if isinstance(value, np.generic) else value)


def is_symbolic(value: Any) -> bool:
    """Whether a value is one of the three."""
    return isinstance(value, _Symbolic)


def made(env: Any, expr: Any, pytype: type, origin: Any = None) -> Any:
    """A number of an expression: Python's if nothing is left open."""
    if expr.is_number and pytype is not float:
        return pytype(expr)
    if expr.is_Boolean and not expr.free_symbols:
        return bool(expr)
    return CLASSES[pytype](SymNode(expr, env, pytype, origin=origin))


def _kind(value: Any) -> type:
    if isinstance(value, _Symbolic):
        return value.node.pytype
    return float if isinstance(value, (float, np.floating)) else int


def _binary(word: str, swapped: bool) -> Callable[[Any, Any], Any]:
    function = getattr(operator, {"and": "and_", "or": "or_"}.get(word, word))

    def method(self: Any, other: Any) -> Any:
        expr = expression_of(other)
        if expr is None:
            return NotImplemented
        pair = [(self, self.node.expr), (other, expr)]
        (one, left), (two, right) = pair[::-1] if swapped else pair
        kinds = _kind(one), _kind(two)
        from flambeau._tensor import symbolic_rules

        result, pytype = symbolic_rules.RULES[word](left, right, *kinds)
        return made(self.node.shape_env, result, pytype, (function, (one, two)))

    method.__name__ = method.__qualname__ = f"__{'r' if swapped else ''}{word}__"
    return method


class SymInt(_Symbolic):
    """An int that is an expression over symbols.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.symbolic_shapes import ShapeEnv
    >>> mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
    >>> size = mode.from_tensor(torch.ones(4, 3)).shape[0]
    >>> size, size * 2 + 1, type(size).__name__
    (s0, 2*s0 + 1, 'SymInt')
    >>> bool(size > 3), [guard.expr for guard in mode.shape_env.guards]
    (True, [s0 > 3])
    """

    __slots__ = ()
    __class__ = property(lambda self: _Int)  # type: ignore[assignment]  # see the module

    def __bool__(self) -> bool:
        return bool(self != 0)  # type: ignore[comparison-overlap]

    def __int__(self) -> int:
        return self.node.guard_int("", 0)  # type: ignore[no-any-return]

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __hash__(self) -> int:
        raise TypeError("unhashable type: non-nested SymInt")

    def __neg__(self) -> Any:
        node = self.node
        return made(node.shape_env, -node.expr, int, (operator.neg, (self,)))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __sym_float__(self) -> Any:
        from flambeau._tensor import symbolic_rules

        node = self.node
        expr = symbolic_rules.as_float(node.expr, int)
        return made(node.shape_env, expr, float, (_named("sym_float"), (self,)))

    def __sym_int__(self) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __round__(self, digits: Any = None) -> Any:
        return self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def as_integer_ratio(self) -> tuple[Any, int]:
        """The number over 1, as of an int."""
        return self, 1

    def bit_length(self) -> int:
        """How many bits it has in this run, which becomes a guard."""
        return int(self).bit_length()

    @property
    def real(self) -> Any:
        """The number itself."""
        return self

    @property
    def imag(self) -> int:
        """Zero."""
        return 0


class SymFloat(_Symbolic):
    """A float that is an expression over symbols.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.symbolic_shapes import ShapeEnv
    >>> mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
    >>> size = mode.from_tensor(torch.ones(4, 3)).shape[0]
    >>> half = size / 2
    >>> type(half).__name__, float(half)
    ('SymFloat', 2.0)
    """

    __slots__ = ()
    __class__ = property(lambda self: _Float)  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self != 0)  # type: ignore[comparison-overlap]

    def __float__(self) -> float:
        return self.node.guard_float("", 0)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return int(float(self))

    def __neg__(self) -> Any:
        node = self.node
        return made(node.shape_env, -node.expr, builtins.float, (operator.neg, (self,)))

    def __sym_float__(self) -> Any:
        return self

    def __sym_int__(self) -> Any:
        from flambeau._tensor import symbolic_rules

        node = self.node
        expr = symbolic_rules.truncated(node.expr)
        return made(node.shape_env, expr, int, (_named("sym_int"), (self,)))

    def is_integer(self) -> bool:
        """Whether it has no fraction in this run, which becomes a guard."""
        return float(self).is_integer()


class SymBool(_Symbolic):
    """A truth value that is a condition on symbols; asked whether it holds, it becomes a guard.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.symbolic_shapes import ShapeEnv
    >>> mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
    >>> size = mode.from_tensor(torch.ones(4, 3)).shape[0]
    >>> size > 3, torch.sym_not(size > 3), mode.shape_env.guards
    (s0 > 3, s0 <= 3, [])
    """

    __slots__ = ()
    __class__ = property(lambda self: builtins.bool)  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return self.node.guard_bool("", 0)

    def __int__(self) -> int:
        return int(bool(self))

    def __sym_not__(self) -> Any:
        import sympy

        node = self.node
        return made(node.shape_env, sympy.Not(node.expr), builtins.bool,
                    (_named("sym_not"), (self,)))  # fmt: skip


def _named(name: str) -> Any:
    from flambeau._tensor import symbols

    return getattr(symbols, name)


CLASSES: dict[type, Any] = {int: SymInt, float: SymFloat, bool: SymBool}

for _word in WORDS:
    _classes = (SymBool,) if _word in ("and", "or") else (SymInt, SymFloat)
    for _class in _classes:
        setattr(_class, f"__{_word}__", _binary(_word, swapped=False))
        if _word not in COMPARISONS:
            setattr(_class, f"__r{_word}__", _binary(_word, swapped=True))
SymBool.__eq__ = _binary("eq", swapped=False)  # type: ignore[assignment,method-assign]
SymBool.__ne__ = _binary("ne", swapped=False)  # type: ignore[assignment,method-assign]
for _class in (SymInt, SymFloat, SymBool):
    _class.__module__ = "flambeau"
    if "__hash__" not in _class.__dict__ or _class.__dict__["__hash__"] is None:
        _class.__hash__ = _Symbolic.__hash__  # type: ignore[method-assign]
