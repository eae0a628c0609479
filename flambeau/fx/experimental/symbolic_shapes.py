"""`torch.fx.experimental.symbolic_shapes`: sizes that are symbols, and what is assumed of them.

    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    x = mode.from_tensor(torch.ones(4, 3))      # sizes s0, s1
    if x.shape[0] > 2: ...                      # true of 4, and a guard: env.guards
    env.evaluate_guards_for_args([x], [other])  # whether what was decided holds for `other`

Symbols are called `s0`, `s1`, … in the order in which they come; those that stand for elements of
tensors (`x.item()`, the rows of `x.nonzero()`) are `u0`, `u1`, … and have no number in this run.
Sizes 0 and 1 are numbers, and equal sizes get one symbol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from flambeau._core.missing import lazily
from flambeau._tensor import symbolic_arrays, symbolic_numbers
from flambeau._tensor.symbolic_arrays import Layout
from flambeau._tensor.symbolic_numbers import is_symbolic
from flambeau._tensor.tensor import Tensor
from flambeau.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from flambeau.fx.experimental._facts import Facts

STAND_IN = 19
"""The number by which tensors are laid out along a size that has none in this run."""
OPEN = (
    "Could not guard on data-dependent expression {0} (unhinted: {0}).\n\nconsider using "
    "data-dependent friendly APIs such as guard_or_false, guard_or_true and statically_known_true."
)


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision hangs on numbers of tensors, of which nothing is known."""

    def __init__(self, cond: Any, *args: Any) -> None:
        super().__init__(*(args or (OPEN.format(cond),)))
        self.cond = cond


class ConstraintViolationError(RuntimeError):
    """A size that should be a symbol was used as a number."""


