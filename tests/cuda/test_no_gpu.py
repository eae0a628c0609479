"""`torch.cuda`, `torch.accelerator` and `torch.backends` where there is no GPU."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau._core.missing import NotImplementedInFlambeau

NEED_A_DEVICE = (
    "current_device get_device_name get_device_properties get_device_capability synchronize "
    "mem_get_info initial_seed get_rng_state current_stream default_stream ipc_collect init "
    "get_sync_debug_mode current_blas_handle current_solver_handle cudart "
    "get_per_process_memory_fraction"
).split()
"""Functions that PyTorch's build for the CPU has, and that raise AssertionError in it."""


def test_questions_are_answered():
    assert torch.version.cuda is None
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert torch.cuda.max_memory_allocated(device=None) == 0
    assert torch.accelerator.current_accelerator() is None
    assert not torch.backends.cudnn.is_available()
    assert not torch.backends.mps.is_available()


def test_seeds_are_accepted():
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    assert torch.cuda.get_rng_state_all() == []


@pytest.mark.parametrize("name", NEED_A_DEVICE)
def test_what_needs_a_device(name: str):
    with pytest.raises(AssertionError, match="^Torch not compiled with CUDA enabled$"):
        getattr(torch.cuda, name)()


def test_resetting_the_peak_needs_a_device():
    with (
        pytest.warns(FutureWarning, match="reset_peak_memory_stats"),
        pytest.raises(AttributeError),
    ):
        torch.cuda.reset_max_memory_allocated()


def test_what_is_missing_is_named():
    with pytest.raises(NotImplementedInFlambeau, match=r"^torch\.cuda\.GreenContext is not"):
        torch.cuda.GreenContext


def test_streams_events_and_graphs_need_a_device():
    for kind in (torch.cuda.Stream, torch.cuda.Event, torch.cuda.CUDAGraph, torch.cuda.MemPool):
        with pytest.raises(RuntimeError, match="requires CUDA|dummy base class"):
            kind()


def test_nothing_is_loaded_to_answer():
    program = (
        "import sys; import flambeau as torch; assert not torch.cuda.is_available()\n"
        "assert not {'pynvml', 'llvmlite', 'multiprocessing'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_flags_are_kept():
    cudnn = importlib.import_module("flambeau.backends.cudnn")
    with cudnn.flags(enabled=False, deterministic=True):
        assert (cudnn.enabled, cudnn.deterministic) == (False, True)
    assert (cudnn.enabled, cudnn.deterministic) == (True, False)
