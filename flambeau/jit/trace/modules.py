"""Calls of modules, and of compiled functions and modules, while a trace runs."""

from __future__ import annotations

from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import CompilationUnit, Function
from flambeau.jit.ir.graph import Value
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.names import qualified_name
from flambeau.jit.modules.script_module import RecursiveScriptModule, ScriptModule
from flambeau.jit.trace.methods import FORWARD
from flambeau.jit.trace.recipes import recipe
from flambeau.jit.trace.scopes import Scope
from flambeau.nn import Module

# ---- while the trace runs


@recipe("Module.__call__")
def _call_module(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    module = args[0]
    if isinstance(module, ScriptModule) and "_type" in module.__dict__:
        return call_compiled(trace, module.forward._function, module, args[1:], kwargs)  # type: ignore[attr-defined]
    owner = trace.scopes[-1].submodule(module) if trace.scopes else None
    if owner is None or module is trace.scopes[-1].module:
        return itself(*args, **kwargs)
    node = trace.insert(FORWARD, [owner], [], module=module)
    scope = Scope(module, node.add_block())
    trace.scopes.append(scope)
    before = trace.graph.scope
    trace.graph.scope = ".".join(["__module", *_path(trace, module)])
    try:
        with trace.graph.inserting(scope.block):
            return itself(*args, **kwargs)
    finally:
        trace.graph.scope = before
        trace.scopes.pop()


def _path(trace: Any, module: Any) -> tuple[str, ...]:
    return trace.scopes[0].modules.get(id(module), ())  # type: ignore[no-any-return]


@recipe("ScriptFunction.__call__")
def _call_function(trace: Any, itself: Any, args: Any, kwargs: Any) -> Any:
    compiled, *rest = args
    owner = None if isinstance(compiled, ScriptFunction) else compiled.owner
    return call_compiled(trace, compiled._function, owner, rest, kwargs)


def call_compiled(trace: Any, function: Function, owner: Any, args: Any, kwargs: Any) -> Any:
    """Record and run a call of a compiled function, or of a method of a compiled module."""
    parameters = function.schema.arguments[owner is not None :]
    names = [p.name for p in parameters]
    given = dict(zip(names, args, strict=False)) | kwargs
    values = [_argument(trace, p, given.get(p.name, p.default)) for p in parameters]
    results = [function.schema.returns[0].type]
    if owner is None:
        constant = trace.insert("prim::Constant", (), [T.FunctionType(function)],
                                name=function.name)  # fmt: skip
        node = trace.insert("prim::CallFunction", [constant.output, *values], results)
    else:
        node = trace.insert("prim::CallMethod", [_module_value(trace, owner), *values], results,
                            name=function.name)  # fmt: skip
    given_args = ([] if owner is None else [owner]) + list(args)
    result = trace.silently(function, *given_args, **kwargs)
    know_parts(trace, node.output, result)
    return result


def _module_value(trace: Any, module: Any) -> Value:
    for scope in reversed(trace.scopes):
        found = scope.submodule(module)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise RuntimeError(
        f"Attempted to trace a call of the compiled module {module.original_name}, which is no "
        "submodule of what is being traced"
    )


def _argument(trace: Any, parameter: Any, value: Any) -> Value:
    wanted = parameter.type
    inner = wanted.inner if isinstance(wanted, T.OptionalType) else wanted
    if isinstance(inner, T.TupleType) and isinstance(value, tuple):
        parts = [
            _argument(trace, type(parameter)("", t), item)
            for t, item in zip(inner.elements, value, strict=True)
        ]
        return trace.insert("prim::TupleConstruct", parts, [inner]).output  # type: ignore[no-any-return]
    return trace.argument(parameter, value)  # type: ignore[no-any-return]


def know_parts(trace: Any, value: Value, result: Any) -> None:
    """The tensors in a result are what unpacking its value gives."""
    if isinstance(result, Tensor):
        trace.know(result, value)
    elif isinstance(result, (tuple, list)) and result:
        kind = "prim::TupleUnpack" if isinstance(result, tuple) else "prim::ListUnpack"
        if isinstance(value.type, T.TupleType):
            types = list(value.type.elements)
        else:
            types = [value.type.element] * len(result)  # type: ignore[attr-defined]
        node = trace.graph.insert(kind, [value], types)
        for output, item in zip(node.outputs, result, strict=True):
            know_parts(trace, output, item)


# ---- the compiled module that a trace becomes


def traced_modules(module: Any, unit: CompilationUnit) -> dict[int, Any]:
    """A compiled module without methods for each module, by the identity of the original."""
    made: dict[int, Any] = {}
    _traced(module, unit, made)
    return made


def _traced(module: Any, unit: CompilationUnit, made: dict[int, Any]) -> Any:
    known = made.get(id(module))
    if known is not None:
        return known
    if isinstance(module, ScriptModule) and "_type" in module.__dict__:
        made[id(module)] = module
        return module
    kind = unit.add_class(qualified_name(type(module)), is_module=True)
    values: dict[str, Any] = {}
    for table, name_of_kind in (("_parameters", "parameter"), ("_buffers", "buffer")):
        for name, tensor in getattr(module, table).items():
            kind.add(name, T.TENSOR if tensor is not None else T.NONE,
                     name_of_kind if tensor is not None else "attribute")  # fmt: skip
            values[name] = tensor
    values |= {"training": module.training, "_is_full_backward_hook": None}
    kind.add("training", T.BOOL)
    kind.add("_is_full_backward_hook", T.optional(T.BOOL))
    for name, child in module._modules.items():
        values[name] = None if child is None else _traced(child, unit, made)
        kind.add(name, T.NONE if child is None else values[name]._type,
                 "attribute" if child is None else "module")  # fmt: skip
    built = RecursiveScriptModule.build(kind, values)
    built.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    made[id(module)] = built
    return built


class TracedModule(RecursiveScriptModule):
    """A module that a trace made."""


class TopLevelTracedModule(TracedModule):
    """The module that `torch.jit.trace` gives."""


def is_module(obj: Any) -> bool:
    """Whether an object is a Module."""
    return isinstance(obj, Module)