class DimDynamic(Enum):
    """What a size of a tensor becomes: a symbol, one of those that are equal (DUCK), a number."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


class SymbolicContext:
    """What the sizes of a tensor become."""


class StatelessSymbolicContext(SymbolicContext):
    """What each size of a tensor becomes.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.symbolic_shapes import *
    >>> mode = torch._subclasses.FakeTensorMode(shape_env=ShapeEnv())
    >>> sizes = StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC])
    >>> mode.from_tensor(torch.ones(4, 4), symbolic_context=sizes).shape
    torch.Size([s0, 4])
    """

    def __init__(self, dynamic_sizes: Sequence[DimDynamic], **words: Any) -> None:
        self.dynamic_sizes = list(dynamic_sizes)


class ShapeGuard(NamedTuple):
    """A condition that was found to hold, and on which the run depends."""

    expr: Any
    sloc: Any = None
    size_oblivious: bool = False


class RuntimeAssert(NamedTuple):
    """A condition on numbers of tensors that the program has stated."""

    expr: Any
    msg: str
    stack: Any = None


class ShapeEnv:
    """Symbols, the numbers that they stand for in this run, and the conditions that were decided.

    Args:
        allow_scalar_outputs: whether `x.item()` gives a symbol; else it is refused.
        allow_dynamic_output_shape_ops: the same of operators such as `nonzero`.
        duck_shape: whether equal sizes get one symbol.
        specialize_zero_one: whether sizes 0 and 1 are numbers.

    >>> import flambeau as torch
    >>> from flambeau.fx.experimental.symbolic_shapes import ShapeEnv
    >>> env = ShapeEnv()
    >>> mode = torch._subclasses.FakeTensorMode(shape_env=env)
    >>> x = mode.from_tensor(torch.ones(4, 6, 1))
    >>> x.shape, x.stride(), x.numel()
    (torch.Size([s0, s1, 1]), (s1, 1, 1), s0*s1)
    >>> torch.cat([x, x.flip(0)]).flatten().shape
    torch.Size([2*s0*s1])
    """

    def __init__(self, *, allow_scalar_outputs: bool = True,
                 allow_dynamic_output_shape_ops: bool = True, duck_shape: bool | None = None,
                 specialize_zero_one: bool = True, assume_static_by_default: bool = False,
                 should_record_events: bool | None = None, tracked_fakes: Any = None,
                 **settings: Any) -> None:  # fmt: skip
        from flambeau.fx.experimental._facts import Facts

        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops
        self.duck_shape = True if duck_shape is None else duck_shape
        self.specialize_zero_one = specialize_zero_one
        self.assume_static_by_default = assume_static_by_default
        self.guards: list[ShapeGuard] = []
        self.backed_var_to_val: dict[Any, Any] = {}
        self.deferred_runtime_asserts: dict[Any, list[RuntimeAssert]] = {}
        self.frozen = False
        self.unbacked: dict[Any, None] = {}
        self._facts: Facts = Facts()
        self._numbers: dict[Any, int] = {}  # of unbacked symbols: how tensors are laid out
        self._by_size: dict[int, Any] = {}
        self._silent = 0
        self.derived: dict[Any, Any] = {}  # results of calls: see `_subclasses/symbolic_results`

    # ---- symbols

    @property
    def replacements(self) -> dict[Any, Any]:
        """Symbols that turned out to be something else."""
        return self._facts.replacements

    @property
    def var_to_range(self) -> dict[Any, Any]:
        """The least and the largest number that each symbol may be."""
        return self._facts.ranges

    def create_symbol(self, val: int, source: Any = None, dynamic_dim: Any = DimDynamic.DUCK,
                      *args: Any, positive: bool | None = True, **words: Any) -> Any:  # fmt: skip
        """A symbol for a number, as an expression; the number itself for 0 and 1."""
        import sympy

        if dynamic_dim is DimDynamic.STATIC or (self.specialize_zero_one and val in (0, 1)):
            return sympy.Integer(val)
        duck = self.duck_shape and dynamic_dim is DimDynamic.DUCK
        if duck and val in self._by_size:
            return self._by_size[val]
        symbol = sympy.Symbol(f"s{len(self.backed_var_to_val)}", integer=True, positive=positive)
        self.backed_var_to_val[symbol] = val
        least = (2 if self.specialize_zero_one else 0) if positive else -float("inf")
        self._facts.add_symbol(symbol, least)
        if duck:
            self._by_size[val] = symbol
        return symbol

    def create_symintnode(self, sym: Any, *, hint: Any = None, source: Any = None) -> Any:
        """An expression as `SymInt`; a number as int."""
        return symbolic_numbers.made(self, sym, int)

    def create_unbacked_symint(self, source: Any = None) -> Any:
        """A new int of which nothing is known: `u0`."""
        import sympy

        symbol = sympy.Symbol(f"u{len(self.unbacked)}", integer=True)
        return self._unbacked(symbol, int)

    def create_unbacked_symfloat(self) -> Any:
        """A new float of which nothing is known: `zuf0`."""
        import sympy

        return self._unbacked(sympy.Symbol(f"zuf{len(self.unbacked)}", real=True), float)

    def create_unbacked_symbool(self) -> Any:
        """A new truth value of which nothing is known."""
        import sympy

        symbol = sympy.Symbol(f"u{len(self.unbacked)}", integer=True)
        number = self._unbacked(symbol, int)
        self._facts.ranges[symbol] = 0, 1
        return number == 1

    def _unbacked(self, symbol: Any, kind: type) -> Any:
        self.unbacked[symbol] = None
        self._facts.add_symbol(symbol, -float("inf"))
        return symbolic_numbers.made(self, symbol, kind)

    def new_size(self, most: Any = None) -> Any:
        """A new int that only elements tell, as the size of a result: not below 0."""
        size = self.create_unbacked_symint()
        self._facts.ranges[size.node.expr] = 0, float("inf")
        if most is not None:
            self._facts.add(size.node.expr <= symbolic_numbers.expression_of(most))
        return size

    def is_unbacked_symint(self, symbol: Any) -> bool:
        """Whether a symbol stands for what only elements of tensors tell."""
        return symbol in self.unbacked

    # ---- tensors

    def create_symbolic_sizes_strides_storage_offset(
        self, ex: Any, source: Any = None, *, symbolic_context: Any = None
    ) -> tuple[Any, Any, Any]:
        """The sizes, strides and offset of a tensor, with symbols."""
        sizes, steps = tuple(ex.shape), tuple(ex.stride())
        kinds = [DimDynamic.DUCK] * len(sizes)
        if symbolic_context is not None:
            kinds = symbolic_context.dynamic_sizes
        pairs = zip(sizes, kinds, strict=True)
        symbols = [self.create_symbol(n, source, kind) for n, kind in pairs]
        found = self._steps(sizes, steps, symbols)
        offset = self.create_symbol(ex.storage_offset(), source)
        made = symbolic_numbers.made
        sizes, steps = [tuple([made(self, e, int) for e in part]) for part in (symbols, found)]
        return sizes, steps, made(self, offset, int)

    def _steps(self, sizes: Any, steps: Any, symbols: Any) -> list[Any]:
        """Strides as expressions: a number, what follows from another dim, or a symbol."""
        import sympy

        found: dict[int, Any] = {}
        order = sorted(range(len(steps)), key=lambda dim: (steps[dim], -dim))
        for dim in order:
            if steps[dim] in (0, 1):
                found[dim] = sympy.Integer(steps[dim])
                continue
            ways = [symbols[other] * found[other] for other in sorted(found, reverse=True)
                    if sizes[other] * steps[other] == steps[dim]]  # fmt: skip
            found[dim] = sympy.expand(ways[0]) if ways else self.create_symbol(steps[dim])
        return [found[dim] for dim in range(len(steps))]

    # ---- what is known

    def replace(self, expr: Any) -> Any:
        """An expression without symbols that turned out to be something else."""
        return self._facts.replace(expr)

    simplify = replace

    def _number_of(self, symbol: Any) -> Any:
        """The number of a symbol in this run, or the one by which tensors are laid out."""
        if symbol in self.backed_var_to_val:
            return self.backed_var_to_val[symbol]
        if symbol not in self._numbers:
            low, high = self._facts.ranges[symbol]
            self._numbers[symbol] = int(min(max(STAND_IN, low), high))
        return self._numbers[symbol]

    def _concrete(self, expr: Any) -> Any:
        """The number of an expression by which tensors are laid out in this run."""
        from flambeau._tensor.symbolic_functions import evaluate

        expr = self.replace(expr)
        return evaluate(expr, {symbol: self._number_of(symbol) for symbol in expr.free_symbols})

    def _hint(self, expr: Any) -> Any:
        if any(symbol in self.unbacked for symbol in expr.free_symbols):
            return None
        return self._concrete(expr)

    def size_hint(self, expr: Any, *, allow_none: bool = False) -> Any:
        """The number that an expression is in this run.

        Raises:
            GuardOnDataDependentSymNode: only elements of tensors tell.
        """
        found = self._hint(self.replace(expr))
        if found is None and not allow_none:
            raise GuardOnDataDependentSymNode(expr)
        return found

    # ---- decisions

    def evaluate_expr(self, orig_expr: Any, hint: Any = None, *args: Any, **words: Any) -> Any:
        """The truth of a condition, or the number of an expression, which becomes a guard."""
        if orig_expr.is_Boolean:
            return self._decide(orig_expr)
        return self._specialized(orig_expr)

    def _decide(self, condition: Any) -> bool:
        condition = self.replace(condition)
        known = self._facts.known(condition)
        if known is not None:
            return known
        found = self._hint(condition)
        if found is None:
            raise GuardOnDataDependentSymNode(condition)
        self._guard(condition, bool(found))
        return bool(found)

    def _guard(self, condition: Any, holds: bool) -> None:
        from flambeau.fx.experimental._facts import negated

        guard = condition if holds else negated(condition)
        self._facts.add(guard)
        if not self._silent and not self.frozen:
            self.guards.append(ShapeGuard(guard))

    def _specialized(self, expr: Any) -> Any:
        """The number of an expression in this run, from now on its only one."""
        import sympy

        expr = self.replace(expr)
        if expr.is_number:
            return float(expr) if expr.is_Float else int(expr)
        number = self.size_hint(expr)
        if not self._decide(sympy.Eq(expr, sympy.sympify(number))):
            raise AssertionError(f"{expr} is not {number}")
        return number

    def guard_or_defer_runtime_assert(self, orig_expr: Any, msg: Any = "", fx_node: Any = None
                                      ) -> bool:  # fmt: skip
        """A condition that shall hold: a guard, or, where only elements tell, an assertion."""
        condition = self.replace(orig_expr)
        known = self._facts.known(condition)
        if known is not None:
            return known
        missing = [symbol for symbol in condition.free_symbols if symbol in self.unbacked]
        if not missing:
            return self._decide(condition)
        self._facts.add(condition)
        last = max(missing, key=self._facts.order.__getitem__)
        self.deferred_runtime_asserts.setdefault(last, []).append(
            RuntimeAssert(condition, str(msg))
        )
        return True

    def freeze(self) -> None:
        """Further decisions make no guards."""
        self.frozen = True

    @contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """`with env.suppress_guards():` decisions in this region make no guards."""
        self._silent += 1
        try:
            yield
        finally:
            self._silent -= 1

    # ---- guards

    def format_guards(self, verbose: bool = False) -> str:
        """The guards, a line each."""
        return "\n".join(f" - {guard.expr}" for guard in self.guards)

    def get_nontrivial_guards(self) -> list[Any]:
        """The guards that do not follow from others."""
        found = [self.replace(guard.expr) for guard in self.guards]
        return [expr for expr in found if expr.free_symbols]

    def bind_symbols(self, placeholders: Sequence[Any], args: Sequence[Any]) -> dict[Any, int]:
        """The numbers of symbols for other inputs in the place of fake ones."""
        from flambeau.fx.experimental import _guard_text

        return _guard_text.bound(self, placeholders, args)

    def evaluate_guards_for_args(self, placeholders: Sequence[Any], args: Sequence[Any], *,
                                 ignore_static: bool = True) -> bool:  # fmt: skip
        """Whether all that was decided holds for other inputs in the place of fake ones.

        >>> import flambeau as torch
        >>> from flambeau.fx.experimental.symbolic_shapes import ShapeEnv
        >>> env = ShapeEnv()
        >>> x = torch._subclasses.FakeTensorMode(shape_env=env).from_tensor(torch.ones(4, 3))
        >>> bool(x.shape[0] > x.shape[1])
        True
        >>> [env.evaluate_guards_for_args([x], [torch.ones(n, 3)]) for n in (1, 3, 9)]
        [False, False, True]
        """
        code = self.produce_guards_expression(placeholders, ignore_static=ignore_static)
        return not code or self.evaluate_guards_expression(code, args)

    def produce_guards(self, placeholders: Sequence[Any], sources: Sequence[Any], *,
                       ignore_static: bool = True, **words: Any) -> list[str]:  # fmt: skip
        """All that was decided as conditions in Python, on inputs with the names of sources."""
        from flambeau.fx.experimental import _guard_text

        names = [getattr(source, "name", source) for source in sources]
        names = [name() if callable(name) else str(name) for name in names]
        return _guard_text.conditions(self, placeholders, names, ignore_static)

    def produce_guards_expression(self, placeholders: Sequence[Any], *, guards: Any = None,
                                  ignore_static: bool = True) -> str | None:  # fmt: skip
        """All that was decided, as one condition in Python: `L['t0']`, … are the inputs."""
        names = [f"L['t{number}']" for number in range(len(placeholders))]
        return " and ".join(self.produce_guards(placeholders, names, ignore_static=ignore_static))

    def evaluate_guards_expression(self, code: str, args: Sequence[Any]) -> bool:
        """Whether a condition of `produce_guards_expression` holds for inputs."""
        from flambeau.fx.experimental import _guard_text

        return _guard_text.holds(code, args)


# ---- what libraries ask


def _checked(a: Any) -> Any:
    if not isinstance(a, bool):
        raise AssertionError(f"Expected bool, got {type(a)}")
    return a


def _or(a: Any, otherwise: bool) -> bool:
    if not is_symbolic(_checked(a)):
        return bool(a)
    try:
        return bool(a)
    except GuardOnDataDependentSymNode:
        return otherwise


def guard_or_false(a: Any) -> bool:
    """A condition, or False where symbols leave it open.

    Raises:
        AssertionError: it is no bool.
    """
    return _or(a, False)


def guard_or_true(a: Any) -> bool:
    """A condition, or True where symbols leave it open.

    Raises:
        AssertionError: it is no bool.
    """
    return _or(a, True)


def statically_known_true(x: Any) -> bool:
    """Whether a condition holds whatever symbols stand for; it becomes no guard.

    Raises:
        AssertionError: it is no bool.
    """
    if not is_symbolic(_checked(x)):
        return bool(x)
    return x.node.shape_env._facts.known(x.node.expr) is True


def is_concrete_int(a: Any) -> bool:
    """Whether a size is a number, or a symbol that can be only one.

    >>> from flambeau.fx.experimental.symbolic_shapes import is_concrete_int
    >>> is_concrete_int(3)
    True
    """
    return not is_symbolic(a) or a.node.expr.is_number


def guard_int(a: Any) -> int:
    """The number of a size in this run, which becomes a guard.

    >>> from flambeau.fx.experimental.symbolic_shapes import guard_int
    >>> guard_int(3)
    3
    """
    return int(a)


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The number of a size in this run, or `fallback` where only elements tell; no guard.

    >>> from flambeau.fx.experimental.symbolic_shapes import hint_int
    >>> hint_int(3)
    3
    """
    if not is_symbolic(a):
        return int(a)
    found = a.node.hint
    if found is None and fallback is not None:
        return fallback
    return int(a.node.require_hint())


def has_free_symbols(val: Any) -> bool:
    """Whether there are symbols in a size or a tensor.

    >>> from flambeau.fx.experimental.symbolic_shapes import has_free_symbols
    >>> has_free_symbols(3)
    False
    """
    return bool(free_symbols(val))


def free_symbols(val: Any) -> set[Any]:
    """The symbols in sizes, tensors, and containers of them."""
    found: set[Any] = set()
    for leaf in tree_leaves(val):
        if isinstance(leaf, Tensor):
            layout: Layout | None = symbolic_arrays.layout_of(leaf._data)
            found |= set() if layout is None else free_symbols([*layout])
        elif is_symbolic(leaf):
            found |= leaf.node.expr.free_symbols
        elif hasattr(leaf, "free_symbols"):
            found |= leaf.free_symbols
    return found


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols in a size or a tensor that stand for no known number."""
    return {symbol for symbol in free_symbols(x) if str(symbol).startswith(("u", "zuf"))}


__getattr__ = lazily(__name__)
