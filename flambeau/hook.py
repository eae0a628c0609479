"""`import torch` gives flambeau: the import hook behind `flambeau run`.

    import flambeau.hook
    flambeau.hook.install()
    import torch.nn.functional as F     # is flambeau.nn.functional, the same module object

There is one copy of every module: `sys.modules["torch.nn"] is sys.modules["flambeau.nn"]`. While
the hook is installed, `importlib.metadata.version("torch")` and `torch.__version__` answer
`2.13.0+flambeau`, so that libraries that look for PyTorch find it.

Processes that `multiprocessing` spawns (also through a fork server) install the hook too, before
they import the main script; they must be able to import flambeau. Forked ones have it anyway.
Programs started in another way, such as `subprocess.run([sys.executable, ...])`, do not: start
those with `flambeau run`.

Where the package `safetensors` is not installed, `import safetensors` gives our own reader and
writer of that format under the same names.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from ._core.absent_modules import find_absent
from ._core.class_homes import name_classes, restore_classes, table
from ._core.missing import not_implemented_text

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

PACKAGE = __name__.rpartition(".")[0]

ALREADY_IMPORTED = (
    "the hook is not installed: another torch ({version}) is already imported from {origin}; "
    "install flambeau's hook before anything imports torch"
)


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _flambeau_name(name: str) -> str:
    """The module of ours that goes by another name: `torch.nn`, `safetensors.torch`."""
    if _is_torch(name):
        return PACKAGE + name.removeprefix("torch")
    if _is_functorch(name):
        return f"{PACKAGE}._functorch.{name}"
    return f"{PACKAGE}.serialization.{name}"


def _is_safetensors(name: str) -> bool:
    return name == "safetensors" or name.startswith("safetensors.")


def _is_functorch(name: str) -> bool:
    """The package that comes with PyTorch; ours has no modules below it."""
    return name == "functorch"


def _within_import_statement() -> bool:
    """Is an import running, rather than a question such as `importlib.util.find_spec`?

    Both ask the finders through `importlib._bootstrap._find_spec`, whose caller tells them apart.
    An import deserves an error that names what is missing; a question deserves the answer None.
    """
    asker = sys._getframe(2).f_back
    return asker is not None and asker.f_code.co_name == "_find_and_load_unlocked"


class _AliasLoader(Loader):
    """Loads `torch.x` as the module `flambeau.x` itself."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(_flambeau_name(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just set __spec__ to the alias's; the module keeps its own.
        alias = module.__spec__
        if alias is not None and alias.loader is self:
            module.__spec__ = alias.loader_state
        _alias_children(module.__name__)

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of ours, which `python -m torch.x` runs."""
        spec = importlib.util.find_spec(_flambeau_name(fullname))
        read = getattr(spec.loader, "get_code", None) if spec is not None else None
        return None if read is None else read(_flambeau_name(fullname))


def _alias_children(package: str) -> None:
    """What is imported already below a package is imported under torch's names too.

    A later `import torch.nn.utils.weight_norm` would else put the module in the place of the
    function of that name.
    """
    for name, child in list(sys.modules.items()):
        if name.startswith(f"{package}."):
            sys.modules.setdefault("torch" + name.removeprefix(PACKAGE), child)


class _SpawnLoader(SourceFileLoader):
    """Loads `multiprocessing.spawn`, then lets it hand the hook on to children."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _hand_on_to_children(module)


