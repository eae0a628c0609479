"""Values of an archive, out of its pickles: tensors, lists, objects of the archive's own classes.

The pickles are run by the interpreter of `flambeau.serialization`, which imports nothing. A name
that begins with `__torch__` is a class of the archive's code; of others only those below exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any

from flambeau._core.device import device
from flambeau._tensor.tensor import Tensor
from flambeau.jit.archive.typing import Typing
from flambeau.jit.ir import types as T
from flambeau.jit.ir.values import ScriptObject
from flambeau.jit.modules.script_module import RecursiveScriptModule, ScriptModule, fill
from flambeau.serialization.allowed import AllowedGlobals, Row
from flambeau.serialization.checks import brief, expect
from flambeau.serialization.opcodes import HANDLERS
from flambeau.serialization.rebuild import TORCH_ROWS
from flambeau.serialization.unpickler import SafeUnpickler

PREFIX = "__torch__"


@dataclass(frozen=True, slots=True)
class Named:
    """A class of the archive's code, as a pickle names it."""

    type: T.Type


@dataclass(slots=True, eq=False)
class Bare:
    """An object whose attributes have not come yet."""

    type: T.ClassType
    value: Any


def read_pickle(data: memoryview, find_type: Callable[[str], T.Type], storages: Any,
                type_of_text: Callable[[str], T.Type]) -> Any:  # fmt: skip
    """The value of a pickle.

    find_type: the class of a qualified name. type_of_text: a type that is written as text.

    Raises:
        UnpicklingError: the pickle is damaged, or names or does something that archives do not.
    """
    names = _Names(find_type, type_of_text)
    machine = _Machine(data, names, storages)
    result = machine.load()
    expect(machine.position == len(data), "the pickle goes on behind its end")
    return finished(result)


class _Names(AllowedGlobals):
    """What a pickle of an archive may name."""

    def __init__(self, find_type: Callable[[str], T.Type],
                 type_of_text: Callable[[str], T.Type]) -> None:  # fmt: skip
        self.find_type = find_type
        self.named: dict[str, Named] = {}
        self.typing = Typing()

        def restore_type_tag(value: Any, text: Any) -> Any:
            expect(type(text) is str, "a type tag is text")
            type_of_text(text)
            return value

        builders = {f"torch.jit._pickle.{name}": Row(function, call=function)
                    for name, function in BUILDERS.items()}  # fmt: skip
        rows = {**TORCH_ROWS, **builders,
                "torch.jit._pickle.restore_type_tag": Row(restore_type_tag, call=restore_type_tag),
                "torch.device": Row(device, call=_device),
                "builtins.complex": Row(complex, call=complex)}  # fmt: skip
        super().__init__(rows)

    def find(self, module: str, name: str, *, old_names: bool) -> Any:
        """A class of the archive, or one of the few functions."""
        if module != PREFIX and not module.startswith(f"{PREFIX}."):
            return super().find(module, name, old_names=old_names)
        qualified = f"{module}.{name}"
        found = self.named.get(qualified)
        if found is None:
            found = self.named[qualified] = Named(self.find_type(qualified))
        return found

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """An object without attributes."""
        if not isinstance(cls, Named):
            return super().create(cls, arguments, keywords)
        kind = cls.type
        expect(isinstance(kind, T.ClassType) and not arguments and not keywords,
               f"{kind} cannot be constructed in a pickle")  # fmt: skip
        assert isinstance(kind, T.ClassType)
        value = RecursiveScriptModule() if kind.is_module else ScriptObject(kind)
        return Bare(kind, value)

    def build(self, instance: Any, state: Any) -> None:
        """Give an object its attributes."""
        if not isinstance(instance, Bare):
            return super().build(instance, state)
        setter = instance.type.methods.get("__setstate__")
        if setter is not None:
            return _set_state(instance, setter, finished(state))
        expect(type(state) is dict, "the state of an object is a dict")
        _set_attributes(instance, finished(state), self.typing)
        return None

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """A member of an enumeration, or one of the few functions."""
        if not isinstance(function, Named):
            return super().call(function, tuple(map(finished, arguments)))
        kind = function.type
        expect(isinstance(kind, T.EnumType), f"{kind} cannot be called in a pickle")
        assert isinstance(kind, T.EnumType)
        value = arguments[0] if len(arguments) == 1 else arguments
        try:
            return kind.python(value)
        except ValueError:
            raise UnpicklingError(f"{brief(value)} is no value of {kind}") from None


def _set_state(instance: Bare, setter: Any, state: Any) -> None:
    """Attributes are what the class's own `__setstate__` makes of the state."""
    if isinstance(instance.value, ScriptModule):
        blank = dict.fromkeys(instance.type.attributes)
        fill(instance.value, instance.type, blank)
    setter(instance.value, state)


def _set_attributes(instance: Bare, state: dict[Any, Any], typing: Typing) -> None:
    kind = instance.type
    values = {}
    for name, attribute in kind.attributes.items():
        if name not in state:
            expect(isinstance(attribute.type, T.OptionalType) or attribute.type == T.NONE,
                   f"{kind} has no value for its attribute {name!r}")  # fmt: skip
        values[name] = typing.accurate(state.get(name), attribute.type, f"{kind}.{name}")
    unknown = [name for name in state if name not in kind.attributes]
    expect(not unknown, f"{kind} has no attribute {unknown[:1]}")
    if isinstance(instance.value, ScriptModule):
        fill(instance.value, kind, values)
    else:
        instance.value.__dict__.update(values)


def finished(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """A value without marks of the interpreter. seen: lists and dictionaries that are done."""
    if isinstance(value, Bare):
        expect("_type" in value.value.__dict__, f"{value.type} is used before it has attributes")
        return value.value
    if isinstance(value, Named):
        raise UnpicklingError(f"{value.type} is no value")
    if type(value) not in (tuple, list, dict):
        return value
    seen = {} if seen is None else seen
    if id(value) in seen:
        return seen[id(value)][1]
    result = value
    if type(value) is tuple:
        result = tuple(finished(item, seen) for item in value)
    elif type(value) is list:
        seen[id(value)] = (value, value)
        value[:] = [finished(item, seen) for item in value]
    else:
        seen[id(value)] = (value, value)
        for key, item in value.items():
            value[key] = finished(item, seen)
    seen[id(value)] = (value, result)
    return result


# ---- functions that pickles call


def _list_of(*classes: type) -> Callable[..., list[Any]]:
    def build(items: Any) -> list[Any]:
        expect(type(items) is list, "a list is built of a list")
        for item in items:
            fits = isinstance(item, classes) and (bool in classes or not isinstance(item, bool))
            expect(fits or (item is None and Tensor in classes), "a list holds one type of values")
        return items

    return build


BUILDERS = {"build_intlist": _list_of(int), "build_doublelist": _list_of(float),
            "build_boollist": _list_of(bool), "build_tensorlist": _list_of(Tensor)}  # fmt: skip


def _device(text: Any) -> device:
    expect(type(text) is str, "a device is named by text")
    try:
        return device(text)
    except RuntimeError as error:
        raise UnpicklingError(str(error)) from None


def _reduce(machine: SafeUnpickler) -> None:
    """REDUCE; for a member of an enumeration its argument is the value itself."""
    arguments = machine.pop()
    function = machine.pop()
    if type(arguments) is not tuple or isinstance(function, Named):
        arguments = (arguments,)
    machine.push(machine.allowed.call(function, arguments))


class _Machine(SafeUnpickler):
    """The interpreter, for the pickles of archives."""

    handlers = {**HANDLERS, ord("R"): _reduce}
