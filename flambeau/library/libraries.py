"""Defining operators namespace by namespace: `torch.library.Library`, `define`, `impl`."""

from __future__ import annotations

import functools
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.jit.ir.function import FunctionSchema
from flambeau.jit.operators import table
from flambeau.library import overloads
from flambeau.library.operators import Operator, fallthrough_kernel, known_key

RESERVED = frozenset(("prim",))
KINDS = ("IMPL", "DEF", "FRAGMENT")
ONE_DEFINITION = (
    "Only a single TORCH_LIBRARY can be used to register the namespace {}; please put all of your "
    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to "
    "define operators for a single namespace in a distributed way, you can use "
    "TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous registration of TORCH_LIBRARY "
    "was registered at {}; latest registration was registered at {}"
)
TWICE = (
    "Tried to register an operator ({}) with the same name and overload name multiple times. Each "
    "overload's schema should only be registered with a single call to def(). Duplicate "
    "registration: registered at {}. Original registration: registered at {}"
)
OVERWRITTEN = (
    "Warning only once for all operators,  other operators may also be overridden.\n"
    "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
    "  operator: {}\n    registered at {}\n  dispatch key: {}"
)
QUALIFIED = (
    'Expected `qualname` to be of the form "namespace::name", but got {}. The qualname passed to '
    "the torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
)
UNKNOWN = "operator {} does not exist"
FLOAT = re.compile(r"(=\s*-?\d+\.)0\b(?!\d)")


class _Places:
    """Where namespaces and operators were registered, as errors tell."""

    namespaces: dict[str, str] = {}  # noqa: RUF012
    operators: dict[str, str] = {}  # noqa: RUF012


