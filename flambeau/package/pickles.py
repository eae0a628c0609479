"""Pickles in packages: what they hold of tensors, and by which names they call classes."""

from __future__ import annotations

import io
import pickle
import pickletools
import types
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flambeau.package.importer import ObjMismatchError, ObjNotFoundError
from flambeau.serialization.loader import unpickler_class
from flambeau.serialization.names import torch_name
from flambeau.serialization.pickler import SavedStorages, TensorPickler

if TYPE_CHECKING:
    from flambeau.package.package_exporter import PackageExporter
    from flambeau.package.package_importer import PackageImporter

DOTTED_PROTOCOL = 4
REDUCED = "reduce_package"
STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
PUTS = ("BINPUT", "LONG_BINPUT")
GETS = ("BINGET", "LONG_BINGET")


class PackagePickler(TensorPickler):
    """Writes classes under the names that an importer has them by.

    An object with `__reduce_package__(exporter)` says itself what stands for it.
    """

    def __init__(self, exporter: PackageExporter, protocol: int, storages: SavedStorages) -> None:
        self.exporter = exporter
        self.buffer = io.BytesIO()
        self.reduced: dict[int, tuple[Any, ...]] = {}
        super().__init__(self.buffer, protocol, storages)

    def _is_bare_tensor(self, obj: Any) -> bool:
        """No: the short way writes the keys of storages as texts, and here they are numbers."""
        return False

    def persistent_id(self, obj: Any) -> Any:
        """The id of a storage, or of what reduces itself; None for everything else."""
        if not isinstance(obj, type) and hasattr(obj, "__reduce_package__"):
            if id(obj) not in self.reduced:
                self.reduced[id(obj)] = (REDUCED, id(obj), *obj.__reduce_package__(self.exporter))
            return self.reduced[id(obj)]
        return super().persistent_id(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or a function by name."""
        if torch_name(obj) is not None or obj.__module__ == "builtins":
            super().save_global(obj, name)
            return
        try:
            module, found = self.exporter.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError):
            called = name or obj.__qualname__
            raise pickle.PicklingError(
                f"Can't pickle {obj}: it's not found as {obj.__module__}.{called}"
            ) from None
        owner, _, last = found.rpartition(".")
        if owner and self.proto < DOTTED_PROTOCOL:
            holder = attrgetter(owner)(self.exporter.importer.import_module(module))
            self.save_reduce(getattr, (holder, last), obj=obj)
            return
        self.write_name(obj, module, found)

    dispatch: dict[type, Callable[..., None]] = {
        **TensorPickler.dispatch,
        types.FunctionType: save_global,
    }


def names_in(content: bytes) -> dict[str, list[str]]:
    """The modules that a pickle names, with the names that it takes from each.

    >>> from flambeau.package.pickles import names_in
    >>> import fractions, pickle
    >>> names_in(pickle.dumps(fractions.Fraction(1, 2), 2))
    {'fractions': ['Fraction']}
    """
    found: dict[str, list[str]] = {}
    texts: list[str] = []
    memo: dict[int, str | None] = {}
    last: str | None = None  # the text that was pushed just now
    for opcode, given, _ in pickletools.genops(content):
        argument: Any = given
        text = argument if opcode.name in STRINGS else None
        if opcode.name == "GLOBAL":
            _note(found, *argument.split(" ", 1))
        elif opcode.name == "STACK_GLOBAL":
            _note(found, *texts[-2:])
        elif opcode.name in PUTS:
            memo[argument] = last
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = last
        elif opcode.name in GETS:
            text = memo.get(argument)
        if text is not None:
            texts.append(text)
        last = text
    return found


def _note(found: dict[str, list[str]], module: str, name: str) -> None:
    names = found.setdefault(module, [])
    if name not in names:
        names.append(name)


def load(content: bytes, importer: PackageImporter, storages: Callable[..., Any]) -> Any:
    """The object of a pickle, whose classes `importer` finds.

    >>> from flambeau.package.pickles import load
    >>> import pickle
    >>> load(pickle.dumps([1]), None, None)
    [1]
    """
    unpickler = PackageUnpickler(io.BytesIO(content))
    unpickler.importer = importer
    unpickler.storages = storages
    return unpickler.load()


Base: Any = unpickler_class(pickle.Unpickler)


class PackageUnpickler(Base):
    """Finds classes in a package."""

    importer: PackageImporter

    def find_class(self, module: str, name: str) -> Any:
        """A class or a function: torch's own is ours, the rest is from the package."""
        if module.partition(".")[0] == "torch":
            return super().find_class(module, name)
        return attrgetter(name)(self.importer.import_module(module))

    def persistent_load(self, identity: Any) -> Any:
        """A storage, or an object that reduced itself."""
        if identity[0] != REDUCED:
            word, kind, key, *rest = identity
            return super().persistent_load((word, kind, str(key), *rest))
        _, key, function, arguments = identity
        made = self.importer.reduced
        if key not in made:
            made[key] = function(self.importer, *arguments)
        return made[key]
