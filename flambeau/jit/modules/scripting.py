"""`torch.jit.script`: a function, module or class becomes a program."""

from __future__ import annotations

import enum
import inspect
import sys
import warnings
from typing import Any
from weakref import WeakKeyDictionary

from flambeau.jit import markers, state
from flambeau.jit.errors import warn_of_age
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.script_module import ScriptModule
from flambeau.nn import Module

functions: WeakKeyDictionary[Any, ScriptFunction] = WeakKeyDictionary()
"""What Python functions have been compiled to."""


def script(
    obj: Any,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """Compile a function, a module or a class.

    A function becomes a `ScriptFunction`; a Module becomes a `ScriptModule` that shares its
    parameters and buffers, with `forward`, the methods marked with `export`, and everything that
    they call compiled. A class may be used in scripts from then on and is returned as it is.
    Types are those of the annotations; a parameter without one is a Tensor.

    example_inputs: a list of tuples of arguments, from whose types the parameters that have no
        annotation get theirs; for modules a dictionary from module to such a list.

    Raises:
        RuntimeError: TorchScript does not allow the program; the message shows the line.

    >>> import flambeau as torch
    >>> def total(rows, count: int):
    ...     sum = torch.zeros(2)
    ...     for k in range(count):
    ...         sum = sum + rows[k]
    ...     return sum
    >>> torch.jit.script(total)(torch.ones(5, 2), 3)
    tensor([3., 3.])
    """
    warn_of_age("torch.jit.script")
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. "
            "Use `with torch.jit.optimized_execution()` instead",
            FutureWarning,
            stacklevel=2,
        )
    if not state.enabled:
        return obj
    frame = sys._getframe(_frames_up + 1)
    return compiled(obj, _rcb or scope_of_frame(frame), example_inputs)


def compiled(obj: Any, scope: Any = None, example_inputs: Any = None) -> Any:
    """What `script` does, without its warnings. `scope`: where a class finds its names."""
    if isinstance(obj, (ScriptModule, ScriptFunction)) or hasattr(obj, "_type"):
        return obj
    hook = getattr(obj, "__prepare_scriptable__", None)
    if isinstance(obj, Module):
        from flambeau.jit.modules.recursive import scripted_module

        return scripted_module(obj, example_inputs)
    obj = obj if hook is None else hook()
    if isinstance(obj, (dict, list)):
        return obj.copy()
    if inspect.isclass(obj):
        return _compiled_class(obj, scope)
    if inspect.isfunction(obj) or inspect.ismethod(obj):
        return compiled_function(obj, example_inputs)
    from flambeau.jit.modules.classes import converted

    return converted(obj)


def _compiled_class(obj: type, scope: Any) -> type:
    if issubclass(obj, Module):
        raise RuntimeError(
            f"Type '{obj}' cannot be compiled since it inherits from nn.Module, "
            "pass an instance instead"
        )
    if issubclass(obj, enum.Enum):
        return obj
    if len(obj.mro()) > 2:
        raise RuntimeError(
            "TorchScript classes does not support inheritance yet. "
            "Please directly inherit from 'object'."
        )
    from flambeau.jit.modules.classes import class_type_of

    class_type_of(obj, scope)
    return obj


def compiled_function(obj: Any, example_inputs: Any = None) -> ScriptFunction:
    """The ScriptFunction of a Python function, compiled now if it has not been before."""
    obj = getattr(obj, "__original_fn", obj)
    if hasattr(obj, "__script_unsupported"):
        raise RuntimeError("TorchScript error: " + obj.__script_unsupported)
    if markers.place_of(obj) in markers.function_overloads:
        from flambeau.jit.modules.names import qualified_name

        raise RuntimeError(
            f"Function {qualified_name(obj)} cannot be directly compiled because it is overloaded. "
            "It must be used in a context of a function where its inputs can determine which "
            "overload to call."
        )
    key = getattr(obj, "__func__", obj)
    known = functions.get(key)
    if known is None:
        from flambeau.jit.modules.methods import function_of

        function = function_of(obj, example_inputs)
        known = functions[key] = ScriptFunction(function, obj)  # before it may call itself
        try:
            function.ensure_defined()
        except BaseException:
            del functions[key]
            raise
    return known


def scope_of_frame(frame: Any) -> dict[str, Any]:
    """The names that a frame sees."""
    return {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
