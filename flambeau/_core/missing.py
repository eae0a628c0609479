"""What PyTorch has and flambeau has not: one error that names it.

The public names of PyTorch are listed in `torch_names.txt`, written by
`conformance/write_torch_names.py`. The list is read at the first miss only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Container, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn

from .._version import __version__

SHORT_VERSION = ".".join(__version__.split(".")[:2])


class NotImplementedInFlambeau(AttributeError, NotImplementedError):
    """A public name of PyTorch that flambeau has not.

    It is raised where the name is looked up. As an AttributeError it lets `hasattr` answer False
    and `from torch import name` raise ImportError; as a NotImplementedError it says the truth
    about a call such as `torch.fft.rfft(x)`, whose lookup it ends.
    """


def not_implemented_text(dotted: str) -> str:
    """The sentence for a name of PyTorch such as `torch.fft.rfft`."""
    return f"{dotted} is not implemented in flambeau {SHORT_VERSION}"


@functools.cache
def torch_names() -> frozenset[str]:
    """The public dotted names of PyTorch.

    In the file, a line that starts at the margin names a namespace and is followed by indented
    lines with the names in it.
    """
    from pathlib import Path  # it would be a fifth of the time that `import flambeau` takes

    file = Path(__file__).with_name("torch_names.txt")
    names = []
    namespace = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            namespace = line.strip()
            continue
        names += [f"{namespace}.{name}" for name in line.split()]
    return frozenset(names)


def as_torch_name(module_name: str) -> str:
    """`flambeau.nn` is spoken of as `torch.nn`, as the user wrote it."""
    if module_name == "flambeau" or module_name.startswith("flambeau."):
        return "torch" + module_name.removeprefix("flambeau")
    return module_name


def missing(module_name: str, attribute: str) -> NoReturn:
    """Raise for an attribute that a module has not; for a module-level `__getattr__`.

    That function ends in `return missing(__name__, name)`.

    Raises:
        NotImplementedInFlambeau: PyTorch has the name.
        AttributeError: PyTorch has no such name either.
    """
    module = as_torch_name(module_name)
    dotted = f"{module}.{attribute}"
    if dotted in torch_names():
        raise NotImplementedInFlambeau(not_implemented_text(dotted), name=attribute)
    raise AttributeError(f"module '{module}' has no attribute '{attribute}'", name=attribute)


def lazily(module_name: str, file_of: Mapping[str, str] = MappingProxyType({}),
           files: Container[str] = ()) -> Callable[[str], Any]:  # fmt: skip
    """A module's `__getattr__`: names in a package's files, and files, imported when first used;
    for others, `missing`."""

    def find(name: str) -> Any:
        if name in file_of:
            found = getattr(import_module(f"{module_name}.{file_of[name]}"), name)
        elif name in files:
            found = import_module(f"{module_name}.{name}")
        else:
            return missing(module_name, name)
        setattr(sys.modules[module_name], name, found)
        return found

    return find


class MissingAttribute:
    """Stands in the class Tensor for an attribute that only PyTorch's tensors have.

    `hasattr` is False and a subclass may define it. `Tensor.__getattr__` would need no stand-ins,
    but where a class has one, Python 3.11 reads every attribute of its instances the slow way:
    small operators took a third longer.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        missing_from_tensor(self.name)


def missing_from_tensor(attribute: str) -> NoReturn:
    """Raise for an attribute that a Tensor has not.

    Raises:
        NotImplementedInFlambeau: PyTorch's tensors have it.
        AttributeError: PyTorch's tensors have no such attribute either.
    """
    dotted = f"torch.Tensor.{attribute}"
    if dotted in torch_names():
        raise NotImplementedInFlambeau(not_implemented_text(dotted), name=attribute)
    raise AttributeError(f"'Tensor' object has no attribute '{attribute}'", name=attribute)
