"""`flambeau inspect FILE`: what a file holds. No code of the file runs."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from flambeau._commands.common import about, in_units, make_parser, plural, run
from flambeau._commands.drawing import draw
from flambeau.serialization.archive import ArchiveReader
from flambeau.serialization.description import Description, TensorEntry, describe, tree_of
from flambeau.serialization.description.scripts import sources_of
from flambeau.serialization.description.tree import Node, printable
from flambeau.serialization.file_bytes import bytes_of_file

DESCRIPTION = "Show the tensors and values of a file, without running any code that is in it."
EPILOG = """\
Files of torch.save (also from before PyTorch 1.6), .safetensors and TorchScript archives.
Neighbours that look alike, such as layers.0 to layers.31, are drawn once; --all draws each.
"""

Named = list[tuple[str, TensorEntry]]


def main(words: list[str]) -> int:
    """Carry out the command; the exit code is 1 for a file that cannot be read."""
    parser = make_parser("inspect", DESCRIPTION, EPILOG)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--depth", type=_depth, metavar="N", help="draw N levels of the tree")
    parser.add_argument("--all", action="store_true", help="draw neighbours that look alike too")
    parser.add_argument("--code", action="store_true", help="print a TorchScript archive's code")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    return run(parser, words, _inspect)


def _depth(text: str) -> int:
    depth = int(text)
    if depth < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return depth


def _inspect(options: argparse.Namespace) -> int:
    with about(options.file):
        data = bytes_of_file(options.file)
        found = describe(data, options.file)
        code = sources_of(ArchiveReader(data)) if options.code and found.methods else {}
    tree = tree_of(found.content)
    tensors = list(tree.tensors())
    if options.json:
        sys.stdout.write(json.dumps(_as_json(options.file, found, tree, tensors), indent=2) + "\n")
        return 0
    lines = [*_head(options.file, found, tensors), ""]
    lines += draw(tree, options.depth, fold=not options.all)
    lines += _tail(found, tensors)
    for record, text in code.items():
        lines += ["", f"{printable(record)}:", *(f"  {line}" for line in printable_lines(text))]
    text = "\n".join(lines) + "\n"
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    return 0


def printable_lines(text: str) -> list[str]:
    """The lines of a text without characters that a terminal would obey."""
    return [printable(line) for line in text.splitlines()]


# ---- text


def _head(path: str, found: Description, tensors: Named) -> list[str]:
    facts = ", ".join(f"{fact} {value}" for fact, value in found.facts.items())
    counts = ", ".join((
        plural(len(tensors), "tensor"),
        plural(_elements(tensors), "element"),
        f"{in_units(_bytes(found))} in {plural(len(found.storages), 'storage')}",
    ))  # fmt: skip
    return [f"{printable(path)}: {found.kind}", printable(facts), counts]


def _tail(found: Description, tensors: Named) -> list[str]:
    sections = {
        "Storages that tensors share": [
            f"{printable(key)}: {', '.join(names)}" for key, names in _shared(tensors).items()
        ],
        "Metadata": [
            f"{printable(key)}: {printable(value)}" for key, value in found.metadata.items()
        ],
        "Code": [
            f"{printable(record)}: {', '.join(methods)}"
            for record, methods in found.methods.items()
            if methods
        ],
        "Tensors outside their storages": [
            f"{name}: {problem}" for name, problem in _problems(tensors).items()
        ],
        "A safe load (weights_only=True) refuses": [printable(name) for name in found.refused],
    }
    lines = []
    for title, entries in sections.items():
        if entries:
            lines += ["", f"{title}:", *(f"  {entry}" for entry in entries)]
    return lines


# ---- JSON


def _as_json(path: str, found: Description, tree: Node, tensors: Named) -> dict[str, Any]:
    return {
        "file": path,
        "format": found.kind,
        **{fact.replace(" ", "_"): value for fact, value in found.facts.items()},
        "elements": _elements(tensors),
        "bytes": _bytes(found),
        "tensors": [_tensor_as_json(name, tensor) for name, tensor in tensors],
        "values": dict(_values(tree, "")),
        "storages": [
            {"key": entry.key, "bytes": entry.nbytes, "location": entry.location}
            for entry in found.storages
        ],
        "shared": _shared(tensors),
        "metadata": found.metadata,
        "methods": found.methods,
        "problems": _problems(tensors),
        "refused": found.refused,
    }


def _tensor_as_json(name: str, tensor: TensorEntry) -> dict[str, Any]:
    return {
        "name": name,
        "dtype": tensor.dtype,
        "shape": tensor.shape,
        "stride": tensor.stride,
        "offset": tensor.offset,
        "bytes": tensor.nbytes,
        "storage": None if tensor.storage is None else tensor.storage.key,
        "class": tensor.kind,
        "requires_grad": tensor.requires_grad,
    }


def _values(node: Node, path: str) -> list[tuple[str, str]]:
    """Everything that is no tensor, as text, by its dotted name."""
    here = f"{path}.{node.name}" if path else node.name
    if node.tensor is None and not node.children:
        return [(here, node.text)]
    return [pair for child in node.children for pair in _values(child, here)]


# ---- counting


def _place(tensor: TensorEntry) -> tuple[Any, ...]:
    """Equal for two names of one tensor."""
    if tensor.storage is None:
        return (id(tensor),)
    return id(tensor.storage), tensor.offset, tensor.shape, tensor.stride


def _elements(tensors: Named) -> int:
    """Elements of all tensors; a tensor with two names counts once."""
    return sum({_place(tensor): tensor.numel for _, tensor in tensors}.values())


def _bytes(found: Description) -> int:
    return sum(entry.nbytes for entry in found.storages)


def _shared(tensors: Named) -> dict[str, list[str]]:
    """The names over each storage that has more than one."""
    names: dict[str, list[str]] = {}
    for name, tensor in tensors:
        if tensor.storage is not None:
            names.setdefault(tensor.storage.key, []).append(name)
    return {key: found for key, found in names.items() if len(found) > 1}


def _problems(tensors: Named) -> dict[str, str]:
    found = {name: tensor.problem() for name, tensor in tensors}
    return {name: problem for name, problem in found.items() if problem is not None}
