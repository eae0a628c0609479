"""Types, values and warnings at the edges of single functions."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
import torch as reference

import flambeau

RESULTS = (
    "torch.lcm(i32([2**31 - 1, -6, 2**30]), i32([-4, 4, 3]))",
    "torch.lcm(i32([2**30 - 1, -2**30]), i32([2**30, 3]))",
    "torch.cat([torch.zeros(0, dtype=torch.int8), torch.zeros(0, dtype=torch.uint8)])",
    "torch.concat([torch.zeros(0, dtype=torch.int8), torch.zeros(3, dtype=torch.uint8)])",
    "torch.bincount(i32([]), torch.zeros(0))", "torch.bincount(i32([]), i32([]), minlength=3)",
    "torch.cov(torch.ones(0), correction=-1)", "torch.fft.rfftfreq(-1)", "torch.fft.rfftfreq(5)",
    "torch.unravel_index(i32([[1, 2, 3], [0, 1, 2]]), (2, 2, 3))[1]",
    "torch.cholesky(torch.ones(0, 3))", "torch.promote_types(complex, complex)",
    "torch.nn.Conv1d(2, 3, [], stride=[0, 1])",
    "torch.nn.Conv2d(2, 4, (2, 2, 3), [2, 1, 2], dilation=(2,))",
    "torch.nn.ConvTranspose2d(1, 4, (), padding=[3], output_padding=[])",
    "torch.cat([torch.ones(2)], out=torch.ones(2, dtype=torch.int8))",
    "torch.stack([torch.ones(2)], out=torch.ones(2, dtype=torch.int8))",
    "torch.sqrt(None)", "torch.cumsum(object, 0)", "torch.softmax(object, 0)",
    "torch.add(torch.ones(2), None)",
    "type(torch.eye(2).lu())", "torch.lu(torch.eye(2), get_infos=True).LU",
    "torch.narrow(torch.ones(3), 0, i32([1, 2]), 2)",
    "torch.movedim(torch.ones(2, 2), 5, 1)", "torch.fft.fftn(torch.ones(2, 2), dim=5)",
    "torch.fft.fft2(torch.ones(2, 2), s=-3)", "torch.tensordot(torch.ones(2), torch.ones(3), 1)",
    "torch.moveaxis(torch.ones(2, 2), 'a', 1)", "torch.cholesky(torch.ones(0, 0)).requires_grad",
    "torch.cholesky(torch.ones(0, 0, requires_grad=True)).requires_grad",
    "torch.promote_types(object, int)", "torch.reciprocal_(None)",
)  # fmt: skip


@pytest.mark.parametrize("call", RESULTS)
def test_results(call: str) -> None:
    assert _told(call, flambeau) == _told(call, reference)


def _told(call: str, torch: Any) -> Any:
    names = {"torch": torch, "i32": lambda values: torch.tensor(values, dtype=torch.int32)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = eval(call, names)  # noqa: S307
        except Exception as error:  # noqa: BLE001  # compared, whatever it is
            return type(error).__name__
    if not isinstance(found, torch.Tensor):
        return str(found)
    return str(found.dtype), tuple(found.shape), found.stride(), repr(found.tolist())


WARNED = (
    "torch.ones(2, dtype=torch.complex64).byte()",
    "torch.ones(2, dtype=torch.complex64).to(torch.half)",
    "torch.ones(2).copy_(torch.ones(2, dtype=torch.complex64))",
    "torch.ones(2, dtype=torch.complex64).bool()", "torch.ones(2, dtype=torch.complex64).real",
    "torch.nuclear_norm(torch.ones(2, 2))", "torch.frobenius_norm(torch.ones(2, 2), dim=0)",
    "torch.cov(torch.ones(0))", "torch.corrcoef(torch.ones(0))", "torch.nn.Container(())",
    "torch.stft(torch.ones(20), 4, return_complex=False)", "torch.stft(torch.ones(3, 0), 4)",
    "torch.lu(())", "torch.lu(torch.eye(2))",
)  # fmt: skip


@pytest.mark.parametrize("call", WARNED)
def test_warnings(call: str) -> None:
    assert _warned(call, flambeau) == _warned(call, reference)


def _warned(call: str, torch: Any) -> list[tuple[str, str]]:
    """The classes and first words of what a call warns of, and that where it was made."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            with contextlib.suppress(Exception):  # other tests look at errors
                eval(call, {"torch": torch})  # noqa: S307
    finally:
        torch.set_warn_always(before)
    return [(one.category.__name__, str(one.message)[:40]) for one in found]
