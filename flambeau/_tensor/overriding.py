"""`__torch_function__`: classes that take over what functions of torch do with their objects.

A subclass of Tensor that takes part gets the class `Guarded` before Tensor in its order of bases.
For generated call paths its tensors have no `_data`, just as sparse tensors have none; only there,
where the array is not found, is it asked who wants to take over: plain tensors pay nothing.
`Guarded` also has a `Stand` for each method and property of Tensor, which asks the same.

The protocol is off inside of `off`, where the default implementation runs the function itself.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable
from functools import partial
from types import BuiltinFunctionType, MethodDescriptorType
from typing import Any

from flambeau._core import modes
from flambeau._core.class_homes import own_module
from flambeau._core.dtype import dtype
from flambeau._core.missing import MissingAttribute
from flambeau._core.once import Once
from flambeau._tensor.attributes import fields_of
from flambeau._tensor.method_names import IN_PYTHON
from flambeau._tensor.tensor import Tensor, provides


class State(threading.local):
    """Per thread: whether subclasses and other classes are left alone."""

    off: bool = False
    skipping: bool = False  # the next function that asks is not to: see `redispatch_function`


state = State()


class off:
    """Functions of torch take subclasses for plain tensors in this region.

    >>> import flambeau as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> x = torch.ones(1).as_subclass(Named)
    >>> with torch._C.DisableTorchFunctionSubclass():
    ...     y = x + 1
    >>> type(y).__name__, type(x + 1).__name__
    ('Tensor', 'Named')
    """

    def __enter__(self) -> None:
        self.before = state.off
        state.off = True

    def __exit__(self, *exc: object) -> None:
        state.off = self.before


class off_with_modes(off):
    """The same for modes.

    >>> import flambeau as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> x = torch.ones(1).as_subclass(Named)
    >>> with torch._C.DisableTorchFunction():
    ...     y = x + 1
    >>> type(y).__name__, type(x + 1).__name__
    ('Tensor', 'Named')
    """

    def __enter__(self) -> None:
        super().__enter__()
        self.modes = modes.stacks.function_modes
        modes.stacks.function_modes = []

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        modes.stacks.function_modes = self.modes


def taking_part(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the user inside of `off`."""
    before = state.off
    state.off = False
    try:
        return function(*args)
    finally:
        state.off = before


class Overridden(AttributeError):
    """Raised where a call path looks for the array of a tensor whose class takes part."""


# ---- who takes over


PLAIN: set[type] = {Tensor, int, float, bool, str, type(None), slice, type(...), complex, dtype}
"""Classes that never take part."""


