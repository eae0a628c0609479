"""Settings of the process: what was set is reported, and wrong values are refused."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._core.settings import Threads, _wished_threads


@pytest.fixture
def _unset():
    before = Threads.inside, Threads.between
    Threads.inside = Threads.between = None
    yield
    Threads.inside, Threads.between = before


@pytest.mark.usefixtures("_unset")
def test_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(Threads, "wished", _wished_threads())  # it is read at import
    assert torch.get_num_threads() == 3
    torch.set_num_threads(2)
    assert torch.get_num_threads() == 2
    for wrong in (0, 2.0, True):
        with pytest.raises(RuntimeError, match="set_num_threads expects a"):
            torch.set_num_threads(wrong)
    torch.set_num_interop_threads(1)
    with pytest.raises(RuntimeError, match="cannot set number of interop threads"):
        torch.set_num_interop_threads(1)


@pytest.mark.parametrize(("mode", "number"), [("default", 0), ("warn", 1), ("error", 2), (1, 1)])
def test_determinism(mode: str | int, number: int):
    torch.set_deterministic_debug_mode(mode)
    assert torch.get_deterministic_debug_mode() == number
    assert torch.are_deterministic_algorithms_enabled() == (number > 0)
    assert torch.is_deterministic_algorithms_warn_only_enabled() == (number == 1)
    torch.use_deterministic_algorithms(False)


def test_matmul_precision():
    torch.set_float32_matmul_precision("high")
    with pytest.warns(UserWarning, match="has no effect"):
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")


def test_default_tensor_type():
    with pytest.warns(UserWarning, match="deprecated"):
        torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.tensor(1.0).dtype is torch.float64
    torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError, match="^only floating-point types"):
        torch.set_default_tensor_type(torch.LongTensor)
