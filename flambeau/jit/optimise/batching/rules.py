"""How operators compute all rounds of a loop at once: what the rules share.

A rule gets the call, and by the names of the operator's schema the arguments, of which at least one
depends on the round: a `Batched` tensor [rounds, *] or a `Rounds` integer. Dims counted from the
front move up by one behind the batch dim; dims counted from the back stay. The plain operators
have run the first round already, so that a rule meets no argument that they refuse, and what it
gives is compared with that round: rules need no checks of ranks and sizes.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.tables import entering
from flambeau._tensor.tensor import Tensor
from flambeau.jit.operators.registry import qualified
from flambeau.jit.optimise.batching.program import Rule
from flambeau.jit.optimise.batching.values import Batched, NotBatchable, depends_on_round

RULES: dict[str, Rule] = {}
ROW_MAJOR = (None, 0, 1)
"""Memory formats that mean the same for a round and for all: none, contiguous, preserved."""


rule = entering(RULES, qualified)
"""Enter a rule for operators of these names."""


def tensor_of(value: Any) -> Tensor:
    """The tensor of a batched argument."""
    if not isinstance(value, Batched):
        raise NotBatchable("an argument that depends on the round")
    return value.tensor


def plain_only(*values: Any) -> None:
    """Refuse arguments that differ from round to round."""
    if any(map(depends_on_round, values)):
        raise NotBatchable("an argument that depends on the round")


def moved(dim: int, rank: int) -> int:
    """A dim of one round's tensor as one of the batched tensor. Numbers have a dim 0 that the
    batch has not.
    """
    if not -rank <= dim < rank:
        raise NotBatchable("a dim that a round's tensor does not have")
    return dim + 1 if dim >= 0 else dim


def rank_of(value: Any) -> int:
    """Dims of a tensor in one round; -1 for other things."""
    if isinstance(value, Batched):
        return value.rank
    return value._data.ndim if isinstance(value, Tensor) else -1


def rows_first(value: Any, rank: int) -> Any:
    """The tensor of all rounds with dims of size 1 behind the batch dim, so that one round has
    `rank` dims; what is the same in all rounds stays as it is.
    """
    if not isinstance(value, Batched):
        return value
    tensor, missing = value.tensor, rank - value.rank
    for _ in range(missing):
        tensor = tensor.unsqueeze(1)  # type: ignore[attr-defined]
    return tensor


def whole(value: Any) -> Any:
    """The tensor of all rounds, or what is the same in all."""
    return value.tensor if isinstance(value, Batched) else value


def repeated(tensor: Tensor, rounds: int) -> Batched:
    """The same tensor for all rounds."""
    return Batched(tensor.unsqueeze(0).expand(rounds, *tensor.shape))  # type: ignore[attr-defined]
