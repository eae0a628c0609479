"""Memory that NumPy's arrays look at keeps its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch


@pytest.mark.parametrize("lend", [
    lambda x: x.numpy(), lambda x: x[1:].numpy(), np.asarray,
    lambda x: (x.untyped_storage(), x.numpy()),
])  # fmt: skip
def test_lent_memory_is_not_resizable(lend: Callable[[Any], Any]):
    x = torch.zeros(3)
    lend(x)
    assert not x.untyped_storage().resizable()
    assert not x[1:].untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.resize_(10)
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        x.untyped_storage().resize_(100)


def test_copies_do_not_lend():
    x = torch.zeros(3)
    x.tolist()
    np.array(x)
    x.clone().numpy()
    assert x.untyped_storage().resizable()
    assert x.resize_(10).shape == (10,)
