"""`torch.package`: code and data of models in one file, which imports from nowhere else.

`PackageExporter` writes the file, `PackageImporter` reads it; both know the files of PyTorch.
A package runs the code that it holds: load only those that you trust.
"""

from flambeau.package import (
    _digraph,
    _mangling,
    analyze,
    file_structure_representation,
    find_file_dependencies,
    glob_group,
    importer,
    package_exporter,
    package_importer,
)
from flambeau.package.analyze import is_from_package
from flambeau.package.file_structure_representation import Directory
from flambeau.package.glob_group import GlobGroup
from flambeau.package.importer import (
    Importer,
    ObjMismatchError,
    ObjNotFoundError,
    OrderedImporter,
    sys_importer,
)
from flambeau.package.package_exporter import PackageExporter
from flambeau.package.package_importer import PackageImporter
from flambeau.package.problems import EmptyMatchError, PackagingError

__all__ = [
    "Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError",
    "ObjNotFoundError", "OrderedImporter", "PackageExporter", "PackageImporter",
    "PackagingError", "_digraph", "_mangling", "analyze", "file_structure_representation",
    "find_file_dependencies", "glob_group", "importer", "is_from_package", "package_exporter",
    "package_importer", "sys_importer",
]  # fmt: skip
