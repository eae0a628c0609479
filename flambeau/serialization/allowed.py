"""What a file may name: the globals of a safe load, and the list that users add to.

Each row says which value a name stands for and which function runs when the pickle calls it. A
row without such a function is a plain value.
"""

from __future__ import annotations

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any

from flambeau.serialization.checks import Keys, brief, expect, is_dunder
from flambeau.serialization.homes import public_packages

# Never allowed, not even by the user's word.
BLOCKED_MODULES = frozenset(("sys", "os", "posix", "nt"))


@dataclass(frozen=True, slots=True)
class Row:
    """One allowed global: its value and what REDUCE, NEWOBJ and BUILD do with it."""

    value: Any
    call: Callable[..., Any] | None = None
    create: Callable[..., Any] | None = None
    build: Callable[[Any, Any], None] | None = None


class AllowedGlobals:
    """The rows of one load: the given ones and those that the user has added."""

    def __init__(self, rows: dict[str, Row]) -> None:
        self.rows = {**user_rows(), **STANDARD_ROWS, **rows}
        self._by_identity = {id(row.value): row for row in self.rows.values()}

    def find(self, module: str, name: str, *, old_names: bool) -> Any:
        """The value that a GLOBAL stands for; UnpicklingError in torch's words if blocked."""
        if old_names:
            module, name = modern_name(module, name)
        full_name = f"{module}.{name}"
        if module in BLOCKED_MODULES:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full_name} whose module {module} is blocked."
            )
        for package in (module, *public_packages(module)):
            row = self.rows.get(f"{package}.{name}")
            if row is not None:
                return row.value
        raise UnpicklingError(blocked_message(full_name))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Run REDUCE."""
        row = self._by_identity.get(id(function))
        if row is None or row.call is None:
            raise UnpicklingError(
                f"Trying to call reduce for unrecognized function {brief(function)}"
            )
        return _guarded(row.call, arguments, {})

    def create(self, cls: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run NEWOBJ."""
        row = self._by_identity.get(id(cls))
        if row is None or row.create is None:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted "
                f"via `add_safe_globals` but got {brief(cls)}"
            )
        return _guarded(row.create, arguments, keywords)

    def build(self, instance: Any, state: Any) -> None:
        """Run BUILD."""
        row = self._by_identity.get(id(type(instance)))
        if row is None or row.build is None:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted "
                f"via `add_safe_globals`, but got {type(instance)}"
            )
        _guarded(row.build, (instance, state), {})


def _guarded(
    function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Call; arguments that do not fit the function are the file's fault."""
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError) as error:
        raise UnpicklingError(f"arguments in the pickle do not fit: {error}") from error


def modern_name(module: str, name: str) -> tuple[str, str]:
    """Today's name of a global from Python 2, which protocols below 3 use."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


def blocked_message(full_name: str) -> str:
    """Torch's sentence for a global that is not allowed, with the call that allows it."""
    shown = full_name.removeprefix("builtins.")
    return (
        f"Unsupported global: GLOBAL {shown} was not an allowed global by default. "
        f"Please use `torch.serialization.add_safe_globals([{shown}])` or the "
        f"`torch.serialization.safe_globals([{shown}])` context manager to allowlist this global "
        "if you trust this class/function."
    )


# ---- rows of the standard library


def _ordered_dict(*arguments: Any) -> OrderedDict[Any, Any]:
    result: OrderedDict[Any, Any] = OrderedDict()
    if not arguments:
        return result
    expect(len(arguments) == 1 and type(arguments[0]) is list, "OrderedDict takes a list of pairs")
    keys = Keys()
    for pair in arguments[0]:
        expect(type(pair) in (list, tuple) and len(pair) == 2, "OrderedDict takes a list of pairs")
        result[keys.checked(pair[0])] = pair[1]
    return result


def _build_ordered_dict(instance: Any, state: Any) -> None:
    expect(
        type(state) is dict and all(type(key) is str for key in state),
        f"the state of an OrderedDict must be a dict with str keys, got {type(state)}",
    )
    for name in state:
        # `items` from a file would be found before the method.
        is_free = not is_dunder(name) and not hasattr(OrderedDict, name)
        expect(is_free, f"{brief(name)} cannot be set on an OrderedDict")
    instance.__dict__.update(state)


