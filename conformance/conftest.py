"""Every test leaves the process as it was, in either library."""

from __future__ import annotations

import torch

from tests.conftest import pytest_collection_finish, pytest_runtest_teardown  # noqa: F401
from tests.process_state import SWITCHES

SWITCHES |= {
    "PyTorch's grad mode": torch.is_grad_enabled,
    "PyTorch's inference mode": torch.is_inference_mode_enabled,
    "PyTorch's autocast": lambda: torch.is_autocast_enabled("cpu"),
    "PyTorch's default dtype": torch.get_default_dtype,
    "PyTorch's deterministic algorithms": torch.are_deterministic_algorithms_enabled,
}
