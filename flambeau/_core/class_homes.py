"""The modules in which classes say they are, while the import hook answers for torch.

A class defined in `flambeau/nn/layers/linear.py` is `torch.nn.modules.linear.Linear` to programs
that say `import torch`: libraries read `type(x).__module__`, print classes, and pickle by that
name. Without the hook a class keeps the name of its file, since Python's pickle finds it there.
`class_homes.txt` is the table; `conformance/write_class_homes.py` writes it.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ForwardRef

PACKAGE = __name__.partition(".")[0]
FILE = Path(__file__).with_name("class_homes.txt")

_OWN: dict[type, str] = {}


@functools.cache
def table() -> dict[str, dict[str, str]]:
    """Our module to the names of its classes to PyTorch's module."""
    found: dict[str, dict[str, str]] = {}
    classes: dict[str, str] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            home, *names = line.split()
            classes.update(dict.fromkeys(names, home))
        elif not line.startswith("#"):
            classes = found.setdefault(line.strip(), {})
    return found


def own_module(kind: type) -> str:
    """The file of flambeau's in which a class is defined, whatever it says of itself."""
    return _OWN.get(kind, kind.__module__)


def name_classes(module: ModuleType) -> None:
    """Let the classes of one of our modules say that they are where PyTorch has them."""
    for name, home in table().get(module.__name__, {}).items():
        kind = _part(module, name)
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            _move(kind, home)
            _move_bases(kind)


def _move(kind: type, home: str) -> None:
    _read_annotations(kind, sys.modules[kind.__module__])
    _OWN[kind] = kind.__module__
    kind.__module__ = home


def _move_bases(kind: type) -> None:
    """Let classes of ours that stand between two of PyTorch's say what the one above them says:
    who looks for subclasses may go no further than the package of a class.
    """
    for base in kind.__mro__[1:]:
        is_ours = base.__module__.partition(".")[0] == PACKAGE
        if not is_ours or base.__qualname__ in table().get(base.__module__, {}):
            continue
        above = next((a for a in base.__mro__[1:] if a in _OWN), None)
        if above is not None:
            _move(base, above.__module__)


def restore_classes() -> None:
    """Let all classes say again where they are defined."""
    for kind, module in _OWN.items():
        kind.__module__ = module
    _OWN.clear()


def _read_annotations(kind: type, module: ModuleType) -> None:
    """Turn a class's annotations from text into types, as long as its file is known.

    `typing.get_type_hints` reads the text of a class, and of all its subclasses, with the names of
    the module in which the class says it is, and those of its file are not there.
    """
    told = vars(kind).get("__annotations__", {})
    for name, text in told.items():
        if isinstance(text, str):
            told[name] = _type_of(text, module)


def _type_of(text: str, module: ModuleType) -> Any:
    try:
        return eval(text, vars(module))
    except NameError:  # a name that only type checkers import: read by whoever asks for it
        return ForwardRef(text, module=module.__name__, is_class=True)


def _part(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
