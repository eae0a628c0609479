"""Fusion, skip_init, stateless calls."""

import importlib

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call, stack_module_state
from flambeau.nn.utils import _named_member_accessor as accessor


@pytest.mark.parametrize("transpose", [False, True])
def test_fusion_changes_no_output(transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(2, 3, 2)
    bn = nn.BatchNorm2d(3)
    for _ in range(5):
        bn(conv(torch.randn(4, 2, 5, 5)))
    conv.eval()
    bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    x = torch.randn(4, 2, 5, 5)
    assert torch.allclose(fused(x), bn(conv(x)), atol=1e-5)


def test_skip_init_draws_nothing_and_fills_nothing():
    calls = []

    class Layer(nn.Linear):
        def reset_parameters(self):
            calls.append(self)

    state = torch.get_rng_state()
    module = nn.utils.skip_init(Layer, 3, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert type(module) is Layer
    assert calls == []
    assert module.weight.shape == (2, 3)


def test_a_failing_call_leaves_the_module_as_it_was():
    module = nn.Linear(2, 2)
    own = module.weight
    with pytest.raises(RuntimeError):
        functional_call(module, {"weight": torch.ones(2, 2)}, torch.ones(3))
    assert module.weight is own
    with pytest.raises(TypeError):
        functional_call(module, {"weight": torch.ones(2, 2), "bias": "no"}, torch.ones(2))
    assert module.weight is own


@pytest.mark.parametrize("call", [2, 4])
def test_an_interruption_leaves_a_module_its_tensors(monkeypatch, call):
    """Whether it comes while they are taken away or while they are given back."""
    check, calls = accessor._check_name, []

    def interrupted(name):
        calls.append(name)
        if len(calls) == call:
            raise KeyboardInterrupt
        check(name)

    module = nn.Linear(2, 2)
    own = dict(module.named_parameters())
    monkeypatch.setattr(accessor, "_check_name", interrupted)
    given = {"weight": torch.ones(2, 2), "bias": torch.ones(2)}
    with pytest.raises(KeyboardInterrupt):
        functional_call(module, given, torch.ones(2))
    assert all(tensor is own[name] for name, tensor in module.named_parameters())


def test_gradients_reach_what_was_given():
    module, weight = nn.Linear(2, 1), torch.ones(1, 2, requires_grad=True)
    functional_call(module, {"weight": weight}, torch.tensor([3.0, 4.0])).backward()
    assert weight.grad.tolist() == [[3.0, 4.0]]
    assert module.weight.grad is None


def test_stacked_states_are_leaves():
    parameters, buffers = stack_module_state([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])
    assert parameters["weight"].shape == (2, 2)
    assert parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad
    assert not buffers["running_mean"].requires_grad


@pytest.mark.parametrize("file", ["utils.weight_norm", "utils.spectral_norm", "parallel.replicate"])
def test_functions_keep_their_names_after_imports_of_their_files(file):
    importlib.import_module(f"flambeau.nn.{file}")
    package, _, name = file.partition(".")
    assert callable(getattr(getattr(nn, package), name))
