"""Hooks on saved tensors, and anomaly mode."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks


def test_saved_tensors_go_through_the_hooks() -> None:
    x, packed = torch.tensor([1.0, 2.0], requires_grad=True), []

    def pack(tensor: torch.Tensor) -> list[float]:
        packed.append(tensor.tolist())
        return tensor.tolist()

    with saved_tensors_hooks(pack, lambda values: torch.tensor(values) * 10):
        y = x * x
    y.sum().backward()
    assert packed == [[1.0, 2.0], [1.0, 2.0]]
    assert x.grad.tolist() == [20.0, 40.0]


def test_the_innermost_hooks_count_and_results_are_packed_too() -> None:
    x, seen = torch.zeros(1, requires_grad=True), []
    with saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            y = x.exp()
        z = x.cos()
    (y + z).sum().backward()
    assert seen == ["inner", "outer"]
    assert x.grad.tolist() == [1.0]


def test_hooks_can_be_forbidden() -> None:
    hooks = saved_tensors_hooks(lambda t: t, lambda t: t)
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        hooks.__enter__()


def test_copies_are_immune_to_writes() -> None:
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    with save_on_cpu():
        y = x * w
    w.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_anomaly_mode_names_the_operator_and_the_line() -> None:
    x = torch.zeros(1, requires_grad=True)
    with pytest.warns(UserWarning) as caught, torch.autograd.detect_anomaly():
        y = x / x
        with pytest.raises(RuntimeError, match="'DivBackward0' returned nan values in its 1th"):
            y.backward()
    assert "y = x / x" in str(caught[-1].message)
    assert not torch.is_anomaly_enabled()