def _counter(*arguments: Any) -> Counter[Any]:
    if not arguments:
        return Counter()
    expect(len(arguments) == 1 and type(arguments[0]) is dict, "Counter takes a dict")
    result: Counter[Any] = Counter()
    dict.update(result, arguments[0])
    return result


def _set(*arguments: Any) -> set[Any]:
    if not arguments:
        return set()
    expect(len(arguments) == 1 and type(arguments[0]) is list, "set takes a list")
    keys = Keys()
    return {keys.checked(item) for item in arguments[0]}


def _complex(real: Any, imaginary: Any) -> complex:
    expect(type(real) is float and type(imaginary) is float, "complex takes two floats")
    return complex(real, imaginary)


def _encode(text: Any, encoding: Any) -> bytes:
    is_latin = encoding in ("latin1", "latin-1")
    expect(type(text) is str and is_latin, "_codecs.encode takes a str and 'latin1'")
    return bytes(text, "latin1")


def _bytearray(*arguments: Any) -> bytearray:
    if not arguments:
        return bytearray()
    if len(arguments) == 2:
        return bytearray(_encode(*arguments))
    # bytearray(10**12) would reserve a terabyte; only content is accepted.
    expect(len(arguments) == 1 and type(arguments[0]) is bytes, "bytearray takes bytes")
    return bytearray(arguments[0])


def _bytes(*arguments: Any) -> bytes:
    # Protocol 2 writes b"" as a call of `bytes`; bytes(10**12) would reserve a terabyte.
    expect(not arguments, "bytes takes no arguments in a pickle")
    return b""


class _Encode:
    """Stands for `_codecs.encode`, which protocol 2 uses to write bytes."""


STANDARD_ROWS = {
    "collections.OrderedDict": Row(OrderedDict, _ordered_dict, build=_build_ordered_dict),
    "collections.Counter": Row(Counter, _counter),
    "_codecs.encode": Row(_Encode, _encode),
    "builtins.bytes": Row(bytes, _bytes),
    "builtins.bytearray": Row(bytearray, _bytearray),
    "builtins.set": Row(set, _set),
    "builtins.complex": Row(complex, _complex),
}
COPYING = {id(row.value) for row in STANDARD_ROWS.values()}
"""What copies the containers and bytes that it is called with, by identity."""


# ---- the user's list

_user_globals: list[Any] = []


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow functions and classes, or pairs of one and the full name it has in files."""
    for entry in safe_globals:
        if entry not in _user_globals:
            _user_globals.append(entry)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has added."""
    return list(_user_globals)


def clear_safe_globals() -> None:
    """Forget everything that `add_safe_globals` has added."""
    _user_globals.clear()


class safe_globals:
    """Allow functions and classes inside a `with` block."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.safe_globals = list(safe_globals)

    def __enter__(self) -> None:
        self.previous = list(_user_globals)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exc: object) -> None:
        _user_globals[:] = self.previous


def user_rows() -> dict[str, Row]:
    """The user's list as rows. Raises ValueError or TypeError for a malformed pair."""
    return dict(_user_row(entry) for entry in _user_globals)


def _user_row(entry: Any) -> tuple[str, Row]:
    # Imported here because names.py needs this module's rows.
    from flambeau.serialization.names import torch_name

    if not isinstance(entry, tuple):
        module, name = torch_name(entry) or (entry.__module__, entry.__qualname__)
        return f"{module}.{name}", _row_of(entry)
    if len(entry) != 2:
        raise ValueError(
            "Expected tuple of length 2 (global, str of callable full path), "
            f"but got tuple of length: {len(entry)}"
        )
    value, name = entry
    if type(name) is not str:
        raise TypeError(
            f"Expected second item in tuple to be str of callable full path, but got: {type(name)}"
        )
    return name, _row_of(value)


def _row_of(value: Any) -> Row:
    if getattr(value, "__module__", "").startswith("numpy"):
        from flambeau.serialization.numpy_rows import replacement

        checked = replacement(value)
        if checked is not None:
            return Row(value, checked[0], build=checked[1])
    if not isinstance(value, type):
        return Row(value, value)
    return Row(value, value, _creator(value), _build_object)


def _creator(cls: type) -> Callable[..., Any]:
    return lambda *arguments, **keywords: cls.__new__(cls, *arguments, **keywords)


def _build_object(instance: Any, state: Any) -> None:
    """What pickle's BUILD does: `__setstate__`, or `__dict__` and slots."""
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
        return
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    if state:
        instance.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(instance, name, value)
