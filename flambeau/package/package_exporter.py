"""`PackageExporter`: writes packages."""

from __future__ import annotations

import linecache
import os
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from flambeau.package import mocks
from flambeau.package._digraph import DiGraph
from flambeau.package.find_file_dependencies import find_files_source_depends_on
from flambeau.package.glob_group import GlobGroup, GlobPattern
from flambeau.package.importer import Importer, OrderedImporter, sys_importer
from flambeau.package.pickles import PackagePickler, names_in
from flambeau.package.problems import EmptyMatchError, PackagingError, PackagingErrorReason
from flambeau.serialization.api import folder_name, open_sink
from flambeau.serialization.archive_writer import ArchiveWriter
from flambeau.serialization.pickler import SavedStorages
from flambeau.utils.hooks import RemovableHandle

ActionHook = Callable[["PackageExporter", str], None]
PROTOCOLS = (3, 4)
FORMAT_VERSION = 6
OURS = ("torch", __name__.partition(".")[0])
REFUSED = ("sys", "io")
NOTE = (
    "While we usually use modules in the python standard library from the local environment, "
    "`{0}` has a lot of system level access and therefore can pose a security risk. We heavily "
    "recommend removing `{0}` from your packaged code. However, if that is not possible, add it "
    'to the extern list by calling PackageExporter.extern("`{0}`")'
)


class _Action(Enum):
    INTERN = 1
    EXTERN = 2
    MOCK = 3
    DENY = 4


class _Pattern:
    """An action, and the modules that it is for."""

    def __init__(
        self, action: _Action, include: GlobPattern, exclude: GlobPattern, allow_empty: bool
    ) -> None:
        self.action = action
        self.group = GlobGroup(include, exclude=exclude)
        self.allow_empty = allow_empty
        self.matched = False


