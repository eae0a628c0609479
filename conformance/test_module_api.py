"""The methods of `nn.Module` against PyTorch: results and error texts."""

from __future__ import annotations

import copy

import pytest
import torch

import flambeau

LIBRARIES = (torch, flambeau)


def shown(value):
    """A value as text: tensors by shape and sum, modules by class, dtypes by name."""
    if isinstance(value, list | tuple):
        return [shown(part) for part in value]
    if hasattr(value, "untyped_storage"):
        return f"{list(value.shape)} {float(value.detach().sum()):.4f}"
    if isinstance(value, LIBRARIES[0].nn.Module | LIBRARIES[1].nn.Module):
        return type(value).__name__
    return repr(value).replace("flambeau", "torch")


def outcome(function):
    """The shown result, or the error as text."""
    try:
        return shown(function())
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"


# `m` is Sequential(Linear(2, 3), Sequential(ReLU(), Linear(3, 1)))

CALLS = """
m.get_submodule("1.0")
m.get_submodule("1.7")
m.get_submodule("")
m.get_submodule("0.weight")
m.get_parameter("0.weight")
m.get_parameter("0.x")
m.get_parameter("5.x")
m.get_buffer("0.weight")
m.get_buffer("0.q")
m.set_submodule("1.0", nn.Tanh()) or repr(m)
m.set_submodule("1.9", nn.Tanh()) or repr(m)
m.set_submodule("1.8", nn.Tanh(), strict=True)
m.set_submodule("", nn.Tanh())
m.set_submodule("1.0", 3)
m.set_submodule("0.weight", nn.Tanh())
m.set_submodule("0.weight.x", nn.Tanh())
m.set_submodule("9.x", nn.Tanh())
m.register_buffer("0", None)
m.register_buffer("a.b", None)
m.register_buffer("", None)
m.register_buffer(3, None)
m.register_buffer("b", 3)
m.register_parameter("p", torch.ones(2))
m.register_parameter("p", 3)
m.register_parameter("p", m[0].weight * 2)
m.register_parameter("train", None)
m.register_parameter("p.q", None)
m.add_module("a.b", nn.ReLU())
m.add_module("", nn.ReLU())
m.add_module("train", nn.ReLU())
m.add_module("q", 3)
m.add_module(3, nn.ReLU())
m.register_module("zz", None) or repr(m)
setattr(m[0], "weight", 3)
setattr(m[0], "weight", torch.ones(3))
setattr(m[0], "bias", None) or repr(m)
setattr(m, "1", 4)
delattr(m, "nope")
m.nope
m.train(3)
m.train(False)[1][0].training
m.eval().train()[1].training
m.to(torch.int32)
m.to("nope")
m.to(torch.float64)[0].weight.dtype
m.to(torch.ones(1, dtype=torch.float16))[0].weight.dtype
m.to(dtype=torch.bfloat16, non_blocking=True)[0].weight.dtype
m.to("cpu", torch.float64)[0].weight.dtype
m.to(torch.complex64)[0].weight.dtype
m.type(torch.float64)[0].weight.dtype
m.type("torch.HalfTensor")[0].weight.dtype
m.half()[0].weight.dtype
m.bfloat16()[0].weight.dtype
m.double()[0].weight.dtype
m.float()[0].weight.dtype
nn.BatchNorm1d(2).half().num_batches_tracked.dtype
nn.BatchNorm1d(2).type(torch.float64).num_batches_tracked.dtype
m.to_empty(device="cpu")[0].weight.shape
m.cpu() is m
m.apply(lambda x: None) is m
m.requires_grad_(False)[0].weight.requires_grad
m.requires_grad_(False).requires_grad_()[0].weight.requires_grad
m.load_state_dict(3)
m.load_state_dict({})
m.load_state_dict({"x": 1, "0.weight": torch.ones(1)})
m.load_state_dict({"x": 1}, strict=False)
m.load_state_dict({"0.weight": 3}, strict=False)
m.load_state_dict({"0.weight": torch.ones(5)}, strict=False)
m.load_state_dict(m.state_dict())
m.load_state_dict(m.state_dict(), assign=True)
list(m.state_dict(prefix="p."))
list(m.state_dict(keep_vars=True).values())[0].requires_grad
type(m.state_dict())
m.state_dict()._metadata
m.extra_repr()
m.get_extra_state()
m.set_extra_state(3)
m.cuda()
nn.Module(3)
nn.Module(a=3)
nn.Module()(3)
nn.Linear(2, 3)()
nn.Linear(0, 3).weight.shape
[n for n, _ in nn.ModuleList([m[0], m[0]]).named_parameters(remove_duplicate=False)]
[n for n, _ in nn.ModuleList([m[0], m[0]]).named_parameters()]
[n for n, _ in nn.ModuleList([m[0], m[0]]).named_modules(remove_duplicate=False)]
[n for n, _ in m.named_modules(prefix="zz")]
[n for n, _ in m.named_parameters(prefix="zz", recurse=False)]
[n for n, _ in m[0].named_parameters(prefix="zz", recurse=False)]
[n for n, _ in nn.BatchNorm1d(1).named_buffers()]
list(dict(m.named_children()))
list(vars(m[0]))
m._version
m.dump_patches
m.call_super_init
nn.factory_kwargs(None)
sorted(nn.factory_kwargs({"dtype": 1, "device": 2}).items())
sorted(nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 3}}).items())
nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 3}})
nn.factory_kwargs({"x": 1})
copy.deepcopy(m)
""".strip().splitlines()


def model(library):
    library.manual_seed(0)
    nn = library.nn
    return nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("call", CALLS)
def test_calls(call):
    results = []
    for library in LIBRARIES:
        scope = {"torch": library, "nn": library.nn, "m": model(library), "copy": copy}
        results.append(outcome(lambda scope=scope: eval(call, scope)))
    assert results[1] == results[0]


CONVERSIONS = """
m.double()
m.float()
m.half()
m.bfloat16()
m.type(torch.float64)
m.to(torch.float64)
m.cpu()
m.share_memory()
m.to_empty(device="cpu")
""".strip().splitlines()


@pytest.mark.parametrize("call", CONVERSIONS)
def test_apply_is_told_which_method_converts(call):
    """Modules with an `_apply` of their own read the name of the function that they are given."""
    names = []
    for library in LIBRARIES:

        class Keeps(library.nn.Module):
            def _apply(self, fn, recurse=True):
                self.told = str(fn).partition(" at ")[0]
                return self

        module = Keeps()
        eval(call, {"torch": library, "m": library.nn.Sequential(module)})
        names.append(module.told)
    assert names[1] == names[0]
