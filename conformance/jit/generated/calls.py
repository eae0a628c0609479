"""How a program is called: parameters, their sizes, and what is done with the results."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

from flambeau.jit.ir import types as T

from .cases import After, Call, TensorArgument, Write

SHAPES = ("nm", "nm", "nm", "nm", "mm", "mm", "mm", "m", "m", "n", "", "knm", "mk", "n1", "1m", "1",
          "nn", "km", "nkmk", "0")  # fmt: skip
FIRST = ("nm", "nm", "nm", "knm", "mm")
DTYPES = ("float32", "float64", "int64", "bool", "int32", "bfloat16", "float16", "complex64",
          "complex128", "uint8")  # fmt: skip
DTYPE_WEIGHTS = (30, 6, 5, 3, 1.5, 1.5, 1.5, 0.6, 0.3, 0.5)
LAYOUTS = ("rows", "transposed", "sliced", "expanded", "offset")
LAYOUT_WEIGHTS = (7, 1, 1, 0.5, 0.5)
FLOATING = ("float32", "float64", "bfloat16", "float16", "complex64", "complex128")
NUMBERS: dict[T.Type, tuple[Any, ...]] = {
    T.FLOAT: (0.5, 2.0, 0.0, -0.0, -1.0, float("nan"), float("inf"), 1.5, 1e30),
    T.INT: (0, 1, 2, 3, -1, 5, 16777217, 2**40),
    T.BOOL: (True, False), T.STRING: ("a", "b", ""),
}  # fmt: skip
WRITES = ("zero_", "add_", "first", "nan")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a program: a type, and for a tensor what it is in letters for sizes."""

    name: str
    type: T.Type
    shape: str = ""
    dtype: str = "float32"
    fill: str = "normal"
    count: int = 0
    """Of a list: how many tensors there are."""


def parameters(drawn: random.Random) -> list[Parameter]:
    """What a program gets."""
    main = drawn.choices(("float32", "float64", "bfloat16", "float16"), (12, 3, 1, 1))[0]
    found = [Parameter("x", T.TENSOR, drawn.choice(FIRST), main)]
    for position in range(drawn.choice((1, 1, 2, 2, 3, 3, 4, 5))):
        found.append(_parameter(f"a{position}", drawn, main))
    return found


def _parameter(name: str, drawn: random.Random, main: str) -> Parameter:
    choice = drawn.random()
    if choice < 0.55:
        return Parameter(name, T.TENSOR, drawn.choice(SHAPES), main)
    if choice < 0.75:
        dtype = drawn.choices(DTYPES, DTYPE_WEIGHTS)[0]
        fill = drawn.choice(("normal", "small")) if dtype == "int64" else "normal"
        return Parameter(name, T.TENSOR, drawn.choice(SHAPES), dtype, fill)
    if choice < 0.8:
        return Parameter(name, T.ListType(T.TENSOR), drawn.choice(SHAPES), main, count=2)
    type = drawn.choices((T.FLOAT, T.INT, T.BOOL, T.STRING), (5, 4, 2, 0.3))[0]
    return Parameter(name, type)


def sizes(drawn: random.Random, large: bool) -> dict[str, int]:
    """What the letters of a call stand for."""
    if large:
        found = {"n": drawn.choice((17, 33, 40)), "m": drawn.choice((32, 64, 61)), "k": 2}
    else:
        found = {
            "n": drawn.choices((1, 2, 3, 4, 5, 6, 8, 0), (1, 3, 4, 4, 2, 2, 1, 0.3))[0],
            "m": drawn.choices((1, 2, 3, 4, 5, 8, 16), (0.7, 3, 4, 4, 2, 2, 1))[0],
            "k": drawn.choices((1, 2, 3), (1, 4, 2))[0],
        }
    return {**found, "1": 1, "0": 0}


def calls(drawn: random.Random, given: list[Parameter], in_place: bool) -> list[Call]:
    """One to five calls: some as before, some otherwise."""
    large = drawn.random() < 0.12
    known = sizes(drawn, large)
    if known["n"] == 0:
        known["n"] = 3
    first = Call(_arguments(drawn, given, known, in_place), _mode(drawn), after(drawn))
    found = [first]
    for _ in range(drawn.choices((0, 1, 2, 3, 4), (0.3, 1, 6, 1.5, 1))[0]):
        found.append(_next(drawn, found, given, large, in_place))
    return found


