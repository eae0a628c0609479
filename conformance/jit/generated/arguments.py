"""What operators get: values by the type of a parameter, and by its name where it is picky."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flambeau
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import REQUIRED, Parameter

if TYPE_CHECKING:
    from .expressions import Expr, Expressions
    from .operators import Operator

NEVER = frozenset(
    """generator device layout pin_memory memory_format non_blocking out scales_h scales_w scales_d
    scales half_to_float driver cudnn_enable cudnn_enabled benchmark deterministic""".split()
)
"""Parameters that stay as they are by default."""
INDICES = frozenset("index indices target tensor_indices_or_sections".split())
MASKS = frozenset("mask condition".split())
DTYPES = ("float32", "float64", "int64", "int32", "bool", "bfloat16", "float16", "complex64")
DTYPE_WEIGHTS = (6, 4, 3, 2, 2, 2, 1, 1)
FLOATS = ("0.5", "2.0", "-1.5", "0.0", "1.0", "0.1", "-0.0", "3.0", "1e-3", "100.0",
          "float('nan')", "float('inf')", "-float('inf')")  # fmt: skip
FLOAT_WEIGHTS = (8, 8, 6, 4, 6, 6, 2, 4, 2, 1, 0.4, 0.4, 0.4)
INTS = ("0", "1", "2", "3", "-1", "4", "-2", "5", "7", "16", "1000", "16777217", "4294967297")
INT_WEIGHTS = (6, 8, 8, 6, 5, 4, 2, 2, 1, 1, 0.3, 0.2, 0.2)
SHARES = ("0.5", "0.1", "0.0", "1.0", "0.3")
TEXTS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin"), "rounding_mode": ("floor", "trunc"),
    "mode": ("constant", "reflect", "replicate", "linear", "reduced", "complete"),
    "indexing": ("ij", "xy"), "approximate": ("none", "tanh"), "UPLO": ("L", "U"),
    "interpolation": ("linear", "lower", "nearest"), "side": ("left", "right"),
    "equation": ("ij,jk->ik", "ij,ij->i", "ij,kj->ik", "ij->ji", "ij->", "i,j->ij", "ij,j->i"),
    "norm": ("ortho", "forward"), "padding": ("same", "valid"), "ord": ("fro", "nuc"),
    "p": ("fro", "nuc"),
}  # fmt: skip
WORDS = ("a", "b", "key", "")


def is_given(e: Expressions, operator: Operator, parameter: Parameter) -> bool:
    """Whether a parameter gets an argument: if it needs one, and sometimes if not."""
    if parameter.default is REQUIRED:
        return True
    if parameter.name in NEVER or str(parameter.type) not in _KINDS:
        return False
    share = 0.5 if parameter.name in ("dim", "keepdim", "alpha", "dtype", "training") else 0.2
    return e.chance(share)


def argument(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
             depth: int) -> Expr:  # fmt: skip
    """An argument for a parameter; `given` are those before it."""
    named = _by_name(operator, parameter)
    if named is not None and e.chance(0.97):
        return named(e, operator, parameter, given)
    return _KINDS[str(parameter.type)](e, operator, parameter, given, depth)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor, of either library."""
    return hasattr(type(value), "requires_grad_")


def literal(text: str, type: T.Type) -> Expr:
    """A constant as an expression."""
    from .expressions import Expr

    value = eval(text, {"torch": flambeau, "float": float})  # noqa: S307
    return Expr(text, type, value)


# ---- literals


def a_float(e: Expressions) -> Expr:
    return literal(e.random.choices(FLOATS[: e.tame], FLOAT_WEIGHTS[: e.tame])[0], T.FLOAT)


def an_int(e: Expressions) -> Expr:
    return literal(e.random.choices(INTS[: e.tame], INT_WEIGHTS[: e.tame])[0], T.INT)


def a_bool(e: Expressions) -> Expr:
    return literal(e.random.choice(("True", "False")), T.BOOL)


def a_text(e: Expressions) -> Expr:
    return literal(repr(e.random.choice(WORDS)), T.STRING)


def a_complex(e: Expressions) -> Expr:
    return literal(e.random.choice(("1j", "0.5j", "2j")), T.COMPLEX)


