"""From schemas to Python signatures, and from wrong arguments to torch's error texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flambeau._core import dtype as dt
from flambeau._core.device import device
from flambeau._core.layout import _Constant
from flambeau._ops.table.op import ALIASES, Op
from flambeau._ops.table.schema import REQUIRED, Argument
from flambeau._tensor.tensor import Tensor

NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims", "dims": "axes"}
"""NumPy's names for parameters, accepted beside torch's."""


def python_name(op: Op, argument: Argument) -> str:
    """The parameter's name in Python: `self` is `input` in functions, but for lists."""
    if argument.is_list:
        return argument.name
    known = op.python_names.get(argument.name)
    return known or PYTHON_NAMES.get(argument.name, argument.name)


PYTHON_NAMES = {"self": "input", "from": "from_", "lambda": "lambda_"}
"""Parameters of schemas that functions call otherwise, where a row does not say how."""


def takes_size_list(op: Op) -> bool:
    """Whether `x.view(2, 3)` may stand for `x.view((2, 3))`: the only positional is a list."""
    rest = [a for a in op.schema.arguments if a.name != "self" and not a.keyword_only]
    return len(rest) == 1 and rest[0].is_list and rest[0].type == "int" and (
        rest[0].length is None and op.name not in ("sum", "mean")
    )  # fmt: skip


def not_a_list(op: Op, args: tuple[Any, ...]) -> TypeError:
    """Torch's error where a function is given sizes one by one, or one alone."""
    if len(args) > 2:  # noqa: PLR2004
        return TypeError(f"{op.public}() takes 2 positional arguments but {len(args)} were given")
    name = op.schema.arguments[1].name
    return TypeError(f"{op.public}(): argument '{name}' (position 2) must be tuple of ints, not "
                     f"{type(args[1]).__name__}")  # fmt: skip


def signature_text(op: Op, extra: str = "", *, earlier: bool = True) -> str:
    """The parameter list of the generated function; defaults are `default_<name>`. `earlier`: with
    those of earlier forms."""
    parts = []
    keyword_only = False
    for argument in op.schema.arguments:
        name = python_name(op, argument)
        if argument.keyword_only and not keyword_only:
            keyword_only = True
            parts += [f"{more}=None" for more in earlier_parameters(op)] if earlier else []
            parts.append("*")
        if argument.default is REQUIRED:
            parts.append(name)
        else:
            parts.append(f"{name}=default_{name}")
    if extra:
        parts += ([] if keyword_only else ["*"]) + [extra]
    return ", ".join(parts)


def earlier_numbers(op: Op) -> list[str]:
    """The numbers that an earlier form of a row takes by position: see `earlier_forms`."""
    if not op.earlier:
        return []
    return [a.name for a in op.schema.arguments if a.keyword_only and a.type == "Scalar"]


def earlier_parameters(op: Op) -> list[str]:
    """Names of further parameters, so that earlier forms bind."""
    return [f"earlier{place + 1}" for place in range(len(earlier_numbers(op)))]


def defaults(op: Op) -> dict[str, Any]:
    """The values behind `default_<name>` in the generated text."""
    return {
        f"default_{python_name(op, a)}": a.default
        for a in op.schema.arguments
        if a.default is not REQUIRED
    }


# ---- checking values against a schema


def fits(argument: Argument, value: Any) -> bool:
    """Whether a value may stand for a parameter."""
    if value is None:
        return argument.optional or argument.default is None
    if argument.is_list:
        return _fits_list(argument, value)
    if argument.type == "int" and argument.name.startswith("dim"):
        return is_integer(value)
    return _fits_one(argument.type, value)


def _fits_list(argument: Argument, value: Any) -> bool:
    alone = argument.length is not None and _fits_one(argument.type, value)
    if alone and (argument.type == "int" or not isinstance(value, Tensor)):
        return True
    if not isinstance(value, (list, tuple)):
        return False
    if argument.type == "Tensor":
        return all(isinstance(item, Tensor) or (item is None and argument.gaps) for item in value)
    return all(_fits_one(argument.type, item) for item in value[:1])


