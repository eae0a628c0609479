"""`torch.sym_max` and its kin, of numbers; batch norms without running statistics."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

NUMBERS = (0, 3, -2, 2.5, -3.7, True, False, float("inf"))


def answer(library: Any, name: str, *args: Any) -> Any:
    try:
        found = getattr(library, name)(*args)
    except (AssertionError, ValueError, OverflowError, TypeError) as error:
        return type(error).__name__, str(error)
    return type(found).__name__, found


@pytest.mark.parametrize("name", ["sym_int", "sym_float", "sym_not", "sym_sqrt"])
@pytest.mark.parametrize("value", [*NUMBERS, "3", "x"])
def test_of_one_number(name: str, value: Any) -> None:
    assert answer(flambeau, name, value) == answer(reference, name, value)


@pytest.mark.parametrize("name", ["sym_max", "sym_min"])
@pytest.mark.parametrize("first", NUMBERS)
@pytest.mark.parametrize("second", [*NUMBERS, "x"])
def test_of_two_numbers(name: str, first: Any, second: Any) -> None:
    assert answer(flambeau, name, first, second) == answer(reference, name, first, second)


@pytest.mark.parametrize("args", [(True, 1, 2), (False, 1, 2), (1, 1, 2), (True, 1, 2.0)])
def test_choice(args: Any) -> None:
    assert answer(flambeau, "sym_ite", *args) == answer(reference, "sym_ite", *args)


@pytest.mark.parametrize("args", [[1, 2, 3], (1, 2.5), []])
def test_sum(args: Any) -> None:
    assert answer(flambeau, "sym_sum", args) == answer(reference, "sym_sum", args)


def test_batch_norms_without_running_statistics() -> None:
    found = []
    for t in (flambeau, reference):
        t.manual_seed(0)
        inner = t.nn.Sequential(t.nn.BatchNorm1d(3), t.nn.Linear(3, 3))
        net = t.nn.Sequential(inner, t.nn.InstanceNorm1d(3, track_running_stats=True))
        assert t.func.replace_all_batch_norm_modules_(net) is net
        rows = inner.eval()(t.arange(12.0).view(4, 3)).tolist()
        found.append([str(net), list(net.state_dict()), inner[0].track_running_stats,
                      [[round(x, 5) for x in row] for row in rows]])  # fmt: skip
    assert found[0] == found[1]
