"""Wrappers that say where in their storage they start."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, size: Any, **words: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, size, **words)

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError


def test_a_wrapper_starts_inside_its_storage() -> None:
    wrapper = Wrapper((2,), strides=(1,), storage_offset=3)
    assert wrapper.storage_offset() == 3
    assert wrapper.untyped_storage().nbytes() == 20
    assert (wrapper.shape, wrapper.stride()) == ((2,), (1,))


def test_an_offset_needs_strides() -> None:
    with pytest.raises(RuntimeError, match="setting storage offset without stride not supported"):
        Wrapper((2,), storage_offset=3)
