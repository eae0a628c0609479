"""Calls of C functions whose parameters are declared once, for a library and for its stand-in."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from flambeau._runtime.cuda.driver import driver
from flambeau._runtime.cuda.libraries import finding

Signatures = Mapping[str, Sequence[Any]]
"""The types of a function's parameters by its name; all functions return a status."""


class LibraryError(RuntimeError):
    """What a library reports: the function that was called, and its status."""

    def __init__(self, function: str, status: int, word: str) -> None:
        super().__init__(f"CUDA error: {word} when calling `{function}`")
        self.function, self.status = function, status


class Foreign:
    """A library's functions with their parameters declared.

    `source` is the library as ctypes loads it. A stand-in's functions become C functions, so that
    they get what C functions get: addresses and numbers of the widths declared.
    """

    def __init__(self, source: Any, signatures: Signatures, words: Mapping[int, str]) -> None:
        self.words = words
        self.functions: dict[str, Any] = {}
        for name, types in signatures.items():
            self.functions[name] = self._declared(source, name, types)

    def _declared(self, source: Any, name: str, types: Sequence[Any]) -> Any:
        if not isinstance(source, ctypes.CDLL):
            return ctypes.CFUNCTYPE(ctypes.c_int, *types)(getattr(source, name))
        function = getattr(source, name)
        function.argtypes, function.restype = list(types), ctypes.c_int
        return function

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises LibraryError where it does not succeed."""
        status = self.functions[name](*arguments)
        if status:
            raise self.error(name, status)

    def error(self, name: str, status: int) -> LibraryError:
        """The error of a status."""
        return LibraryError(name, status, self.words.get(status, f"status {status}"))


def opened(name: str, stand_in: Any, signatures: Signatures, words: Mapping[int, str]) -> Foreign:
    """A library; on the fake driver what `stand_in()` gives instead.

    Raises:
        MissingLibrary: it is not installed.
    """
    found = driver()
    fake = found is not None and found.fake
    return Foreign(stand_in() if fake else finding.load(name), signatures, words)
