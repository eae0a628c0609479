"""What older messages call the types of tensors, and which of two errors about them comes first."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import flambeau

TYPES = ("float32", "float64", "float16", "complex64", "complex128", "bool", "int64", "uint8")


def told(library: Any, call: Callable[[Any, Any, Any], Any], one: str, two: str) -> Any:
    """What a call gives, or says, for operands of two types."""
    types = getattr(library, one), getattr(library, two)
    try:
        return call(library, *types).tolist()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__, str(error).partition("\n")[0]


def bag(library: Any, one: Any, two: Any) -> Any:
    indices = library.zeros(2, 2, dtype=library.int64)
    weights = library.ones(2, 2).to(two)
    return library.nn.functional.embedding_bag(
        indices, library.ones(3, 2).to(one), mode="sum", per_sample_weights=weights
    )


def bag_offsets(library: Any, one: Any, two: Any) -> Any:
    offsets = library.zeros(2, dtype=two)
    return library.nn.functional.embedding_bag(
        library.ones(4, dtype=one), library.ones(2, 2), offsets
    )


def embedding(library: Any, one: Any, two: Any) -> Any:
    return library.nn.functional.embedding(library.ones(2, dtype=two), library.ones(3, 2).to(one))


def conv(library: Any, one: Any, two: Any) -> Any:
    weight = library.ones(1, 1, 2, 2).to(two)
    return library.nn.functional.conv2d(library.ones(1, 1, 3, 3).to(one), weight)


def conv_transpose(library: Any, one: Any, two: Any) -> Any:
    weight = library.ones(1, 1, 2, 2).to(two)
    return library.nn.functional.conv_transpose2d(library.ones(1, 1, 3, 3).to(one), weight)


def expand(library: Any, one: Any, two: Any) -> Any:
    return library.ones(2, 3).to(one).expand(3)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", [bag, bag_offsets, embedding, conv, conv_transpose, expand])
def test_types_of_two_operands(call: Callable[[Any, Any, Any], Any]) -> None:
    """bfloat16 is not among them: what PyTorch says of it depends on the processor."""
    for one, two in itertools.product(TYPES, TYPES):
        assert told(flambeau, call, one, two) == told(torch, call, one, two), (one, two)


def test_types_of_indices_and_offsets() -> None:
    """Indices and offsets have the type that holds both."""
    words = [told(library, bag_offsets, "int16", "int32") for library in (flambeau, torch)]
    assert words[0] == words[1] == [[0.0, 0.0], [1.0, 1.0]]
