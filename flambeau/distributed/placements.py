"""How a tensor that several processes share lies on them: placements, as plain values.

Programs say them before anything is distributed; tensors that are placed so: `tensor/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Placement:
    """How a tensor lies along one dim of a mesh of processes."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part, along `dim` if it is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a term, to be joined by `reduce_op` if it is given."""
        return False


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along `dim`."""

    dim: int

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the parts lie along `dim`; True for None."""
        return dim is None or dim == self.dim

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has all of it."""

    def is_replicate(self) -> bool:
        """True."""
        return True

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """Each process has a term; `reduce_op` ("sum", "avg", "max", ...) joins them."""

    reduce_op: str = "sum"

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the terms are joined by `reduce_op`; True for None."""
        return reduce_op is None or reduce_op == self.reduce_op

    def prepared(self, term: Any) -> Any:
        """A term as it is reduced."""
        return term

    def finished(self, total: Any) -> Any:
        """The value that what was reduced stands for."""
        return total

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class NormPartial(Partial):
    """Each process has the norm of a part; together they make the norm of the whole."""

    norm_type: float = 2.0

    def prepared(self, term: Any) -> Any:
        """The sum that is behind the norm."""
        return term**self.norm_type

    def finished(self, total: Any) -> Any:
        """The norm of all parts."""
        return total ** (1.0 / self.norm_type)

    def __repr__(self) -> str:
        return f"_NormPartial(reduce_op={self.reduce_op}, norm_type={self.norm_type})"

    def __str__(self) -> str:
        return f"_NormP({self.norm_type})"


for _placement in (Placement, Shard, Replicate, Partial):
    _placement.__module__ = "flambeau.distributed.tensor.placement_types"
