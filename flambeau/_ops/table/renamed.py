"""The public functions of composites, and parameters by other names: NumPy's, in composites
(`torch.fft.fft(x, axis=0)`), and those that a further name of an operator brings
(`swapaxes(x, axis0=0, axis1=1)`).

Other rows read them in their generated functions, and explain there what goes wrong. A composite is
its own body; one that has a `dim`, or is not called in every step of a model, gets a function
around it, except in `nn.functional`, where torch's own are written in Python, too. Rows say `bare=`
that are called in every step of a model, or take anything: they look at types themselves.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from inspect import Parameter
from typing import Any, NamedTuple

import numpy as np

from flambeau._ops.table import binder
from flambeau._ops.table.op import Op
from flambeau._ops.table.recording import compile_function
from flambeau._tensor.tensor import Tensor

Function = Callable[..., Any]


def public_function(op: Op, body: Function) -> Function:
    """A function that takes `axis` for `dim`, and so on, and explains errors by the types of the
    arguments; the body where neither is asked for."""
    parameters = inspect.signature(body).parameters
    bare = not op.namespace and op.public in WITHOUT_NUMPY_NAMES
    names = () if bare else binder.NUMPY_NAMES
    given = [name for name in names if name in parameters]
    kinds = {parameter.kind for parameter in parameters.values()}
    loose = Parameter.VAR_POSITIONAL in kinds or Parameter.VAR_KEYWORD in kinds
    if op.namespace in WITHOUT_TYPES or (not given and op.bare):
        return body
    if loose:
        return _around_loose(op, body)
    if "axis" in parameters:
        return body
    return functools.wraps(body)(_around(op, body, list(parameters.values()), given))


WITHOUT_NUMPY_NAMES = ("norm", "split", "tensordot", "unique", "unique_consecutive")
"""They are written in Python in torch, and take `dim` and `dims` only."""
WITHOUT_TYPES = ("nn.functional", "masked")
"""Namespaces whose functions are written in Python in torch, which looks at no types."""


def _around_loose(op: Op, body: Function) -> Function:
    """The same for a function of any number of arguments: its tensor is looked at."""
    arguments = op.schema.arguments
    if not arguments or not arguments[0].is_tensor or arguments[0].is_list:
        return body

    @functools.wraps(body)
    def called(*args: Any, **words: Any) -> Any:
        try:
            return body(*args, **words)
        except Exception:
            if not args:
                raise
            name = sys._getframe().f_code.co_qualname  # a method's, if it is one: see `twins`
            if not binder.fits_at(op, 0, args[0]):
                if len(args) == len(arguments):
                    raise binder.no_fit(op, 0, args, name) from None
                raise binder.type_error(op, 0, args[0], name) from None
            if len(args) != 2 or not binder.takes_size_list(op) or _is_size(op, args[1]):
                raise
            several = arguments[1].name in OF_SEVERAL_TYPES
            given = [*args, *(argument.default for argument in arguments[2:])]
            raise binder.no_fit(op, 1, given, name, several) from None

    return called


def _is_size(op: Op, given: Any) -> bool:
    return binder.is_integer(given) or binder.fits_at(op, 1, given)


def _around(op: Op, body: Function, parameters: list[Parameter], given: list[str]) -> Function:
    name = op.public.rpartition(".")[2]
    checked = _checked(op, parameters)
    scope = {
        "body": body,
        "missing": functools.partial(_missing, op),
        "refused": functools.partial(_refused, op, checked),
        "Exception": Exception,
    }
    lines = [f"def {name}({_listed(parameters, given, scope)}):"]
    for own in given:
        lines += [f"    if {binder.NUMPY_NAMES[own]} is not None:",
                  f"        {own} = {binder.NUMPY_NAMES[own]}"]  # fmt: skip
        if _required(parameters, own):
            lines += [f"    elif {own} is None:", f"        missing({own!r})"]
    lines += [
        "    try:",
        f"        return body({', '.join(map(_passed, parameters))})",
        "    except Exception as error:",
        f"        wrong = refused({', '.join(['error', *(one.name for one in checked)])})",
        "        if wrong is None:",
        "            raise",
        "        raise wrong from None",
    ]
    return compile_function(f"{op.full_name} by any name", "\n".join(lines), scope, name)  # type: ignore[no-any-return]


class Checked(NamedTuple):
    """A parameter that stands for an argument of the schema."""

    position: int
    name: str
    optional: bool  # it may be None in some form of the call
    others: tuple[type, ...]  # what it may be beside what the schema says


def _checked(op: Op, parameters: list[Parameter]) -> list[Checked]:
    """The parameters whose types are known."""
    by_name = {parameter.name: parameter for parameter in parameters}
    found = []
    for position, argument in enumerate(op.schema.arguments):
        own = binder.python_name(op, argument)
        if own in OF_ANY_TYPE:
            continue
        if own not in by_name and not position and parameters:
            own = parameters[0].name
        if own in by_name:
            optional = argument.optional or by_name[own].default is None or own in MAY_BE_NONE
            others = OF_SEVERAL_TYPES.get(own, ()) + op.takes.get(position, ())
            default = by_name[own].default
            others += () if default in (None, Parameter.empty) else (type(default),)
            found.append(Checked(position, own, optional, others))
    return found


MAY_BE_NONE = ("requires_grad", "pin_memory", "spacing")
"""Flags of factories for which None stands for False, and steps that are 1."""
OF_ANY_TYPE = ("buffer", "compute_mode", "shape")
"""Parameters that composites look at themselves, and refuse in words of their own."""
NUMBER = (bool, int, float, complex, np.generic)
LISTED = (int, np.integer, list, tuple, Tensor)
OF_SEVERAL_TYPES: dict[str, tuple[type, ...]] = {
    "atol": (*NUMBER, Tensor), "bins": LISTED, "destination": (int, np.integer),
    "elements": NUMBER, "end": (Tensor,), "exponent": NUMBER,
    "indices_or_sections": LISTED, "input_lengths": (list, tuple), "ord": (*NUMBER, str),
    "q": NUMBER, "rcond": (Tensor,), "repeats": (Tensor,), "rtol": (*NUMBER, Tensor),
    "source": (int, np.integer), "spacing": (*NUMBER, Tensor, list, tuple),
    "split_size_or_sections": LISTED,
    "start": (Tensor,), "target_lengths": (list, tuple), "test_elements": NUMBER,
    "tol": (*NUMBER, Tensor),
}  # fmt: skip
"""Parameters whose type depends on the form of the call, with what the schema of a composite, which
shows one form, does not show. Where there are several forms, errors speak of all."""


def _refused(op: Op, checked: list[Checked], error: Exception, *values: Any,
             called: str = "") -> TypeError | None:  # fmt: skip
    """Torch's error for the first argument of a wrong type: types are looked at before anything
    else in torch, and here when something fails. None: the error is right as it is."""
    names = (f"{op.public}() ", f"{op.namespace}_{op.public}() ")
    if isinstance(error, TypeError) and str(error).startswith(names):
        return None  # it is not about one argument
    for one, value in zip(checked, values, strict=True):
        if (value is None and one.optional) or isinstance(value, one.others):
            continue
        if binder.fits_at(op, one.position, value):
            continue
        several = any(other.name in OF_SEVERAL_TYPES for other in checked)
        given = [argument.default for argument in op.schema.arguments]
        for other, its_value in zip(checked, values, strict=True):
            if its_value is not None or not other.optional:
                given[other.position] = its_value
        return binder.no_fit(op, one.position, given, called, several)
    return None


def _required(parameters: list[Parameter], name: str) -> bool:
    return any(p.name == name and p.default is Parameter.empty for p in parameters)


def _listed(parameters: list[Parameter], given: list[str], scope: dict[str, Any]) -> str:
    """The parameters, with NumPy's at the end. What follows one that those may stand for has a
    default, too."""
    parts: list[str] = []
    optional = False
    by_name = False
    for parameter in parameters:
        if parameter.kind is Parameter.KEYWORD_ONLY and not by_name:
            by_name = True
            parts.append("*")
        optional = (optional or parameter.name in given) and not by_name
        if parameter.default is not Parameter.empty:
            scope[f"default_{parameter.name}"] = parameter.default
            parts.append(f"{parameter.name}=default_{parameter.name}")
        else:
            parts.append(f"{parameter.name}=None" if optional else parameter.name)
    names = [f"{binder.NUMPY_NAMES[name]}=None" for name in given]
    star = [] if by_name or not names else ["*"]
    return ", ".join([*parts, *star, *names])


def _passed(parameter: Parameter) -> str:
    by_name = parameter.kind is Parameter.KEYWORD_ONLY
    return f"{parameter.name}={parameter.name}" if by_name else parameter.name


def _missing(op: Op, name: str) -> None:
    raise TypeError(f'{op.public}() missing 1 required positional arguments: "{name}"')


PARAMETERS = {"swapaxes": {"axis0": "dim0", "axis1": "dim1"}}
"""Further names of operators whose parameters have other names, too."""


def by_other_names(name: str, function: Function) -> Function:
    """A function under a further name of its own, which may bring names for its parameters."""
    if name == "subtract":
        return _with_factor(function)
    names = PARAMETERS.get(name)
    if names is None:
        return function

    @functools.wraps(function)
    def called(*args: Any, **words: Any) -> Any:
        return function(*args, **{names.get(word, word): value for word, value in words.items()})

    return called


def _with_factor(function: Function) -> Function:
    """`subtract(x, 1, 2)`: beside a number, `alpha` may be given by position."""

    @functools.wraps(function)
    def called(*args: Any, **words: Any) -> Any:
        if len(args) == 3 and all(map(binder.is_plain_number, args[1:])):
            return function(*args[:2], alpha=args[2], **words)
        return function(*args, **words)

    return called
