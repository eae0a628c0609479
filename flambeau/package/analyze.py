"""Questions about packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

from flambeau.package._mangling import is_mangled
from flambeau.package.problems import PackagingError


def is_from_package(obj: Any) -> bool:
    """Whether an object, or the class that it is of, was loaded from a package.

    >>> import flambeau as torch
    >>> torch.package.is_from_package(torch.nn.Linear(2, 2))
    False
    """
    if isinstance(obj, ModuleType):
        return is_mangled(obj.__name__)
    return is_mangled(type(obj).__module__)


def find_first_use_of_broken_modules(exc: PackagingError) -> dict[str, list[str]]:
    """For each module that stopped a package, the path by which it came into it.

    Args:
        exc: what was raised.

    Raises:
        AssertionError: it is no PackagingError.

    >>> import flambeau as torch
    >>> import io
    >>> exporter = torch.package.PackageExporter(io.BytesIO())
    >>> exporter.save_source_string("model", "import numpy")
    >>> try:
    ...     exporter.close()
    ... except torch.package.PackagingError as error:
    ...     torch.package.analyze.find_first_use_of_broken_modules(error)
    {'numpy': ['model', 'numpy']}
    """
    assert isinstance(exc, PackagingError), "exception must be a PackagingError"
    graph = exc.dependency_graph
    broken = [name for name, attributes in graph.nodes.items() if attributes.get("error")]
    return {name: graph.first_path(name) for name in broken}


def trace_dependencies(
    callable: Callable[..., Any], inputs: Iterable[tuple[Any, ...]]
) -> list[str]:
    """The modules whose functions run when something is called.

    Args:
        callable: what is called.
        inputs: tuples of arguments, one for each call.

    >>> import flambeau as torch
    >>> import textwrap
    >>> "textwrap" in torch.package.analyze.trace_dependencies(textwrap.dedent, [(" a",)])
    True
    """
    modules: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_globals.get("__name__")
        if name is not None:
            modules.add(name)

    try:
        sys.setprofile(note)
        for arguments in inputs:
            callable(*arguments)
    finally:
        sys.setprofile(None)
    return list(modules)