def disabled(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """The `__torch_function__` of classes that do not take part: the function itself."""
    if _is_foreign(func):
        return NotImplemented
    with off():
        return func(*args, **(kwargs or {}))


def takes_part(value: Any) -> bool:
    """Whether the class of a value has a `__torch_function__`, or is a subclass of Tensor."""
    kind = type(value)
    if kind in PLAIN:
        return False
    found = getattr(kind, "__torch_function__", None)
    if found is disabled and own_module(kind).startswith("flambeau."):
        PLAIN.add(kind)
    if getattr(found, "__func__", None) is _default() and hasattr(kind, "__torch_dispatch__"):
        return False  # such a class has said where it wants to be asked
    return found is not None and found is not disabled and not _of_pytorch(found)


def _default() -> Any:
    return default


def _of_pytorch(function: Any) -> bool:
    """Whether this is what PyTorch gives its own tensors or parameters, where both libraries are in
    a process: it calls the function again, which would ask it again."""
    named = getattr(function, "__module__", None) == "torch._tensor"
    return named or isinstance(function, BuiltinFunctionType)


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The arguments to be asked, one of each class: subclasses first, then from left to right.

    Those in tuples and lists count too; plain tensors do not.
    """
    found: list[Any] = []
    if state.off:
        return found
    if state.skipping:
        state.skipping = False
        return found
    for value in values:
        if type(value) in (tuple, list):
            for item in value:
                _add(found, item)
        else:
            _add(found, value)
    return found


def _add(found: list[Any], value: Any) -> None:
    if takes_part(value):
        begin()
        add_to(found, value)


def add_to(found: list[Any], value: Any) -> None:
    """Put an argument where its class is to be asked, unless the class is there already."""
    if type(value) in map(type, found):
        return
    for place, other in enumerate(found):
        if isinstance(value, type(other)):
            found.insert(place, value)
            return
    found.append(value)


def handle(
    function: Callable[..., Any], found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What the innermost mode, or the first argument that does not decline, makes of a call.

    Raises:
        TypeError: all of them returned NotImplemented.
    """
    types = tuple([getattr(type(value), "without_bit", type(value)) for value in found])
    if modes.stacks.function_modes:
        result = _by_mode(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in found:
        result = value.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise TypeError(_refusal(function, types))


def _by_mode(function: Any, types: tuple[type, ...], args: Any, kwargs: Any) -> Any:
    """The answer of the innermost mode; while it runs, the next one is innermost."""
    stack = modes.stacks.function_modes
    mode = stack[-1]
    try:
        del stack[-1]
        if getattr(mode.__torch_function__, "__self__", mode) is type(mode):
            raise RuntimeError("Defining your mode's `__torch_function__` as a classmethod is not "
                               "supported, please make it a plain method")  # fmt: skip
        return mode.__torch_function__(function, types, args, kwargs)
    finally:
        stack.append(mode)


def _refusal(function: Any, types: tuple[type, ...]) -> str:
    name = public_name(function)
    if name.startswith(WRITTEN_IN_PYTHON):
        return (f"no implementation found for '{name}' on types that implement "
                f"__torch_function__: {list(types)}")  # fmt: skip
    listed = "".join(f"  - tensor subclass {kind}\n" for kind in types)
    if modes.stacks.function_modes:
        listed = f"  - mode object {modes.stacks.function_modes[-1]}\n{listed}"
    return (f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned "
            f"NotImplemented:\n\n{listed}\nFor more information, try re-running with "
            "TORCH_LOGS=not_implemented")  # fmt: skip


WRITTEN_IN_PYTHON = ("torch.nn.functional.", "torch.functional.", "torch._tensor.")
"""How the names of functions begin that torch writes in Python, which refuse in other words."""


def public_name(function: Any) -> str:
    """A function's full name as users write it."""
    name = getattr(function, "__name__", "")
    if vars(Tensor).get(name) is function:
        return f"torch._tensor.{name}" if name in IN_PYTHON else f"torch.Tensor.{name}"
    module = getattr(function, "__module__", None) or "torch"
    head, _, rest = module.partition(".")
    if head == "flambeau":
        module = "torch" if rest.startswith("_") else f"torch.{rest}"
    return f"{module}.{getattr(function, '__name__', function)}"


def asks(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is no row, whose calls classes among its arguments may take over."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        taken, result = asked(call, args, kwargs)
        return result if taken else function(*args, **kwargs)

    return call


def asked(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[bool, Any]:
    """Whether somebody took a call over, and what came of it."""
    found = overloaded((*args, *kwargs.values()))
    return (True, handle(function, found, args, kwargs)) if found else (False, None)


# ---- the default of Tensor


def default(
    cls: type,
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Run a function as for plain tensors, and make what it gives tensors of this class."""
    if _is_foreign(func):
        return NotImplemented
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with off():
        result = func(*args, **(kwargs or {}))
    if func in unconverted():
        return result
    with off_with_modes():
        return convert(result, cls)


def _is_foreign(function: Any) -> bool:
    """Whether a function is of PyTorch itself, where both libraries are in a process: in C, or in a
    file of its own. Called again, it would ask again."""
    if isinstance(function, (BuiltinFunctionType, MethodDescriptorType)):
        return True
    file = getattr(function, "__globals__", {}).get("__name__", "")
    return file.partition(".")[0] == "torch"  # type: ignore[no-any-return]


def unconverted() -> set[Callable[..., Any]]:
    """Functions whose results keep their class."""
    return {Tensor.grad.__get__}  # type: ignore[attr-defined]


def convert(result: Any, cls: type) -> Any:
    """Plain tensors, also those in tuples and lists, as tensors of a class."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(result, (tuple, list)):
        make = getattr(result, "_make", type(result))
        return make([convert(item, cls) for item in result])
    return result


Tensor.__torch_function__ = classmethod(default)  # type: ignore[attr-defined]


def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """The memory of `data` as a leaf of a subclass, without history."""
    with off():
        result = data.detach().as_subclass(cls)  # type: ignore[attr-defined]
        result._requires_grad = bool(require_grad)
    return result


def _make_wrapper_subclass(cls: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor of a class with `__torch_dispatch__`, without memory: see `wrappers`."""
    from flambeau._tensor.wrappers import make_wrapper

    return make_wrapper(cls, size, *args, **kwargs)


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]
Tensor._make_wrapper_subclass = staticmethod(  # type: ignore[attr-defined]
    _make_wrapper_subclass
)


# ---- subclasses of Tensor


class Guarded:
    """What subclasses that take part have before Tensor's own attributes."""

    __slots__ = ()  # else it would bring a `__dict__` with Tensor's fields in it

    @property
    def _data(self) -> Any:
        if not state.off and sys._getframe(1).f_code.co_filename.startswith("<flambeau"):
            raise Overridden(f"a tensor of class {type(self).__name__}")
        return fields_of(self)["_data"]

    @_data.setter
    def _data(self, value: Any) -> None:
        fields_of(self)["_data"] = value


class Stand:
    """Stands for a method or property of Tensor that may be taken over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.function = CALLED.get(name, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return getattr(Tensor, self.name)
        found = getattr(Tensor, self.name if state.off else self.function)
        if isinstance(found, property):
            return found.__get__(instance) if state.off else self._ask(found.__get__, instance)
        if state.off:
            return found.__get__(instance, owner)
        return partial(self._ask_operator if self.name in BINARY else self._ask, found, instance)

    def _ask(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        taken, result = asked(function, args, kwargs)
        return result if taken else function(*args, **kwargs)

    def _ask_operator(self, function: Callable[..., Any], *args: Any) -> Any:
        """Python tries the other operand's class where nobody takes an operator over."""
        try:
            return self._ask(function, *args)
        except TypeError:
            return NotImplemented


class SettableStand(Stand):
    """The same for a property that can be set."""

    def __set__(self, instance: Any, value: Any) -> None:
        setter = getattr(Tensor, self.name).__set__
        if state.off:
            setter(instance, value)
        else:
            self._ask(setter, instance, value)

    def __delete__(self, instance: Any) -> None:
        self._ask(getattr(Tensor, self.name).__delete__, instance)


CALLED = {
    **dict.fromkeys(("__add__", "__radd__"), "add"), "__iadd__": "add_",
    "__sub__": "sub", "__isub__": "sub_",
    **dict.fromkeys(("__mul__", "__rmul__"), "mul"), "__imul__": "mul_",
    "__truediv__": "div", "__itruediv__": "div_", "__ifloordiv__": "floor_divide_",
    "__mod__": "remainder", "__imod__": "remainder_", "__matmul__": "matmul",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
    "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne",
    "__neg__": "neg", "__pos__": "positive", "__abs__": "abs",
}  # fmt: skip
"""The methods that Python's operators call; the others are methods of their own."""
BINARY = frozenset(
    "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ "
    "__rdiv__ __rfloordiv__ __mod__ __rmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __and__ "
    "__rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __lt__ "
    "__le__ __gt__ __ge__ __eq__ __ne__ __iadd__ __isub__ __imul__ __itruediv__ __idiv__ "
    "__ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__".split()
)
IGNORED = frozenset(
    "__new__ __init__ __init_subclass__ __class__ __dict__ __doc__ __module__ __weakref__ "
    "__annotations__ __hash__ __getattribute__ __getattr__ __setattr__ __delattr__ __dir__ "
    "__iter__ __subclasshook__ __torch_function__ __array_priority__ __slots__ as_subclass "
    "_make_subclass _make_wrapper_subclass __setstate__ __sizeof__ __getstate__".split()
)
"""Attributes of Tensor that nobody takes over."""


def stands() -> dict[str, Stand]:
    """A stand for each public method and property of Tensor."""
    found = {}
    for name, value in vars(Tensor).items():
        private = name.startswith("_") and not name.endswith("__") and name != "_version"
        if private or name in IGNORED or not hasattr(type(value), "__get__"):
            continue
        if isinstance(value, (staticmethod, classmethod, MissingAttribute)):
            continue
        settable = hasattr(type(value), "__set__")
        found[name] = SettableStand(name) if settable else Stand(name)
    return found


first_class: list[Callable[[], None]] = []
"""What has to be done when the first class takes part."""


@provides("order_of_bases")
def order_of_bases(cls: type, order: list[type]) -> list[type]:
    """The bases of a new class, with `Guarded` among them if the class takes part."""
    for base in order:
        if "__torch_function__" in vars(base):
            own = vars(base)["__torch_function__"]
            break
    if base is Tensor and any("__torch_dispatch__" in vars(one) for one in order):
        return order
    if getattr(own, "__func__", own) is disabled or Guarded in order:
        return order
    begin()
    place = order.index(Tensor)
    return [*order[:place], Guarded, *order[place:]]


@Once
def begin() -> None:
    """From now on there are classes that take part."""
    modes.watch.overriding = True
    for name, stand in stands().items():
        setattr(Guarded, name, stand)
    for action in first_class:
        action()
