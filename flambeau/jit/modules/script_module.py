"""Modules whose methods are compiled."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from flambeau.jit.ir import types as T
from flambeau.jit.ir.graph import Graph
from flambeau.jit.markers import Attribute
from flambeau.jit.modules.containers import add_methods
from flambeau.jit.modules.functions import ConstantMap, ScriptMethod, bytes_of
from flambeau.nn import Module

TABLES = {"parameter": "_parameters", "buffer": "_buffers", "module": "_modules"}
"""Where a module keeps the attributes of a kind; others are in its `__dict__`."""


class FixedTable(dict[str, Any]):
    """Parameters or buffers: their values may be replaced, their names stay."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self:
            raise RuntimeError(
                f"Can't add a new parameter after ScriptModule construction. Tried to add '{name}"
            )
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        raise RuntimeError("cannot delete methods or parameters of a script module")


class FixedModules(FixedTable):
    """Submodules: one may take the place of another of the same type."""

    def __init__(self, values: dict[str, Any], type: T.ClassType) -> None:
        super().__init__(values)
        self.type = type

    def __setitem__(self, name: str, value: Any) -> None:
        found = value.__dict__.get("_type") if isinstance(value, ScriptModule) else None
        if found is None:
            raise RuntimeError(
                "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to "
                f"replace existing module '{name}': {value}"
            )
        declared = self.type.attributes.get(name)
        if declared is None:
            raise RuntimeError(f"{self.type} does not have an attribute with name '{name}'")
        if not found.is_subtype_of(declared.type):
            raise RuntimeError(
                f"Expected a value of type '{declared.type}' for field '{name}', "
                f"but found '{found}'"
            )
        dict.__setitem__(self, name, value)


class _Forward:
    """`module.forward`: the compiled method, which is then kept in the module."""

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return Module.forward
        if "_type" in module.__dict__:
            return module.__getattr__("forward")
        return Module.forward.__get__(module, owner)


