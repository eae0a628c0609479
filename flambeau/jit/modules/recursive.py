"""A Module becomes a compiled module: its attributes, its submodules, then its methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flambeau.jit import markers
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import Function
from flambeau.jit.markers import Attribute
from flambeau.jit.modules import overloads
from flambeau.jit.modules.class_source import properties_of
from flambeau.jit.modules.classes import renamed
from flambeau.jit.modules.concrete import ConcreteType, concrete_type_of, kind_of, type_name
from flambeau.jit.modules.containers import add_methods
from flambeau.jit.modules.hooks import compile_hooks
from flambeau.jit.modules.methods import (
    MethodSource,
    ModuleSelf,
    add_method,
    compile_method,
    define,
    is_exported,
    method_source,
    source_of,
)
from flambeau.jit.modules.script_module import RecursiveScriptModule, ScriptModule, fill
from flambeau.jit.run.binding import CannotCast, converter
from flambeau.nn import Module
from flambeau.nn.parameter import UninitializedTensorMixin

Sources = Callable[[Module], list[MethodSource]]
"""Which methods of a module are compiled, besides those that they call."""


def scripted_module(module: Module, example_inputs: Any = None) -> ScriptModule:
    """Compile `forward`, the exported methods, and all that they call, here and below."""
    check_initialized(module)
    module = _prepared(module, {})
    if example_inputs:
        from flambeau.jit.modules.examples import note_calls

        note_calls(example_inputs)
    if isinstance(module, ScriptModule):
        return module
    return create(module, concrete_type_of(module), entry_points)


def _prepared(module: Any, memo: dict[int, Any]) -> Any:
    """What `__prepare_scriptable__` gives, here and below."""
    if not isinstance(module, Module) or id(module) in memo:
        return memo.get(id(module), module)
    hook = getattr(module, "__prepare_scriptable__", None)
    found = memo[id(module)] = module if hook is None else hook()
    if isinstance(found, Module) and not isinstance(found, ScriptModule):
        for name, inner in found._modules.items():
            found._modules[name] = _prepared(inner, memo)
    return found


def check_initialized(module: Module) -> None:
    """Refuse a module whose `super().__init__()` was not called, or that is lazy."""
    name = type_name(type(module))
    if "_parameters" not in module.__dict__:
        raise RuntimeError(f"'{name}' has not been initialized, did you forget to call 'super()'?")
    for kind, table in (("parameters", module._parameters), ("buffers", module._buffers)):
        for key, value in table.items():
            if isinstance(value, UninitializedTensorMixin):
                raise RuntimeError(
                    f"'{name}' has uninitialized {kind} {key}. "
                    "Did you forget to run a forward pass?"
                )


def create(module: Module, concrete: ConcreteType, sources: Sources) -> ScriptModule:
    """A compiled module with the attributes of another one; parameters are shared."""
    check_initialized(module)
    made = RecursiveScriptModule()
    _take_over(made, module, concrete, sources)
    return made


def turn_into_script(module: ScriptModule, methods: list[MethodSource], share: bool) -> None:
    """Make an instance of a ScriptModule class a compiled module itself."""
    concrete = concrete_type_of(module, share)
    _take_over(module, module, concrete, lambda it: methods if it is module else entry_points(it))


def _take_over(made: ScriptModule, module: Module, concrete: ConcreteType, sources: Sources
               ) -> None:  # fmt: skip
    methods = sources(module)
    values = {
        name: _value(module, attribute)
        for name, attribute in concrete.type.attributes.items()
        if attribute.kind != "module"
    }
    for name, inner in concrete.modules.items():
        values[name] = _submodule(getattr(module, name), inner, sources)
    for name in concrete.type.attributes:
        if made is module:
            made.__dict__.pop(name, None)
    fill(made, concrete.type, values)
    made.__dict__["_concrete"] = concrete
    made.__dict__["_non_persistent_buffers_set"] = set(module._non_persistent_buffers_set)
    if not concrete.compiled:
        _compile(made, module, concrete, methods)
        concrete.compiled = True
    if made is not module:
        _copy_python(made, module, concrete)
    _set_hooks(made, concrete.type)


def _value(module: Module, attribute: T.Attribute) -> Any:
    value = getattr(module, attribute.name)
    value = value.value if isinstance(value, Attribute) else value
    if attribute.kind != "attribute":
        return value
    try:
        return converter(attribute.type)(value)
    except CannotCast as error:
        raise RuntimeError(
            f"Could not cast attribute '{attribute.name}' to type "
            f"{attribute.type.annotation}: {error}"
        ) from None


def _submodule(inner: Module, concrete: Any, sources: Sources) -> ScriptModule:
    if isinstance(inner, ScriptModule):
        return inner
    if isinstance(concrete, T.InterfaceType):
        own = concrete_type_of(inner)
        compiled = create(inner, own, lambda it: interface_methods(it, concrete))
        if not own.type.is_subtype_of(concrete):
            raise RuntimeError(
                f"Method on class '{own.type}' is not compatible with interface '{concrete}'"
            )
        return compiled
    return create(inner, concrete, sources)


# ---- which methods


def entry_points(module: Module) -> list[MethodSource]:
    """`forward` and the exported methods; of an overloaded method, its variants."""
    owner = type(module)
    names = []
    forward = getattr(module, "forward", None)
    own = getattr(forward, "__func__", None) is not Module.forward
    if forward is not None and own and not markers.is_ignored(forward):
        names.append("forward")
    ignored = set(getattr(module, "__jit_ignored_attributes__", ()))
    for name, function in marked_functions(owner).items():
        if name not in ignored and is_exported(function):
            names.append(name)
    declared = overloads.declarations(owner)
    found = [variant for name in declared for variant in _variants(owner, name, declared[name])]
    for name in dict.fromkeys(names):
        if name not in declared:
            found.append(_method_of(module, name))
    return found


def marked_functions(owner: type) -> dict[str, Any]:
    """The methods of a class with a mark for the compiler, by name."""
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        found.update(base.__dict__)
    marked = [name for name, item in found.items() if hasattr(item, "_torchscript_modifier")]
    return {name: found[name] for name in sorted(marked) if inspect.isfunction(found[name])}


def _method_of(module: Module, name: str) -> MethodSource:
    """A method of the class, or a function that was put into the instance."""
    own = module.__dict__.get(name)
    if own is not None:
        return source_of(getattr(own, "__func__", own), name)
    found = method_source(type(module), name)
    if found is None:
        return source_of(getattr(type(module), name), name)
    if found.definition.node.name != name:
        found = MethodSource(renamed(found.definition, name), found.scope, found.original)
    return found


def _variants(owner: type, name: str, declared: list[Any]) -> list[MethodSource]:
    """The implementation of an overloaded method with each of the declared signatures."""
    from flambeau.jit.frontend.source import Definition, definition_of
    from flambeau.jit.modules.signatures import with_signature

    implementation = method_source(owner, name)
    assert implementation is not None
    found = []
    for index, declaration in enumerate(declared):
        stub = declaration if isinstance(declaration, Definition) else definition_of(declaration)
        definition = with_signature(implementation.definition, stub, f"{name}__{index}")
        original = declaration if inspect.isfunction(declaration) else None
        found.append(MethodSource(definition, implementation.scope, original))
    return found


def interface_methods(module: Module, wanted: T.InterfaceType) -> list[MethodSource]:
    """The methods that an interface names."""
    return [_method_of(module, name) for name in wanted.methods if hasattr(module, name)]


def compile_interface_methods(concrete: ConcreteType, wanted: T.InterfaceType) -> None:
    """Compile the methods that an interface names, if the class has them."""
    for name in wanted.methods:
        if name not in concrete.type.methods:
            found = method_source(concrete.python, name)
            if found is not None:
                compile_method(concrete, found)


# ---- compiling


def _compile(made: ScriptModule, module: Module, concrete: ConcreteType,
             methods: list[MethodSource]) -> None:  # fmt: skip
    """Declare all methods and properties, then compile them: they may call each other."""
    own = ModuleSelf(concrete)
    functions = _properties(module, concrete)
    functions += [
        add_method(concrete.type, m.definition, m.scope, m.original, own) for m in methods
    ]
    for function in functions:
        function.ensure_defined()
    compile_hooks(module, concrete)
    _add_container_methods(made, module, concrete)


def _properties(module: Module, concrete: ConcreteType) -> list[Function]:
    unused = {*getattr(module, "__jit_unused_properties__", ()), *concrete.ignored}
    found = []
    for name, getter, setter in properties_of(type(module), unused):
        item = getattr(type(module), name)
        if item.fget.__module__.startswith("flambeau."):
            continue
        pairs = ((getter, item.fget, "getter"), (setter, item.fset, "setter"))
        functions = []
        for definition, function, kind in pairs:
            if definition is None:
                continue
            source = source_of(function)
            named = renamed(definition, f"__{name}_{kind}")
            functions.append(
                add_method(concrete.type, named, source.scope, function, ModuleSelf(concrete))
            )
        concrete.type.properties[name] = (functions[0], (*functions, None)[1])
        found += functions
    return found


def _add_container_methods(made: ScriptModule, module: Module, concrete: ConcreteType) -> None:
    """`len` of lists and dictionaries of modules, and `in` for dictionaries."""
    kind = kind_of(module)
    if kind not in ("list", "dict"):
        return
    if "__len__" not in concrete.type.methods:
        define(made, f"def __len__(self):\n   return {len(module)}\n", None)  # type: ignore[arg-type]
    if kind == "dict" and "__contains__" not in concrete.type.methods:
        keys = list(module.keys())  # type: ignore[operator]
        test = f"key in {keys!r}" if keys else "False"
        define(made, f"def __contains__(self, key: str):\n   return {test}\n", None)


def _copy_python(made: ScriptModule, module: Module, concrete: ConcreteType) -> None:
    """Methods that stay Python: those that are ignored, and those of containers."""
    for name, function in marked_functions(type(module)).items():
        if name not in concrete.ignored and markers.is_ignored(function):
            made.__dict__[name] = function.__get__(made)
    add_methods(made, kind_of(module), concrete.type.methods)
    for name in concrete.ignored:
        if name in module.__dict__:
            made.__dict__[name] = module.__dict__[name]


def _set_hooks(made: ScriptModule, type: T.ClassType) -> None:
    for table, hooks in (
        (made._forward_pre_hooks, type.forward_pre_hooks),
        (made._forward_hooks, type.forward_hooks),
    ):
        table.clear()
        table.update(enumerate(hooks))
