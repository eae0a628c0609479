"""Checkpoints of optimizers, through files, from torch to flambeau and back: to the bit."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as reference

import flambeau
from conformance.test_optim import OPTIONS, case_id, combinations
from flambeau._runtime import choice

CASES = [(name, combinations(name)[index]) for name in OPTIONS for index in (0, -1)]
CASES += [
    ("LBFGS", {}), ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 3}), ("Muon", {}),
    ("Adam", {"fused": True}), ("Adam", {"foreach": True}), ("SGD", {"fused": True, "lr": 0.1}),
]  # fmt: skip
EXACT = ("SGD", "Adamax", "ASGD", "Rprop")
"""Without square roots, of which MKL rounds a fifth wrongly."""


def parameters(library: Any, dtype: str, name: str) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = ((13, 5), (4, 2)) if name == "Muon" else ((13, 5), (7,), ())
    return [library.nn.Parameter(library.tensor(rng.normal(size=shape)).to(getattr(library, dtype)))
            for shape in shapes]  # fmt: skip


class Training:
    """Steps on gradients that are drawn, so that all see the same."""

    def __init__(self, library: Any, name: str, options: dict[str, Any], dtype: str) -> None:
        self.library, self.name, self.dtype = library, name, dtype
        self.params = parameters(library, dtype, name)
        self.optimizer = getattr(library.optim, name)(self.params, **options)

    def closure(self) -> Any:
        self.optimizer.zero_grad()
        loss = sum(((p - 1) ** 2).sum() for p in self.params)
        loss.backward()
        return loss

    def steps(self, first: int, last: int) -> None:
        for number in range(first, last):
            rng = np.random.default_rng(number)
            for parameter in self.params:
                grad = self.library.tensor(rng.normal(size=tuple(parameter.shape)))
                parameter.grad = grad.to(parameter.dtype)
            if self.name == "LBFGS":
                self.optimizer.step(self.closure)
            else:
                self.optimizer.step()

    def save(self, path: Path) -> None:
        self.library.save([[p.detach() for p in self.params], self.optimizer.state_dict()], path)

    def load(self, path: Path) -> None:
        values, state = self.library.load(path)
        with self.library.no_grad():
            for parameter, value in zip(self.params, values, strict=True):
                parameter.copy_(value)
        self.optimizer.load_state_dict(state)


def described(value: Any) -> Any:
    """Everything about a state dict: types, dtypes, shapes and bits."""
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(item) for item in value]
    if hasattr(value, "detach"):
        exact = value.detach().double() if value.is_floating_point() else value
        return str(value.dtype), tuple(value.shape), exact.numpy().tobytes()
    return type(value).__name__, value


def values(value: Any) -> Any:
    """The tensors of a state dict, in order."""
    if isinstance(value, dict):
        return [found for key in sorted(value, key=str) for found in values(value[key])]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in values(item)]
    return [value.detach().double().numpy()] if hasattr(value, "detach") else []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sides", [(reference, flambeau), (flambeau, reference)],
                         ids=["from torch", "to torch"])  # fmt: skip
@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_a_checkpoint_goes_on(name: str, options: dict[str, Any], sides: Any, dtype: str,
                              tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setitem(choice.LIMITS, "optimizer", 0)
    writer, reader = (Training(library, name, options, dtype) for library in sides)
    writer.steps(0, 6)
    writer.save(tmp_path / "checkpoint.pt")
    reader.load(tmp_path / "checkpoint.pt")
    # the writer reads it too: floats in the state take the parameter's type
    writer = Training(sides[0], name, options, dtype)
    writer.load(tmp_path / "checkpoint.pt")
    assert described(reader.optimizer.state_dict()) == described(writer.optimizer.state_dict())
    for one in (writer, reader):
        one.steps(6, 10)
        one.save(tmp_path / f"{one.library.__name__}.pt")
    found = [values([one.params, one.optimizer.state_dict()]) for one in (reader, writer)]
    if name in EXACT:
        assert all(np.array_equal(*pair) for pair in zip(*found, strict=True))
    tolerance = {"float32": 3e-6, "float64": 1e-12}[dtype] if name != "Muon" else 1e-2
    for pair in zip(*found, strict=True):
        np.testing.assert_allclose(*pair, rtol=tolerance, atol=tolerance)
    shapes = [_shape(described(one.optimizer.state_dict())) for one in (reader, writer)]
    assert shapes[0] == shapes[1]


def _shape(value: Any) -> Any:
    """What `described` gave without the bits and the numbers."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_shape(item) for item in value)
    return type(value).__name__ if isinstance(value, (bytes, float, int)) else value


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))],
                         ids=["deepcopy", "pickle"])  # fmt: skip
def test_copies_go_on_by_themselves(name: str, copied: Any) -> None:
    results = []
    for library in (flambeau, reference):
        training = Training(library, name, combinations(name)[0], "float64")
        training.steps(0, 3)
        own = copied(training.optimizer)
        before = [p.detach().clone().numpy() for p in training.params]
        training.params = [p for group in own.param_groups for p in group["params"]]
        training.optimizer = own
        training.steps(3, 6)
        results.append([before, [p.detach().numpy() for p in training.params]])
    for ours, theirs in zip(*results, strict=True):
        for pair in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(*pair, rtol=1e-6, atol=1e-9)
