"""Attributes that only PyTorch's tensors have."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as torch
from flambeau._core.missing import NotImplementedInFlambeau
from flambeau._ops.table import index

MISSING = index.MISSING.split()


@pytest.mark.parametrize("name", MISSING)
def test_what_only_torch_has_is_named(name: str):
    tensor = torch.ones(2)
    assert not hasattr(tensor, name)
    assert not hasattr(torch.Tensor, name)
    with pytest.raises(
        NotImplementedInFlambeau, match=rf"^torch\.Tensor\.{name} is not implemented"
    ):
        getattr(tensor, name)


def test_what_torch_lacks_too_is_an_ordinary_error():
    with pytest.raises(
        AttributeError, match="^'Tensor' object has no attribute 'nothing'$"
    ) as caught:
        torch.ones(2).nothing
    assert not isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize("name", MISSING[:1])
def test_a_missing_name_can_be_set(name: str):
    tensor = torch.ones(2)
    setattr(tensor, name, 3)
    assert getattr(tensor, name) == 3
    assert getattr(type("Named", (torch.Tensor,), {name: 4}), name) == 4


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(copied):
    assert copied(torch.ones(2)).tolist() == [1.0, 1.0]
