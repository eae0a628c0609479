"""`torch.return_types`: the types of several results, made from sequences, copied and pickled."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import flambeau as torch
from flambeau import return_types

A = torch.eye(3) + 0.1
CALLS: dict[str, Any] = {
    "max": lambda: torch.max(A, 0), "topk": lambda: torch.topk(A, 1), "mode": lambda: A.mode(),
    "linalg_svd": lambda: torch.linalg.svd(A), "linalg_eigh": lambda: torch.linalg.eigh(A),
    "slogdet": lambda: A.slogdet(), "linalg_slogdet": lambda: torch.linalg.slogdet(A),
    "histogram": lambda: A.histogram(3), "histogramdd": lambda: torch.histogramdd(A, [2, 2, 2]),
    "frexp": lambda: A.frexp(), "linalg_lstsq": lambda: torch.linalg.lstsq(A, A),
    "aminmax": lambda: A.aminmax(),
    "lu_unpack": lambda: torch.lu_unpack(*torch.linalg.lu_factor(A)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_the_types_of_results(name: str) -> None:
    result = CALLS[name]()
    assert type(result) is getattr(return_types, name)
    ways = [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)), saved]
    for way in ways:
        other = way(result)
        assert type(other) is type(result)
        assert repr(other) == repr(result)


def saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("name", return_types.NAMES)
def test_every_type_is_made_of_a_sequence(name: str) -> None:
    kind = getattr(return_types, name)
    made = kind(range(kind.n_fields))
    assert made == tuple(range(kind.n_sequence_fields))
    assert repr(made).startswith(f"torch.return_types.{name}(\n")
    with pytest.raises(TypeError, match=f"takes a {kind.n_fields}-sequence .1-sequence given"):
        kind([1])
    with pytest.raises(TypeError, match="constructor requires a sequence"):
        kind(1)


def test_what_there_is_not() -> None:
    assert not hasattr(return_types, "cos")
    assert len(return_types.all_return_types) == len(return_types.NAMES)