def with_dtypes(op: Op, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The values with element types in the place of Python's types; None if there are none."""
    kinds = [argument.type for argument in op.schema.arguments]
    found = tuple(
        dt.as_dtype(value) if kind == "ScalarType" else value
        for kind, value in zip(kinds, values, strict=False)
    )
    changed = any(new is not old for new, old in zip(found, values, strict=True))
    return found if changed else None


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number: Python's, NumPy's or a tensor's, but no bool."""
    if isinstance(value, bool):
        return False
    if isinstance(value, Tensor):
        return value.ndim == 0 and value._data.dtype.kind in "iu"
    return isinstance(value, (int, np.integer))


def _is_one_integer(value: Any) -> bool:
    """Whether an array or tensor of any shape is a single whole number."""
    data = value._data if isinstance(value, Tensor) else value
    return isinstance(data, np.ndarray) and data.size == 1 and data.dtype.kind in "iu"


def fits_number(value: Any) -> bool:
    """Whether a value may stand for a number: also a tensor without dims, unless it learns."""
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.requires_grad
    return isinstance(value, (int, float, complex, np.number, np.bool_))


def is_plain_number(value: Any) -> bool:
    """Whether a value is a number, and no tensor."""
    return not isinstance(value, Tensor) and fits_number(value)


def _is_real(value: Any) -> bool:
    return fits_number(value) and not isinstance(value, complex)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda v: isinstance(v, Tensor),
    "Scalar": fits_number,
    "int": lambda v: is_integer(v) or _is_one_integer(v),
    "float": _is_real,
    "bool": lambda v: isinstance(v, (bool, np.bool_)),
    "str": lambda v: isinstance(v, str),
    "ScalarType": lambda v: (
        isinstance(v, dt.dtype) or (isinstance(v, type) and v in (float, int, bool, complex))
    ),
    "Layout": lambda v: isinstance(v, _Constant),
    "MemoryFormat": lambda v: isinstance(v, _Constant),
    "Device": lambda v: isinstance(v, (device, str, int, np.integer)),
    "Generator": lambda v: hasattr(v, "manual_seed"),
}


def _fits_one(kind: str, value: Any) -> bool:
    return bool(CHECKS[kind](value))


