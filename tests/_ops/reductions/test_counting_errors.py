"""What operators that count refuse."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_edges_of_no_bin():
    with pytest.raises(RuntimeError, match="bins tensor should have at least 1 element, but got 0"):
        torch.histogram(torch.rand(3, 3), torch.tensor([], dtype=torch.float32))
