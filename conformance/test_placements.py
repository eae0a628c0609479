"""Placements of distributed tensors: equality, texts, hashes, pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

MADE = [
    ("Shard", (0,)),
    ("Shard", (-1,)),
    ("Replicate", ()),
    ("Partial", ()),
    ("Partial", ("avg",)),
]
NAMES = ("torch.distributed.tensor", "torch.distributed.tensor.placement_types")


def told(name: str, given: tuple[Any, ...], module: Any) -> list[Any]:
    made = getattr(module, name)(*given)
    others = [getattr(module, other)(*more) for other, more in MADE]
    return [
        repr(made), str(made), made.is_shard(), made.is_shard(0), made.is_replicate(),
        made.is_partial(), made.is_partial("sum"), [made == other for other in others],
        type(made).__module__.partition(".")[2], made in {made: 1}, copy.deepcopy(made) == made,
        isinstance(made, module.Placement),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), MADE)
def test_placements(name: str, given: tuple[Any, ...]) -> None:
    from torch.distributed.tensor import placement_types as theirs

    from flambeau.distributed.tensor import placement_types as ours

    assert told(name, given, ours) == told(name, given, theirs)


def test_they_do_not_change() -> None:
    from flambeau.distributed.tensor import Shard

    with pytest.raises(AttributeError):
        Shard(0).dim = 1
    with pytest.raises(TypeError):
        Shard()


def test_pickles() -> None:
    from flambeau.distributed.tensor import Partial

    assert pickle.loads(pickle.dumps(Partial("max"))).reduce_op == "max"