def _next(drawn: random.Random, before: list[Call], given: list[Parameter], large: bool,
          in_place: bool) -> Call:  # fmt: skip
    """A call after others: rather one of the same kind."""
    last = drawn.choice((before[-1], before[-1], before[0]))
    choice = drawn.random()
    if choice < 0.6:
        arguments = tuple(_other_numbers(value, drawn) for value in last.arguments)
    elif choice < 0.75:
        arguments = tuple(_other_form(value, drawn, in_place) for value in last.arguments)
    else:
        arguments = _arguments(drawn, given, sizes(drawn, large), in_place)
    mode = last.mode if drawn.random() < 0.8 else _mode(drawn)
    return Call(arguments, mode, after(drawn))


def _other_numbers(value: Any, drawn: random.Random) -> Any:
    """Of the same shape and type, other numbers; a Python number may stay."""
    if isinstance(value, TensorArgument):
        return replace(value, seed=drawn.randrange(1000)) if value.same_as < 0 else value
    if isinstance(value, list):
        return [_other_numbers(item, drawn) for item in value]
    if type(value) is float and value == 0.0 and drawn.random() < 0.3:
        return -value  # equal, and not the same
    return value if drawn.random() < 0.75 else _number(_type_of(value), drawn)


def _other_form(value: Any, drawn: random.Random, in_place: bool) -> Any:
    """Lying otherwise, or learning otherwise."""
    if isinstance(value, TensorArgument):
        layout = drawn.choices(LAYOUTS, LAYOUT_WEIGHTS)[0]
        return replace(value, layout=layout, learns=_learns(drawn, value.dtype, in_place))
    if isinstance(value, list):
        return [_other_form(item, drawn, in_place) for item in value]
    return value


def _type_of(value: Any) -> T.Type:
    kinds = {bool: T.BOOL, int: T.INT, float: T.FLOAT, str: T.STRING}
    return kinds[type(value)]


def _number(type: T.Type, drawn: random.Random) -> Any:
    known = NUMBERS[type]
    return drawn.choice(known[:4] if drawn.random() < 0.6 else known)


def _arguments(drawn: random.Random, given: list[Parameter], known: dict[str, int],
               in_place: bool) -> tuple[Any, ...]:  # fmt: skip
    found: list[Any] = []
    for parameter in given:
        found.append(_argument(drawn, parameter, known, in_place, found))
    return tuple(found)


def _argument(drawn: random.Random, parameter: Parameter, known: dict[str, int], in_place: bool,
              before: list[Any]) -> Any:  # fmt: skip
    if parameter.type == T.TENSOR:
        tensor = _tensor(drawn, parameter, known, in_place)
        same = [i for i, a in enumerate(before) if _same_kind(a, tensor)]
        if same and drawn.random() < 0.04:
            return replace(tensor, same_as=same[0])
        return tensor
    if parameter.count:
        return [_tensor(drawn, parameter, known, in_place) for _ in range(parameter.count)]
    return _number(parameter.type, drawn)


def _same_kind(one: Any, other: TensorArgument) -> bool:
    return isinstance(one, TensorArgument) and one.shape == other.shape and one.same_as < 0


def _tensor(drawn: random.Random, parameter: Parameter, known: dict[str, int],
            in_place: bool) -> TensorArgument:  # fmt: skip
    fill = parameter.fill
    if fill == "normal" and drawn.random() < 0.08:
        fill = drawn.choice(("special", "special", "ones", "zeros", "large"))
    shape = tuple(known[letter] for letter in parameter.shape)
    layout = drawn.choices(LAYOUTS, LAYOUT_WEIGHTS)[0]
    learns = _learns(drawn, parameter.dtype, in_place)
    return TensorArgument(shape, parameter.dtype, drawn.randrange(1000), layout, learns, fill)


def _learns(drawn: random.Random, dtype: str, in_place: bool) -> str:
    if dtype not in FLOATING or drawn.random() < 0.4:
        return "no"
    return drawn.choice(("leaf", "computed", "computed") if in_place else ("leaf", "leaf", "leaf",
                                                                          "computed"))  # fmt: skip


def _mode(drawn: random.Random) -> str:
    return drawn.choices(("grad", "no_grad", "inference"), (10, 1, 1))[0]


def after(drawn: random.Random) -> After:
    """What follows a call."""
    writes: tuple[Write, ...] = ()
    if drawn.random() < 0.3:
        count = drawn.choice((1, 1, 2))
        writes = tuple(Write(drawn.randrange(8), drawn.choice(WRITES)) for _ in range(count))
    gradients = drawn.choices(("grad", "backward", "double", "no"), (5, 2, 2, 2))[0]
    picks = -1 if drawn.random() < 0.4 else drawn.randrange(1, 64)
    return After(writes, gradients, picks, drawn.randrange(1000))
