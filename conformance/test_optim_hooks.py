"""Hooks, groups, names, refusals and printing of optimizers: what they do, in which order."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch as reference

import flambeau
from conformance.test_optim import OPTIONS, error_of

NAMES = [*OPTIONS, "LBFGS", "Muon"]


def module_of(library: Any) -> Any:
    return importlib.import_module(f"{library.__name__}.optim.optimizer")


def build(library: Any, name: str, **options: Any) -> Any:
    parameter = library.nn.Parameter(library.ones(2, 2))
    parameter.grad = library.ones(2, 2)
    return getattr(library.optim, name)([parameter], **options)


def noted_calls(library: Any) -> list[Any]:
    optimizer, calls = build(library, "SGD", lr=0.5, momentum=0.9), []

    def note(name: str, result: Any = None) -> Any:
        def hook(*args: Any) -> Any:
            calls.append((name, [type(arg).__name__ for arg in args]))
            return result

        return hook

    module = module_of(library)
    handles = [
        module.register_optimizer_step_pre_hook(note("every pre")),
        module.register_optimizer_step_post_hook(note("every post")),
        optimizer.register_step_pre_hook(note("pre")),
        optimizer.register_step_post_hook(note("post")),
        optimizer.register_state_dict_pre_hook(note("save pre")),
        optimizer.register_state_dict_post_hook(note("save post")),
        optimizer.register_state_dict_post_hook(note("save post first"), prepend=True),
        optimizer.register_load_state_dict_pre_hook(note("load pre")),
        optimizer.register_load_state_dict_post_hook(note("load post")),
        optimizer.register_load_state_dict_post_hook(note("load post first"), prepend=True),
    ]
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    for handle in handles:
        handle.remove()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return calls


def test_hooks_are_called_in_turn() -> None:
    assert noted_calls(flambeau) == noted_calls(reference)


def replaced(library: Any) -> Any:
    """Hooks that return something: other arguments, other dicts."""
    optimizer = build(library, "SGD", lr=0.5)
    optimizer.register_step_pre_hook(lambda self, args, kwargs: ((self, lambda: 7), {}))
    optimizer.register_state_dict_post_hook(lambda self, found: {**found, "more": 1})
    optimizer.register_load_state_dict_pre_hook(
        lambda self, found: {**found, "param_groups": [{**found["param_groups"][0], "lr": 3.0}]}
    )
    loss = optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    return loss, sorted(state), optimizer.param_groups[0]["lr"]


def test_hooks_replace_what_they_get() -> None:
    assert replaced(flambeau) == replaced(reference) == (7, ["more", "param_groups", "state"], 3.0)


def own_class(library: Any) -> Any:
    class Signs(library.optim.Optimizer):
        def __init__(self, params: Any, lr: float = module_of(library).required) -> None:
            super().__init__(params, {"lr": lr})

        def step(self, closure: Any = None) -> str:
            with library.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter.sub_(parameter.grad.sign(), alpha=group["lr"])
                        self.state[parameter]["count"] = 1
            return "done"

    parameter = library.nn.Parameter(library.ones(2))
    parameter.grad = library.tensor([3.0, -2.0])
    calls: list[str] = []
    optimizer = Signs([parameter], lr=0.5)
    optimizer.register_step_pre_hook(lambda *args: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *args: calls.append("post"))
    return optimizer.step(), parameter.tolist(), calls, optimizer.state_dict(), repr(optimizer)


def test_a_class_of_the_users_own() -> None:
    assert own_class(flambeau) == own_class(reference)


@pytest.mark.parametrize("name", NAMES)
def test_printing(name: str) -> None:
    assert repr(build(flambeau, name)) == repr(build(reference, name))


def named(library: Any) -> Any:
    net = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 1))
    optimizer = library.optim.Adam(net.named_parameters())
    state = optimizer.state_dict()
    state["param_groups"][0]["param_names"] = list("abcd")
    optimizer.load_state_dict(state)
    return optimizer.param_groups[0]["param_names"], optimizer.state_dict()["param_groups"]


def test_names_of_parameters() -> None:
    assert named(flambeau) == named(reference)


def zeroed(library: Any, set_to_none: bool) -> Any:
    parameter = library.nn.Parameter(library.ones(2))
    other = library.nn.Parameter(library.ones(2))
    (grad,) = library.autograd.grad((parameter**3).sum(), parameter, create_graph=True)
    parameter.grad = grad
    optimizer = library.optim.SGD([parameter, other], lr=0.1)
    optimizer.zero_grad(set_to_none=set_to_none)
    if parameter.grad is None:
        return None, other.grad
    return parameter.grad is grad, parameter.grad.tolist(), grad.grad_fn, other.grad


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_are_forgotten(set_to_none: bool) -> None:
    assert zeroed(flambeau, set_to_none) == zeroed(reference, set_to_none)


def shared_state(library: Any) -> Any:
    """What is loaded is taken itself where its type fits."""
    one, other = (build(library, "Adam") for _ in "ab")
    one.step()
    other.load_state_dict(one.state_dict())
    states = [optimizer.state_dict()["state"][0] for optimizer in (one, other)]
    return [states[0][name] is states[1][name] for name in states[0]]


def test_loaded_state_is_not_copied() -> None:
    assert shared_state(flambeau) == shared_state(reference)


def old_checkpoint(library: Any) -> Any:
    """Options that came later are missing, and steps are plain numbers."""
    optimizer = build(library, "Adam", amsgrad=True)
    optimizer.step()
    state = optimizer.state_dict()
    for name in ("amsgrad", "maximize", "foreach", "capturable", "differentiable", "fused"):
        del state["param_groups"][0][name]
    state["state"][0]["step"] = 5
    optimizer.load_state_dict(state)
    step = optimizer.state_dict()["state"][0]["step"]
    return optimizer.state_dict()["param_groups"], str(step.dtype), step.item()


def test_old_checkpoints() -> None:
    assert old_checkpoint(flambeau) == old_checkpoint(reference)


def ones(library: Any, **options: Any) -> Any:
    return library.ones(2, requires_grad=True, **options)


REFUSED: dict[str, Any] = {
    "a hook's result": lambda t: _with_hook(t),
    "fused and complex": lambda t: _stepped(t, "Adam", t.complex64, fused=True),
    "fused SGD and complex": lambda t: _stepped(t, "SGD", t.complex64, fused=True),
    "capturable": lambda t: _stepped(t, "Adam", t.float32, capturable=True),
    "capturable RMSprop": lambda t: _stepped(t, "RMSprop", t.float32, capturable=True),
    "Adafactor and complex": lambda t: _stepped(t, "Adafactor", t.complex64),
    "foreach and tensor lr": lambda t: t.optim.Adam([ones(t)], lr=t.tensor(0.1), foreach=True),
    "foreach and tensor betas": lambda t: t.optim.Adam(
        [ones(t)], betas=(t.tensor(0.1), t.tensor(0.2)), foreach=True
    ),
    "one tensor beta": lambda t: t.optim.Adam([ones(t)], betas=(0.1, t.tensor(0.2))),
    "lr of two elements": lambda t: t.optim.Adadelta([ones(t)], lr=t.ones(2)),
    "group is no dict": lambda t: t.optim.SGD([ones(t)]).add_param_group([ones(t)]),
    "names and none": lambda t: t.optim.SGD([("a", ones(t))]).add_param_group({"params": ones(t)}),
    "some names": lambda t: t.optim.SGD([("a", ones(t)), ones(t)]),
    "required": lambda t: t.optim.Optimizer([ones(t)], {"lr": module_of(t).required}),
    "no step": lambda t: build(t, "Optimizer", defaults={}).step(),
}


def _stepped(library: Any, name: str, dtype: Any, **options: Any) -> None:
    parameter = ones(library, dtype=dtype)
    parameter.grad = library.ones(2, dtype=dtype)
    getattr(library.optim, name)([parameter], **options).step()


def _with_hook(library: Any) -> None:
    optimizer = build(library, "SGD")
    optimizer.register_step_pre_hook(lambda *args: 3)
    try:
        optimizer.step()
    except RuntimeError as error:
        raise RuntimeError(str(error).partition(" must ")[2]) from None


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    ours, theirs = (error_of(REFUSED[name], library) for library in (flambeau, reference))
    assert ours == theirs
    assert theirs is not None
