"""Registration of hooks on modules: what a handle takes away, what copies and files keep."""

import copy
import gc
import pickle
import weakref

import pytest

import flambeau as torch
from flambeau import nn

TABLES = [name for name in vars(nn.Module()) if name.endswith(("_hooks", "_kwargs", "_called"))]


def count(module):
    return sum(len(getattr(module, name)) for name in TABLES)


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_a_handle_takes_all_of_its_hook_away(kind):
    module = nn.ReLU()
    options = [{}]
    if kind.startswith("forward"):
        options.append({"with_kwargs": True})
    if kind == "forward":
        options.append({"with_kwargs": True, "always_call": True})
    for option in options:
        handle = getattr(module, f"register_{kind}_hook")(print, **option)
        assert count(module) == 1 + len(option)
        handle.remove()
        handle.remove()
        assert count(module) == 0


def test_a_handle_keeps_no_module():
    module = nn.ReLU()
    handle = module.register_forward_hook(print, with_kwargs=True)
    module.register_load_state_dict_pre_hook(print)
    alive = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert alive() is None
    finally:
        gc.enable()
    handle.remove()
    assert handle.hooks_dict_ref() is None


def doubled(module, args, options, out):
    return out * 2


def told(module, state, *rest):
    state["told"].append(module)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies_have_hooks_and_handles_of_their_own(duplicate):
    module = nn.ReLU()
    handle = module.register_forward_hook(doubled, with_kwargs=True)
    module.register_load_state_dict_pre_hook(told)
    other, its_handle = duplicate((module, handle))
    assert other(torch.ones(1)).item() == 2
    its_handle.remove()
    assert other(torch.ones(1)).item() == 1
    assert module(torch.ones(1)).item() == 2
    state = {"told": []}
    for hook in other._load_state_dict_pre_hooks.values():
        hook(state)
    assert state["told"] == [other]


def test_global_hooks_leave_nothing_behind():
    hooks = torch.nn.modules.module
    with hooks.register_module_forward_hook(doubled, with_kwargs=True, always_call=True):
        assert nn.ReLU()(torch.ones(1)).item() == 2
    assert nn.ReLU()(torch.ones(1)).item() == 1
    assert not hooks._global_forward_hooks
    assert not hooks._global_forward_hooks_with_kwargs
    assert not hooks._global_forward_hooks_always_called


def test_older_hooks_see_the_nodes_of_linear_layers():
    layer = nn.Linear(2, 3)
    seen = []
    with pytest.warns(FutureWarning, match="forward contains multiple autograd Nodes"):
        layer.register_backward_hook(lambda module, into, out: seen.append((into, out)))
        out = layer(torch.ones(4, 2, requires_grad=True))
    out.sum().backward()
    into, out = seen[0]
    assert [grad.shape for grad in into] == [(3,), (4, 2), (2, 3)]
    assert torch.equal(into[0], layer.bias.grad)
    assert torch.equal(into[2], layer.weight.grad.t())
    assert [grad.shape for grad in out] == [(4, 3)]