def bind(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The arguments in schema order, or None where they do not fit."""
    arguments = op.schema.arguments
    positional = [a for a in arguments if not a.keyword_only]
    if len(args) > len(positional):
        args = _packed(op, positional, args)
    if args is None:
        return None
    values = dict(zip((a.name for a in positional), args, strict=False))
    names = {python_name(op, a): a.name for a in arguments}
    for key, value in kwargs.items():
        name = names.get(key, "self" if key == "self" else None) or _numpy_alias(key, names)
        if name is None or name in values:
            return None
        values[name] = value
    return _complete(op, values)


def _numpy_alias(key: str, names: dict[str, str]) -> str | None:
    for ours, theirs in NUMPY_NAMES.items():
        if key == theirs and ours in names:
            return ours
    return None


def _packed(op: Op, positional: list[Argument], args: tuple[Any, ...]) -> Any:
    """`x.permute(0, 1)`: loose ints gathered into the one list parameter."""
    if not takes_size_list(op) or not all(is_integer(a) for a in args[len(positional) - 1 :]):
        return None
    return (*args[: len(positional) - 1], args[len(positional) - 1 :])


def takes_number(op: Op, position: int) -> bool:
    """Whether a number may stand for the tensor at a position."""
    return op.numbers in ("both", "all") or (op.numbers == "other" and position > 0)


def fits_at(op: Op, position: int, value: Any) -> bool:
    """Whether a value may stand for the argument at a position, numbers for tensors included."""
    argument = op.schema.arguments[position]
    if argument.is_tensor and takes_number(op, position) and is_plain_number(value):
        return True
    return fits(argument, value)


def _complete(op: Op, values: dict[str, Any]) -> list[Any] | None:
    complete = []
    for position, argument in enumerate(op.schema.arguments):
        if argument.name not in values:
            if argument.default is REQUIRED:
                return None
            complete.append(argument.default)
            continue
        value = values[argument.name]
        if not fits_at(op, position, value):
            return None
        complete.append(values[argument.name])
    return complete


def as_called(op: Op, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A row's arguments as a call would give them: by position as far as possible, no defaults."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument, value in zip(op.schema.arguments, values, strict=False):
        if value is argument.default or (
            type(value) is type(argument.default) and value == argument.default
        ):
            continue
        by_position = not argument.keyword_only and len(args) == op.schema.arguments.index(argument)
        if by_position:
            args.append(value)
        else:
            kwargs[python_name(op, argument)] = value
    return tuple(args), kwargs


# ---- errors


def require_tensor(function: str, name: str, position: int, value: Any) -> None:
    """Torch's TypeError where a parameter has to be a tensor."""
    if not isinstance(value, Tensor):
        raise no_tensor(function, name, position, value)


def no_tensor(function: str, name: str, position: int, value: Any) -> TypeError:
    """Torch's TypeError for what is given where a parameter has to be a tensor."""
    return TypeError(f"{function}(): argument '{name}' (position {position}) must be Tensor, "
                     f"not {plain_type_name(value)}")  # fmt: skip


def type_name(value: Any) -> str:
    """How messages name a value's type."""
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(type_name(item) for item in value[:3])
        return f"{type(value).__name__} of ({inner})" if value else type(value).__name__
    return plain_type_name(value)


def plain_type_name(value: Any) -> str:
    """The name of a value's class; NumPy's with their module."""
    prefix = "numpy." if isinstance(value, (np.generic, np.ndarray)) else ""
    if isinstance(value, (dt.dtype, device, _Constant)):
        prefix = "torch."
    return f"{prefix}{type(value).__name__}"


class Alone(tuple[Any]):
    """What was given in the place of loose sizes and is none: `x.view("a")`."""


def argument_error(op: Op, values: list[Any], called: str = "") -> TypeError | None:
    """Torch's TypeError for the first value that does not fit, or None if all do. `called`: as for
    `type_error`."""
    for position, (argument, value) in enumerate(zip(op.schema.arguments, values, strict=True)):
        if value.__class__ is Alone:
            return no_fit(op, position, values, called)
        if not fits(argument, value):
            return no_fit(op, position, values, called)
        wrong = _wrong_element(argument, value) if argument.type == "int" else None
        if wrong:
            return _unpacking_error(op, argument, *wrong, called)
    return None


def no_fit(op: Op, position: int, values: Iterable[Any], called: str = "",
           several: bool = False) -> TypeError:  # fmt: skip
    """Torch's TypeError for the argument at a position, which does not fit. Of an operator of
    `several` forms it names the types of all arguments, which fit none of them."""
    given = tuple(value[0] if value.__class__ is Alone else value for value in values)
    if several or op.several or _name_of(called) in WITH_A_NUMBER:
        args, kwargs = as_called(op, given)
        if position or kwargs or len(args) > 1:  # what is alone is looked at for its own sake
            return no_overload_error(shown_name(op), [op], args, kwargs, called)
    return type_error(op, position, given[position], called)


def explained(op: Op, values: Iterable[Any], error: Exception) -> Exception:
    """What a composite raises where it found no tensor: torch's TypeError if a value does not fit,
    else the error itself. The code that asks has the name by which it was called: see `twins`."""
    called = sys._getframe(1).f_code.co_qualname
    return argument_error(op, list(values), called) or error


def without_public_attribute(name: str, *values: Any) -> None:
    """Raise what Python does if a value has no method that users know, in place of what speaks of
    attributes of our own."""
    for value in values:
        getattr(value, name)()


def _unpacking_error(op: Op, argument: Argument, place: int, item: Any,
                     called: str) -> TypeError:  # fmt: skip
    """Torch's TypeError for a list of ints that begins with one and goes on with something else."""
    what = f"type must be {type_text(argument)},but got {type_name(item)}"
    return TypeError(f"{shown_name(op, called)}(): argument '{python_name(op, argument)}' failed "
                     f'to unpack the object at pos {place + 1} with error "{what}"')  # fmt: skip


METHOD = "Tensor."


def shown_name(op: Op, called: str = "") -> str:
    """How errors call a row: `linalg_norm` for `linalg.norm`; methods, further names and forms in
    place by their own names, which `called` holds."""
    if called.startswith(METHOD):
        return called.removeprefix(METHOD)
    if called.removesuffix("_") in ALIASES or called.endswith("_copy"):
        return called.replace(".", "_")
    own = op.shown or (f"{op.namespace}_{op.public}" if op.namespace in PREFIXED else op.public)
    return f"{own}_" if called.endswith("_") and not own.endswith("_") else own


PREFIXED = ("linalg", "fft", "special")


def type_error(op: Op, position: int, value: Any, called: str = "") -> TypeError:
    """Torch's TypeError for a value that does not fit the argument at a position.

    called: the name by which the row was called; what follows the tensor of a method ("Tensor.add")
        is counted from 1.
    """
    argument = op.schema.arguments[position]
    shown = shown_name(op, called)
    counted = position if position and called.startswith(METHOD) else position + 1
    place = f"(position {counted}) " if not argument.keyword_only else ""
    wanted = type_text(argument)
    element = _wrong_element(argument, value)
    if element is not None and argument.is_tensor:
        return TypeError(f"expected Tensor as element {element[0]} in argument {position}, but "
                         f"got {type(element[1]).__name__}")  # fmt: skip
    if element is not None:
        return TypeError(
            f"{shown}(): argument '{python_name(op, argument)}' {place}must be {wanted}, "
            f"but found element of type {type_name(element[1])} at pos {element[0]}"
        )
    return TypeError(
        f"{shown}(): argument '{python_name(op, argument)}' {place}must be {wanted}, "
        f"not {plain_type_name(value)}"
    )


def _wrong_element(argument: Argument, value: Any) -> tuple[int, Any] | None:
    if not argument.is_list or not isinstance(value, (list, tuple)):
        return None
    for position, item in enumerate(value):
        later = position > 0 and argument.type == "int" and isinstance(item, bool)
        if not later and not _fits_one(argument.type, item):
            return position, item
    return None


_WORDS = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout",
          "MemoryFormat": "torch.memory_format", "Device": "torch.device",
          "Generator": "torch.Generator"}  # fmt: skip


