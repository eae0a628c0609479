"""Kinds of tensors and storages on a GPU, where there is none."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._ops.factories.typed import NAMES
from flambeau._tensor.typed_storage import CLASS_NAMES


@pytest.mark.parametrize("name", NAMES)
def test_tensors(name):
    kind = getattr(torch.cuda, name)
    assert kind is getattr(torch.cuda, name)
    assert kind.dtype is getattr(torch, name).dtype
    assert not isinstance(torch.ones(2, dtype=kind.dtype), kind)
    assert repr(kind) == f"<class 'torch.cuda.{name}'>"
    with pytest.raises(TypeError, match=f"type torch.cuda.{name} not available"):
        kind(2)


@pytest.mark.parametrize("name", CLASS_NAMES.values())
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages(name):
    kind = getattr(torch.cuda, name)
    assert not isinstance(getattr(torch, name)(2), kind)
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        kind(2)
    with pytest.raises(RuntimeError, match="Not available for CUDA storage"):
        kind.from_buffer()


def test_no_other_names():
    with pytest.raises(AttributeError):
        torch.cuda.NoTensor  # noqa: B018
