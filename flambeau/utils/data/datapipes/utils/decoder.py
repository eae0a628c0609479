"""Decoders by the ending of a file's name."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from typing import Any

from flambeau.utils.data.datapipes.utils.common import StreamWrapper

__all__ = ["Decoder", "basichandlers", "extension_extract_fn", "handle_extension"]

TEXTS = frozenset(("txt", "text", "transcript"))
NUMBERS = frozenset(("cls", "cls2", "class", "count", "index", "inx", "id"))


def basichandlers(extension: str, data: Any) -> Any:
    """Texts, numbers, JSON, pickles and PyTorch's files, by the ending; None for others.

    A pickle runs what it says, as everywhere: these are for files that are trusted.
    """
    if extension in TEXTS:
        return data.decode("utf-8")
    if extension in NUMBERS:
        try:
            return int(data)
        except ValueError:
            return None
    if extension in ("json", "jsn"):
        return json.loads(data)
    if extension in ("pyd", "pickle"):
        return pickle.loads(data)
    if extension == "pt":
        from flambeau.serialization import load

        return load(io.BytesIO(data))
    return None


def extension_extract_fn(pathname: str) -> str:
    """What stands behind the last point of a name: "txt"."""
    name = pathname.rpartition("/")[2]
    return name.rpartition(".")[2] if "." in name else ""


def handle_extension(extensions: str, f: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    """A handler of files whose names end in one of these, words apart by spaces."""
    listed = extensions.lower().split()

    def handler(extension: str, data: Any) -> Any:
        words = extension.lower().split(".")
        for one in listed:
            ending = one.split(".")
            if words[-len(ending) :] == ending:
                return f(data)
        return None

    return handler


class Decoder:
    """Handlers that are asked one after the other, until one has an answer."""

    def __init__(self, *handler: Callable[[str, Any], Any],
                 key_fn: Callable[[str], str] = extension_extract_fn) -> None:  # fmt: skip
        self.handlers = list(handler)
        self.key_fn = key_fn

    def add_handler(self, *handler: Callable[[str, Any], Any]) -> None:
        """Add handlers, to be asked first."""
        self.handlers = [*handler, *self.handlers]

    def decode1(self, key: str, data: Any) -> Any:
        """What the first handler that knows it makes of some bytes."""
        if not data:
            return data
        for handler in self.handlers:
            found = handler(key, data)
            if found is not None:
                return found
        return data

    def decode(self, data: tuple[str, Any]) -> tuple[str, Any]:
        """A name with what its bytes mean."""
        name, stream = data
        content = stream.read() if hasattr(stream, "read") else stream
        if isinstance(stream, StreamWrapper):
            stream.close()
        return name, self.decode1(self.key_fn(name), content)

    def __call__(self, data: tuple[str, Any]) -> tuple[str, Any]:
        return self.decode(data)
