"""Pruning: counts, chains and what is left after a failure."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils import prune


def zeros(tensor):
    return int((tensor == 0).sum())


def test_amounts_add_up_over_what_is_left():
    module = nn.Linear(10, 10)
    prune.l1_unstructured(module, "weight", 0.5)
    prune.random_unstructured(module, "weight", 0.5)
    prune.l1_unstructured(module, "weight", 5)
    assert zeros(module.weight_mask) == 80
    assert len(next(iter(module._forward_pre_hooks.values()))) == 3


def test_the_smallest_go():
    module = nn.Linear(3, 1, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([[0.1, -3.0, -0.2]]))
    prune.l1_unstructured(module, "weight", 2)
    assert module.weight.tolist() == [[0.0, -3.0, -0.0]]
    assert module(torch.ones(1, 3)).item() == -3


def test_slices():
    module = nn.Conv2d(3, 4, 2)
    prune.ln_structured(module, "weight", 0.5, n=2, dim=0)
    assert zeros(module.weight_mask.sum(dim=(1, 2, 3))) == 2
    prune.random_structured(module, "weight", 1, dim=1)
    assert zeros(module.weight_mask.sum(dim=(0, 2, 3))) == 1


def test_gradients_are_masked_and_removal_is_permanent():
    module = prune.l1_unstructured(nn.Linear(4, 2), "weight", 3)
    original, mask = module.weight_orig, module.weight_mask.clone()
    module(torch.ones(1, 4)).sum().backward()
    assert torch.equal(original.grad != 0, mask == 1)
    prune.remove(module, "weight")
    assert module.weight is original
    assert zeros(module.weight) == 3
    assert not prune.is_pruned(module)


def test_a_failure_leaves_the_module_as_it_was():
    module = nn.Linear(2, 2)
    weight = module.weight
    with pytest.raises(ValueError, match="amount=9 should be smaller"):
        prune.l1_unstructured(module, "weight", 9)
    assert module.weight is weight
    assert sorted(module.state_dict()) == ["bias", "weight"]


def test_global_pruning_compares_all():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with torch.no_grad():
        net[0].weight.fill_(1)
        net[1].weight.fill_(2)
    pairs = [(net[0], "weight"), (net[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    assert zeros(net[0].weight) == 4
    assert zeros(net[1].weight) == 0
