"""How an operator is called: a function, and for each argument of the schema how it is handed over.

From a form comes the text of a call in generated Python, in which arguments that are constants and
equal to defaults are left out, and dtypes are looked up beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flambeau._core.device import device
from flambeau._core.layout import layout, memory_format
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau.jit.ir.function import REQUIRED
from flambeau.jit.ir.values import LAYOUTS, MEMORY_FORMATS, dtype_of

Bind = Callable[[Any, str], str]
"""Gives an object a name in the scope of the generated text: (object, what it is called)."""


@dataclass(frozen=True, slots=True)
class Passing:
    """How one argument is handed over.

    position: among the function's positional parameters; None if it needs its name.
    convert: turns the runtime value into what the function takes: a dtype for its number.
    dropped: the function has no such parameter, and needs none: `pin_memory`.
    """

    name: str
    position: int | None = None
    convert: Callable[[Any], Any] | None = None
    default: Any = REQUIRED
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """What carries out an operator. piece: Python text to put in place of a call."""

    function: Callable[..., Any] | None
    passing: tuple[Passing, ...] = ()
    piece: str = ""
    as_list: bool = False  # a tuple of results becomes a list
    starred: bool = False  # all arguments go in one after the other


@dataclass(frozen=True, slots=True)
class Given:
    """An argument in generated text: a name or literal; for a constant, its value, too."""

    text: str
    is_constant: bool = False
    value: Any = None


def call_text(form: Form, given: Sequence[Given], bind: Bind) -> str:
    """The expression that calls an operator."""
    if form.piece:
        return form.piece.format(*(argument.text for argument in given))
    name = bind(form.function, getattr(form.function, "__name__", "f"))
    if form.starred:
        return f"{name}({', '.join(argument.text for argument in given)})"
    positional: list[str] = []
    keywords: list[str] = []
    checks: list[str] = []
    for passing, argument in zip(form.passing, given, strict=True):
        if passing.dropped:
            if not (argument.is_constant and _means_nothing(argument.value, passing.default)):
                default = passing.default if isinstance(passing.default, (int, bool)) else None
                checks.append(
                    f"{bind(refuse, 'refuse')}({passing.name!r}, {argument.text}, {default!r})"
                )
        elif not _is_default(passing, argument):
            text = _converted(passing, argument, bind)
            if not keywords and passing.position == len(positional):
                positional.append(text)
            else:
                keywords.append(f"{passing.name}={text}")
    call = f"{name}({', '.join(positional + keywords)})"
    if form.as_list:
        call = f"list({call})"
    return f"({', '.join(checks)}, {call})[-1]" if checks else call


def callable_of(form: Form) -> Callable[..., Any]:
    """A function of the runtime values, in the order of the schema."""
    if form.function is not None and form.starred:
        return form.function
    from flambeau.jit.operators.registry import SCOPE

    scope = dict(SCOPE)

    def bind(value: Any, hint: str) -> str:
        name = f"{hint}_{len(scope)}" if hint.isidentifier() else f"f_{len(scope)}"
        scope[name] = value
        return name

    count = len(form.passing)
    names = [f"a{i}" for i in range(count)]
    text = call_text(form, [Given(name) for name in names], bind)
    made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {text}", scope)  # noqa: S307
    return made


def _is_default(passing: Passing, argument: Given) -> bool:
    if not argument.is_constant or passing.default is REQUIRED:
        return False
    value, default = argument.value, passing.default
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return list(value) == list(default)
    return type(value) is type(default) and value == default and isinstance(
        value, (int, float, bool, str, type(None))
    )  # fmt: skip


def _converted(passing: Passing, argument: Given, bind: Bind) -> str:
    if passing.convert is None:
        return argument.text
    if argument.is_constant:
        try:
            value = passing.convert(argument.value)
        except (ValueError, IndexError):
            pass  # the error belongs to the call
        else:
            return "None" if value is None else bind(value, passing.name)
    return f"{bind(passing.convert, passing.convert.__name__)}({argument.text})"


# ---- conversions of arguments


def element_type(number: int | None) -> Any:
    """The dtype of a number."""
    return None if number is None else dtype_of(number)


def layout_of(number: int | None) -> Any:
    """The layout of a number."""
    return None if number is None else layout.table[LAYOUTS[number]]


def memory_format_of(number: int | None) -> Any:
    """The memory format of a number."""
    return None if number is None else memory_format.table[MEMORY_FORMATS[number]]


def is_pinned(value: bool | None) -> bool:
    """Whether memory is to be pinned: in schemas None says no, too."""
    return bool(value)


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "ScalarType": element_type, "Layout": layout_of, "MemoryFormat": memory_format_of,
    "dtype": element_type, "layout": layout_of, "memory_format": memory_format_of,
}  # fmt: skip
"""By the type that a row gives the parameter, or by the name of a function's parameter."""


def _means_nothing(value: Any, default: Any) -> bool:
    if type(value) is type(default) and value == default:
        return True
    if isinstance(value, device):
        return value.type == "cpu"
    return value is None or value is False or (type(value) is int and value in (0, 1))


def refuse(name: str, value: Any, default: Any) -> None:
    """Refuse an argument that flambeau's operator does not have."""
    if not _means_nothing(value, default) and name not in ANY_VALUE:
        raise NotImplementedInFlambeau(f"flambeau: {name}={value!r} is not implemented here")


ANY_VALUE = frozenset(("cudnn_enabled", "cudnn_enable", "benchmark", "deterministic", "allow_tf32",
                       "non_blocking", "implicit", "path", "use_input_stats"))  # fmt: skip
"""Parameters that change nothing in results."""
