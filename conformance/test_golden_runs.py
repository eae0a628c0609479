"""Training from one seed: after 100 steps of float32 both libraries are still at the same losses.

Each file in `golden/` is an ordinary training script that takes `torch` as an argument.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

import flambeau

SCRIPTS = ["mlp", "cnn", "language_model", "gpt"]
STEPS = 100


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads that wait for one another take most of the time on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses(name):
    run = importlib.import_module(f"conformance.golden.{name}").run
    expected = run(torch, STEPS)
    losses = run(flambeau, STEPS)
    assert len(losses) == STEPS
    assert np.mean(expected[-10:]) < 0.9 * np.mean(expected[:10]), "it does not learn"
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    # as many numbers have been drawn
    assert flambeau.rand(1).item() == torch.rand(1).item()