class _NamingLoader(SourceFileLoader):
    """Loads a module of ours whose classes then say that they are where PyTorch has them."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _name(module)


def _name(module: ModuleType) -> None:
    """Name the classes of a module, and let `inspect` find the modules that they name."""
    name_classes(module)
    homes = set(table()[module.__name__].values())
    if any(home.startswith("torch.nn.modules.") for home in homes):
        nn = sys.modules.get(f"{PACKAGE}.nn")
        if hasattr(nn, "HOME"):  # it has been imported to its end
            importlib.import_module(f"{PACKAGE}.nn.modules")
    for home in homes:
        found = sys.modules.get(_flambeau_name(home))
        if found is not None:
            sys.modules.setdefault(home, found)


class TorchFinder(MetaPathFinder):
    """Answers for `torch`, its submodules and its distribution metadata."""

    names_classes = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "multiprocessing.spawn":
            return _with_loader(_SpawnLoader, fullname, path)
        if fullname.startswith(_OURS):
            named = self.names_classes and fullname in table()
            return _with_loader(_NamingLoader, fullname, path) if named else None
        if _is_safetensors(fullname):
            return _stand_in_spec(fullname)
        if not _is_torch(fullname) and not _is_functorch(fullname):
            return None
        name = _flambeau_name(fullname)
        # A module that was made in memory has no __spec__, over which find_spec would stumble.
        if find_absent(name) or name in sys.modules or importlib.util.find_spec(name) is not None:
            return ModuleSpec(fullname, _AliasLoader(), origin=name)
        if _within_import_statement():
            raise ModuleNotFoundError(not_implemented_text(fullname), name=fullname)
        return None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Distribution]:
        """`importlib.metadata` asks for one name, or (None) for everything there is."""
        if context.name is not None and context.name.lower() != "torch":
            return
        from ._core.distribution import TorchDistribution

        yield TorchDistribution()


_FINDER = TorchFinder()
_OURS = f"{PACKAGE}."
_ALIASED = _is_torch, _is_functorch, _is_safetensors


def is_installed() -> bool:
    """Does `import torch` give flambeau?"""
    return _FINDER in sys.meta_path


def install(named_classes: bool = True) -> bool:
    """Make `import torch` give flambeau; return whether it does.

    Classes say from then on that they are where PyTorch has them (`torch.nn.modules.linear`),
    unless `named_classes` is False.

    Calling it again changes nothing. Where another torch is already imported, objects of two
    libraries would meet under one name: then nothing is installed, a RuntimeWarning says so, and
    the answer is False.
    """
    if is_installed():
        return True
    flambeau = importlib.import_module(PACKAGE)
    present = sys.modules.get("torch")
    if present is not None and present is not flambeau:
        _warn_already_imported(present)
        return False
    # First of all finders: any other would find `torch.nn` on flambeau's __path__ and load a
    # second copy.
    sys.meta_path.insert(0, _FINDER)
    _FINDER.names_classes = named_classes
    sys.modules["torch"] = flambeau
    flambeau.__name__ = "torch"  # by which libraries tell whose arrays they have
    if named_classes:
        for name in table().keys() & sys.modules.keys():
            _name(sys.modules[name])
    spawn = sys.modules.get("multiprocessing.spawn")
    if spawn is not None:
        _hand_on_to_children(spawn)
    return True


def uninstall() -> None:
    """Undo `install`; without an installed hook nothing happens.

    Modules that have imported torch meanwhile keep what they have.
    """
    if not is_installed():
        return
    sys.meta_path.remove(_FINDER)
    sys.modules[PACKAGE].__name__ = PACKAGE
    restore_classes()
    aliases = [name for name in sys.modules if any(is_ours(name) for is_ours in _ALIASED)]
    for name in aliases:
        if sys.modules[name] is sys.modules.get(_flambeau_name(name)):
            del sys.modules[name]


def _warn_already_imported(present: ModuleType) -> None:
    version = getattr(present, "__version__", "of unknown version")
    origin = getattr(present, "__file__", None)
    text = ALREADY_IMPORTED.format(version=version, origin=origin)
    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _stand_in_spec(fullname: str) -> ModuleSpec | None:
    """Our own `safetensors`, where no package of that name is installed."""
    name = _flambeau_name(fullname)
    if fullname == "safetensors":
        is_ours = PathFinder.find_spec(fullname) is None
    else:
        package = _flambeau_name("safetensors")
        is_ours = sys.modules.get("safetensors") is sys.modules.get(package, object())
    if not is_ours or importlib.util.find_spec(name) is None:
        return None
    return ModuleSpec(fullname, _AliasLoader(), origin=name)


def _with_loader(
    loader: type[SourceFileLoader], name: str, path: Sequence[str] | None
) -> ModuleSpec | None:
    """What Python finds itself, to be loaded in a way of our own."""
    spec = PathFinder.find_spec(name, path)
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = loader(spec.loader.name, spec.loader.path)
    return spec


class _InstallWhenUnpickled:
    """Stands in what a parent sends to a spawned child; reading it installs the hook there."""

    def __reduce__(self) -> tuple[Callable[[], bool], tuple[()]]:
        return install, ()


def _hand_on_to_children(spawn: ModuleType) -> None:
    """Add the hook to the data that a child reads before it imports the main script."""
    plain: Callable[..., dict[str, Any]] = spawn.get_preparation_data
    if getattr(plain, "__module__", None) == __name__:
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        data = plain(name)
        if is_installed():
            data["flambeau_hook"] = _InstallWhenUnpickled()
        return data

    spawn.get_preparation_data = get_preparation_data  # type: ignore[attr-defined]
