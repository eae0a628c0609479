"""State dicts by the names of parameters."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from tests.distributed.processes import run


def trained(steps: int = 2):
    torch.manual_seed(steps)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    groups = [{"params": model[1].parameters()}, {"params": model[0].parameters(), "lr": 0.5}]
    optimizer = torch.optim.Adam(groups, lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return model, optimizer


@pytest.mark.parametrize("flatten", [False, True])
def test_there_and_back(flatten: bool):
    options = StateDictOptions(flatten_optimizer_state_dict=flatten)
    model, optimizer = trained()
    of_model, of_optimizer = get_state_dict(model, optimizer, options=options)
    other, of_other = trained(0)
    keys = set_state_dict(other, of_other, model_state_dict=of_model, options=options,
                          optim_state_dict=of_optimizer)  # fmt: skip
    assert keys.missing_keys == keys.unexpected_keys == []
    assert repr(other.state_dict()) == repr(model.state_dict())
    assert repr(of_other.state_dict()) == repr(optimizer.state_dict())


def test_names():
    model, optimizer = trained(0)
    state = get_optimizer_state_dict(model, optimizer)
    assert list(state["state"]) == ["1.weight", "1.bias", "0.weight", "0.bias"]
    assert state["param_groups"][1]["params"] == ["0.weight", "0.bias"]
    assert state["param_groups"][1]["lr"] == 0.5
    assert all(parameter.grad is None for parameter in model.parameters())
    part = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(model, submodules={model[0]})) == ["0.weight", "0.bias"]
    assert list(get_model_state_dict(model, submodules={model[1]}, options=part)) == [
        "weight", "bias"]  # fmt: skip
    model[0].requires_grad_(False)
    frozen = StateDictOptions(ignore_frozen_params=True)
    assert list(get_model_state_dict(model, options=frozen)) == ["1.weight", "1.bias"]


def test_errors():
    model, optimizer = trained(0)
    with pytest.raises(RuntimeError, match="optim state_dict is empty"):
        set_optimizer_state_dict(model, optimizer, {})
    with pytest.raises(ValueError, match="different number of parameter groups"):
        set_optimizer_state_dict(model, optimizer, {"state": {}, "param_groups": []})
    with pytest.raises(RuntimeError, match='Unexpected key.*"extra"'):
        set_model_state_dict(model, {**model.state_dict(), "extra": torch.ones(1)})
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        set_model_state_dict(model, {}, options=StateDictOptions(broadcast_from_rank0=True))


def test_from_rank_0_into_wrapped_models():
    text = """
from flambeau.distributed.checkpoint.state_dict import *
torch.manual_seed(RANK)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1), init_sync=False)
options = StateDictOptions(broadcast_from_rank0=True, full_state_dict=True)
given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)} if RANK == 0 else {}
set_model_state_dict(model, given, options=options)
full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
tell([list(get_model_state_dict(model)), list(full), model.module.weight.sum().item()])
"""
    names = ["weight", "bias"]
    assert run(text, 2) == [[names, names, 2.0], [names, [], 2.0]]
