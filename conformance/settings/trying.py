"""What comes of a setting's values in a library."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

from .children import LIBRARIES
from .table import Setting
from .words import told_by

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
BINDING = re.compile(r"incompatible function arguments|invalid combination|must be .*, not ")


def tried(setting: Setting, library: Any) -> list[Any]:
    """What each statement gives, raises and warns of."""
    library.manual_seed(1)
    return [_statement(text, library) for text in setting.program()]


def _statement(text: str, library: Any) -> tuple[str, str, list[Any]]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = _value(text, library)
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            found = _error(error)
    return text, found, [told_by(warning) for warning in told]


def _value(text: str, library: Any) -> str:
    names = {"torch": library}
    if " = " in text:
        exec(text, names)  # noqa: S102
        return "set"
    found = eval(text, names)  # noqa: S307
    if isinstance(found, (library.Generator, library.autograd.set_grad_enabled)):
        return type(found).__name__
    if type(found).__module__.startswith((library.__name__, "torch.autograd")):
        kept = library.Tensor, library.dtype, library.device
        return repr(found) if isinstance(found, kept) else type(found).__name__
    return ADDRESS.sub("", str(found))


def _error(error: Exception) -> str:
    """The class and the first line; which class a wrong argument has, and no more."""
    said = str(error).partition("\n")[0].replace("flambeau", "torch")
    if isinstance(error, TypeError) and BINDING.search(said):
        said = "the arguments do not fit"
    return f"{type(error).__name__}: {said}"


def tried_in_both(setting: Setting) -> list[Any]:
    """The same in both libraries."""
    return [tried(setting, importlib.import_module(name)) for name in LIBRARIES]