class PackageExporter:
    """Writes a package: pickles, texts, bytes, and the sources that they need.

    Every module that sources and pickles name needs an action: `intern` copies it into the
    package, `extern` imports it from the Python that loads the package, `mock` leaves a place
    holder, `deny` is an error. Python's own modules and torch are external without a word.

    Args:
        f: a path, or a file open for writing.
        importer: where modules are found; several are asked in turn.
        debug: whether errors show how broken modules came into the package.

    Raises:
        PackagingError: when it is closed, and a module has no action, or no source.

    >>> import flambeau as torch
    >>> import io
    >>> buffer = io.BytesIO()
    >>> with torch.package.PackageExporter(buffer) as exporter:
    ...     exporter.save_source_string("model", "import math\\nside = math.sqrt(2)")
    ...     exporter.save_pickle("data", "weights.pkl", torch.ones(2))
    >>> _ = buffer.seek(0)
    >>> importer = torch.package.PackageImporter(buffer)
    >>> importer.import_module("model").side, importer.load_pickle("data", "weights.pkl")
    (1.4142135623730951, tensor([1., 1.]))
    """

    def __init__(
        self,
        f: str | os.PathLike[str] | IO[bytes],
        importer: Importer | Sequence[Importer] = sys_importer,
        debug: bool = False,
    ) -> None:
        self.debug = debug
        if isinstance(importer, Importer):
            self.importer = importer
        elif isinstance(importer, Sequence):
            self.importer = OrderedImporter(*importer)
        else:
            raise TypeError(
                "importer arg should be an Importer or a sequence of Importers, "
                f"got {type(importer)} instead."
            )
        self.dependency_graph = DiGraph()
        self._patterns: list[_Pattern] = []
        self._hooks: dict[_Action, OrderedDict[int, ActionHook]] = {
            action: OrderedDict() for action in _Action
        }
        self._written: set[str] = set()
        self._storages = SavedStorages(int)
        self._stored: set[Any] = set()
        self._unique = 0
        self._opened = open_sink(f)
        self.zip_file = ArchiveWriter(self._opened.__enter__(), folder_name(f))

    # -- what goes in

    def save_source_file(
        self, module_name: str, file_or_directory: str, dependencies: bool = True
    ) -> None:
        """Add a source from a file, or all sources of a folder.

        Args:
            module_name: what it is imported as.
            file_or_directory: a path.
            dependencies: whether what they import comes along.
        """
        path = Path(file_or_directory)
        if not path.is_dir():
            source = path.read_text(encoding="utf-8")
            self.save_source_string(module_name, source, path.name == "__init__.py", dependencies)
            return
        for name, file in _modules_below(module_name, path):
            source = file.read_text(encoding="utf-8")
            self.save_source_string(name, source, file.name == "__init__.py", dependencies)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Add a module whose source is `src`.

        Args:
            module_name: what it is imported as.
            src: the source.
            is_package: whether other modules are inside it.
            dependencies: whether what it imports comes along.
        """
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_Action.INTERN
        )
        if dependencies:
            self._follow(module_name, self._imports_of(src, module_name, is_package))

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Add a module that can be imported here.

        Raises:
            TypeError: it is named by something else than a text.
            ModuleNotFoundError: there is none of this name.
        """
        if not isinstance(module_name, str):
            raise TypeError(
                "save_module() expects a string input, did you perhaps mean to pass `__name__`?"
            )
        self._intern_module(module_name, dependencies)

    def save_pickle(
        self,
        package: str,
        resource: str,
        obj: Any,
        dependencies: bool = True,
        pickle_protocol: int = 3,
    ) -> None:
        """Add a pickle of an object, with its tensors.

        Args:
            package: the package that it is in.
            resource: its name there.
            obj: anything picklable whose classes the importer finds.
            dependencies: whether the modules of its classes come along.
            pickle_protocol: 3 or 4.
        """
        assert pickle_protocol in PROTOCOLS, "torch.package only supports pickle protocols 3 and 4"
        filename = self._filename(package, resource)
        pickler = PackagePickler(self, pickle_protocol, self._storages)
        pickler.dump(obj)
        content = pickler.buffer.getvalue()
        node = f"<{package}.{resource}>"
        names = names_in(content) if dependencies else {}
        self.dependency_graph.add_node(
            node, action=_Action.INTERN, provided=True, is_pickle=True, names=names,
            place=(package, resource),
        )  # fmt: skip
        self._follow(node, list(names))
        for key in self._storages.by_key:
            if key not in self._stored:
                self._stored.add(key)
                self._write(f".data/{key}.storage", self._storages.content(key))
        self._write(filename, content)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Add a text, in UTF-8."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Add bytes."""
        self._write(self._filename(package, resource), binary)

    def get_unique_id(self) -> str:
        """A number that this exporter has not given before, as a text."""
        self._unique += 1
        return str(self._unique - 1)

    # -- what is done with modules

    def intern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Copy these modules into the package, with what they import.

        Args:
            include: a pattern of names (see `GlobGroup`), or several.
            exclude: those that are left out.
            allow_empty: whether it is no error that none is met.
        """
        self._patterns.append(_Pattern(_Action.INTERN, include, exclude, allow_empty))

    def mock(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Put place holders for these modules: their objects can be named, and no more."""
        self._patterns.append(_Pattern(_Action.MOCK, include, exclude, allow_empty))

    def extern(
        self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True
    ) -> None:
        """Import these modules from the Python that loads the package."""
        self._patterns.append(_Pattern(_Action.EXTERN, include, exclude, allow_empty))

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Make it an error that one of these modules is needed."""
        self._patterns.append(_Pattern(_Action.DENY, include, exclude, True))

    def register_extern_hook(self, hook: ActionHook) -> RemovableHandle:
        """Call `hook(exporter, name)` for each external module; the handle removes it."""
        return self._register(_Action.EXTERN, hook)

    def register_mock_hook(self, hook: ActionHook) -> RemovableHandle:
        """Call `hook(exporter, name)` for each module that is mocked out."""
        return self._register(_Action.MOCK, hook)

    def register_intern_hook(self, hook: ActionHook) -> RemovableHandle:
        """Call `hook(exporter, name)` for each module that is copied because of a pattern."""
        return self._register(_Action.INTERN, hook)

    def _register(self, action: _Action, hook: ActionHook) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Say that a module is needed; its action is that of the first pattern that matches."""
        graph = self.dependency_graph
        if module_name in graph and graph.nodes[module_name].get("provided"):
            return
        if self._can_implicitly_extern(module_name):
            graph.add_node(module_name, action=_Action.EXTERN, provided=True)
            return
        for pattern in self._patterns:
            if pattern.group.matches(module_name):
                pattern.matched = True
                self._act(module_name, pattern.action, dependencies)
                return
        note = NOTE.format(module_name) if module_name in REFUSED else None
        reason = PackagingErrorReason.NO_ACTION
        graph.add_node(module_name, action=None, is_package=False, error=reason, note=note)

    def _act(self, module_name: str, action: _Action, dependencies: bool) -> None:
        if action is _Action.INTERN:
            self._intern_module(module_name, dependencies)
        elif action is _Action.DENY:
            reason = PackagingErrorReason.DENIED
            self.dependency_graph.add_node(module_name, action=action, error=reason)
        else:
            self.dependency_graph.add_node(module_name, action=action, provided=True)

    def _can_implicitly_extern(self, module_name: str) -> bool:
        top = module_name.partition(".")[0]
        return top in OURS or (module_name not in REFUSED and top in sys.stdlib_module_names)

    def _intern_module(self, module_name: str, dependencies: bool) -> None:
        graph = self.dependency_graph
        module = self.importer.import_module(module_name)
        is_package = hasattr(module, "__path__")
        source = self._get_source_of_module(module)
        graph.add_node(module_name, action=_Action.INTERN, is_package=is_package, provided=True)
        if source is not None:
            graph.add_node(module_name, source=source)
            if dependencies:
                found = self._imports_of(source, module_name, is_package)
                self._follow(module_name, found)
            return
        file = getattr(module, "__file__", None)
        if file is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_DUNDER_FILE)
        elif file.endswith(tuple(EXTENSION_SUFFIXES)):
            graph.add_node(module_name, error=PackagingErrorReason.IS_EXTENSION_MODULE)
        else:
            reason = PackagingErrorReason.SOURCE_FILE_NOT_FOUND
            graph.add_node(module_name, error=reason, error_context=f"filename: {file}")

    def _get_source_of_module(self, module: ModuleType) -> str | None:
        file = getattr(module, "__file__", None)
        if file is None or not file.endswith(".py"):
            return None
        lines = linecache.getlines(file, module.__dict__)
        return "".join(lines) if lines or Path(file).is_file() else None

    def _imports_of(self, source: str, module_name: str, is_package: bool) -> list[str]:
        """The modules that a module imports, each once; none of one that cannot be read, which is
        noted."""
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            pairs = find_files_source_depends_on(source, package)
        except (SyntaxError, ValueError) as error:
            reason = PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED
            self.dependency_graph.add_node(module_name, error=reason, error_context=str(error))
            return []
        found = [self._module_behind(*pair) for pair in pairs]
        return list(dict.fromkeys(filter(None, found)))

    def _module_behind(self, module: str, name: str | None) -> str:
        """What is imported for a name of a module: a module of that name, or else the module."""
        asked = [module] if name is None else [f"{module}.{name}", module]
        return next(filter(self._module_exists, asked), "")

    def _module_exists(self, module_name: str) -> bool:
        try:
            self.importer.import_module(module_name)
        except Exception:
            return False
        return True

    def _follow(self, start: str, names: list[str]) -> None:
        for name in names:
            self.dependency_graph.add_edge(start, name)
            self.add_dependency(name)

    # -- what is known about it

    def interned_modules(self) -> list[str]:
        """The modules that are copied into the package, in order of their names."""
        return self._with_action(_Action.INTERN)

    def externed_modules(self) -> list[str]:
        """The modules that the package imports from outside."""
        return self._with_action(_Action.EXTERN)

    def mocked_modules(self) -> list[str]:
        """The modules that are mocked out."""
        return self._with_action(_Action.MOCK)

    def denied_modules(self) -> list[str]:
        """The modules that are needed, and denied."""
        return self._with_action(_Action.DENY)

    def _with_action(self, action: _Action) -> list[str]:
        nodes = self.dependency_graph.nodes.items()
        wanted = [
            name for name, node in nodes if node.get("action") is action and "is_pickle" not in node
        ]
        return sorted(wanted)

    def get_rdeps(self, module_name: str) -> list[str]:
        """What names a module."""
        if module_name not in self.dependency_graph:
            return []
        return list(self.dependency_graph.predecessors(module_name))

    def all_paths(self, src: str, dst: str) -> str:
        """The part of the graph of dependencies between two modules, for Graphviz."""
        return self.dependency_graph.all_paths(src, dst).to_dot()

    def dependency_graph_string(self) -> str:
        """The graph of dependencies, for Graphviz."""
        return self.dependency_graph.to_dot()

    # -- writing

    def _filename(self, package: str, resource: str) -> str:
        return f"{package.replace('.', '/')}/{resource}"

    def _write(self, filename: str, content: Any) -> None:
        assert filename not in self._written, (
            f"Tried to write file '{filename}', but it already exists in this archive. "
            "Please file a bug."
        )
        self._written.add(filename)
        self.zip_file.write(filename, content.encode() if isinstance(content, str) else content)

    def close(self) -> None:
        """Check the package and write it to its end.

        Raises:
            PackagingError: some module has no action, or no source.
            EmptyMatchError: a pattern with `allow_empty=False` matched nothing.
        """
        try:
            self._check()
        except BaseException:
            self._opened.__exit__(*sys.exc_info())
            raise
        externs = list(self._write_modules())
        self._write(".data/extern_modules", "\n".join(externs) + "\n")
        self._write(".data/python_version", platform.python_version())
        self._finish()

    def _finish(self) -> None:
        self._write("byteorder", sys.byteorder)
        self.zip_file.finish(FORMAT_VERSION)
        del self.zip_file
        self._opened.__exit__(None, None, None)

    def _check(self) -> None:
        graph = self.dependency_graph
        for node in list(graph.nodes.values()):
            for module, names in node.get("names", {}).items():
                if graph.nodes[module].get("action") is _Action.MOCK:
                    package, resource = node["place"]
                    context = (
                        f"Object(s) '{names}' from module `{module}` was mocked out during "
                        f"packaging but is being used in resource - `{resource}` in package "
                        f"`{package}`. "
                    )
                    reason = PackagingErrorReason.MOCKED_BUT_STILL_USED
                    graph.add_node(module, error=reason, error_context=context)
        if any(node.get("error") is not None for node in graph.nodes.values()):
            raise PackagingError(graph, debug=self.debug)
        for pattern in self._patterns:
            if not (pattern.allow_empty or pattern.matched):
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {pattern.group}, "
                    "which was marked as allow_empty=False"
                )

    def _write_modules(self) -> Iterator[str]:
        """Write the sources; gives the names of what is external."""
        for name, node in list(self.dependency_graph.nodes.items()):
            action = node.get("action")
            if "is_pickle" in node or action is None:
                continue
            for hook in self._hooks[action].values():
                hook(self, name)
            if action is _Action.EXTERN:
                yield name
            elif action is _Action.MOCK:
                if "_mock.py" not in self._written:
                    self._write("_mock.py", mocks.SOURCE)
                self._write_source(name, mocks.MODULE, is_package=True)
            else:
                self._write_source(name, node["source"], is_package=node["is_package"])

    def _write_source(self, module_name: str, source: str, *, is_package: bool) -> None:
        end = "/__init__.py" if is_package else ".py"
        self._write(module_name.replace(".", "/") + end, source)

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if exc_type is not None:  # the file is ended, so that what is there can be looked at
            self._finish()
        else:
            self.close()


def _modules_below(name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """The sources of a folder, and what they are imported as."""
    for file in sorted(folder.glob("*.py")):
        yield (name if file.name == "__init__.py" else f"{name}.{file.stem}"), file
    for inner in sorted(entry for entry in folder.iterdir() if entry.is_dir()):
        yield from _modules_below(f"{name}.{inner.name}", inner)
