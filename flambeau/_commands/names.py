"""`flambeau names PACKAGE ...`: names of PyTorch that a package uses and flambeau lacks."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flambeau import hook
from flambeau._commands.common import Refused, make_parser, plural, run
from flambeau._commands.used_names import names_in

DESCRIPTION = """\
Read the source of packages, without running it, and list the dotted names below `torch` that
it uses and that flambeau has not, with how often each occurs.
"""
EPILOG = """\
PACKAGE is the name of an installed package, or a path. A name that the package asks for first,
by hasattr or in `try`, is listed too. The exit code is 1 if anything is missing.
"""


def main(words: list[str]) -> int:
    """Carry out the command."""
    parser = make_parser("names", DESCRIPTION, EPILOG)
    parser.add_argument("packages", metavar="PACKAGE", nargs="+")
    parser.add_argument("--all", action="store_true", help="list names that are there, too")
    return run(parser, words, _act)


def _act(options: argparse.Namespace) -> int:
    hook.install()
    counted: Counter[str] = Counter()
    for package in options.packages:
        counted += used_names(package)
    absent = {name for name in counted if not is_there(name)}
    for name in sorted(counted if options.all else absent):
        mark = "" if name not in absent or not options.all else "  missing"
        sys.stdout.write(f"{name}\t{counted[name]}{mark}\n")
    told = f"{plural(len(counted), 'name')} used, {len(absent)} of them missing\n"
    sys.stderr.write(told)
    return int(bool(absent))


def used_names(package: str) -> Counter[str]:
    """How often each dotted name below torch occurs in a package's files.

    Raises:
        Refused: there is no such package or path.
    """
    counted: Counter[str] = Counter()
    for file in _files(package):
        counted.update(names_in(file.read_text(encoding="utf-8", errors="replace")))
    return counted


def _files(package: str) -> Iterator[Path]:
    path = Path(package)
    if path.is_file():
        yield path
        return
    roots = [path] if path.is_dir() else _folders(package)
    for root in roots:
        yield from sorted(root.rglob("*.py")) if root.is_dir() else [root]


def _folders(package: str) -> list[Path]:
    spec = find_spec(package)
    if spec is None:
        raise Refused(f"there is no package {package!r} here")
    if spec.submodule_search_locations:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin or "")]


def is_there(dotted: str) -> bool:
    """Whether a dotted name leads to something: attributes first, then modules."""
    found = importlib.import_module("torch")
    path = "torch"
    for part in dotted.split(".")[1:]:
        path = f"{path}.{part}"
        try:
            found = _part(found, part, path)
        except ModuleNotFoundError as error:
            # The module is there, and needs a distribution that is not: nobody can tell its names.
            return not _is_ours(error.name)
        except ImportError:
            return False
    return True


def _part(found: Any, part: str, path: str) -> Any:
    try:
        return getattr(found, part)
    except AttributeError:
        return importlib.import_module(path)


def _is_ours(module: str | None) -> bool:
    return (module or "torch").partition(".")[0] in ("torch", "flambeau")
