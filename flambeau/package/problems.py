"""What is wrong with packages that cannot be written."""

from __future__ import annotations

from enum import Enum
from typing import Any

from flambeau.package._digraph import DiGraph


class PackagingErrorReason(Enum):
    """Why a module cannot be in a package.

    >>> from flambeau.package.problems import PackagingErrorReason
    >>> PackagingErrorReason.DENIED.value
    'Module was denied by a pattern.'
    """

    IS_EXTENSION_MODULE = (
        "Module is a C extension module. torch.package supports Python modules only."
    )
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern "
        "the mocked modules if objects are supposed to be in the package."
    )


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` matched no module.

    >>> import flambeau as torch
    >>> issubclass(torch.package.EmptyMatchError, Exception)
    True
    """


class PackagingError(Exception):
    """Modules that cannot be in a package, each with its reason.

    >>> import flambeau as torch
    >>> import io
    >>> try:
    ...     with torch.package.PackageExporter(io.BytesIO()) as exporter:
    ...         exporter.save_source_string("model", "import numpy")
    ... except torch.package.PackagingError as error:
    ...     print(str(error).splitlines()[2])
        numpy
    """

    def __init__(self, dependency_graph: DiGraph, debug: bool = False) -> None:
        self.dependency_graph = dependency_graph
        broken: dict[PackagingErrorReason, list[str]] = {}
        for name, attributes in dependency_graph.nodes.items():
            reason = attributes.get("error")
            if reason is not None:
                broken.setdefault(reason, []).extend(_lines(dependency_graph, name, debug))
        parts = [
            f"* {reason.value}\n" + "".join(f"{line}\n" for line in lines)
            for reason, lines in broken.items()
        ]
        hint = (
            ""
            if debug
            else "\nSet debug=True when invoking PackageExporter for a visualization of where "
            "broken modules are coming from!\n"
        )
        super().__init__("\n" + "".join(parts) + hint)


def _lines(graph: DiGraph, name: str, debug: bool) -> list[str]:
    attributes: dict[str, Any] = graph.nodes[name]
    lines = [f"    {name}"]
    if attributes.get("error_context"):
        lines.append(f"      Context: {attributes['error_context']}")
    if attributes.get("note"):
        lines.append(f"      Note: {attributes['note']}")
    if debug:
        lines.append(f"      A path to {name}: {' -> '.join(graph.first_path(name))}")
    return lines


for _kind in (EmptyMatchError, PackagingError, PackagingErrorReason):
    _kind.__module__ = "flambeau.package.package_exporter"  # where PyTorch has them
