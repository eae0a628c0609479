"""Sizes and strides."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

import flambeau as torch
from flambeau._core.layout import (
    channels_last_strides,
    contiguous_strides,
    is_channels_last,
    is_dense,
)


def test_sizes_are_tuples_of_their_own_class() -> None:
    size = torch.Size([2, 3])
    assert isinstance(size, tuple)
    assert repr(size) == "torch.Size([2, 3])"
    assert size.numel() == 6
    assert torch.ones(2, 3).shape == size == (2, 3)
    for derived in (size[1:], size + (4,), pickle.loads(pickle.dumps(size))):
        assert type(derived) is torch.Size


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 1, 4), (3, 2, 2, 2)])
def test_contiguous_strides_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    array = np.empty(shape, np.int8)
    assert contiguous_strides(shape) == array.strides


def test_empty_dims_count_as_one() -> None:
    assert torch.zeros(2, 0, 3).stride() == (3, 3, 1)


def test_channels_last() -> None:
    strides = channels_last_strides((2, 3, 4, 5))
    assert strides == (60, 1, 15, 3)
    assert is_channels_last((2, 3, 4, 5), strides)
    x = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert x.stride() == strides
    assert x.is_contiguous(memory_format=torch.channels_last)
    assert not x.is_contiguous()


def test_dense_means_every_element_once() -> None:
    for order in itertools.permutations(range(3)):
        x = torch.zeros(2, 3, 4).permute(order)
        assert is_dense(x.shape, x.stride())
    assert not is_dense((2, 2), (3, 1))
    assert not is_dense((2, 2), (0, 1))


def test_constants_have_names_and_survive_pickling() -> None:
    assert repr(torch.strided) == "torch.strided"
    assert repr(torch.channels_last) == "torch.channels_last"
    assert pickle.loads(pickle.dumps(torch.channels_last)) is torch.channels_last
