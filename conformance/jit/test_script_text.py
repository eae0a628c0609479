"""The programs compiled by both: the code of functions, and the code of modules' archives."""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import flambeau
from flambeau.jit.printing.archive_text import classes_of, code_files

from . import printed_programs as programs
from .both import passes_alone
from .reading import numbered

FUNCTIONS = {function.__name__ for function in programs.FUNCTIONS}
MODULES = {
    type(module).__name__: module
    for module in programs.MODULES
    if not type(module).__module__.startswith("torch")
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: Any) -> Iterator[ModuleType]:
    """The same programs, importing flambeau."""
    text = Path(programs.__file__).read_text("utf-8")
    text = text.replace("import torch.nn.functional", "import flambeau.nn.functional")
    text = text.replace("import torch\n", "import flambeau as torch\n")
    file = tmp_path_factory.mktemp("programs") / "printed_programs.py"
    file.write_text(text.replace("from torch import", "from flambeau import"), "utf-8")
    spec = importlib.util.spec_from_file_location(programs.__name__, file)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[programs.__name__] = made  # compilers look classes up there
    spec.loader.exec_module(made)
    yield made
    sys.modules[programs.__name__] = programs


def scripted(library: Any, thing: Any) -> Any:
    """The compiled function or module; torch's warning that this is deprecated aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.jit.script(thing)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function(name: str, ours: ModuleType) -> None:
    """The code is the same; temporaries have the same order."""
    mine = scripted(flambeau, getattr(ours, name)).code
    theirs = scripted(torch, getattr(programs, name)).code
    assert numbered(mine.strip(), r"\b_\d+\b") == numbered(theirs.strip(), r"\b_\d+\b")


def lines_of(text: str) -> list[str]:
    """The lines; torch writes constants of a class in the order of a set's hashes."""
    lines = text.strip().splitlines()
    constants = sorted(line for line in lines if " : Final[" in line)
    return [line for line in lines if " : Final[" not in line] + constants


@pytest.mark.parametrize("name", sorted(MODULES))
def test_archive(name: str, ours: ModuleType, request: pytest.FixtureRequest) -> None:
    """The files of code in an archive, their order and their texts are the same; the text of
    torch's layers and functions is our own.
    """
    module = next(m for m in ours.MODULES if type(m).__name__ == name)
    mine = of_user(unmangled(code_files(classes_of(scripted(flambeau, module)))))
    theirs = of_user(unmangled(torch_files(MODULES[name])))
    assert list(mine) == list(theirs)
    same = all(lines_of(mine[path]) == lines_of(text) for path, text in theirs.items())
    if not same and not passes_alone(request):
        assert mine == theirs


def of_user(files: dict[str, str]) -> dict[str, str]:
    """The files with what the program itself defines."""
    return {path: text for path, text in files.items() if "__torch__/torch/" not in path}


def unmangled(files: dict[str, str]) -> dict[str, str]:
    """The files as they are where no other test has used the names of classes."""
    found: dict[str, str] = {}
    for path, text in files.items():
        plain = re.sub(r"/___torch_mangle_\d+", "", path)
        found[plain] = found.get(plain, "") + re.sub(r"\.___torch_mangle_\d+", "", text)
    return found


def torch_files(module: Any) -> dict[str, str]:
    """The code in the archive that torch saves."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(module), buffer)
    with zipfile.ZipFile(buffer) as archive:
        names = [name for name in archive.namelist() if name.endswith(".py")]
        return {name.partition("/")[2]: archive.read(name).decode() for name in names}
