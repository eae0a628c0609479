"""Every test leaves the process as it was, in either library; random ones draw something new."""

from __future__ import annotations

import torch

from tests.conftest import (  # noqa: F401
    pytest_collection_finish,
    pytest_configure,
    pytest_configure_node,
    pytest_ignore_collect,
    pytest_pyfunc_call,
    pytest_report_header,
    pytest_runtest_teardown,
    pytest_terminal_summary,
)
from tests.process_state import SWITCHES

SWITCHES |= {
    "PyTorch's grad mode": torch.is_grad_enabled,
    "PyTorch's inference mode": torch.is_inference_mode_enabled,
    "PyTorch's autocast": lambda: torch.is_autocast_enabled("cpu"),
    "PyTorch's default dtype": torch.get_default_dtype,
    "PyTorch's deterministic algorithms": torch.are_deterministic_algorithms_enabled,
}
