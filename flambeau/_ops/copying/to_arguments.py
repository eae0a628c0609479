"""The arguments of `to`, which has three forms."""

from __future__ import annotations

from typing import Any

from flambeau._core import dtype as dt
from flambeau._core import layout as lay
from flambeau._core.device import check_available, device
from flambeau._ops.table.binder import type_name
from flambeau._tensor.tensor import Tensor

DEVICE_FORM = ("device", "dtype", "non_blocking", "copy")
DTYPE_FORM = ("dtype", "non_blocking", "copy")
TENSOR_FORM = ("tensor", "non_blocking", "copy")
FITTING: dict[str, tuple[type, ...]] = {
    "device": (str, device, type(None), int), "dtype": (dt.dtype, type(None)),
    "tensor": (Tensor,), "non_blocking": (bool,), "copy": (bool,),
    "memory_format": (lay.memory_format, type(None)),
}  # fmt: skip
EXPECTED = (
    "(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy "
    "= False, *, torch.memory_format memory_format = None)",
    "(torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format "
    "memory_format = None)",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
    "memory_format = None)",
)


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any], find: Any = check_available
             ) -> tuple[Any, Any, bool, Any]:  # fmt: skip
    """The type, device, `copy` and memory format that were asked for; `find` makes the device of
    what names it.

    Raises:
        TypeError: arguments that fit none of the forms.
    """
    if args and not kwargs and type(args[0]) in (str, device):
        if len(args) == 1:
            return None, find(args[0]), False, None
        if len(args) == 2 and type(args[1]) is dt.dtype:
            return args[1], find(args[0]), False, None
    elif len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
        return args[0].dtype, args[0].device, False, None
    elif len(kwargs) == 1 and not args and type(kwargs.get("dtype")) is dt.dtype:
        return kwargs["dtype"], None, False, None
    given = _by_name(_form_of(args, kwargs), args, kwargs)
    if given is None:
        raise _no_form(args, kwargs)
    tensor = given.get("tensor")
    element, place = given.get("dtype"), given.get("device")
    if tensor is not None:
        element, place = tensor.dtype, tensor.device
    if place is not None:
        place = _available(place) if find is check_available else find(place)
    return element, place, bool(given.get("copy", False)), given.get("memory_format")


def waits_not(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """The `non_blocking` of arguments that `parse_to` has read."""
    given = _by_name(_form_of(args, kwargs), args, kwargs)
    return given is not None and bool(given.get("non_blocking", False))


def _form_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """The form that the first argument belongs to."""
    if not args:
        return TENSOR_FORM if "tensor" in kwargs else DEVICE_FORM
    first = args[0]
    if isinstance(first, Tensor):
        return TENSOR_FORM
    return DTYPE_FORM if isinstance(first, (dt.dtype, type)) else DEVICE_FORM


def _by_name(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The arguments by name, if they fit."""
    if len(args) > len(names):
        return None
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in given or (name not in names and name != "memory_format"):
            return None
        given[name] = value
    for name, value in given.items():
        if type(value) in FITTING[name]:
            continue
        if name == "dtype" and isinstance(value, type) and value in dt.PYTHON_TYPES:
            given[name] = dt.PYTHON_TYPES[value]
        elif not _fits(name, value):
            return None
    return given


def _fits(name: str, value: Any) -> bool:
    if name == "device" and isinstance(value, bool):
        return False
    return isinstance(value, FITTING[name])


def _available(place: Any) -> device:
    if not isinstance(place, int):
        return check_available(place)
    try:
        return check_available(place)
    except AssertionError:
        raise RuntimeError("Cannot access accelerator device when none is available.") from None


def _no_form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    got = ", ".join(type_name(value) for value in args)
    named = ", ".join(f"{name}={type_name(value)}" for name, value in kwargs.items())
    if named:
        got = f"{got}, {named}" if got else f"{named}, "
    forms = "".join(f" * {form}\n" for form in EXPECTED)
    return TypeError(
        f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        f"{forms}"
    )
