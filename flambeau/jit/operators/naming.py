"""How operators of aten and public names of torch are spelled: linalg_inv is torch.linalg.inv."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from flambeau._ops.table import index
from flambeau._ops.table.op import BY_NAME, Op

PREFIXES = {"linalg_": "linalg.", "special_": "special.", "fft_": "fft.", "": ""}
"""How the names of operators begin, and the namespaces that they are in."""


def public_names(name: str) -> Iterator[str]:
    """The public names that an operator of aten may have, most likely first."""
    for prefix, namespace in PREFIXES.items():
        if name.startswith(prefix):
            for space in ("", "nn.functional."):
                yield f"{namespace}{space}{name.removeprefix(prefix)}"


def rows_of(name: str) -> list[Op]:
    """The rows of an operator of aten, also under a further name; the pointwise rows of composites
    (`_rsub`) included."""
    publics = [index.ALIASES.get(public, public) for public in public_names(name)]
    names = [name for public in publics for name in (public, f"_{public}")]
    return [op for name in names for op in BY_NAME.get(name, ())]


@cache
def with_fact(fact: str) -> frozenset[str]:
    """The operators of aten of whose rows something is true, as the index says."""
    return frozenset(f"aten::{name}" for name in index.FACTS[fact].split())
