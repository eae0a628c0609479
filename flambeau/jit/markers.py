"""Decorators and functions that tell the compiler something and do nothing when Python runs."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import warnings
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final, TypeVar

from flambeau._core.programs import EAGER
from flambeau.jit import state

F = TypeVar("F", bound=Callable[..., Any])

EXPORT = "export (compile this function even if nothing calls it)"
IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
UNUSED = "unused (ignored and replaced with raising of an exception)"
DROP = "_drop (function is fully ignored, declaration can be unscriptable)"
COPY = "if this method is not scripted, copy the python method onto the scripted model"
DEFAULT = "default (compile if called from an exported function / forward)"

Attribute = namedtuple("Attribute", ["value", "type"])  # noqa: PYI024
Attribute.__doc__ = """The value of an attribute, and its type in TorchScript.

To be assigned in `__init__` of a `ScriptModule`, where a type cannot be told from the value.
"""
__all__ = ["Attribute", "Final", "annotate", "export", "ignore", "is_scripting", "is_tracing",
           "script_if_tracing", "strict_fusion", "unused"]  # fmt: skip


def _mark(function: Any, modifier: str) -> Any:
    function._torchscript_modifier = modifier
    return function


def modifier_of(function: Any) -> str | None:
    """One of the marks above; None for what cannot be called."""
    if not callable(function):
        return None
    return getattr(getattr(function, "__func__", function), "_torchscript_modifier", DEFAULT)


def is_ignored(function: Any) -> bool:
    """Whether the compiler leaves the function alone: marked `ignore`, `unused` or `_drop`."""
    return modifier_of(function) in (IGNORE, UNUSED, DROP)


def should_drop(function: Any) -> bool:
    """Whether a call of the function is replaced by an exception."""
    return modifier_of(function) in (UNUSED, DROP)


def export(fn: F) -> F:
    """Mark a method of a module to be compiled although `forward` does not call it."""
    return _mark(fn, EXPORT)  # type: ignore[no-any-return]


def unused(fn: Any) -> Any:
    """Mark a function, method or property: a call from a script raises an exception."""
    if not isinstance(fn, property):
        return _mark(fn, UNUSED)
    for part in (fn.fget, fn.fset):
        if part is not None:
            _mark(part, UNUSED)
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function or method: a script calls it in Python; what does so cannot be saved."""
    if callable(drop):
        return _mark(drop, IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(
            f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}"
        )
    on_export = kwargs.pop("drop_on_export", None)
    if on_export or drop:
        spelled = "drop_on_export=True" if on_export else "True"
        warnings.warn(
            f"ignore({spelled}) has been deprecated. TorchScript will now drop the function "
            "call on compilation. Use torch.jit.unused now. {}",
            FutureWarning,
            stacklevel=2,
        )
    return functools.partial(_mark, modifier=UNUSED if on_export or drop else IGNORE)


def _script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The name of `script_if_tracing` by which torchvision knows it."""
    return script_if_tracing(fn)


def _drop(fn: F) -> F:
    """Mark a function that is ignored altogether, its declaration too."""
    return _mark(fn, DROP)  # type: ignore[no-any-return]


def _copy_to_script_wrapper(fn: F) -> F:
    """Mark a method that a scripted module takes over as it is."""
    return _mark(fn, COPY)  # type: ignore[no-any-return]


def is_scripting() -> bool:
    """False in Python; True in what the compiler sees."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being recorded: not while a program runs."""
    return EAGER and state.tracer is not None


is_tracing._jit_override_qualname = "__torch__.torch.jit._trace.is_tracing"  # type: ignore[attr-defined]


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value; the compiler takes it to be of the type."""
    return the_value


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function be compiled when a trace calls it; outside of traces Python runs it."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return fn(*args, **kwargs)
        from flambeau.jit.modules.scripting import script

        return script(fn)(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


class strict_fusion:  # noqa: N801
    """A region in a script whose operators all have to be fused."""

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


class _IgnoreContextManager:
    """A region that the compiler leaves out."""

    def __init__(self, **kwargs: Any) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *exception: object) -> None: ...


# ---- overloads

function_overloads: dict[str, list[Callable[..., Any]]] = {}
"""Declared with `_overload`: the place of a function, `module.name`, and its declarations."""
method_overloads: dict[str, list[Callable[..., Any]]] = {}
"""Declared with `_overload_method`: `module.Class.name`, and its declarations."""

_EXAMPLE = """
Example usage of overload function:
@torch.jit._overload
def my_function(x: type0) -> type0: # decl 1
    pass

@torch.jit._overload
def my_function(x: type1) -> type1: # decl 2
    pass

def my_function(x):                 # implementation
    if isinstance(x, type0):
        return x
    elif isinstance(x, type1):
        return x
"""


def _overload(func: F) -> F:
    """Declare one way to call a function, whose implementation follows."""
    _check_body(func)
    function_overloads.setdefault(place_of(func), []).append(func)
    return func


def _overload_method(func: F) -> F:
    """Declare one way to call a method, whose implementation follows."""
    _check_body(func)
    method_overloads.setdefault(place_of(func), []).append(func)
    return func


def place_of(function: Any) -> str:
    """Module and qualified name of a function."""
    return f"{function.__module__}.{function.__qualname__}"


def missing_implementation(kind: str, function: Any) -> str:
    """The error for overloads without an implementation. `kind`: function or method."""
    lines, first = inspect.getsourcelines(function)
    name = f"__torch__.{function.__module__}.{function.__name__}".replace(".__main__", "")
    return (
        f'Implementation for the {kind} "{name}" is missing. Please make sure a definition is '
        "provided and defined after all overload declarations.\n"
        f'File "{inspect.getsourcefile(function)}", line {first}:\n' + "".join(lines) + _EXAMPLE
    )


def _check_body(function: Callable[..., Any]) -> None:
    text = textwrap.dedent(inspect.getsource(function))
    definition: Any = ast.parse(text).body[0]
    only = definition.body[0]
    dots = isinstance(only, ast.Expr) and getattr(only.value, "value", None) is Ellipsis
    if len(definition.body) != 1 or not (dots or isinstance(only, ast.Pass)):
        first = "\n".join(text.split("\n")[:3])
        raise RuntimeError(
            "Only `pass` statement or `...` can be the body of overload declaration:\n"
            f"{first} <- Expecting `pass` or `...` here!\n{_EXAMPLE}"
        )
