"""Fake tensors beside PyTorch's: what they say they are, and what they refuse."""

from __future__ import annotations

import copy
import gc
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch as reference
import torch._subclasses

import flambeau

IN_A_MODE = """
torch.empty(3, device="cuda")
torch.ones(3, device="cpu")+1
(torch.ones(3, requires_grad=True)*2)
torch.ones(3).item()
torch.ones(1).item()
bool(torch.ones(1)>0)
torch.ones(3).nonzero()
torch.ones(3).unique()
torch.ones(3).tolist()
torch.ones(3).numpy()
torch.ones(3).masked_select(torch.ones(3)>0)
torch.ones(3, device="cuda")+torch.ones(3)
torch.ones(3, device="cuda")+torch.tensor(2.)
torch.ones(3, device="cuda").to("cpu")
torch.nn.Linear(3, 4)(torch.ones(2, 3))
torch.nn.Linear(3, 4).weight
torch.tensor([1, 2])
torch.tensor(3).item()
torch.randn(3, device="meta")
torch.ones(3, device="meta")+1
torch.ones(3).untyped_storage().device
torch.from_numpy(np.ones(3))
torch.arange(3).to(torch.float16).half()
torch.equal(torch.ones(3), torch.ones(3))
torch.allclose(torch.ones(3), torch.ones(3))
torch.empty(2, 3, device="cuda:1").device
torch.tensor(2.)+torch.tensor(3.)
(torch.tensor(2.)+torch.tensor(3.)).item()
torch.tensor([2., 3.]).sum().item()
torch.tensor(2.).add_(1).item()
int(torch.tensor(2))
torch.tensor([True]).any().item()
torch.zeros(1).item()
torch.tensor(2., device="cuda")
torch.ones(2, device="cuda").cpu()
torch.ones(2, device="cuda").to("cuda:1")
torch.ones(2, device="cuda")*torch.ones((), device="cpu")
torch.ones((), device="cuda")*torch.ones(2, device="cpu")
torch.ones(2).add_(torch.ones(2, device="cuda"))
torch.nn.functional.linear(torch.ones(2, 3, device="cuda"), torch.ones(4, 3, device="cuda"))
torch.where(torch.ones(2, device="cuda")>0, 1., 0.)
torch.cat([torch.ones(2, device="cuda"), torch.ones(2)])
torch.ones(2, 3, device="cuda").T.stride()
torch.ones(4)[1:].storage_offset()
torch.ones(4)[1:]._base is not None
torch.ones(4).untyped_storage().nbytes()
torch.ones(4).resize_(6).shape
torch.ones(2, 3).t_().shape
torch.ones(2, 3).unsqueeze_(0).stride()
torch.zeros_like(torch.ones(6), device="cuda")
torch.rand_like(torch.ones(6))
torch.ones(6).new_empty((2,), device="cuda")
torch.empty_strided((2, 3), (1, 2)).stride()
torch.arange(5), torch.randn(2), torch.randint(0, 5, (2,)), torch.eye(2, device="cuda"), torch.linspace(0, 1, 3), torch.full((2,), 3)
torch.randperm(3), torch.tril_indices(3, 3), torch.scalar_tensor(3.), torch.empty(2, dtype=torch.int8), torch.hann_window(3)
torch.complex(torch.ones(2), torch.ones(2))
torch.nn.BatchNorm1d(3)(torch.ones(2, 3))
torch.nn.LSTM(3, 4)(torch.ones(2, 1, 3))[0].shape
torch.nn.functional.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]))
torch.nn.MultiheadAttention(4, 2)(*[torch.ones(2, 1, 4)]*3)[0]
torch.nn.functional.dropout(torch.ones(2))
torch.fft.fft(torch.ones(3))
torch.linalg.svd(torch.ones(3, 3))
torch.ones(3).sort()
torch.ones(3).max(0)
torch.ones(3).split(1)
torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 3, 8, 8)).shape
torch.nn.TransformerEncoderLayer(8, 2, 16)(torch.ones(3, 2, 8))
torch.ones(2).view(3)
torch.ones(3).softmax(0), torch.ones(3).sum(), torch.ones(3).mean(), torch.ones(3).exp_()
torch.stack([torch.ones(2), torch.ones(2)]), torch.ones(2, 3)[0], torch.ones(2, 3)[:, 1], torch.ones(2, 3).t()
torch.nn.Embedding(5, 3)(torch.tensor([1, 2]))
torch.ones(2, 3).flatten(), torch.ones(2, 3).reshape(3, 2), torch.ones(2, 3).permute(1, 0).stride()
torch.einsum("ij, jk->ik", torch.ones(2, 3), torch.ones(3, 4))
torch.nn.functional.interpolate(torch.ones(1, 1, 4, 4), scale_factor=2).shape
torch.bincount(torch.arange(3))
torch.ones(3, dtype=torch.int8) / 2
torch.ones(2, 2).trace(), torch.ones(2, 2).tril(), torch.ones(3).cumsum(0), torch.ones(3).topk(2), torch.ones(3).argmax()
torch.ones(3).is_cuda, torch.ones(3, device="cuda").is_cuda, torch.ones(3, device="cuda").get_device()
torch.ones(3).contiguous(), torch.ones(3).dtype, torch.ones(3).numel(), torch.ones(2, 3).size(), len(torch.ones(3))
torch.ones(3).fill_(2), torch.ones(3).zero_(), torch.ones(3).copy_(torch.ones(3)), torch.ones(3).normal_()
torch.ones(3).requires_grad_().grad_fn, torch.ones(3, requires_grad=True).is_leaf
""".strip().split("\n")  # noqa: E501
OF_REAL = """
f, type(f).__name__, f.fake_device, f.fake_mode is mode, f.device
isinstance(mode.from_tensor(torch.nn.Parameter(y)), torch.nn.Parameter)
mode.from_tensor(torch.nn.Parameter(y)), mode.from_tensor(y) is f
f + y
f + 1, f * f, torch.cat([f, f])
g + y
other.from_tensor(f).fake_mode is other
f.numpy()
f.tolist()
f.item()
f.clone(), torch.ones_like(f), torch.zeros(3), f.new_ones(2), f.view(3, 1), f[0], f.cpu()
f.is_cuda, fakes.is_fake(f), f.detach(), copy.deepcopy(f), str(f)
mode.from_tensor(torch.ones(2, 2).t()[1:]).storage_offset()
mode.from_tensor(torch.ones(2, 2).t()[1:]).stride()
mode.from_tensor(torch.ones(2, device="meta"))
f.shape, f.stride(), f.dtype, f.requires_grad
f + g
[e.__mro__[1].__name__ for e in (fakes.DataDependentOutputException,)]
inside(mode, lambda: y + 1)
inside(mode, lambda: y.sum())
inside(mode, lambda: torch.cat([f, y]))
inside(mode, lambda: g + 1)
inside(other, lambda: g + y)
inside(other, lambda: y + 1)
inside(other, lambda: torch.ones(3).fake_mode is other)
trained(torch.nn.Linear(3, 4))
inside(mode, lambda: trained(torch.nn.Linear(3, 4)))
inside(mode, lambda: inside(torch.device("cuda"), lambda: (torch.ones(2), torch.tensor([1]))))
inside(mode, lambda: gradient(torch, torch.ones(2, 3, requires_grad=True)))
inside(mode, lambda: written(torch.ones(2, 3)))
inside(mode, lambda: torch.ones(2).fake_mode is guards.detect_fake_mode())
guards.detect_fake_mode([f]) is mode, guards.detect_fake_mode([y]), guards.active_fake_mode()
inside(mode, lambda: real_inside(torch, fakes))
torch.ones(2) + 1
""".strip().split("\n")


