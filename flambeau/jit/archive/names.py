"""Which names the classes of an archive may give to their attributes.

The attributes of objects and modules lie in Python's `__dict__`, beside what flambeau itself keeps
there, and operators that are handed a wrong object look for fields of tensors in it. An archive
that used such a name could put its own values in the place of ours.
"""

from __future__ import annotations

from functools import cache

from flambeau.jit.ir.source import ScriptError
from flambeau.nn import Module

OF_TENSORS = frozenset(("_data", "_storage", "_root", "_node", "_requires_grad"))
OF_SCRIPTED = frozenset(("_type", "_concrete", "_regions", "forward"))
SHARED = frozenset(("training", "_is_full_backward_hook"))
"""Fields of modules that archives hold, too."""
UNPRINTABLE = frozenset('"\\.')
"""What would end the text or the path in which the name is written again."""


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
    if not name.isprintable() or not name or not UNPRINTABLE.isdisjoint(name):
        raise ScriptError(f"{owner}: {name!r} is no name of an attribute")