def a_tensor(e: Expressions) -> Expr:
    """A new tensor, often of the size of another."""
    form = e.random.choice(
        ("torch.ones({0})", "torch.zeros({0})", "torch.tensor({1})", "torch.full({0}, {1})",
         "torch.arange({2})", "torch.zeros_like({3})", "torch.ones_like({3})", "torch.randn({0})",
         "torch.arange({2}, dtype=torch.float32)", "torch.eye({2})", "torch.rand({0})",
         "{3}.new_zeros({0})", "torch.empty_like({3}).fill_({1})")
    )  # fmt: skip
    count = literal(str(e.random.choice((1, 2, 3, 4))), T.INT)
    number = a_float(e) if e.chance(0.7) else an_int(e)
    other = e.variable(T.TENSOR)
    return e.evaluated(form, T.TENSOR, [sizes(e, [other]), number, count, other])


LITERALS: dict[T.Type, Callable[[Expressions], Expr]] = {
    T.FLOAT: a_float, T.INT: an_int, T.BOOL: a_bool, T.STRING: a_text, T.TENSOR: a_tensor,
    T.COMPLEX: a_complex,
}  # fmt: skip

# ---- by type


def _tensor(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
            depth: int) -> Expr:  # fmt: skip
    if depth > 1 and e.chance(0.3):
        return e.expression(T.TENSOR, depth - 1)
    fits = _wanted(parameter, operator, given)
    if fits is not None and e.chance(0.92):
        return e.variable(T.TENSOR, fits)
    return e.simple(T.TENSOR)


def _wanted(parameter: Parameter, operator: Operator,
            given: list[Expr]) -> Callable[[Any], bool] | None:  # fmt: skip
    """Which tensors a parameter likes."""
    if parameter.name in INDICES:
        return lambda value: str(value.dtype) == "torch.int64"
    if parameter.name in MASKS:
        return lambda value: str(value.dtype) == "torch.bool"
    if parameter.name == "one":
        return lambda value: value.numel() == 1
    others = [g.value for g in given if is_tensor(g.value)]
    if not others:
        return None
    if operator.name in _PRODUCTS or "@" in operator.texts[0]:
        return lambda value: _multiplies(others[-1], value, operator.name == "linear")
    return lambda value: broadcasts(value, others[-1])


_PRODUCTS = frozenset("mm matmul bmm mv dot linear addmm addmv baddbmm inner".split())


def _multiplies(one: Any, other: Any, turned: bool) -> bool:
    """Whether there is a matrix product."""
    if one.dtype != other.dtype or not one.dim() or not other.dim():
        return False
    size = other.shape[-1] if turned or other.dim() == 1 else other.shape[-2]
    return bool(one.shape[-1] == size)


def broadcasts(value: Any, other: Any) -> bool:
    pairs = zip(reversed(value.shape), reversed(other.shape), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _number(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
            depth: int) -> Expr:  # fmt: skip
    odd = 0.0 if operator.name == "python" else 0.3
    kind = e.random.choices((T.FLOAT, T.INT, T.BOOL), (6, 4, odd))[0]
    found = e.expression(kind, 0 if e.chance(0.8) else 1)
    if isinstance(found.value, int) and abs(found.value) > 100 and operator.name in _EXPLOSIVE:
        return literal("2", T.INT)
    return found


_EXPLOSIVE = frozenset(
    """arange pow linspace logspace range python full repeat_interleave bartlett_window hann_window
    float_power __lshift__ bitwise_left_shift""".split()
)


def _of_type(type: T.Type) -> Callable[..., Expr]:
    def drawn(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
              depth: int) -> Expr:  # fmt: skip
        return e.expression(type, 0 if e.chance(0.7) else 1)

    return drawn


def _small_int(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
               depth: int) -> Expr:  # fmt: skip
    if e.chance(0.3):
        found = e.expression(T.INT, 1)
        if abs(found.value) <= 64:
            return found
    return literal(str(e.random.choice((0, 1, 2, 3, -1, 1, 2))), T.INT)


def _bool_first(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
                depth: int) -> Expr:  # fmt: skip
    return a_bool(e) if e.chance(0.85) else e.expression(T.BOOL, 1)


def _text(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
          depth: int) -> Expr:  # fmt: skip
    words = TEXTS.get(parameter.name)
    return literal(repr(e.random.choice(words)), T.STRING) if words else a_text(e)


def _ints(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
          depth: int) -> Expr:  # fmt: skip
    count = parameter.length or e.random.randint(1, 3)
    numbers = [str(e.random.choice((0, 1, 1, 2, 2, 3))) for _ in range(count)]
    return literal(f"[{', '.join(numbers)}]", T.ListType(T.INT))


def _floats(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
            depth: int) -> Expr:  # fmt: skip
    return literal(e.random.choice(("[0.5, 2.0]", "[1.0]", "[-1.0, 1.0]")), T.ListType(T.FLOAT))


def _bools(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
           depth: int) -> Expr:  # fmt: skip
    count = parameter.length or 2
    words = [e.random.choice(("True", "False")) for _ in range(count)]
    return literal(f"[{', '.join(words)}]", T.ListType(T.BOOL))


def _tensors(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
             depth: int) -> Expr:  # fmt: skip
    if e.chance(0.4):
        return e.variable(T.ListType(T.TENSOR))
    items = [e.simple(T.TENSOR)]
    for _ in range(e.random.randint(0, 2)):
        items.append(_tensor(e, operator, parameter, items, 1))
    places = ", ".join("{}" for _ in items)
    return e.evaluated(f"[{places}]", T.ListType(T.TENSOR), items)


def _optional(inner: Callable[..., Expr]) -> Callable[..., Expr]:
    def drawn(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr],
              depth: int) -> Expr:  # fmt: skip
        if e.chance(0.3):
            return literal("None", T.NONE)
        return inner(e, operator, parameter, given, depth)

    return drawn


