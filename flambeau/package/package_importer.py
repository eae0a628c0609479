"""`PackageImporter`: reads packages, and imports their modules."""

from __future__ import annotations

import builtins
import importlib.util
import io
import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Any

from flambeau.package import pickles
from flambeau.package._mangling import PackageMangler
from flambeau.package.file_structure_representation import Directory
from flambeau.package.find_file_dependencies import absolute_name
from flambeau.package.glob_group import GlobGroup, GlobPattern
from flambeau.package.importer import Importer, import_here
from flambeau.package.records import Records, open_records
from flambeau.serialization.locations import restore_function

ORIGIN = "<package_importer>"


class PackageImporter(Importer):
    """A package: its modules, which import each other and what is external, and its data.

    Its modules are apart from those of this Python, and from those of other packages, whatever
    their names. Importing them runs their code.

    Args:
        file_or_buffer: a path, a folder that a package was unpacked to, or a file open for reading.
        module_allowed: says of each external module whether the package may have it.

    Raises:
        ImportError: an external module is not allowed.
        RuntimeError: there is no such file, or it is no archive.

    >>> import flambeau as torch
    >>> import io
    >>> buffer = io.BytesIO()
    >>> with torch.package.PackageExporter(buffer) as exporter:
    ...     exporter.save_source_string("sums.twice", "def twice(x):\\n    return 2 * x")
    >>> _ = buffer.seek(0)
    >>> module = torch.package.PackageImporter(buffer).import_module("sums.twice")
    >>> module.twice(4), torch.package.is_from_package(module)
    (8, True)
    """

    def __init__(
        self,
        file_or_buffer: str | os.PathLike[str] | IO[bytes],
        module_allowed: Callable[[str], bool] = lambda module_name: True,
    ) -> None:
        self.zip_reader: Records = open_records(file_or_buffer)
        is_path = isinstance(file_or_buffer, str | os.PathLike)
        self.filename = os.fspath(file_or_buffer) if is_path else "<binary>"  # type: ignore[arg-type]
        self.modules: dict[str, ModuleType] = {}
        self.reduced: dict[Any, Any] = {}
        self.extern_modules = self._read_extern()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' "
                    "but that module has been disallowed"
                )
        names = self.zip_reader.names()
        self._files = {name for name in names if name.endswith(".py")}
        self._folders = {folder for name in names for folder in _folders_of(name)}
        self._mangler = PackageMangler()
        self._builtins = {**vars(builtins), "__import__": self.__import__}

    # -- what it holds

    def id(self) -> str:
        """What stands before the names of its modules."""
        return self._mangler.parent_name()

    def python_version(self) -> str | None:
        """The version of the Python that wrote it, if it says so."""
        if not self.zip_reader.has(".data/python_version"):
            return None
        return self.zip_reader.read(".data/python_version").decode("utf-8").strip()

    def file_structure(
        self, *, include: GlobPattern = "**", exclude: GlobPattern = ()
    ) -> Directory:
        """The files that it holds, as a tree.

        Args:
            include: a pattern of paths, or several.
            exclude: those that are left out.
        """
        wanted = GlobGroup(include, exclude=exclude, separator="/")
        tree = Directory(self.filename, True)
        for name in filter(wanted.matches, self.zip_reader.names()):
            tree._add_file(name)
        return tree

    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes of a file of a package."""
        return self.zip_reader.read(self._path(package, resource))

    def load_text(
        self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """The text of a file of a package."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location: Any = None) -> Any:
        """The object of a pickle, whose classes are those of this package.

        Args:
            package: the package that it is in.
            resource: its name there.
            map_location: where tensors go, as for `torch.load`.
        """
        content = self.load_binary(package, resource)
        self.reduced = {}
        with self.zip_reader.storages(restore_function(map_location)) as storages:
            return pickles.load(content, self, storages)

    def get_resource_reader(self, fullname: str) -> _ResourceReader | None:
        """What `importlib.resources` reads the files of a package with."""
        return _ResourceReader(self, fullname) if self._is_package(fullname) else None

    def get_source(self, module_name: str) -> str:
        """The source of a module."""
        self.import_module(module_name)
        file = self._source_file(module_name)
        return self.zip_reader.read(file).decode("utf-8") if file else ""

    def _path(self, package: str, resource: str) -> str:
        if not package:
            raise ValueError("Empty module name")
        module = self.import_module(package)
        if not hasattr(module, "__path__"):
            raise TypeError(f"{package!r} is not a package")
        return f"{package.replace('.', '/')}/{resource}"

    def _read_extern(self) -> list[str]:
        text = self.zip_reader.read(".data/extern_modules").decode("utf-8")
        return text.splitlines(keepends=False)

    # -- modules

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module of the package, or one that is external to it.

        Args:
            name: its name; it may begin with dots, if `package` is given.
            package: what such a name is relative to.

        Raises:
            ModuleNotFoundError: the package has no such module, and names none as external.
        """
        if not name:
            raise ValueError("Empty module name")
        stem = name.lstrip(".")
        if len(stem) < len(name):
            name = absolute_name(stem, package or "", len(name) - len(stem))
        return self._find(self._mangler.demangle(name))

    def _find(self, name: str) -> ModuleType:
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        if parent:
            self._find(parent)
            if name in self.modules:  # the package above has imported it
                return self.modules[name]
        module = self._load(name)
        if parent:
            setattr(self.modules[parent], last, module)
        return module

    def _load(self, name: str) -> ModuleType:
        file = self._source_file(name)
        if file is None and not self._is_package(name):
            if not self._is_external(name):
                raise ModuleNotFoundError(
                    f'No module named "{name}" in self-contained archive "{self.filename}" and the '
                    "module is also not in the list of allowed external modules: "
                    f"{self.extern_modules}",
                    name=name,
                )
            module = self.modules[name] = import_here(name)
            return module
        module = self.modules[name] = self._new_module(name, file)
        if file is not None:
            try:
                exec(self._compile(file), module.__dict__)
            except BaseException:
                self.modules.pop(name, None)
                raise
        return module

    def _is_external(self, name: str) -> bool:
        parts = name.split(".")
        above = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
        named = set(self.extern_modules)
        if any(part in named for part in above):
            return True
        return any(extern.startswith(f"{name}.") for extern in named)

    def _source_file(self, name: str) -> str | None:
        path = name.replace(".", "/")
        for file in (f"{path}/__init__.py", f"{path}.py"):
            if file in self._files:
                return file
        return None

    def _is_package(self, name: str) -> bool:
        path = name.replace(".", "/")
        return path in self._folders and f"{path}.py" not in self._files

    def _new_module(self, name: str, file: str | None) -> ModuleType:
        is_package = self._is_package(name)
        loader: Any = self
        spec = ModuleSpec(name, loader, origin=ORIGIN, is_package=is_package)
        module = importlib.util.module_from_spec(spec)
        module.__name__ = self._mangler.mangle(name)
        attributes = module.__dict__
        attributes["__file__"] = None if file is None else self._mangler.mangle(file)
        attributes["__cached__"] = None
        attributes["__builtins__"] = self._builtins
        attributes["__torch_package__"] = True
        if is_package:
            attributes["__path__"] = []
        return module

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """What `importlib` asks of a loader: modules are made as usual."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """What `importlib` asks of a loader; the module's code has run when it was imported."""

    def _compile(self, file: str) -> CodeType:
        source = self.zip_reader.read(file).decode("utf-8")
        shown = self._mangler.mangle(file)
        linecache.cache[shown] = (len(source), None, source.splitlines(keepends=True), shown)
        return compile(source, shown, "exec", dont_inherit=True)

    def __import__(
        self,
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What `import` means in the sources of the package."""
        package = (globals or {}).get("__package__") or ""
        if level and not package:
            raise ImportError("attempted relative import with no known parent package")
        full_name = absolute_name(name, package, level)
        module = self._find(full_name)
        if fromlist:
            self._find_parts(module, full_name, fromlist)
            return module
        if level == 0:
            return self._find(name.partition(".")[0])
        cut = len(name) - len(name.partition(".")[0])
        return self.modules[full_name[: len(full_name) - cut]]

    def _find_parts(self, module: ModuleType, full_name: str, names: Sequence[str]) -> None:
        """`from package import part`: parts may be modules that nobody has imported yet."""
        if not hasattr(module, "__path__"):
            return
        for name in names:
            if name == "*":
                self._find_parts(module, full_name, getattr(module, "__all__", ()))
            elif not hasattr(module, name):
                try:
                    self._find(f"{full_name}.{name}")
                except ModuleNotFoundError as error:
                    if error.name != f"{full_name}.{name}":
                        raise

    def whichmodule(self, obj: Any, name: str) -> str:
        """The name of the module that an object is from."""
        return super().whichmodule(obj, name)


def _folders_of(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    return ("/".join(parts[:length]) for length in range(1, len(parts) + 1))


class _ResourceReader:
    """The files of one package, as `importlib.resources` asks for them."""

    def __init__(self, importer: PackageImporter, fullname: str) -> None:
        self.importer = importer
        self.fullname = fullname

    def open_resource(self, resource: str) -> io.BytesIO:
        """A file, open for reading."""
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource: str) -> str:
        """The path of a file: there is none, except in a folder that a package was unpacked to."""
        path = self.importer.zip_reader.path(f"{self.fullname.replace('.', '/')}/{resource}")
        if path is None:
            raise FileNotFoundError
        return str(path)

    def is_resource(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return self.importer.zip_reader.has(f"{self.fullname.replace('.', '/')}/{name}")

    def contents(self) -> Iterator[str]:
        """The names of the files and folders."""
        start = Path(self.fullname.replace(".", "/"))
        found: dict[str, None] = {}
        for name in self.importer.zip_reader.names():
            if start in Path(name).parents:
                found[Path(name).relative_to(start).parts[0]] = None
        return iter(found)
