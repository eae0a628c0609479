"""Which names archives may hold: of attributes, when they are read; of classes, when written.

The attributes of objects and modules lie in Python's `__dict__`, beside what flambeau itself keeps
there, and operators that are handed a wrong object look for fields of tensors in it. An archive
that used such a name could put its own values in the place of ours.
"""

from __future__ import annotations

import keyword
from functools import cache

from flambeau.jit.ir import types as T
from flambeau.jit.ir.source import ScriptError
from flambeau.nn import Module

OF_TENSORS = frozenset(("_data", "_storage", "_root", "_node", "_requires_grad"))
OF_SCRIPTED = frozenset(("_type", "_concrete", "_regions", "forward"))
SHARED = frozenset(("training", "_is_full_backward_hook"))
"""Fields of modules that archives hold, too."""


@cache
def _reserved() -> frozenset[str]:
    return (OF_TENSORS | OF_SCRIPTED | frozenset(Module().__dict__)) - SHARED


def check_attribute(name: str, owner: str) -> None:
    """Refuse the name of an attribute or constant that means something to Python or to flambeau.

    Raises:
        ScriptError: it does.
    """
    special = name.startswith("__") and name.endswith("__")
    if special or name in _reserved():
        raise ScriptError(f"{owner}: an attribute cannot be called {name!r}; the name is reserved")
    _check_text(name, owner)


def check_written(type: T.Type) -> None:
    """Refuse a class whose name, or whose attributes' or members' names, code cannot write.

    Raises:
        ScriptError: it has such a name.
    """
    name = getattr(type, "qualified_name", "").rpartition(".")[2]
    if isinstance(type, T.ClassType):
        for attribute in type.attributes:
            _check_text(attribute, str(type))
    members = [member.name for member in type.python] if isinstance(type, T.EnumType) else []
    for word in (name, *members):
        if not word.isidentifier() or keyword.iskeyword(word):
            raise ScriptError(f"{type} cannot be saved: {word!r} is not a valid identifier")


def _check_text(name: str, owner: str) -> None:
    if not name.isprintable() or not name or "." in name:
        raise ScriptError(f"{owner}: {name!r} is no name of an attribute")
