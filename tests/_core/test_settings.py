"""Settings of the process: what was set is reported, and wrong values are refused."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau._core import settings
from flambeau._core.settings import Threads, _wished_threads
from flambeau._runtime import blas_threads


@pytest.fixture
def _unset(monkeypatch: pytest.MonkeyPatch):
    before = Threads.inside, Threads.latest, Threads.between
    Threads.between = None
    monkeypatch.setattr(settings, "_own", settings._OfThread())
    monkeypatch.setattr(Threads, "elder", weakref.WeakKeyDictionary())
    yield
    torch.set_num_threads(before[0] or before[1])
    Threads.inside, Threads.latest, Threads.between = before


def in_a_thread(function: Callable[[], Any]) -> Any:
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "2"}, 2),
        ({"OMP_NUM_THREADS": "3,1", "MKL_NUM_THREADS": "none"}, 3),
    ],
)
def test_variables_of_threads(
    variables: dict[str, str], number: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert _wished_threads() == number


@pytest.mark.usefixtures("_unset")
def test_threads():
    torch.set_num_threads(3)
    torch.set_num_threads(2)
    assert torch.get_num_threads() == in_a_thread(torch.get_num_threads) == 2
    for wrong in (0, 2.0, True):
        with pytest.raises(RuntimeError, match="set_num_threads expects a"):
            torch.set_num_threads(wrong)
    torch.set_num_interop_threads(1)
    with pytest.raises(RuntimeError, match="cannot set number of interop threads"):
        torch.set_num_interop_threads(1)


@pytest.mark.usefixtures("_unset")
def test_each_thread_has_its_number():
    torch.set_num_threads(3)
    in_a_thread(lambda: torch.set_num_threads(5))
    assert torch.get_num_threads() == 3
    assert in_a_thread(torch.get_num_threads) == 5
    torch.set_num_threads(2)
    assert torch.get_num_threads() == in_a_thread(torch.get_num_threads) == 2


@pytest.mark.usefixtures("_unset")
@pytest.mark.skipif(blas_threads.functions() is None, reason="a BLAS that cannot be told")
def test_blas_follows():
    get, put = blas_threads.functions()
    before = get()
    for count in (2, 1, 2):
        torch.set_num_threads(count)
        assert get() == count
        assert blas_threads.alone(get) == (count if blas_threads.threads.Shared.pool is None else 1)
        assert get() == count
    put(before)
    blas_threads.control.cache_clear()


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
