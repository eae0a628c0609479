"""Which Python functions are operators, by the functions themselves."""

from __future__ import annotations

import cmath
import importlib
import math
import sys
import types
import warnings
from collections import OrderedDict
from typing import Any

from flambeau._ops.table import index, namespace
from flambeau.jit.operators import table
from flambeau.jit.operators.builtin_functions import builtin_functions
from flambeau.jit.operators.naming import with_fact

MATH = (
    "ceil copysign erf erfc exp expm1 fabs floor gamma lgamma log log10 log1p pow sqrt isnan asinh "
    "atanh cosh sinh tanh acos asin atan atan2 cos sin tan acosh fmod modf factorial frexp isinf "
    "degrees radians ldexp gcd isfinite"
).split()
CMATH = (
    "isnan isfinite isinf log log10 sqrt exp sin tan cos asin acos atan sinh cosh tanh asinh acosh "
    "atanh"
).split()
PYTHON: dict[Any, str] = {
    **{getattr(math, name): f"aten::{name}" for name in MATH},
    **{getattr(cmath, name): f"aten::{name}" for name in CMATH},
    math.remainder: "aten::mathremainder",
    cmath.phase: "aten::angle",
    cmath.rect: "aten::polar",
    warnings.warn: "aten::warn",
    OrderedDict: "aten::dict",
}
"""Functions of Python that are operators."""

JIT = {
    "is_scripting": "aten::is_scripting", "wait": "aten::wait",
    "_wait": "aten::wait", "_unwrap_optional": "aten::_unwrap_optional",
}  # fmt: skip
FORMS = {
    "annotate": "annotate", "fork": "fork", "_fork": "fork", "isinstance": "isinstance",
    "_isinstance": "isinstance",
}  # fmt: skip
"""Functions of `torch.jit` that are special forms."""

PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_", "sparse": "_sparse_"}
"""Namespaces of torch, and how the operators in them begin."""
RENAMED = {"aten::sparse_spdiags": "aten::_spdiags", "aten::sparse_spsolve": "aten::_spsolve",
           "aten::logsigmoid": "aten::log_sigmoid",
           "aten::_segment_reduce": "aten::segment_reduce"}  # fmt: skip
PROGRAMS = frozenset(name.removeprefix("aten::") for name in with_fact("program"))
"""Functions of `torch` that are programs of `torch.functional`, not operators, as rows say."""
AUTOGRAD = {"grad": "aten::grad", "backward": "aten::backward"}


def is_functional(name: str) -> bool:
    """Whether a function of `torch.nn.functional` is an operator, as its row says; the others are
    programs. Functions that write in place are operators."""
    aten = f"aten::{name}"
    names = {RENAMED.get(aten, aten), f"aten::{index.ALIASES.get(f'nn.functional.{name}')}"}
    is_written = name.endswith("_") and not name.startswith("_")
    return is_written or not names.isdisjoint(with_fact("builtin"))


def _jit_name(function: Any) -> str:
    """The name of a function of `torch.jit`; empty for others."""
    module = getattr(function, "__module__", None)
    if not isinstance(module, str) or not module.startswith("flambeau.jit."):
        return ""
    return getattr(function, "__name__", "")


def special_form(function: Any) -> str | None:
    """The special form that a function of `torch.jit` is."""
    return FORMS.get(_jit_name(function))


def _lookup(names: dict[Any, str], function: Any) -> str | None:
    try:
        return names.get(function)
    except TypeError:  # not hashable
        return None


def builtin_name(function: Any) -> str | None:
    """The operator that a function is, with its namespace; None if it is none."""
    found = _lookup(PYTHON, function) or JIT.get(_jit_name(function))
    if found is not None:
        return found
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module == "flambeau.nn.functional":
        if is_functional(name):
            return _known(f"aten::{name}")
        if _attribute(sys.modules["flambeau"], name) is not function:
            return None
    if name in PROGRAMS and _attribute(sys.modules["flambeau"], name) is function:
        return None
    if module.partition(".")[0] in ("torch", "flambeau"):
        return _of_namespace(function, name) or _of_row(function)
    return None


def _of_namespace(function: Any, name: str) -> str | None:
    """The operator by the place where users find the function."""
    flambeau = sys.modules["flambeau"]
    if vars(flambeau).get(name, None) is function or _attribute(flambeau, name) is function:
        return _known(f"aten::{name}")
    for space, prefix in PREFIXES.items():
        short = name.removeprefix(prefix)
        module = importlib.import_module(f"flambeau.{space}")
        if _attribute(module, short) is function:
            return _known(f"aten::{prefix}{short}")
    if function is _attribute(importlib.import_module("flambeau.autograd"), name):
        return AUTOGRAD.get(name)
    return None


def _of_row(function: Any) -> str | None:
    """The operator by its row: what is told of a function itself (module, name) is that of its
    body, or of the first place where it was looked up."""
    for name, known in list(namespace._functions.items()):
        if known is not function or name in PROGRAMS:
            continue
        space, _, short = name.rpartition(".")
        if not space or (space == "nn.functional" and is_functional(short)):
            return _known(f"aten::{short}")
    return None


def _attribute(module: types.ModuleType, name: str) -> Any:
    try:
        return getattr(module, name, None)
    except (AttributeError, NotImplementedError):
        return None


def _known(name: str) -> str | None:
    name = RENAMED.get(name, name)
    return name if table.overloads(name) or builtin_functions(name) else None


def operator_of(module: types.ModuleType, name: str) -> str | None:
    """The operator `torch.<name>` that exists for programs only."""
    return _known(f"aten::{name}") if module is sys.modules["flambeau"] else None
