"""Hooks of modules against PyTorch: what is called, when, with what; states saved and loaded."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

import flambeau
from conformance.test_module_api import outcome, shown


class Log(list):
    """Events of one library, in order."""

    def hook(self, name, result=None):
        """A hook of any kind that notes its arguments and returns `result(*arguments)`."""

        def noted(*arguments):
            self.append((name, shown(arguments)))
            return None if result is None else result(*arguments)

        return noted

    def run(self, function):
        """Call a function; note what comes of it, and its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.append(outcome(function))
        self.extend(f"{w.category.__name__}: {w.message}" for w in caught)


def layer_with_options(library):
    """A module that takes keyword arguments, returns one tensor or two, and can fail."""

    class Layer(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = library.nn.Linear(2, 3)
            self.fails = False

        def forward(self, x, y=None, *, factor=1):
            if self.fails:
                raise ValueError("no forward")
            result = self.inner(x) * factor
            return (result, result.sum()) if y is None else result + y

    library.manual_seed(0)
    return Layer()


def forward_hooks(torch, log):
    x = torch.ones(4, 2, requires_grad=True)
    module = layer_with_options(torch)
    module.register_forward_pre_hook(log.hook("before 2"))
    module.register_forward_pre_hook(log.hook("before 1"), prepend=True)
    module.register_forward_pre_hook(log.hook("before, options"), with_kwargs=True)
    module.register_forward_hook(log.hook("after 2"))
    module.register_forward_hook(log.hook("after 1"), prepend=True)
    module.register_forward_hook(log.hook("after, options"), with_kwargs=True)
    module.register_forward_hook(log.hook("always"), always_call=True)
    module.register_forward_hook(log.hook("both"), always_call=True, with_kwargs=True)
    log.run(lambda: module(x, factor=2))
    log.run(lambda: module(x, torch.ones(3)))
    module.fails = True
    log.run(lambda: module(x))


def global_forward_hooks(torch, log):
    hooks = torch.nn.modules.module
    handles = [
        hooks.register_module_forward_pre_hook(log.hook("before all")),
        hooks.register_module_forward_hook(log.hook("after all")),
        hooks.register_module_forward_hook(log.hook("always"), always_call=True),
        hooks.register_module_forward_hook(log.hook("options"), with_kwargs=True),
    ]
    module = layer_with_options(torch)
    module.register_forward_hook(log.hook("own"))
    log.run(lambda: module(torch.ones(4, 2), factor=3))
    module.fails = True
    log.run(lambda: module(torch.ones(4, 2)))
    for handle in handles:
        handle.remove()
    log.run(lambda: module(torch.ones(4, 2)))


def replacing_hooks(torch, log):
    x = torch.ones(4, 2)
    module = layer_with_options(torch)
    before = module.register_forward_pre_hook(lambda module, args: args[0] * 2)
    after = module.register_forward_hook(lambda module, args, output: output[0] + 1)
    log.run(lambda: module(x))
    before.remove()
    log.run(lambda: module(x))
    after.remove()
    module.register_forward_pre_hook(lambda m, a, k: (a, {"factor": 5}), with_kwargs=True)
    log.run(lambda: module(x))
    module.register_forward_pre_hook(lambda module, args, options: 3, with_kwargs=True)
    log.run(lambda: module(x))


def failing_hooks(torch, log):
    def fail(*arguments):
        raise KeyError("hook")

    module = layer_with_options(torch)
    module.register_forward_hook(fail)
    module.register_forward_hook(log.hook("always"), always_call=True)
    log.run(lambda: module(torch.ones(4, 2)))
    module = layer_with_options(torch)
    module.register_forward_hook(fail, always_call=True)
    module.fails = True
    log.run(lambda: module(torch.ones(4, 2)))


def backward_runs(torch, log, module):
    """Backward with inputs that want gradients, with others, and without any recording."""
    x = torch.ones(4, 2, requires_grad=True)

    def both_outputs():
        first, second = module(x)
        (first.sum() + second * 2).backward()
        return x.grad, module.inner.weight.grad

    log.run(both_outputs)
    log.run(lambda: module(torch.ones(4, 2))[0].sum().backward())
    log.run(lambda: module(torch.ones(4, 2), torch.ones(3)).sum().backward())
    with torch.no_grad():
        log.run(lambda: module(torch.ones(4, 2)))


def full_backward_hooks(torch, log):
    module = layer_with_options(torch)
    module.register_full_backward_hook(log.hook("2"))
    module.register_full_backward_hook(log.hook("1"), prepend=True)
    module.inner.register_full_backward_hook(log.hook("inner"))
    backward_runs(torch, log, module)


def backward_pre_hooks(torch, log):
    module = layer_with_options(torch)
    module.register_full_backward_pre_hook(log.hook("2"))
    module.register_full_backward_pre_hook(log.hook("1"), prepend=True)
    module.inner.register_full_backward_pre_hook(log.hook("inner"))
    backward_runs(torch, log, module)


def replacing_backward_hooks(torch, log):
    for register, replace in (
        ("register_full_backward_hook", lambda module, into, out: (into[0] * 10, None)),
        ("register_full_backward_hook", lambda module, into, out: (into[0],)),
        ("register_full_backward_pre_hook", lambda module, out: tuple(g * 10 for g in out)),
    ):
        module = layer_with_options(torch)
        getattr(module, register)(replace)
        x = torch.ones(4, 2, requires_grad=True)

        def run(module=module, x=x):
            module(x, torch.ones(3)).sum().backward()
            return x.grad

        log.run(run)


def global_backward_hooks(torch, log):
    hooks = torch.nn.modules.module
    for register in (
        "register_module_full_backward_pre_hook",
        "register_module_full_backward_hook",
    ):
        handle = getattr(hooks, register)(log.hook(register))
        try:
            backward_runs(torch, log, layer_with_options(torch))
        finally:
            handle.remove()
    log.run(lambda: hooks.register_module_backward_hook(log.hook("older")))


def older_backward_hooks(torch, log):
    class Doubled(torch.nn.Module):
        def forward(self, x):
            return x * 2

    for module in (Doubled(), torch.nn.Sequential(Doubled(), Doubled())):
        module.register_backward_hook(log.hook("older"))
        x = torch.ones(3, requires_grad=True)
        log.run(lambda x=x, module=module: module(x.sin()).sum().backward())
        log.run(lambda module=module: module.register_full_backward_hook(log.hook("full")))
    module = torch.nn.Identity()
    module.register_full_backward_hook(log.hook("full"))
    log.run(lambda: module.register_backward_hook(log.hook("older")))


def registration_hooks(torch, log):
    hooks = torch.nn.modules.module
    kinds = ("buffer", "module", "parameter")
    handles = [
        getattr(hooks, f"register_module_{kind}_registration_hook")(
            lambda module, name, value, kind=kind: log.append((kind, shown(module), name))
        )
        for kind in kinds
    ]
    nn = torch.nn
    nn.BatchNorm1d(2)
    module = nn.Sequential(nn.Linear(1, 1))
    module.child = nn.ReLU()
    module.register_buffer("state", torch.ones(1))
    module.state = torch.zeros(1)
    module.weight = nn.Parameter(torch.ones(1))
    module.weight = module.child = None
    for handle in handles:
        handle.remove()
    nn.BatchNorm1d(2)


def state_dict_hooks(torch, log):
    module = layer_with_options(torch)
    module.register_state_dict_pre_hook(log.hook("before saving"))
    module.register_state_dict_post_hook(log.hook("after saving"))
    module._register_state_dict_hook(log.hook("after saving, private"))
    module.inner._register_state_dict_hook(
        lambda module, state, prefix, metadata: state.update({f"{prefix}extra": 1})
    )
    log.run(lambda: list(module.state_dict(prefix="a.")))
    module.register_load_state_dict_pre_hook(log.hook("before loading"))
    module.register_load_state_dict_post_hook(log.hook("after loading"))
    module._register_load_state_dict_pre_hook(log.hook("before loading, private"))
    bias = {"inner.bias": torch.ones(3)}
    log.run(lambda: module.load_state_dict(bias | {"inner.weight": torch.ones(3, 2)}))
    log.run(lambda: module.load_state_dict(bias | {"z": torch.ones(1)}, strict=False))
    log.run(lambda: module.load_state_dict(bias | {"z": torch.ones(1), "q.r": torch.ones(1)}))
    forgiving = layer_with_options(torch)
    forgiving.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    log.run(lambda: forgiving.load_state_dict(bias))
    for register in ("register_load_state_dict_post_hook", "register_state_dict_post_hook"):
        wrong = layer_with_options(torch)
        getattr(wrong, register)(lambda *arguments: 3)
        log.run(lambda wrong=wrong: wrong.load_state_dict(wrong.state_dict()))


def extra_state(torch, log):
    class Extra(torch.nn.Linear):
        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    source, target = Extra(1, 1), Extra(1, 1)
    source.count = 5
    state = source.state_dict()
    log.append(list(state))
    log.run(lambda: target.load_state_dict(state))
    log.append(target.count)
    log.run(lambda: torch.nn.Linear(1, 1).load_state_dict(state))
    del state["_extra_state"]
    log.run(lambda: target.load_state_dict(state))


def older_states(torch, log):
    class Renamed(torch.nn.Linear):
        _version = 3

        def _load_from_state_dict(self, state_dict, prefix, metadata, *rest):
            log.append((dict(metadata), prefix))
            if f"{prefix}w" in state_dict:
                state_dict[f"{prefix}weight"] = state_dict.pop(f"{prefix}w")
            super()._load_from_state_dict(state_dict, prefix, metadata, *rest)

    module = torch.nn.Sequential(Renamed(1, 1))
    log.run(lambda: module.load_state_dict({"0.w": torch.ones(1, 1), "0.bias": torch.ones(1)}))
    log.run(lambda: module.load_state_dict(module.state_dict()))
    norm = torch.nn.BatchNorm1d(2)
    state = norm.state_dict()
    del state["num_batches_tracked"]
    log.run(lambda: norm.load_state_dict(state))
    state._metadata[""]["version"] = 1
    log.run(lambda: norm.load_state_dict(state))


def assigned_states(torch, log):
    nn = torch.nn
    module = nn.Linear(2, 3)
    weight = torch.ones(3, 2, dtype=torch.float64)
    bias = nn.Parameter(torch.ones(3), requires_grad=False)
    log.run(lambda: module.load_state_dict({"weight": weight, "bias": bias}, assign=True))
    log.append((shown(module.weight.dtype), module.weight.data_ptr() == weight.data_ptr()))
    log.append((module.bias.requires_grad, type(module.weight).__name__))
    wrong = {"weight": torch.ones(3, 2), "bias": torch.ones(2)}
    log.run(lambda: module.load_state_dict(wrong, assign=True))


def buffers(torch, log):
    nn = torch.nn
    module = nn.Module()
    module.register_buffer("a", torch.ones(1), persistent=False)
    module.register_buffer("b", torch.ones(1))
    module.c = nn.Buffer(torch.ones(2))
    module.d = nn.Buffer(torch.ones(2), persistent=False)
    log.append((list(module.state_dict()), [name for name, _ in module.named_buffers()]))
    module.a, module.b = None, torch.zeros(3)
    log.append((list(module.state_dict()), shown(module.b)))
    del module.b
    module.register_buffer("a", torch.ones(1))
    log.append((list(module.state_dict()), list(copy.deepcopy(module).state_dict())))


def older_pickles(torch, log):
    """Modules written before some fields existed."""
    fields = torch.nn.Linear(1, 1).__getstate__()
    younger = "_forward_hooks_with_kwargs _non_persistent_buffers_set _load_state_dict_post_hooks"
    for name in [*younger.split(), "_backward_pre_hooks", "_is_full_backward_hook"]:
        del fields[name]
    module = torch.nn.Linear.__new__(torch.nn.Linear)
    module.__setstate__(fields)
    log.append(sorted(vars(module)))
    module.weight.data.fill_(2.0)
    module.bias.data.zero_()
    log.run(lambda: module(torch.ones(1)))


SCENARIOS = [
    forward_hooks, global_forward_hooks, replacing_hooks, failing_hooks, full_backward_hooks,
    backward_pre_hooks, replacing_backward_hooks, global_backward_hooks, older_backward_hooks,
    registration_hooks, state_dict_hooks, extra_state, older_states, assigned_states, buffers,
    older_pickles,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _kind_of_global_hooks():
    """Both libraries remember which kind of backward hook was registered for all modules."""
    yield
    torch.nn.modules.module._global_is_full_backward_hook = None
    flambeau.nn.modules.module.global_hooks.is_full_backward = None


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda function: function.__name__)
def test_events(scenario):
    theirs, ours = Log(), Log()
    scenario(torch, theirs)
    scenario(flambeau, ours)
    assert theirs
    assert ours == theirs