_KINDS: dict[str, Callable[..., Expr]] = {
    "Tensor": _tensor, "Scalar": _number, "int": _small_int, "float": _of_type(T.FLOAT),
    "bool": _bool_first, "str": _text, "int[]": _ints, "float[]": _floats, "bool[]": _bools,
    "Tensor[]": _tensors, "Tensor?[]": _tensors, "complex": _of_type(T.COMPLEX),
}  # fmt: skip
_KINDS |= {f"{kind}?": _optional(drawn) for kind, drawn in _KINDS.items()}

# ---- by name


def _first(given: list[Expr]) -> Any:
    """The first tensor, which dims and sizes are about."""
    for known in given:
        if is_tensor(known.value):
            return known.value
        first = known.value[0] if isinstance(known.value, list) and known.value else None
        if is_tensor(first):
            return first
    return None


def a_dim(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
    first = _first(given)
    rank = 1 if first is None else max(first.dim(), 1)
    extra = operator.name in ("unsqueeze", "stack", "unsqueeze_")
    return literal(str(e.random.randrange(-rank - extra, rank + extra)), T.INT)


def some_dims(e: Expressions, operator: Operator, parameter: Parameter,
              given: list[Expr]) -> Expr:  # fmt: skip
    first = _first(given)
    rank = 1 if first is None else max(first.dim(), 1)
    count = parameter.length or e.random.randint(1, rank)
    if operator.name in ("permute", "permute_copy"):
        count = rank
    dims = e.random.sample(range(rank), min(count, rank))
    dims = [dim - rank if e.chance(0.3) else dim for dim in dims]
    if parameter.length == 1 and e.chance(0.5):
        return literal(str(dims[0]), T.INT)
    return literal(f"[{', '.join(map(str, dims))}]", T.ListType(T.INT))


def a_place(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
    """An index into a dim: rather the counter of a loop, or a constant within bounds."""
    first = _first(given)
    if first is None:  # a list
        first = next((g.value for g in given if isinstance(g.value, list)), None)
        size = 1 if first is None else len(first)
    else:
        dims = [g.value for g in given if isinstance(g.value, int)]
        dim = dims[0] if dims and operator.name != "python" else 0
        size = first.shape[dim] if -first.dim() <= dim < first.dim() else 1
    counters = [name for name in e.names_of(T.INT) if name.startswith("i")]
    if counters and e.chance(0.4):
        return e.evaluated(counters[-1], T.INT)
    return literal(str(e.random.randrange(-size, max(size, 1))), T.INT)


def sizes(e: Expressions, given: list[Expr]) -> Expr:
    """A shape: that of a tensor, one with as many elements, or any small one."""
    first = _first(given)
    choice = e.random.random()
    ints = T.ListType(T.INT)
    if choice < 0.35:
        found = e.variable(T.TENSOR)
        return e.evaluated("{}." + e.random.choice(("shape", "size()")), ints, [found])
    if first is not None and choice < 0.8:
        return literal(str(_same_count(e, list(first.shape))), ints)
    return literal(str([e.random.choice((1, 2, 3, 4, 0)) for _ in range(e.random.randint(0, 3))]),
                   ints)  # fmt: skip


def _same_count(e: Expressions, shape: list[int]) -> list[int]:
    """A shape of as many elements."""
    form = e.random.randrange(5)
    if form == 0 or not shape:
        return [-1]
    if form == 1:
        return [*shape[:-1], -1]
    if form == 2:
        return [1, *shape]
    if form == 3:
        return [math.prod(shape[:-1]), shape[-1]]
    return shape[::-1]


def a_shape(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
    return sizes(e, given)


def an_expansion(e: Expressions, operator: Operator, parameter: Parameter,
                 given: list[Expr]) -> Expr:  # fmt: skip
    first = _first(given)
    if first is None or e.chance(0.3):
        return sizes(e, given)
    shape = [e.random.choice((2, 3)) if size == 1 else size for size in first.shape]
    if e.chance(0.4):
        shape = [e.random.choice((1, 2)), *shape]
    return literal(str(shape), T.ListType(T.INT))


def a_normal_shape(e: Expressions, operator: Operator, parameter: Parameter,
                   given: list[Expr]) -> Expr:  # fmt: skip
    first = _first(given)
    if first is None or not first.dim():
        return literal("[1]", T.ListType(T.INT))
    return literal(f"[{first.shape[-1]}]", T.ListType(T.INT))


def a_dtype(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
    if e.chance(0.25):
        return e.evaluated("{}.dtype", T.ANY, [e.variable(T.TENSOR)])
    name = e.random.choices(DTYPES, DTYPE_WEIGHTS)[0]
    return literal(f"torch.{name}", T.INT)


def a_share(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
    return literal(e.random.choice(SHARES), T.FLOAT)


def _choice(*texts: str, type: T.Type = T.INT) -> Callable[..., Expr]:
    def drawn(e: Expressions, operator: Operator, parameter: Parameter, given: list[Expr]) -> Expr:
        return literal(e.random.choice(texts), type)

    return drawn


NORMS = _choice("1", "2", "2.0", "0.5", "3", "float('inf')", "0", type=T.FLOAT)
_NAMED: dict[tuple[str, str], Callable[..., Expr]] = {
    **{(name, kind): a_dim for name in ("dim", "dim0", "dim1", "dim2", "start_dim", "end_dim",
       "axis", "axis0", "axis1", "dimension") for kind in ("int", "int?")},
    **{(name, kind): some_dims for name in ("dim", "dims", "source", "destination")
       for kind in ("int[]", "int[]?")},
    **{(name, kind): a_place for name in ("index", "start", "end") for kind in ("int", "int?")},
    **{("size", kind): a_shape for kind in ("int[]", "int[]?")},
    ("shape", "int[]"): a_shape, ("size", "int"): _choice("1", "2"),
    ("normalized_shape", "int[]"): a_normal_shape,
    ("dtype", "int?"): a_dtype, ("dtype", "int"): a_dtype,
    ("p", "float"): a_share, ("p", "Scalar"): NORMS, ("p", "Scalar?"): NORMS,
    ("ord", "Scalar"): NORMS, ("ord", "Scalar?"): NORMS,
    ("eps", "float"): _choice("1e-5", "1e-3", "0.1", type=T.FLOAT),
    ("reduction", "int"): _choice("0", "1", "2"), ("chunks", "int"): _choice("1", "2", "3"),
    ("n", "int"): _choice("0", "1", "2", "3"), ("n", "Scalar"): _choice("0", "1", "2"),
    ("split_size", "int"): _choice("1", "2"), ("sections", "int"): _choice("1", "2"),
    ("groups", "int"): _choice("1", "1", "2"), ("diagonal", "int"): _choice("0", "1", "-1"),
    ("k", "int"): _choice("0", "1", "2"), ("num_classes", "int"): _choice("-1", "5", "8"),
    ("repeats", "int"): _choice("1", "2", "3"), ("length", "int"): _choice("1", "2", "0"),
    ("step", "int"): _choice("1", "2"), ("window_length", "int"): _choice("1", "4", "5"),
    ("steps", "int"): _choice("1", "3", "5"), ("high", "int"): _choice("1", "3", "10"),
    ("edge_order", "int"): _choice("1"), ("correction", "Scalar?"): _choice("0", "1"),
}  # fmt: skip
_EXPAND = ("expand", "expand_copy", "broadcast_to")


def _by_name(operator: Operator, parameter: Parameter) -> Callable[..., Expr] | None:
    if operator.name in _EXPAND and parameter.name == "size":
        return an_expansion
    return _NAMED.get((parameter.name, str(parameter.type)))
