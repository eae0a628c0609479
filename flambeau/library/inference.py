"""From a function's annotations to an operator's schema: `torch.library.infer_schema`."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from flambeau._core.device import device
from flambeau._core.dtype import dtype
from flambeau._tensor.tensor import Tensor

NUMBER = typing.Union[int, float, bool]  # noqa: UP007
SCALARS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", NUMBER: "Scalar",
    dtype: "ScalarType", device: "Device",
}  # fmt: skip
"""Types of single values, as schemas spell them."""
LISTS = frozenset((list, collections.abc.Sequence))
IN_LISTS = frozenset(("Tensor", "SymInt", "float", "bool", "Scalar"))
RETURNS: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", NUMBER: "Scalar",
}  # fmt: skip


class _Function:
    """A function whose schema is wanted, and the errors about it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.signature = inspect.signature(function)
        self.hints = _hints(function)

    def error(self, text: str) -> ValueError:
        return ValueError(f"infer_schema(func): {text} Got func with signature {self.signature})")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    found = dict(getattr(function, "__annotations__", {}))
    if any(isinstance(hint, str) for hint in found.values()):
        try:
            return typing.get_type_hints(function)
        except NameError as error:
            raise ValueError(f"infer_schema(func): {error}: annotations have to be names that the "
                             "function's module knows.") from None  # fmt: skip
    return found


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None
) -> str:
    """The schema of a function with annotations: `(Tensor x, SymInt n=1) -> Tensor`.

    Args:
        prototype_function: every parameter and the result are annotated.
        mutates_args: the names of the arguments that it writes to, or "unknown": any.
        op_name: what to call it; the schema has no name without.

    Raises:
        ValueError: an annotation is missing, or none that an operator can have.
    """
    function = _Function(prototype_function)
    parts: list[str] = []
    seen: set[str] = set()
    for name, parameter in function.signature.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise function.error("We do not support positional-only args, varargs, or varkwargs.")
        seen.add(name)
        kind = _written(function, name, _spelled(function, name), mutates_args, len(seen) - 1)
        parts.append(f"{kind} {name}{_default(function, name, parameter)}")
    if mutates_args != "unknown":
        unknown = set(mutates_args) - seen
        if unknown:
            raise function.error(
                f"{unknown} in mutates_args were not found in the custom op's signature. "
                "mutates_args should contain the names of all args that the custom op mutates, or "
                "just the string 'unknown' if you don't know."
            )
    text = f"({', '.join(parts)}) -> {_result(function)}"
    return text if op_name is None else f"{op_name}{text}"


def _spelled(function: _Function, name: str) -> str:
    if name not in function.hints:
        raise function.error(f"Parameter {name} must have a type annotation.")
    found = spelled(function.hints[name])
    if found is None:
        raise function.error(
            f"Parameter {name} has unsupported type {function.hints[name]}. The valid types are: "
            f"{', '.join(map(repr, SCALARS))}, lists and sequences of these but for strings, "
            "element types and devices, and Optional of each."
        )
    return found


def spelled(hint: Any) -> str | None:
    """An annotation as schemas spell it; None if they have no such type."""
    if hint in SCALARS:
        return SCALARS[hint]
    if typing.get_origin(hint) in LISTS:
        (inner,) = typing.get_args(hint)
        element = spelled(inner)
        base = (element or "").removesuffix("?")
        return f"{element}[]" if base in IN_LISTS and element in (base, "Tensor?") else None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = typing.get_args(hint)
        others = tuple(member for member in members if member is not type(None))
        if len(others) < len(members):
            inner = typing.Union[others]  # noqa: UP007
            found = spelled(inner)
            return None if found is None or found.endswith("?") else f"{found}?"
        if set(members) == {int, float, bool}:
            return "Scalar"
    return None


def _written(function: _Function, name: str, text: str, mutates_args: Any, number: int) -> str:
    if mutates_args == "unknown":
        return text.replace("Tensor", f"Tensor(a{number}!)", 1) if "Tensor" in text else text
    if isinstance(mutates_args, str):
        raise ValueError("mutates_args must either be a sequence of the names of the arguments "
                         "that are mutated or the string 'unknown'. ")  # fmt: skip
    if name not in mutates_args:
        return text
    if not text.startswith("Tensor"):
        raise function.error(f"Parameter {name} is in mutable_args but only Tensors or "
                             "collections of Tensors can be mutated")  # fmt: skip
    return text.replace("Tensor", f"Tensor(a{number}!)", 1)


def _default(function: _Function, name: str, parameter: inspect.Parameter) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is None or isinstance(value, (int, float, bool)):
        return f"={value}"
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, dtype):
        return f"={value.name}"
    if isinstance(value, device):
        return f'="{value}"'
    raise function.error(
        f"Parameter {name} has an unsupported default value type {type(value)}. Please file an "
        "issue on GitHub so we can prioritize this."
    )


def _result(function: _Function) -> str:
    hints, signature = function.hints, function.signature
    if "return" not in hints and signature.return_annotation is inspect.Signature.empty:
        raise function.error("No return type annotation was provided. Please add one.")
    hint = hints.get("return")
    if hint is None or hint is type(None):
        return "()"
    if typing.get_origin(hint) is tuple:
        parts = [RETURNS.get(member) for member in typing.get_args(hint)]
        if all(parts):
            return f"({', '.join(map(str, parts))})"
    elif hint in RETURNS:
        return RETURNS[hint]
    elif typing.get_origin(hint) in LISTS and typing.get_args(hint) == (Tensor,):
        return "Tensor[]"
    raise function.error(
        f"Return has unsupported type {hint}. The valid types are: Tensor, int, float, bool, "
        "numbers, a list of tensors, and tuples of these."
    )