def inside(mode: Any, function: Any) -> Any:
    with mode:
        return function()


def trained(layer: Any) -> Any:
    """The gradients and parameters after a step."""
    weight = layer.weight
    layer(weight.new_ones((2, 3))).sum().backward()
    return [(p.shape, p.grad.shape, p.device, p.grad_fn) for p in layer.parameters()]


def gradient(torch: Any, x: Any) -> Any:
    torch.nn.functional.layer_norm(x, (3,)).softmax(-1).sum().backward()
    return x.grad


def written(x: Any) -> Any:
    x[0] = 1.0
    x[:, 1] = x[:, 0]
    row = x[1]
    row.add_(1)
    return x, row._version == x._version, row._base is x


def real_inside(torch: Any, fakes: Any) -> Any:
    with fakes.unset_fake_temporarily():
        return torch.ones(2)


def observed(scenario: str, torch: Any, in_a_mode: bool) -> Any:
    fakes = torch._subclasses.fake_tensor
    mode, other = fakes.FakeTensorMode(), fakes.FakeTensorMode(allow_non_fake_inputs=True)
    y = torch.ones(3)
    scope = {"torch": torch, "mode": mode, "other": other, "y": y, "f": mode.from_tensor(y),
             "g": other.from_tensor(y), "fakes": fakes, "np": np, "copy": copy, "inside": inside,
             "trained": trained, "gradient": gradient, "written": written,
             "real_inside": real_inside, "guards": torch._guards}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if not in_a_mode:
                return repr(eval(scenario, scope))
            with mode:
                return repr(eval(scenario, scope))
        except Exception as error:  # noqa: BLE001  # whatever a library refuses
            text = str(error).split("\n")[0].replace("flambeau", "torch")
            return type(error).__name__, re.sub(" at 0x[0-9a-f]+", "", text)


def known(observation: Any) -> Any:
    """The names of errors whose words differ: those of operators that have other parts here."""
    if isinstance(observation, tuple) and observation[0] == "DynamicOutputShapeException":
        return observation[0]
    return observation


@pytest.mark.parametrize("scenario", IN_A_MODE)
def test_in_a_mode(scenario: str) -> None:
    want, got = (observed(scenario, library, True) for library in (reference, flambeau))
    gc.collect()
    assert known(got) == known(want)


@pytest.mark.parametrize("scenario", OF_REAL)
def test_of_real_tensors(scenario: str) -> None:
    want, got = (observed(scenario, library, False) for library in (reference, flambeau))
    gc.collect()
    assert got == want
