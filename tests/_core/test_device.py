"""Devices: how they are written and compared."""

from __future__ import annotations

import pickle

import pytest

import flambeau as torch


@pytest.mark.parametrize(
    ("given", "type_", "index", "shown"),
    [
        (("cpu",), "cpu", None, "device(type='cpu')"),
        (("cuda:1",), "cuda", 1, "device(type='cuda', index=1)"),
        (("cuda", 0), "cuda", 0, "device(type='cuda', index=0)"),
        ((torch.device("cpu"),), "cpu", None, "device(type='cpu')"),
    ],
)
def test_forms(given: tuple, type_: str, index: int | None, shown: str) -> None:
    device = torch.device(*given)
    assert (device.type, device.index, repr(device)) == (type_, index, shown)
    assert pickle.loads(pickle.dumps(device)) == device
    assert hash(torch.device(str(device))) == hash(device)


@pytest.mark.parametrize("text", ["nowhere", "cpu:", "cuda:x", "", "cuda:-1"])
def test_wrong_texts(text: str) -> None:
    with pytest.raises(RuntimeError):
        torch.device(text)


def test_tensors_live_on_the_cpu() -> None:
    x = torch.ones(2)
    assert x.device == torch.device("cpu")
    assert x.to("cpu") is x
    assert torch.zeros(1, device="cpu").device.type == "cpu"
