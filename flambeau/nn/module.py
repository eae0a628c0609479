"""Module: the base class of everything that has parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, TypeVar

from flambeau._core.nn_homes import shown_class
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.nn.module_convert import ModuleConversion
from flambeau.nn.module_hooks import ModuleHooks, global_hooks
from flambeau.nn.module_state import ModuleState
from flambeau.nn.parameter import Buffer, Parameter

T_destination = TypeVar("T_destination", bound=dict[str, Any])

FIELDS: dict[str, Callable[[], Any]] = {
    "training": lambda: True,
    "_parameters": dict,
    "_buffers": dict,
    "_non_persistent_buffers_set": set,
    "_backward_pre_hooks": OrderedDict,
    "_backward_hooks": OrderedDict,
    "_is_full_backward_hook": lambda: None,
    "_forward_hooks": OrderedDict,
    "_forward_hooks_with_kwargs": OrderedDict,
    "_forward_hooks_always_called": OrderedDict,
    "_forward_pre_hooks": OrderedDict,
    "_forward_pre_hooks_with_kwargs": OrderedDict,
    "_state_dict_hooks": OrderedDict,
    "_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_pre_hooks": OrderedDict,
    "_load_state_dict_post_hooks": OrderedDict,
    "_modules": dict,
}
"""What every module has from the start. Files of whole modules may lack the younger ones."""


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Overridden by every module that can be called."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(ModuleHooks, ModuleState, ModuleConversion):
    """The base class of all neural network modules.

    What shapes it takes is up to its subclasses.

    A subclass calls `super().__init__()`, assigns Parameters, buffers and other modules to
    attributes, and defines `forward`. Modules form a tree, which `parameters()`, `state_dict()`,
    `to()`, `train()` and the like walk.

    >>> import flambeau as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.ones(1))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    _is_full_backward_hook: bool | None
    call_super_init: bool = False
    _compiled_call_impl: Any = None
    forward: Callable[..., Any] = _forward_unimplemented
    T_destination = T_destination

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        fields = self.__dict__
        for name, make in FIELDS.items():
            fields[name] = make()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- attributes

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in fields and name in fields[table]:
                return fields[table][name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
        )

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        parameters = fields.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, but="_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{ops.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif not self._set_module(name, value) and not self._set_buffer(name, value):
            object.__setattr__(self, name, value)

    def _set_module(self, name: str, value: Any) -> bool:
        """Take an assignment over if it concerns a module."""
        modules = self.__dict__.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, but="_modules")
        elif modules is None or name not in modules:
            return False
        elif value is not None:
            raise TypeError(
                f"cannot assign '{ops.typename(value)}' as child module '{name}' "
                "(torch.nn.Module or None expected)"
            )
        for hook in global_hooks.module_registration.values():
            replaced = hook(self, name, value)
            value = value if replaced is None else replaced
        modules[name] = value
        return True

    def _set_buffer(self, name: str, value: Any) -> bool:
        """Take an assignment over if it concerns a buffer."""
        buffers = self.__dict__.get("_buffers")
        is_new = isinstance(value, Tensor) and isinstance(value, Buffer)
        if not is_new and (buffers is None or name not in buffers):
            return False
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{ops.typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if is_new:
            self.register_buffer(name, value, value.persistent)  # type: ignore[union-attr]
            return True
        for hook in global_hooks.buffer_registration.values():
            replaced = hook(self, name, value)
            value = value if replaced is None else replaced
        buffers[name] = value  # type: ignore[index]
        return True

    def _forget(self, name: str, but: str) -> None:
        """Remove whatever else goes by a name that is being assigned."""
        fields = self.__dict__
        fields.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != but:
                fields[table].pop(name, None)
        fields["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        names.update(self._parameters, self._modules, self._buffers)
        return sorted(name for name in names if not name[0].isdigit())

    # ---- registration

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is part of the state but is not trained.

        `persistent=False` leaves it out of the `state_dict`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{ops.typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        for hook in global_hooks.buffer_registration.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            _check_parameter(name, param)
            for hook in global_hooks.parameter_registration.values():
                replaced = hook(self, name, param)
                param = param if replaced is None else replaced
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module; None reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{ops.typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        for hook in global_hooks.module_registration.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: Any, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {ops.typename(name)}")
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')

    # ---- members by path

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target != "" else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module  # type: ignore[no-any-return]

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path. `strict`: there must be one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {shown_class(type(module))}")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError if there is none."""
        found = self._member(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = self._member(target)
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found  # type: ignore[no-any-return]

    def _member(self, target: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)

    # ---- walking

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their dotted names; each once."""
        seen: set[Module] = set() if memo is None else memo
        if self in seen:
            return
        yield prefix, self
        if remove_duplicate:
            seen.add(self)
        for name, child in self._modules.items():
            if child is not None:
                path = prefix + ("." if prefix else "") + name  # a TypeError if it is no text
                yield from child.named_modules(seen, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below, with their names; each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right below."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        owners: Any = [(prefix, self)]
        if recurse:
            owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        seen: set[Any] = set()
        for path, owner in owners:
            for name, value in get_members_fn(owner):
                if value is not None and value not in seen:
                    if remove_duplicate:
                        seen.add(value)
                    yield path + ("." if path else "") + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Every parameter with its dotted name."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter, what optimizers are given."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Every buffer with its dotted name."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every buffer."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ---- printing and pickling

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the brackets of the repr, before the children; to be overridden."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        name = self._get_name()
        if len(extra_lines) == 1 and not child_lines:
            return f"{name}({extra_lines[0]})"
        lines = extra_lines + child_lines
        if not lines:
            return f"{name}()"
        return f"{name}(\n  " + "\n  ".join(lines) + "\n)"

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields = self.__dict__
        fields.update(state)
        for name, make in FIELDS.items():
            if name not in fields:
                fields[name] = make()


def _speak_as_module() -> None:
    """Python's own errors name a method in full: Module's are not to show where they stand."""
    for part in (ModuleHooks, ModuleState, ModuleConversion):
        for name, member in vars(part).items():
            if isinstance(member, FunctionType):
                member.__qualname__ = f"Module.{name}"


_speak_as_module()


def _check_parameter(name: str, param: Any) -> None:
    if not isinstance(param, Parameter):
        raise TypeError(
            f"cannot assign '{ops.typename(param)}' object to parameter '{name}' "
            "(torch.nn.Parameter or None required)"
        )
    if param._node is not None:
        raise ValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
            f"created explicitly. To express '{name}' as a function of another Tensor, compute "
            "the value in the forward() method."
        )


def _addindent(s_: str, numSpaces: int) -> str:
    """A text with all lines but the first moved to the right."""
    return s_.replace("\n", "\n" + " " * numSpaces)
