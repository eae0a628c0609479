"""What the compiler knows of a module: its class type, and what is not part of that type."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import layout
from flambeau.jit.ir import types as T
from flambeau.jit.ir.function import PYTHON_UNIT
from flambeau.jit.ir.values import enumeration_number
from flambeau.jit.markers import Attribute
from flambeau.jit.modules import overloads
from flambeau.jit.modules.annotations import annotations_of, is_final, type_of_annotation
from flambeau.jit.modules.functions import ScriptFunction
from flambeau.jit.modules.inference import NoType, inferred
from flambeau.jit.modules.names import qualified_name
from flambeau.jit.modules.script_module import ScriptModule
from flambeau.nn import Module, ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from flambeau.nn.module import FIELDS

IGNORED = frozenset(FIELDS) - {"training", "_is_full_backward_hook"} | {
    "_version", "_initializing", "dump_patches", "_type", "_concrete",
}  # fmt: skip
"""Attributes of every Module that programs do not see."""
CONTAINERS = {ModuleDict: "dict", ModuleList: "list", Sequential: "list",
              ParameterList: "parameter list", ParameterDict: "parameter dict"}  # fmt: skip
CONSTANTS = (bool, float, int, str, type(None), device, layout, dt.dtype)
"""What may be a constant, and lists and tuples of it."""


@dataclass(eq=False)
class ConcreteType:
    """A module as the compiler sees it.

    type: its class type, shared by modules whose `key` is the same.
    kind: "list", "dict", "parameter list", "parameter dict", or "" for what is no container.
    modules: what is known of the submodules; for one that is declared as an interface, its type.
    functions: attributes that are functions: a ScriptFunction, or a Python function to be named.
    failed: attributes that programs cannot use, and why.
    """

    python: Any
    type: T.ClassType
    kind: str = ""
    modules: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)
    overloads: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    compiled: bool = False

    @property
    def jit_type(self) -> T.ClassType:
        """The class type."""
        return self.type


store: dict[Any, ConcreteType] = {}
"""The concrete types by what distinguishes them."""


def concrete_type_of(module: Module, share: bool = True) -> ConcreteType:
    """What the compiler knows of a module; the same for modules that differ in values only.

    share: False for a type of its own, as a module needs whose methods are its own.
    """
    if isinstance(module, ScriptModule) and "_type" in module.__dict__:
        return concrete_of_script(module)
    facts = _Facts(module, share)
    facts.collect()
    known = store.get(facts.key()) if share else None
    if known is None:
        known = facts.build()
        if share:
            store[facts.key()] = known
    return known


def concrete_of_script(module: ScriptModule) -> ConcreteType:
    """The concrete type of a compiled module; one made from the class type alone if it was read
    from an archive.
    """
    known = module.__dict__.get("_concrete")
    if known is None:
        known = module.__dict__["_concrete"] = of_class_type(module._type)
    return known  # type: ignore[no-any-return]


def of_class_type(type: T.ClassType) -> ConcreteType:
    """What can be told from a class type alone."""
    made = ConcreteType(type.python, type, constants=dict(type.constants), compiled=True)
    for name, attribute in type.attributes.items():
        if attribute.kind != "module":
            continue
        inner = attribute.type
        made.modules[name] = of_class_type(inner) if isinstance(inner, T.ClassType) else inner
    return made


class _Facts:
    """Collects what programs see of a module."""

    def __init__(self, module: Module, share: bool) -> None:
        self.module = module
        self.share = share
        self.annotations = annotations_of(type(module))
        self.ignored = frozenset(getattr(module, "__jit_ignored_attributes__", ()))
        self.attributes: dict[str, tuple[T.Type, str]] = {}
        self.modules: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.functions: dict[str, Any] = {}
        self.overloads: dict[str, list[str]] = {}
        self.failed: dict[str, str] = {}

    def collect(self) -> None:
        """All kinds of attributes, in the order in which class types have them."""
        module = self.module
        for kind, table in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, value in table.items():
                if name not in self.ignored:
                    self.attributes[name] = (self._type(name, value), kind)
        for name, inner in module._modules.items():
            if name not in self.ignored:
                self._add_module(name, inner)
        self._add_constants()
        self.overloads = overloads.names(module)
        self._add_others()

    def _add_others(self) -> None:
        """What is in `__dict__`, and the properties that annotations name."""
        module = self.module
        found = dict(module.__dict__)
        for name in self.annotations:
            if isinstance(inspect.getattr_static(type(module), name, None), property):
                found.setdefault(name, getattr(module, name))
        known = {*self.attributes, *self.constants, *self.modules, *IGNORED, *self.ignored}
        for name, value in found.items():
            if name not in known and not name.startswith("__"):
                self._add_attribute(name, value)

    def _type(self, name: str, value: Any) -> T.Type:
        """The type that is annotated, or that of the value; NoType if there is none."""
        if name in self.annotations and name != "forward":
            try:
                return type_of_annotation(self.annotations[name])
            except RuntimeError as error:
                raise RuntimeError(f"Error inferring type for {name}: {value}: {error}") from error
        if isinstance(value, Attribute):
            return type_of_annotation(value.type)
        return inferred(value)

    def _add_module(self, name: str, inner: Any) -> None:
        if inner is None:
            self.attributes[name] = (T.NONE, "attribute")
            return
        declared = None
        if name in self.annotations:
            declared = type_of_annotation(self.annotations[name], default=None)
        if isinstance(declared, T.InterfaceType):
            self.modules[name] = declared
            return
        self.modules[name] = concrete_type_of(inner, self.share)

    def _add_constants(self) -> None:
        finals = [name for name, note in self.annotations.items() if is_final(note)]
        for name in dict.fromkeys([*constants_of(type(self.module)), *finals]):
            hint = self._no_constant(name)
            if hint:
                warnings.warn(
                    f"'{name}' was found in ScriptModule constants, {hint} Consider removing it.",
                    stacklevel=2,
                )
                continue
            value = getattr(self.module, name)
            self.constants[name] = _checked_constant(name, value, type(self.module).__name__)

    def _no_constant(self, name: str) -> str:
        module = self.module
        tables = {"submodule": module._modules, "buffer": module._buffers,
                  "parameter": module._parameters}  # fmt: skip
        for kind, table in tables.items():
            if name in table and (name in self.attributes or name in self.modules):
                return f" but it is a non-constant {kind}."
        return "" if hasattr(module, name) else "but was not actually set in __init__."

    def _add_attribute(self, name: str, value: Any) -> None:
        if inspect.isfunction(value):
            self._add_function(name, value)
            return
        if isinstance(value, ScriptFunction):
            self.functions[name] = value
            return
        try:
            self.attributes[name] = (self._type(name, value), "attribute")
        except NoType as reason:
            if _is_builtin(value):
                self.functions[name] = value
                return
            self.failed[name] = (
                "(This attribute exists on the Python module, but we failed to convert Python "
                f"type: '{type_name(type(value))}' to a TorchScript type. {reason}. "
                "Its type was inferred; try adding a type annotation for the attribute.)"
            )
        except ValueError as reason:
            self.failed[name] = (
                "(This attribute exists on the Python module, but we failed to convert Python "
                f"type: '{type_name(type(value))}' to a TorchScript type. {reason}. )"
            )

    def _add_function(self, name: str, value: Any) -> None:
        from flambeau.jit.frontend.errors import FrontendError
        from flambeau.jit.modules.scripting import compiled_function

        if _is_builtin(value):
            self.functions[name] = value
            return
        try:
            self.functions[name] = compiled_function(value)
        except (RuntimeError, FrontendError, OSError) as error:
            self.failed[name] = (
                "(This function exists as an attribute on the Python module, but we failed to "
                "compile it to a TorchScript function. \nThe error stack is reproduced here:\n"
                f"{error})"
            )

    def key(self) -> Any:
        """What distinguishes types of modules."""
        module = self.module
        modules = tuple((n, id(getattr(c, "type", c))) for n, c in self.modules.items())
        constants = tuple((n, type(v), repr(v)) for n, v in sorted(self.constants.items()))
        functions = tuple((n, id(f)) for n, f in self.functions.items())
        hooks = (*module._forward_pre_hooks.values(), None, *module._forward_hooks.values())
        return (
            type(module), tuple(self.attributes.items()), modules, constants, functions, hooks,
            tuple((n, tuple(o)) for n, o in self.overloads.items()),
        )  # fmt: skip

    def build(self) -> ConcreteType:
        """A new class type, and what is known beside it."""
        module = self.module
        made = PYTHON_UNIT.add_class(qualified_name(type(module)), is_module=True)
        made.python = type(module)
        for name, (kind, place) in self.attributes.items():
            made.add(name, kind, place)
        for name, inner in self.modules.items():
            made.add(name, getattr(inner, "type", inner), "module")
        for name, value in self.constants.items():
            made.constants[name] = _in_programs(value)
        return ConcreteType(
            type(module), made, kind_of(module), self.modules, self.constants, self.functions,
            self.overloads, self.failed, self.ignored,
        )  # fmt: skip


def kind_of(module: Module) -> str:
    """Which container a module is; "" for none."""
    for container, kind in CONTAINERS.items():
        if isinstance(module, container):
            return kind
    return ""


def constants_of(owner: type) -> Iterator[str]:
    """The names in `__constants__`; those of all bases for a ScriptModule class."""
    if not issubclass(owner, ScriptModule):
        yield from getattr(owner, "__constants__", ())
        return
    for base in owner.__mro__:
        yield from base.__dict__.get("__constants__", ())


def _checked_constant(name: str, value: Any, owner: str) -> Any:
    if isinstance(value, CONSTANTS):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_checked_constant(name, item, owner) for item in value)
    raise TypeError(
        f"\n'{type_name(type(value))}' object in attribute '{owner}.{name}' is not a valid "
        "constant.\nValid constants are:\n1. a nn.ModuleList\n"
        "2. a value of type {bool, float, int, str, NoneType, torch.device, torch.layout, "
        "torch.dtype, torch.qscheme}\n3. a list or tuple of (2)\n"
    )


def _in_programs(value: Any) -> Any:
    """A constant as programs hold it: dtypes and layouts are numbers."""
    if isinstance(value, tuple):
        return tuple(map(_in_programs, value))
    number = enumeration_number(value)
    return value if number is None else number


def _is_builtin(value: Any) -> bool:
    """Whether a callable is an operator of flambeau's table."""
    return callable(value) and getattr(value, "__module__", None) in (
        "torch", "flambeau.nn.functional", "math",
    )  # fmt: skip


def type_name(kind: type) -> str:
    """The name of a class as errors write it: with its module, unless it is Python's own."""
    from flambeau.jit.modules.names import as_torch

    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{as_torch(module)}.{kind.__qualname__}"
