"""What programs may know of the identity of things: small numbers, and never an address.

An address would tell a hostile archive where memory lies. Hashes are the same in each process, as
they are in torch: Python's own hashes of texts depend on a secret that is drawn when it starts.
"""

from __future__ import annotations

import hashlib
import weakref
from itertools import count
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.ir.values import type_of
from flambeau.jit.operators.registry import implements

_numbers = count(1)
_known: dict[int, tuple[weakref.ref[Any], int]] = {}


def number_of(thing: Any) -> int:
    """The number of a thing: how many were asked about before it, while it lives."""
    address = id(thing)
    found = _known.get(address)
    if found is None:
        mark = weakref.ref(thing, lambda gone: _known.pop(address, None))
        found = _known[address] = (mark, next(_numbers))
    return found[1]


@implements("prim::id")
def identity(value: Any) -> int:
    """A number of its own for each object."""
    return 0 if value is None else number_of(value)


@implements("hash.generic")
def hash_of(value: Any) -> int:
    """Equal values have equal hashes; which number it is differs from torch's.

    Raises:
        RuntimeError: an object, list or dictionary.
    """
    if isinstance(value, Tensor):
        return number_of(value)
    if isinstance(value, (int, float, complex)):
        return hash(value)
    if value is None:
        return 0
    if isinstance(value, tuple):
        return hash(tuple(map(hash_of, value)))
    if isinstance(value, (list, dict)) or hasattr(value, "_type"):
        raise RuntimeError(f"unhashable type: '{type_of(value).annotation}'")
    digest = hashlib.blake2b(str(value).encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
