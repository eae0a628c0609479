"""How operators compute all rounds of a loop at once: what the rules share.

A rule gets the operator as a function of plain values, the number of rounds, and the arguments,
of which at least one depends on the round: a `Batched` tensor [rounds, *] or a `Rounds` integer.
Dims counted from the front move up by one behind the batch dim; dims counted from the back stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._tensor.tensor import Tensor
from flambeau.jit.optimise.batching.program import Batched, NotBatchable, Rule, depends_on_round

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for operators of these names."""

    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name if "::" in name else f"aten::{name}"] = function
        return function

    return enter


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
    """A dim of one round's tensor as one of the batched tensor."""
    if not -rank <= dim < rank:
        raise IndexError("the loop says which dim is out of range")
    return dim + 1 if dim >= 0 else dim


def rows_first(value: Batched, rank: int) -> Tensor:
    """The tensor with dims of size 1 behind the batch dim, so that one round has `rank` dims."""
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
