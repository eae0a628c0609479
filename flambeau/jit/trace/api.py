"""`torch.jit.trace` and `torch.jit.trace_module`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau._core.missing import NotImplementedInFlambeau, not_implemented_text
from flambeau._tensor.tensor import Tensor
from flambeau.jit import state
from flambeau.jit.errors import warn_of_age
from flambeau.jit.ir.function import PYTHON_UNIT, CompilationUnit, Function
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.names import qualified_name
from flambeau.jit.modules.script_module import ScriptModule
from flambeau.jit.passes import clean_up
from flambeau.jit.trace import checking, containers
from flambeau.jit.trace.interception import redirected
from flambeau.jit.trace.methods import make_methods, schema_of, set_types
from flambeau.jit.trace.modules import TopLevelTracedModule, is_module, traced_modules
from flambeau.jit.trace.tracer import Trace, running


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True,
          check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
          _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
          example_kwarg_inputs: dict[str, Any] | None = None,
          _store_inputs: bool = True) -> Any:  # fmt: skip
    """Run a function or Module on example inputs and keep what it did as a program.

    Gives a `ScriptFunction`, or a Module with the same parameters whose `forward` is the program.
    Sizes are followed, so that `x.view(x.size(0), -1)` goes on working for other sizes; branches
    and loops are as the examples took them, and a TracerWarning says where a Python value was made
    of a tensor.

    example_inputs: a tuple of tensors, or tuples, lists or dictionaries of tensors; one tensor may
        stand by itself.
    example_kwarg_inputs: a dictionary of arguments by name instead.
    check_trace: whether to run the trace, and to trace again, and to compare; `check_inputs`: with
        these tuples of inputs, `check_tolerance` being the difference that is allowed.
    strict: whether lists and dictionaries as results are refused.

    Raises:
        RuntimeError: something else than tensors goes in or comes out, or a tensor that requires
            grad is neither parameter nor input.
        TracingCheckError: a second trace differs.
    """
    warn_of_age("torch.jit.trace")
    _check_options(optimize, _force_outplace, _module_class, _compilation_unit)
    if not state.enabled:
        return func
    if isinstance(func, ScriptModule) and "_type" in func.__dict__:
        warnings.warn("The input to trace is already a ScriptModule, tracing it is a no-op. "
                      "Returning the object as is.", stacklevel=2)  # fmt: skip
        return func
    by_name = isinstance(example_kwarg_inputs, dict)
    owner = getattr(func, "__self__", None)
    if is_module(func) or (is_module(owner) and func.__name__ == "forward"):
        module = func if is_module(func) else owner
        if example_inputs is None and not by_name:
            raise RuntimeError("example_kwarg_inputs should be a dict")
        inputs = example_kwarg_inputs if example_inputs is None else example_inputs
        wrapped = None if check_inputs is None else [{"forward": one} for one in check_inputs]
        return _module_trace(
            module, {"forward": inputs}, check_trace, wrapped, check_tolerance, strict,
            example_inputs is None,
        )  # fmt: skip
    if is_module(owner):
        raise AttributeError("trace doesn't support compiling individual module's functions.\n"
                             "Please use trace_module")  # fmt: skip
    inputs = example_kwarg_inputs if by_name else as_tuple(example_inputs)
    traced = _function_trace(func, inputs, by_name, strict)
    traced.__wrapped__ = func
    if check_trace:
        again = lambda given: _function_trace(func, given, by_name, strict)  # noqa: E731
        for given in [inputs] if check_inputs is None else check_inputs:
            given = given if by_name else as_tuple(given)
            checking.check(func, traced, given, again, check_tolerance, by_name)
    return traced


def trace_module(mod: Any, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True,
                 check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
                 _force_outplace: bool = False, _module_class: Any = None,
                 _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False,
                 _store_inputs: bool = True) -> Any:  # fmt: skip
    """As `trace`, for several methods of a Module: `inputs` maps their names to example inputs."""
    warn_of_age("torch.jit.trace_method")
    _check_options(optimize, _force_outplace, _module_class, _compilation_unit)
    if not state.enabled:
        return mod
    return _module_trace(mod, inputs, check_trace, check_inputs, check_tolerance, strict,
                         example_inputs_is_kwarg)  # fmt: skip


def _check_options(optimize: Any, outplace: bool, module_class: Any, unit: Any) -> None:
    """Options that PyTorch keeps for itself raise; `_store_inputs` is for its debugging alone."""
    if optimize is not None:
        warnings.warn("`optimize` is deprecated and has no effect. Use `with "
                      "torch.jit.optimized_execution()` instead", FutureWarning,
                      stacklevel=3)  # fmt: skip
    given = {"_force_outplace": outplace, "_module_class": module_class, "_compilation_unit": unit}
    for name, value in given.items():
        if value:
            raise NotImplementedInFlambeau(not_implemented_text(f"torch.jit.trace({name}=...)"))


def _module_trace(mod: Any, inputs: Any, check_trace: bool, check_inputs: Any, tolerance: float,
                  strict: bool, by_name: bool) -> Any:  # fmt: skip
    if not is_module(mod):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    traced = _methods_trace(mod, inputs, by_name, strict, PYTHON_UNIT)
    if check_trace:
        for given in [inputs] if check_inputs is None else check_inputs:
            for name, one in given.items():
                one = one if by_name else as_tuple(one)
                method = functools.partial(_again, mod, name, by_name, strict)
                checking.check(_callee(mod, name), getattr(traced, name), one, method, tolerance,
                               by_name)  # fmt: skip
    return traced


def _again(mod: Any, name: str, by_name: bool, strict: bool, given: Any) -> Any:
    """The method of a second trace."""
    return getattr(_methods_trace(mod, {name: given}, by_name, strict, CompilationUnit()), name)


def as_tuple(inputs: Any) -> tuple[Any, ...]:
    """Example inputs as a tuple of arguments."""
    return (inputs,) if isinstance(inputs, (Tensor, dict)) else tuple(inputs)


# ---- one trace


def _function_trace(func: Callable[..., Any], inputs: Any, by_name: bool, strict: bool) -> Any:
    made = Trace(strict=strict)
    record(made, func, inputs, _parameter_names(func), by_name)
    name = PYTHON_UNIT.mangle(qualified_name(func))
    clean_up(made.graph)
    function = Function(name, PYTHON_UNIT, graph=made.graph,
                        schema=schema_of(name.rpartition(".")[2], made.graph))  # fmt: skip
    PYTHON_UNIT.add_function(function)
    return ScriptFunction(function, func)


def _methods_trace(mod: Any, inputs: dict[str, Any], by_name: bool, strict: bool,
                   unit: CompilationUnit) -> Any:  # fmt: skip
    modules = traced_modules(mod, unit)
    top = modules[id(mod)]
    top.__class__ = TopLevelTracedModule
    classes = {key: module._type for key, module in modules.items()}
    for name, given in inputs.items():
        made = Trace(mod, strict)
        made.graph.inputs[0].type = classes[id(mod)]
        if not (by_name and isinstance(given, dict)):
            given = as_tuple(given)
        names = _parameter_names(getattr(mod, name))
        if by_name:
            _check_names(given, names)
        record(made, _callee(mod, name), given, names, by_name)
        set_types_of_modules(made, classes)
        make_methods(made.graph, classes)
        set_types(made.graph)
        clean_up(made.graph)
        kind = classes[id(mod)]
        kind.methods[name] = Function(f"{kind.qualified_name}.{name}", unit, graph=made.graph,
                                      schema=schema_of(name, made.graph))  # fmt: skip
    return top


def set_types_of_modules(made: Trace, classes: dict[int, Any]) -> None:
    """Give each running module's `self` its class type."""
    for node in made.graph.walk():
        if "module" in node.attributes:
            node.blocks[0].inputs[0].type = classes[id(node.attributes["module"])]