class ScriptModule(Module):
    """A Module whose methods are compiled.

    It takes and gives the shapes that its code does.

    `torch.jit.script`, `torch.jit.trace` and `torch.jit.load` make it. Where a class inherits from
    it, methods marked with `@torch.jit.script_method` are compiled when `__init__` is done.

    Once compiled, a module has its class type as `_type`; `_concrete` holds what else the compiler
    knows of it.

    >>> import flambeau as torch
    >>> model = torch.jit.script(torch.nn.Linear(2, 1))
    >>> isinstance(model, torch.jit.ScriptModule), model(torch.ones(3, 2)).shape
    (True, torch.Size([3, 1]))
    """

    _type: T.ClassType
    _concrete: Any
    __jit_unused_properties__ = ["code", "code_with_constants", "graph", "inlined_graph",
                                 "original_name"]  # fmt: skip
    forward: Callable[..., Any] = _Forward()  # type: ignore[assignment]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ != __name__:
            _compile_after_init(cls)

    # ---- how it is shown

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        return self.forward.graph  # type: ignore[attr-defined, no-any-return]

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with those of the functions and methods that it calls in it."""
        return self.forward.inlined_graph  # type: ignore[attr-defined, no-any-return]

    @property
    def code(self) -> str:
        """`forward` as Python text."""
        return self.forward.code  # type: ignore[attr-defined, no-any-return]

    @property
    def code_with_constants(self) -> tuple[str, ConstantMap]:
        """The text of `forward`, and the tensors that it names: `CONSTANTS.c0`."""
        return self.forward.code_with_constants  # type: ignore[attr-defined, no-any-return]

    @property
    def original_name(self) -> str:
        """The name of the class that was compiled."""
        return self._type.name

    def extra_repr(self) -> str:
        """The name of the class that was compiled."""
        return f"original_name={self.original_name}" if "_type" in self.__dict__ else ""

    def graph_for(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph of `forward` that runs for these arguments."""
        return self.forward.graph_for(*args, **kwargs)  # type: ignore[attr-defined, no-any-return]

    def get_debug_state(self) -> NoReturn:
        """Torch's executor shows its plans; ours has none of that form."""
        self.forward.get_debug_state()  # type: ignore[attr-defined]
        raise AssertionError

    # ---- archives

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Write an archive to a path; see `torch.jit.save`."""
        from flambeau.jit import save

        save(self, str(f), _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The bytes of an archive."""
        return bytes_of(self, _extra_files)

    # ---- methods and attributes

    def define(self, src: str) -> None:
        """Add methods, given as the text of function definitions with `self`."""
        from flambeau.jit.modules.methods import define

        frame = inspect.currentframe()
        define(self, src, frame.f_back if frame is not None else None)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for table in TABLES.values():
            if table in fields and name in fields[table]:
                return fields[table][name]
        kind = fields.get("_type")
        if kind is None:
            return super().__getattr__(name)
        if name in kind.constants:
            return kind.constants[name]
        function = kind.methods.get(name)
        if function is not None:
            original = getattr(kind.python, name, None)
            method = fields[name] = ScriptMethod(self, function, original)
            return method
        if name in kind.properties:
            return kind.properties[name][0](self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'",
                             name=name, obj=self)  # fmt: skip

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self.__dict__.get("_type")
        if kind is None:
            if isinstance(value, Attribute):
                _annotate(type(self), name, value.type)
                value = value.value
            super().__setattr__(name, value)
        elif name in self._modules:
            self._modules[name] = value
        elif name in kind.attributes:
            self._set_declared(kind.attributes[name], value)
        elif kind.properties.get(name, (None, None))[1] is not None:
            kind.properties[name][1](self, value)
        elif name in kind.constants:
            value = kind.constants[name]
            raise RuntimeError(f"Can't set constant '{name}' which has value:{value}")
        else:
            super().__setattr__(name, value)

    def _set_declared(self, attribute: T.Attribute, value: Any) -> None:
        """Replace the value of an attribute that the class type has."""
        from flambeau.jit.run.binding import CannotCast, converter

        name = attribute.name
        try:
            value = converter(attribute.type)(value)
        except CannotCast as error:
            raise RuntimeError(
                f"Could not cast attribute '{name}' to type {attribute.type.annotation}: {error}"
            ) from None
        table = TABLES.get(attribute.kind)
        if table is None:
            self.__dict__[name] = value
        else:
            self.__dict__[table][name] = value

    def __delattr__(self, name: str) -> None:
        kind = self.__dict__.get("_type")
        if (
            kind is not None
            and name in kind.attributes
            and kind.attributes[name].kind not in TABLES
        ):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        super().__delattr__(name)

    # ---- copies

    def __copy__(self) -> ScriptModule:
        return _copied(self, {}, deep=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        return _copied(self, memo, deep=True)

    copy = __copy__

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(
            f"Tried to serialize object {self._type} which does not have a __getstate__ method "
            "defined!"
        )

    # ---- what containers have

    def _forward_magic(self, name: str, *args: Any) -> Any:
        method = self.__dict__.get(name)
        if method is None and name in self._type.methods:
            method = self.__getattr__(name)
        if method is None:
            raise NotImplementedError
        return method(*args)

    def __iter__(self) -> Iterator[Any]:
        return self._forward_magic("__iter__")  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> Any:
        return self._forward_magic("__getitem__", index)

    def __len__(self) -> int:
        return self._forward_magic("__len__")  # type: ignore[no-any-return]

    def __contains__(self, key: Any) -> bool:
        return self._forward_magic("__contains__", key)  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        return True


class RecursiveScriptModule(ScriptModule):
    """What compiling, tracing and loading make; there need not be a Python class behind it."""

    @staticmethod
    def build(type: T.ClassType, values: dict[str, Any]) -> RecursiveScriptModule:
        """A module of a type. `values`: those of its attributes, submodules included."""
        module = RecursiveScriptModule()
        fill(module, type, values)
        return module


def fill(module: ScriptModule, type: T.ClassType, values: dict[str, Any]) -> None:
    """Make a module one of a compiled type, with the values of the type's attributes."""
    tables: dict[str, dict[str, Any]] = {"_parameters": {}, "_buffers": {}, "_modules": {}}
    fields = module.__dict__
    fields.pop("training", None)
    for name, attribute in type.attributes.items():
        table = TABLES.get(attribute.kind)
        place = fields if table is None else tables[table]
        place[name] = values[name]
    fields["_parameters"] = FixedTable(tables["_parameters"])
    fields["_buffers"] = FixedTable(tables["_buffers"])
    fields["_modules"] = FixedModules(tables["_modules"], type)
    fields["_type"] = type
    for key, function in enumerate(type.forward_pre_hooks):
        module._forward_pre_hooks[key] = function
    for key, function in enumerate(type.forward_hooks):
        module._forward_hooks[key] = function


def _copied(module: ScriptModule, memo: dict[int, Any], *, deep: bool) -> ScriptModule:
    """A module of the same type; `deep`: tensors and submodules are copied, too."""
    known = memo.get(id(module))
    if known is not None:
        return known  # type: ignore[no-any-return]
    values = {}
    for name, attribute in module._type.attributes.items():
        table = TABLES.get(attribute.kind)
        value = module.__dict__[name] if table is None else module.__dict__[table][name]
        values[name] = copy.deepcopy(value, memo) if deep else value
    copied = RecursiveScriptModule.build(module._type, values)
    copied.__dict__["_concrete"] = module.__dict__.get("_concrete")
    persistent = module._non_persistent_buffers_set
    copied.__dict__["_non_persistent_buffers_set"] = set(persistent)
    add_methods(copied, getattr(copied.__dict__["_concrete"], "kind", ""), module._type.methods)
    memo[id(module)] = copied
    return copied


def _annotate(owner: type, name: str, annotation: Any) -> None:
    if "__annotations__" not in owner.__dict__:
        owner.__annotations__ = {}
    owner.__annotations__[name] = annotation


def _compile_after_init(owner: type) -> None:
    """Let the methods of a class be compiled when the `__init__` of that very class is done."""
    original = owner.__init__  # type: ignore[misc]

    def __init__(self: ScriptModule, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        if type(self) is owner:
            from flambeau.jit.modules.methods import compile_in_place

            compile_in_place(self)

    __init__.__wrapped__ = original  # type: ignore[attr-defined]
    __init__.__doc__ = original.__doc__
    owner.__init__ = __init__  # type: ignore[misc]


KEPT = frozenset(
    "forward register_buffer register_parameter register_module add_module apply cuda cpu to type "
    "float double half state_dict load_state_dict parameters named_parameters buffers "
    "named_buffers children named_children modules named_modules zero_grad share_memory extra_repr "
    "eval train get_extra_state set_extra_state".split()
)
"""The methods of Module that compiled modules have, too."""


def _unsupported(name: str) -> Callable[..., NoReturn]:
    def fail(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{name} is not supported on ScriptModules")

    return fail


for _name, _ in inspect.getmembers(Module, inspect.isfunction):
    if not _name.startswith("_") and _name not in KEPT and _name not in ScriptModule.__dict__:
        setattr(RecursiveScriptModule, _name, _unsupported(_name))