def _caller() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("flambeau."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def parsed(text: str) -> FunctionSchema:
    """The schema of an operator with its namespace; RuntimeError where it is malformed."""
    try:
        return table.schema(FLOAT.sub(r"\1", text))
    except ValueError as error:
        raise RuntimeError(str(error)) from None


def split_name(qualname: str) -> tuple[str, str]:
    """Namespace and name of `mylib::double`.

    Raises:
        ValueError: there are not these two.
    """
    parts = qualname.split("::")
    if len(parts) != 2:  # noqa: PLR2004
        raise ValueError(QUALIFIED.format(qualname))
    return parts[0], parts[1]


def operator_of(op: Any) -> Operator:
    """The operator of a name ("mylib::double"), an overload or what `custom_op` has made.

    Raises:
        RuntimeError: no program has defined it.
    """
    name = getattr(op, "_qualname", None) or getattr(op, "_name", None) or str(op)
    getattr(overloads.ops, name.partition("::")[0])  # some namespaces come with flambeau
    known = overloads.DEFINED.get(name.removesuffix(".default"))
    if known is None:
        raise RuntimeError(UNKNOWN.format(name))
    return known  # type: ignore[no-any-return]


def register(operator: Operator, key: str, kernel: Callable[..., Any]) -> None:
    """File a kernel under a key."""
    operator.kernels[known_key(key)] = kernel


class Library:
    """Defines operators of a namespace, or brings kernels for them, until it is destroyed.

    Args:
        ns: the namespace.
        kind: "DEF" defines its operators (one library alone may), "FRAGMENT" does so in parts, and
            "IMPL" brings kernels for operators that are there.
        dispatch_key: for which key kernels are filed that name none.

    Raises:
        ValueError: another kind, or a namespace that is taken by PyTorch.
        RuntimeError: another library defines the namespace.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in KINDS:
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        place = _caller()
        if kind == "DEF":
            if ns in _Places.namespaces:
                raise RuntimeError(ONE_DEFINITION.format(ns, _Places.namespaces[ns], place))
            _Places.namespaces[ns] = place
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[Operator] = []
        self._undo: list[Callable[[], Any]] = []
        self._finalizer = weakref.finalize(self, _destroy, ns, kind, self._defined, self._undo)
        self._finalizer.atexit = False

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator; its name is the result.

        Args:
            schema: `double(Tensor x, int n=1) -> Tensor`.
            alias_analysis: "" or "CONSERVATIVE": arguments may be written to, whatever it says.
            tags: a `torch.Tag`, or several.

        Raises:
            RuntimeError: the schema is malformed, or there is an operator of that name.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError(
                "def(): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block."
            )
        text, place = f"{self.ns}::{schema}", _caller()
        name = text.partition("(")[0].strip()
        if name in _Places.operators:
            raise RuntimeError(TWICE.format(text, place, _Places.operators[name]))
        made = parsed(text)
        _Places.operators[name] = place
        listed = tags if isinstance(tags, (list, tuple)) else (tags,)
        operator = Operator(made, listed)
        overloads.define(operator)
        self._defined.append(operator)
        for key, kernel in WAITING.pop(operator.name, ()):
            register(operator, key, kernel)
        return made.full_name.partition("::")[2]

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *,
             with_keyset: bool = False, allow_override: bool = False) -> None:  # fmt: skip
        """File a kernel of an operator of this namespace.

        Args:
            op_name: `double`, or an overload of `torch.ops`.
            fn: what computes it; `fallthrough_kernel` for none.
            dispatch_key: "CPU", "Meta", "CompositeImplicitAutograd", … By default the library's.

        Raises:
            RuntimeError: there is no such key, or a kernel of PyTorch's own operators is brought.
        """
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset is not there yet")
        key = known_key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        name = getattr(op_name, "_name", None) or f"{self.ns}::{op_name.rpartition('::')[2]}"
        name = name.removesuffix(".default")
        operator = overloads.DEFINED.get(name)
        if operator is None:
            if self.ns == "aten":
                raise NotImplementedError(
                    f"Library.impl: kernels of PyTorch's own operators ({name}) cannot be replaced"
                )
            WAITING.setdefault(name, []).append((key, fn))
            return
        if key in operator.kernels and not allow_override:
            warnings.warn(
                OVERWRITTEN.format(operator.schema, _Places.operators[name], key), stacklevel=2
            )
        register(operator, key, fn)
        self.undo(functools.partial(operator.kernels.pop, key, None))

    def undo(self, action: Callable[[], Any]) -> None:
        """What has to be done when this library is destroyed."""
        self._undo.append(action)

    def _destroy(self) -> None:
        """Forget what was defined and filed."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


WAITING: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
"""Kernels of operators that are not defined yet."""


def _destroy(ns: str, kind: str, defined: list[Operator], undo: list[Callable[[], Any]]) -> None:
    for action in undo:
        action()
    for operator in defined:
        _Places.operators.pop(operator.name, None)
        overloads.undefine(operator)
    if kind == "DEF":
        _Places.namespaces.pop(ns, None)


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for a region."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_kept: dict[str, Library] = {}


def library_of(namespace: str) -> Library:
    """The library that functions without one define operators in; it stays."""
    if namespace not in _kept:
        _kept[namespace] = Library(namespace, "FRAGMENT")
    return _kept[namespace]


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define an operator: `define("mylib::double", "(Tensor x) -> Tensor")`.

    Raises:
        ValueError: the name has no namespace.
        RuntimeError: the schema is malformed, or there is an operator of that name.
    """
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = split_name(qualname)
    (library_of(namespace) if lib is None else lib).define(f"{name}{schema}", tags=tags)


KEY_OF_TYPE = {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS", "meta": "Meta",
               "default": "CompositeExplicitAutograd"}  # fmt: skip


def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *,
         lib: Library | None = None) -> Any:  # fmt: skip
    """File a kernel by types of devices: "cpu", "cuda", several of these, or "default" for all.

    Without `func` it is a decorator.
    """
    if func is None:
        return functools.partial(_impl_of, qualname, types, lib)
    _impl_of(qualname, types, lib, func)
    return None


def _impl_of(qualname: str, types: Any, lib: Library | None, func: Any) -> Any:
    namespace, name = split_name(qualname)
    found = library_of(namespace) if lib is None else lib
    for kind in (types,) if isinstance(types, str) else types:
        if kind not in KEY_OF_TYPE:
            raise RuntimeError(f"Expected one of {', '.join(KEY_OF_TYPE)} device type at start of "
                               f"device string: {kind}")  # fmt: skip
        found.impl(name, func, KEY_OF_TYPE[kind])
    return func


__all__ = ["Library", "define", "fallthrough_kernel", "impl"]
