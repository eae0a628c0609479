"""Writes `flambeau/_core/class_homes.txt`: the modules that PyTorch's classes name as theirs.

    python -m conformance.write_class_homes

It asks both libraries, each in a process of its own, for the classes that their public packages
show, and keeps those that a program can find under PyTorch's module in flambeau, too.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
import warnings
from enum import EnumType
from pathlib import Path
from types import ModuleType
from typing import Any

import flambeau
from flambeau import hook
from flambeau._core.class_homes import FILE
from flambeau._core.missing import torch_names

HEADER = """\
# The modules in which PyTorch's classes say they are. Written by conformance/write_class_homes.py.
# At the margin: a file of flambeau. Below: PyTorch's module, and the classes of the file in it.
"""
WALKED = ("torch.nn.modules", "torch.nn.utils", "torch.optim", "torch.utils.data", "torch.fx",
          "torch.distributions", "torch.autograd", "torch.amp", "torch.cuda")  # fmt: skip


def namespaces() -> list[str]:
    """The packages that are asked: those with public names, and the files of some."""
    found = {name.rpartition(".")[0] for name in torch_names()}
    for package in WALKED:
        found.add(package)
        try:
            place = importlib.import_module(package).__path__
        except ImportError:
            continue
        found.update(f"{package}.{file.name}" for file in pkgutil.iter_modules(place))
    return sorted(found | {f"torch.nn.modules.{name}" for name in _layer_files()})


def _layer_files() -> list[str]:
    from flambeau._core.nn_homes import FILES

    return list(FILES)


def classes(places: list[str]) -> dict[str, tuple[str, str]]:
    """Module and qualified name of each class of the library that `import torch` gives."""
    warnings.simplefilter("ignore")
    shown: dict[str, tuple[str, str]] = {}
    for namespace in places:
        try:
            module = importlib.import_module(namespace)
        except Exception:  # noqa: BLE001, S112 - a package that is not there has no classes
            continue
        shown |= _classes_of(namespace, module)
    return shown


def _classes_of(namespace: str, module: ModuleType) -> dict[str, tuple[str, str]]:
    found = {}
    for name in dir(module):
        try:
            value = getattr(module, name)
        except Exception:  # noqa: BLE001, S112 - names that refuse
            continue
        if isinstance(value, type) and (value.__module__ or "").startswith(("torch", "flambeau")):
            found[f"{namespace}.{name}"] = value.__module__, value.__qualname__
    return found


def asked(which: str, places: list[str] | None = None) -> Any:
    """What one library answers, in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, which]
    done = subprocess.run(
        command, input=json.dumps(places), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def homes(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, dict[str, set[str]]]:
    """Ours to PyTorch's module to the names of classes."""
    candidates: dict[tuple[str, str], set[str]] = {}
    for place in ours.keys() & theirs.keys():
        (module, name), (home, their_name) = ours[place], theirs[place]
        of_a_file = module.startswith("flambeau.") and not module.startswith("flambeau.nn.modules.")
        if name == their_name and of_a_file:
            candidates.setdefault((module, name), set()).add(home)
    table: dict[str, dict[str, set[str]]] = {}
    for (module, name), places in candidates.items():
        reached = sorted((home for home in places if _leads_to(home, module, name)), key=len)
        if reached:
            table.setdefault(module, {}).setdefault(reached[-1], set()).add(name)
    return table


def _leads_to(home: str, module: str, name: str) -> bool:
    """Whether a program finds the class in that module, as pickle does."""
    try:
        there, own = importlib.import_module(home), importlib.import_module(module)
        for part in name.split("."):
            there, own = getattr(there, part), getattr(own, part)
    except (ImportError, AttributeError):
        return False
    return there is own and not isinstance(own, EnumType)  # which print in their own way


def text(table: dict[str, dict[str, set[str]]]) -> str:
    """The file."""
    lines = [HEADER]
    for module in sorted(table):
        lines.append(f"{module}\n")
        for home in sorted(table[module]):
            lines.append(f"  {home} {' '.join(sorted(table[module][home]))}\n")
    return "".join(lines)


def main() -> None:
    """Answer for one library, or write the file from the answers of both."""
    if sys.argv[1:] == ["places"]:
        print(json.dumps(namespaces()))
    elif sys.argv[1:] == ["torch"]:
        print(json.dumps(classes(json.load(sys.stdin))))
    elif sys.argv[1:] == ["flambeau"]:
        hook.install(named_classes=False)
        print(json.dumps(classes(json.load(sys.stdin))))
    else:
        places = asked("places")
        found = asked("flambeau", places), asked("torch", places)
        hook.install(named_classes=False)
        Path(FILE).write_text(text(homes(*found)), encoding="utf-8")
        print(FILE, flambeau.__version__)


if __name__ == "__main__":
    main()
