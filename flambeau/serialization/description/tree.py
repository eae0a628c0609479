"""The tree of names in a description: what `flambeau inspect` draws."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from flambeau.serialization.description.entries import (
    Instance,
    Named,
    StorageEntry,
    TensorEntry,
)

MAX_DEPTH = 100
MAX_TEXT = 60
FEW = 8
SCALARS = (int, float, complex, str, bytes, bytearray, bool, type(None))
SCRIPT_CLASSES = "__torch__."
TYPE_TAGS = "torch.jit._pickle."  # calls by which TorchScript notes the element type of a list
MODULE_PARTS = ("_parameters", "_buffers", "_modules")
ESCAPED = re.compile(r"[^\x20-\x7e\xa0-\u200a\u2010-\u2027\u2030-\ud7ff\uf900-\U0001ffff]")


@dataclass(slots=True)
class Node:
    """One name: a tensor, a value (as text) or a container."""

    name: str
    text: str = ""
    tensor: TensorEntry | None = None
    children: list[Node] = field(default_factory=list)

    def tensors(self, path: str = "") -> Iterator[tuple[str, TensorEntry]]:
        """Every tensor below, with the names that lead to it joined by dots."""
        here = f"{path}.{self.name}" if path and self.name else path or self.name
        if self.tensor is not None:
            yield here, self.tensor
        for child in self.children:
            yield from child.tensors(here)


def printable(text: str) -> str:
    """Text from a file with whatever could steer a terminal written as an escape."""
    return ESCAPED.sub(lambda found: repr(found[0])[1:-1], text)


def tree_of(content: Any) -> Node:
    """The tree of an object that `describe` has found."""
    return _Builder().node("", content, 0)


class _Builder:
    """Builds nodes; an object that comes twice is drawn once, so that cycles end."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def node(self, name: str, value: Any, depth: int) -> Node:
        if isinstance(value, Instance) and value.kind.startswith(TYPE_TAGS) and value.arguments:
            value = value.arguments[0]
        if isinstance(value, TensorEntry):
            return Node(name, "", value)
        if isinstance(value, SCALARS):
            return Node(name, _scalar(value))
        if isinstance(value, StorageEntry):
            return Node(name, f"storage {printable(value.key)}")
        if isinstance(value, Named):
            return Node(name, printable(value.name))
        is_brief = isinstance(value, list | tuple | set | frozenset) and _all_scalars(value)
        if is_brief:
            return Node(name, _brief(value))
        if not isinstance(value, list | tuple | set | frozenset | dict | Instance):
            return Node(name, printable(repr(value)[:MAX_TEXT]))
        if id(value) in self.seen:
            return Node(name, f"{_kind(value)} (drawn above)")
        if depth >= MAX_DEPTH:
            return Node(name, f"{_kind(value)} (too deep to draw)")
        self.seen.add(id(value))
        return Node(name, _kind(value), None, self.children(value, depth + 1))

    def children(self, value: Any, depth: int) -> list[Node]:
        if isinstance(value, dict):
            return self.of_pairs(value.items(), depth)
        if not isinstance(value, Instance):
            return [self.node(str(i), item, depth) for i, item in enumerate(value)]
        found = [self.node(str(i), item, depth) for i, item in enumerate(value.arguments)]
        found += [self.node(str(i), item, depth) for i, item in enumerate(value.items)]
        found += self.of_pairs(value.pairs, depth)
        if value.state is None:
            return found
        if type(value.state) is not dict:
            return [*found, self.node("state", value.state, depth)]
        return found + self.of_pairs(_attributes(value), depth)

    def of_pairs(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> list[Node]:
        """Items of a dict; dotted names of tensors become branches."""
        root = Node("")
        branches: dict[tuple[str, ...], Node] = {(): root}
        for key, value in pairs:
            name = key if isinstance(key, str) else _key_text(key)
            parts = name.split(".") if isinstance(value, TensorEntry) else [name]
            if len(parts) > MAX_DEPTH:
                parts = [name]
            *path, last = map(printable, parts)
            parent = root
            for length in range(1, len(path) + 1):
                place = tuple(path[:length])
                if place not in branches:
                    branches[place] = Node(place[-1])
                    parent.children.append(branches[place])
                parent = branches[place]
            found = self.node(last, value, depth)
            branches.setdefault((*path, last), found)
            parent.children.append(found)
        return root.children


def _attributes(instance: Instance) -> list[tuple[Any, Any]]:
    """The attributes of an object; of a module, what it holds instead of its bookkeeping."""
    state = instance.state
    is_module = all(isinstance(state.get(part), dict) for part in MODULE_PARTS)
    if not is_module and not instance.kind.startswith(SCRIPT_CLASSES):
        return list(state.items())
    held = [pair for part in MODULE_PARTS for pair in state.get(part, {}).items()]
    held += [pair for pair in state.items() if not _is_bookkeeping(pair[0])]
    return [pair for pair in held if pair[1] is not None]


def _is_bookkeeping(name: Any) -> bool:
    return type(name) is str and (
        name in MODULE_PARTS or name.startswith("_") or name == "training"
    )


def _kind(value: Any) -> str:
    if isinstance(value, Instance):
        return printable(value.kind)
    return type(value).__name__


def _key_text(key: Any) -> str:
    if isinstance(key, SCALARS):
        return _scalar(key)
    return key.name if isinstance(key, Named) else f"({_kind(key)})"


def _scalar(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes" if len(value) != 1 else "1 byte"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return printable(repr(value[:MAX_TEXT])) + f"… ({len(value)} characters)"
    return printable(repr(value))


def _all_scalars(values: Iterable[Any]) -> bool:
    return all(isinstance(item, SCALARS) for item in values)


def _brief(values: Any) -> str:
    """A flat list on one line: all of it if it is short."""
    kind = type(values).__name__
    if len(values) > FEW:
        return f"{kind} of {len(values)} values"
    text = ", ".join(map(_scalar, values))
    if isinstance(values, list):
        return f"[{text}]"
    if isinstance(values, tuple):
        return f"({text},)" if len(values) == 1 else f"({text})"
    return f"{{{text}}}" if values else kind
