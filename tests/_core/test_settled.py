"""Results that are kept follow from the arguments, types included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._core.settled import MOST, settled

F = torch.nn.functional


def test_equal_arguments_are_computed_once_and_keep_their_types() -> None:
    seen: list[Any] = []

    @settled
    def words(*values: Any) -> str:
        seen.append(values)
        return repr(values)

    calls: list[Any] = [
        (2, (3, 4)), (2.0, (3, 4)), (True, (3, 4)), (2, [3, 4]), (2, (3.0, 4)), (2, None, "a"),
    ]  # fmt: skip
    for _ in range(3):
        for values in calls:
            assert words(*values) == repr(values)
    assert seen == calls
    assert [type(values[0]) for values in seen] == [int, float, bool, int, int, int]


def test_other_arguments_are_let_through() -> None:
    count = 0

    @settled
    def size(value: Any) -> int:
        nonlocal count
        count += 1
        return len(value) if hasattr(value, "__len__") else int(value)

    for value in (torch.Size((1, 2)), np.int64(3), (np.float64(0), np.int64(0)), {}):
        assert size(value) == size(value)
    assert count == 8


def test_errors_are_not_kept_and_room_is_bounded() -> None:
    seen: list[int] = []

    @settled
    def odd(number: int) -> int:
        seen.append(number)
        if number % 2 == 0:
            raise ValueError(number)
        return number

    for _ in range(2):
        with pytest.raises(ValueError, match="2"):
            odd(2)
    assert seen == [2, 2]
    for number in range(1, 2 * MOST + 4, 2):
        assert odd(number) == number
    seen.clear()
    assert odd(1) == 1
    assert seen == [1]


def test_a_wrong_number_stays_wrong_after_a_right_one() -> None:
    image, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    for function in (F.max_pool2d, F.avg_pool2d):
        assert function(image, 2).shape == (1, 1, 2, 2)
        assert function(image, [2, 1]).shape == (1, 1, 2, 4)
        with pytest.raises(TypeError):
            function(image, (2.0, 2.0))
    assert F.unfold(image, 2).shape == F.unfold(image, [2, 2]).shape == (1, 4, 9)
    with pytest.raises(TypeError):
        F.unfold(image, (2.0, 2.0))
    assert F.layer_norm(image, (4,)).shape == image.shape
    with pytest.raises(TypeError):
        F.layer_norm(image, (4.0,))
    assert torch.conv2d(image, weight, stride=(2, 2)).shape == (1, 1, 2, 2)
    with pytest.raises(TypeError):
        torch.conv2d(image, weight, stride=(2.0, 2.0))
