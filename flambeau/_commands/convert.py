"""`flambeau convert A B`: from .pth to .safetensors and back."""

from __future__ import annotations

import argparse
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flambeau._commands.common import Refused, about, in_units, make_parser, plural, run
from flambeau._commands.progress import CountedSink, Progress
from flambeau._tensor.tensor import Tensor
from flambeau.serialization.api import load, save
from flambeau.serialization.atomic import atomic_write
from flambeau.serialization.description import describe
from flambeau.serialization.description.files import ZIP, kind_of
from flambeau.serialization.description.tree import printable
from flambeau.serialization.file_bytes import bytes_of_file
from flambeau.serialization.safetensors import safe_open
from flambeau.serialization.safetensors.sharing import shared_groups
from flambeau.serialization.safetensors.writer import write_tensors
from flambeau.serialization.verification import verify

DESCRIPTION = "Write the tensors of file A into file B; the extensions say from what to what."
EPILOG = """\
.safetensors holds one flat table of tensors. What a checkpoint holds beyond that is refused,
unless an option says what to do with it. Metadata of .safetensors and the versions that modules
note in a state_dict are kept, both ways. B is replaced when all of it is written, or not at all.
"""
SAFETENSORS = ".safetensors"
CHECKPOINTS = (".pth", ".pt", ".bin", ".ckpt")

# Where one format keeps what the other has a place for.
VERSIONS = "torch.state_dict._metadata"
TEXTS = "_safetensors_metadata"


def main(words: list[str]) -> int:
    """Carry out the command; the exit code is 1 if A cannot be read or expressed in B's format."""
    parser = make_parser("convert", DESCRIPTION, EPILOG)
    parser.add_argument("source", metavar="A", help="a file that exists")
    parser.add_argument("target", metavar="B", help="the file to write")
    for option, text in {
        "--flatten": "join the names of nested dicts and lists by dots",
        "--tensors-only": "leave out what is no tensor, such as an epoch's number",
        "--clone-shared": "write tensors that share memory as separate ones",
    }.items():
        parser.add_argument(option, action="store_true", help=text)
    return run(parser, words, lambda options: _convert(options, parser.error))


def _convert(options: argparse.Namespace, wrong_use: Callable[[str], Any]) -> int:
    source, target = Path(options.source), Path(options.target)
    action = ACTIONS.get((_format(source), _format(target)))
    if action is None:
        known = ", ".join(CHECKPOINTS)
        wrong_use(f"one of A and B has to end with {SAFETENSORS}, the other with {known}")
    read, write = action  # type: ignore[misc]
    with about(str(source)):
        _check(source)
        content = read(source, options)
    with about(str(target)):
        if not target.absolute().parent.is_dir():
            raise Refused(f"the folder {target.parent} does not exist")
        count, size = write(target, content)
    sys.stdout.write(f"{printable(str(target))}: {plural(count, 'tensor')}, {in_units(size)}\n")
    return 0


def _format(path: Path) -> str:
    return "checkpoint" if path.suffix in CHECKPOINTS else path.suffix


def _check(path: Path) -> None:
    """Refuse a damaged file, and one that a safe load would refuse."""
    data = bytes_of_file(str(path))
    with Progress(f"check {printable(str(path))}", len(data)) as progress:
        verdict = verify(data, str(path), progress.advance)
    if verdict.problems:
        raise Refused(verdict.problems[0])
    refused = describe(data, str(path)).refused
    if refused:
        raise Refused(
            f"a safe load refuses {', '.join(refused)}; save the state_dict of a module "
            "instead of the module, and plain values instead of objects"
        )


# ---- to .safetensors


@dataclass(frozen=True, slots=True)
class Table:
    """Tensors by name and texts: what a .safetensors file holds."""

    tensors: dict[str, Tensor]
    texts: dict[str, str]


def _read_checkpoint(source: Path, options: argparse.Namespace) -> Table:
    is_zip = kind_of(bytes_of_file(str(source)), str(source)) == ZIP
    state = load(str(source), map_location="cpu", mmap=is_zip)
    if not isinstance(state, dict):
        raise Refused(f"it holds no dict of tensors, but an object of {type(state)}")
    tensors: dict[str, Tensor] = {}
    for name, tensor in _named(state, options):
        if name in tensors:
            raise Refused(f"two tensors would be called {name!r}")
        tensors[name] = tensor
    shared = [group for group in shared_groups(tensors) if len(group) > 1]
    if shared and not options.clone_shared:
        names = "; ".join(", ".join(group) for group in shared)
        raise Refused(f"these share memory: {names}. --clone-shared writes each of them")
    return Table(tensors, _texts_of(state))


def _write_safetensors(target: Path, table: Table) -> tuple[int, int]:
    arrays = {
        name: (np.ascontiguousarray(tensor._data).reshape(tensor.shape), tensor.dtype)
        for name, tensor in table.tensors.items()
    }
    size = sum(array.nbytes for array, _ in arrays.values())
    with _sink(target, size) as sink:
        write_tensors(sink, arrays, table.texts)
    return len(arrays), size


@contextmanager
def _sink(target: Path, size: int) -> Iterator[CountedSink]:
    """The target, to take over its name when the block succeeds, with progress."""
    title = f"write {printable(str(target))}"
    with Progress(title, size) as progress, atomic_write(str(target)) as sink:
        yield CountedSink(sink, progress)


def _named(container: Any, options: argparse.Namespace, path: str = "") -> Iterator[Any]:
    """(name, tensor) for everything in a dict; Refused for what no option covers."""
    items = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in items:
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Tensor) and (isinstance(key, str) or options.flatten):
            yield name, value
        elif isinstance(value, dict | list | tuple):
            if not options.flatten:
                kind = "dict" if isinstance(value, dict) else "list"
                raise Refused(
                    f"{name!r} is a {kind} of its own, and {SAFETENSORS} holds one flat table: "
                    f"--flatten writes its tensors as '{name}.…'"
                )
            yield from _named(value, options, name)
        elif not options.tensors_only:
            kind = type(value).__name__
            raise Refused(f"{name!r} is no tensor ({kind}): --tensors-only leaves it out")


def _texts_of(state: Any) -> dict[str, str]:
    """The metadata for a state_dict; "format" is what other readers look for."""
    texts = {"format": "pt", **getattr(state, TEXTS, {})}
    versions = getattr(state, "_metadata", None)
    if versions:
        texts[VERSIONS] = json.dumps(versions)
    return texts


# ---- from .safetensors


def _read_safetensors(source: Path, options: argparse.Namespace) -> Any:
    """A state_dict, the file's texts among its attributes."""
    with safe_open(source, "pt") as file:
        state: Any = OrderedDict(file.get_tensors())
        texts = dict(file.metadata() or {})
    versions = texts.pop(VERSIONS, None)
    if versions is not None:
        state._metadata = OrderedDict(json.loads(versions))
    if texts:
        setattr(state, TEXTS, texts)
    return state


def _write_checkpoint(target: Path, state: Any) -> tuple[int, int]:
    size = sum(tensor.nbytes for tensor in state.values())
    with _sink(target, size) as sink:
        save(state, sink)
    return len(state), size


ACTIONS: dict[tuple[str, str], tuple[Callable[..., Any], Callable[..., tuple[int, int]]]] = {
    ("checkpoint", SAFETENSORS): (_read_checkpoint, _write_safetensors),
    (SAFETENSORS, "checkpoint"): (_read_safetensors, _write_checkpoint),
}