def _callee(mod: Any, name: str) -> Any:
    return mod if name == "forward" else getattr(mod, name)


def _check_names(given: dict[str, Any], names: Sequence[str]) -> None:
    for key in given:
        if key not in names:
            raise NameError(f"'{key}' is not in forward() method's arguments, valid arguments "
                            f"name are [{','.join(names)}]")  # fmt: skip


def _parameter_names(func: Callable[..., Any]) -> list[str]:
    """The parameters that may be given by position; none if there are others."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return []
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        return []
    return [p.name for p in parameters]


def record(made: Trace, func: Callable[..., Any], inputs: Any, names: Sequence[str],
           by_name: bool) -> None:  # fmt: skip
    """Run a function and record it: inputs, operators, result."""
    items: list[Any] = list(inputs.items()) if by_name else list(enumerate(inputs))
    given = []
    for key, value in items:
        name = key if by_name else names[key] if key < len(names) else ""
        known = made.graph.add_input(containers.input_type(value), name)
        with made.paused():
            given.append(containers.take(made, value, known))
    before, running.trace = running.trace, made
    state.tracer = made
    try:
        with redirected(made.handle):
            if by_name:
                result = func(**dict(zip(inputs, given, strict=True)))
            else:
                result = func(*given)
    finally:
        running.trace = state.tracer = before
    made.graph.add_output(containers.result(made, result))
