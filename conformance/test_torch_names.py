"""The packaged list of PyTorch's names is what the pinned PyTorch has."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="conformance compares with PyTorch itself")

from conformance.write_torch_names import NAMES_FILE, text  # noqa: E402
from flambeau._core.missing import torch_names  # noqa: E402


def test_the_list_is_up_to_date():
    assert NAMES_FILE.read_text(encoding="utf-8") == text()


@pytest.mark.parametrize(
    "name",
    ["torch.add", "torch.fft.rfft", "torch.nn.functional.relu", "torch.Tensor.lu_solve"],
)
def test_the_list_has(name: str):
    assert name in torch_names()


@pytest.mark.parametrize("name", ["torch.os", "torch.nn.functional.Callable", "torch.warnings"])
def test_the_list_has_not_what_is_merely_imported(name: str):
    assert name not in torch_names()
