"""A library of kernels: machine code in one file, made beforehand, that loads without LLVM.

`flambeau warmup --library FILE` writes one; `FLAMBEAU_LIBRARY=FILE` says where it lies. Where
llvmlite is installed, what the library lacks is compiled; without llvmlite it is left to NumPy.

The file is a line that names the format, the length of the index, the index as JSON, and the object
files one after the other. The index says which sources the kernels were made of, which features of
the processor they need, and of each kernel where it lies and its hash. Code of a library runs with
our rights: it is to be trusted like any other library that is loaded.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from flambeau._compiler import native as compiler
from flambeau._runtime import choice, machine_code, processor
from flambeau._version import __version__

MAGIC = b"flambeau library 1\n"
LENGTH = struct.Struct("<Q")
FLAGS = Path("/proc/cpuinfo")
SYSTEM_NAMES = {
    "64bit": "lm", "bmi": "bmi1", "crc32": "sse42", "lzcnt": "abm", "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch", "rdrnd": "rdrand", "sahf": "lahflm", "sha": "shani", "sse3": "pni",
}  # fmt: skip
"""LLVM's name of a feature -> the system's, where they differ by more than their punctuation."""


class MadeFor(NamedTuple):
    """What the kernels of a library were made for, in LLVM's words, and the caches they fit."""

    cpu: str
    flags: str
    features: frozenset[str]
    caches: dict[int, int]


class Library:
    """An open library: its index in memory, its machine code on disk until it is needed."""

    def __init__(self, path: Path) -> None:
        """RuntimeError for a file that is no library, or one of another version."""
        self.path = path
        try:
            if not path.is_file():  # a pipe would be waited for
                raise ValueError("there is no file of that name")
            with path.open("rb") as file:
                head = file.read(len(MAGIC) + LENGTH.size)
                if head[: len(MAGIC)] != MAGIC:
                    raise ValueError("it begins with other bytes")
                (length,) = LENGTH.unpack(head[len(MAGIC) :])
                if length > path.stat().st_size:
                    raise ValueError("its index is cut short")
                index = json.loads(file.read(length))
            self.start = len(head) + length
            self.kernels = dict(map(_entry, index["kernels"].items()))
            self.flags = frozenset(index["needs"])
            self.sources = str(index["sources"])
            caches = {int(level): int(size) for level, size in index["caches"].items()}
            self.made_for = MadeFor(
                index["cpu"], index["flags"], frozenset(index["features"]), caches
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError,
                struct.error) as error:  # fmt: skip
            raise RuntimeError(f"{path} is no library of kernels: {error}") from None

    def read(self, name: str) -> bytes | None:
        """The machine code under a name; None if the library has none.

        Raises:
            RuntimeError: the file is damaged.
        """
        found = self.kernels.get(name)
        if found is None:
            return None
        offset, length, digest = found
        with self.path.open("rb") as file:
            file.seek(self.start + offset)
            code = file.read(length)
        if hashlib.sha256(code).hexdigest() != digest:
            raise RuntimeError(f"{self.path} is damaged: kernel {name}")
        return code


def _entry(item: tuple[str, Any]) -> tuple[str, tuple[int, int, str]]:
    """A kernel of an index: its name; where it begins, how long it is, its hash."""
    name, (offset, length, digest) = item
    if not (type(offset) is type(length) is int and offset >= 0 and length >= 0):
        raise ValueError(f"kernel {name} has no place")
    return name, (offset, length, digest)


@cache
def opened() -> Library | None:
    """The library that FLAMBEAU_LIBRARY names, if this processor can run it; None without one.

    Raises:
        RuntimeError: it cannot be read, or kernels have changed since it was made.
    """
    if not choice.LIBRARY:
        return None
    name = choice.LIBRARY
    found = Library(Path(name))
    if found.sources != sources():
        raise RuntimeError(f"{name} was made by another version of flambeau: make it again by "
                           "`flambeau warmup --library`")  # fmt: skip
    lacking = sorted(found.flags - system_flags())
    if lacking or not machine_code.POSSIBLE:
        reason = f"this processor has no {', '.join(lacking)}" if lacking else "of this system"
        warnings.warn(f"the kernels of {name} are not used: {reason}", RuntimeWarning, stacklevel=2)
        return None
    return found


@cache
def sources() -> str:
    """A hash of the compiler's files, whose functions are written into kernels that never name
    them; the text of a kernel itself is in its name."""
    digest = hashlib.sha256(__version__.encode())
    folder = Path(compiler.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def system_flags() -> frozenset[str]:
    """The features of this processor by the system's names, without punctuation."""
    try:
        text = FLAGS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(_plain(word) for word in line.partition(":")[2].split())


def needs(features: Iterable[str]) -> set[str]:
    """The system's names of features that LLVM names; those that the system never tells are left
    out."""
    names = {SYSTEM_NAMES.get(feature, _plain(feature)) for feature in features}
    return names & system_flags()


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.lower())


def name_of(natives: tuple[Any, ...], statics: Mapping[str, Any], form: str) -> str:
    """The name of machine code in a library: the text of its kernels and their constants."""
    digest = hashlib.sha256()
    listed = [f"{name}={compiler.stamp(value)}" for name, value in sorted(statics.items())]
    for part in (*[native.digest() for native in natives], *listed, form):
        digest.update(f"{part}\0".encode())
    return digest.hexdigest()


class Recording:
    """What a process has loaded, kept for a library; None: nothing is kept."""

    kept: dict[str, bytes] | None = None


def keep(name: str, code: bytes) -> None:
    """Keep machine code for the library that is being recorded, if it has a name there."""
    if Recording.kept is not None and name:
        Recording.kept[name] = code


def write(path: Path, made_for: tuple[str, str, frozenset[str]]) -> int:
    """Write what was kept to a library; how many kernels that are.

    Raises:
        OSError: the file cannot be written.
    """
    kept = Recording.kept or {}
    places: dict[str, tuple[int, int, str]] = {}
    offset = 0
    for name in sorted(kept):
        places[name] = (offset, len(kept[name]), hashlib.sha256(kept[name]).hexdigest())
        offset += len(kept[name])
    cpu, flags, features = made_for
    index = {
        "sources": sources(), "cpu": cpu, "flags": flags, "features": sorted(features),
        "needs": sorted(needs(features)), "caches": processor.cache_sizes(), "kernels": places,
    }  # fmt: skip
    text = json.dumps(index).encode()
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(MAGIC + LENGTH.pack(len(text)) + text)
        for name in sorted(kept):
            file.write(kept[name])
    new.replace(path)
    return len(places)