def type_text(argument: Argument) -> str:
    word = _WORDS.get(argument.type, argument.type)
    return f"tuple of {word}s" if argument.is_list else word


WITH_A_NUMBER = ("divide", "multiply", "subtract", "true_divide")
"""Further names that have a form for a number of their own, where PyTorch's first names have one
form for both."""


def _name_of(called: str) -> str:
    return called.removeprefix(METHOD).removesuffix("_")


def takes_so_many(op: Op, count: int, called: str = "") -> bool:
    """Whether a call with so many arguments, by position or by name, may be one of this form.
    `called`: as for `type_error`; methods take no `out`."""
    arguments = op.schema.arguments
    needed = sum(argument.default is REQUIRED for argument in arguments)
    takes_out = bool(op.out) and not called.startswith(METHOD)
    return needed <= count <= len(arguments) + takes_out


def _values_as_given(op: Op, args: Any, kwargs: Any) -> list[Any] | None:
    """The arguments in schema order, whatever their types; None if they do not name all."""
    positional = [a for a in op.schema.arguments if not a.keyword_only]
    if len(args) > len(positional):
        return None
    values = dict(zip((a.name for a in positional), args, strict=False))
    names = {python_name(op, a): a.name for a in op.schema.arguments}
    for key, value in kwargs.items():
        name = names.get(key) or _numpy_alias(key, names)
        if name is None or name in values:
            return None
        values[name] = value
    given = [values.get(a.name, a.default) for a in op.schema.arguments]
    return None if REQUIRED in given else given


def _error_of_the_only_form(ops: list[Op], args: Any, kwargs: Any, called: str) -> Any:
    """What is wrong with the arguments of the only form that takes so many, or None: torch says
    what it expected where there is one form, and lists the forms where there are several."""
    fitting = [op for op in ops if takes_so_many(op, len(args) + len(kwargs), called)]
    if len(ops) < 2 or len(fitting) != 1 or _name_of(called) in WITH_A_NUMBER:
        return None
    values = _values_as_given(fitting[0], args, kwargs)
    return None if values is None else argument_error(fitting[0], values, called)


def no_overload_error(name: str, ops: list[Op], args: Any, kwargs: Any,
                      called: str = "") -> TypeError:  # fmt: skip
    """Torch's error for arguments that fit none of several overloads. `called`: as for
    `type_error`; the tensor of a method is none of them."""
    found = _error_of_the_only_form(ops, args, kwargs, called)
    if found is not None:
        return found  # type: ignore[no-any-return]
    is_method = called.startswith(METHOD)
    if is_method:
        name, args = called.removeprefix(METHOD), args[1:]
    elif called.removesuffix("_") in ALIASES or called.endswith("_copy"):
        name = called.replace(".", "_")
    got = [_given_name(value) for value in args]
    got += [f"{key}={_given_name(value)}" for key, value in kwargs.items()]
    lines = [f"{name}() received an invalid combination of arguments - got ({', '.join(got)}), "
             "but expected one of:"]  # fmt: skip
    lines += [f" * ({_overload_text(op, is_method)})" for op in ops]
    return TypeError("\n".join(lines))


def _given_name(value: Any) -> str:
    return "Tensor" if isinstance(value, Tensor) else plain_type_name(value)


def _overload_text(op: Op, is_method: bool) -> str:
    parts = []
    keyword_only = False
    for argument in op.schema.arguments[is_method:]:
        if argument.keyword_only and not keyword_only:
            keyword_only = True
            parts.append("*")
        default = "" if argument.default is REQUIRED else f" = {argument.default}"
        parts.append(f"{type_text(argument)} {python_name(op, argument)}{default}")
    return ", ".join(parts)
