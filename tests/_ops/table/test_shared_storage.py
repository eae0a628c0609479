"""Tensors of one storage that are no views of each other: a write sees that they lie together."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory"


def loaded(both: list[Any]) -> list[Any]:
    file = io.BytesIO()
    torch.save(both, file)
    file.seek(0)
    return torch.load(file)


def pointed(both: list[Any]) -> list[Any]:
    storage = both[0].untyped_storage()
    return [torch.empty(0).set_(storage, 0, part.shape) for part in both]


def without_history(both: list[Any]) -> list[Any]:
    return [both[0], both[0].data[:1]]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda whole, part: whole.add_(part),
    "add_, alpha": lambda whole, part: whole.add_(part, alpha=2),
    "addcmul_": lambda whole, part: whole.addcmul_(part, torch.ones(2, 3)),
    "copy_": lambda whole, part: whole.copy_(part),
    "lerp_": lambda whole, part: whole.lerp_(part, 0.5),
    "out=": lambda whole, part: torch.add(part, torch.ones(2, 3), out=whole),
}


@pytest.mark.parametrize("make", [loaded, pointed, without_history, copy.deepcopy])
@pytest.mark.parametrize("write", WRITES)
def test_overlapping_writes_are_refused(make: Callable[[Any], Any], write: str) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    whole, part = make([x, x[:1]])
    with pytest.raises(RuntimeError, match=SHARED):
        WRITES[write](whole, part)
    assert whole.tolist() == x.tolist()


@pytest.mark.parametrize("write", ["add_", "addcmul_", "lerp_"])
def test_parts_of_one_shape_that_overlap_are_refused(write: str) -> None:
    storage = torch.arange(12.0).untyped_storage()
    first, second = [torch.empty(0).set_(storage, offset, (2, 3)) for offset in (0, 3)]
    with pytest.raises(RuntimeError, match=SHARED):
        WRITES[write](first, second)


@pytest.mark.parametrize("make", [loaded, pointed, copy.deepcopy])
def test_parts_that_lie_apart_are_written(make: Callable[[Any], Any]) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    _, whole = make([x, x])
    first, second = whole[:1], whole[1:]
    first.add_(second)
    assert whole.tolist() == [[3, 5, 7], [3, 4, 5]]


def test_a_number_does_not_fill_an_expanded_part_of_a_result_with_history() -> None:
    x = torch.ones(3, requires_grad=True).sin().expand(2, 2, 3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[0] = 3.0
    x[0, 0] = 3.0
    assert x.tolist() == [[[3, 3, 3], [3, 3, 3]], [[3, 3, 3], [3, 3, 3]]]
