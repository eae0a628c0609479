"""Frozen modules: what stays of them, and what they compute, in both implementations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch

import flambeau

SEQUENCES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "conv": (lambda nn: (nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), (2, 1, 5, 5)),
    "conv1d": (lambda nn: (nn.Conv1d(2, 3, 2, bias=False), nn.BatchNorm1d(3)), (2, 2, 4)),
    "linear": (lambda nn: (nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.9)), (2, 4)),
    "nested": (lambda nn: (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), nn.GELU()), (2, 4)),
}
"""Layers one after the other, and the shape of an input."""


def frozen(library: Any, name: str, state: Any = None, **options: Any) -> tuple[Any, Any]:
    """A module with settled statistics, and its frozen form."""
    build, _ = SEQUENCES[name]
    module = library.nn.Sequential(*build(library.nn))
    for key, value in module.state_dict().items():
        if state is not None:
            value.copy_(library.from_numpy(state[key].detach().numpy().copy()))
        elif "running" in key:
            value.uniform_(0.5, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return module, library.jit.freeze(library.jit.script(module.eval()), **options)


@pytest.mark.parametrize("name", SEQUENCES)
def test_results(name: str) -> None:
    """The frozen module computes the same, and has no parameters any more."""
    original, theirs = frozen(torch, name)
    _, ours = frozen(flambeau, name, original.state_dict())
    x = np.random.default_rng(0).standard_normal(SEQUENCES[name][1], dtype=np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(
        ours(flambeau.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6
    )
    assert list(ours.state_dict()) == list(theirs.state_dict()) == []
    assert hasattr(ours, "training") == hasattr(theirs, "training")


@pytest.mark.parametrize("name", ["conv", "conv1d", "linear"])
def test_folding(name: str) -> None:
    """Batch normalization and dropout are gone, unless rounding must not change."""
    for library in (torch, flambeau):
        _, folded = frozen(library, name)
        assert "batch_norm" not in folded.code
        assert "dropout" not in folded.code
        _, exact = frozen(library, name, optimize_numerics=False)
        assert "batch_norm" in exact.code


def test_training_mode() -> None:
    """Modules in training mode are refused with the same words."""
    words = []
    for library in (torch, flambeau):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = library.jit.script(library.nn.Sequential(library.nn.ReLU()))
            with pytest.raises(RuntimeError) as raised:
                library.jit.freeze(scripted)
        words.append(str(raised.value))
    assert words[0] == words[1]
