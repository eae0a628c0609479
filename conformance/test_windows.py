"""`torch.signal.windows`: values, and whether a window is a leaf."""

from __future__ import annotations

from typing import Any

import pytest
import torch as reference

import flambeau

WINDOWS: dict[str, dict[str, Any]] = {
    "exponential": {"tau": 0.5}, "cosine": {}, "gaussian": {"std": 0.5}, "kaiser": {"beta": 3.0},
    "general_cosine": {"a": [0.5, 0.3, 0.2]}, "general_hamming": {"alpha": 0.4}, "hann": {},
    "hamming": {}, "bartlett": {}, "nuttall": {}, "blackman": {},
}  # fmt: skip


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("sym", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, sym: bool, requires_grad: bool) -> None:
    """Their curves are computed from a leaf that nobody sees."""
    for length in range(6):
        here, there = (
            getattr(torch.signal.windows, name)(
                length, sym=sym, requires_grad=requires_grad, **WINDOWS[name]
            )
            for torch in (flambeau, reference)
        )
        assert (here.is_leaf, here.requires_grad) == (there.is_leaf, there.requires_grad)
        values = reference.tensor(here.tolist())
        reference.testing.assert_close(values, there.detach(), rtol=1e-5, atol=1e-6)
