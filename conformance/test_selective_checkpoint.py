"""Checkpointing with a policy: gradients, what the policy is asked, what runs again."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import pytest

from conformance.side_by_side import attempt, compare

pytest.importorskip("torch")


def run(module: Any, choose: Any, retain: bool = False) -> Any:
    """Gradients of a small function under a policy, and how often its product was computed."""
    package = importlib.import_module(f"{module.__name__}.utils.checkpoint")
    computed = []

    class Watch(importlib.import_module(f"{module.__name__}.utils._python_dispatch")
                .TorchDispatchMode):  # fmt: skip
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kw: Any = None) -> Any:
            computed.append(str(func))
            return func(*args, **(kw or {}))

    def function(x: Any, w: Any) -> Any:
        return (x @ w).sin().cos() @ w

    x = module.arange(4.0).reshape(2, 2).requires_grad_()
    w = module.eye(2).requires_grad_()
    contexts = functools.partial(package.create_selective_checkpoint_contexts, choose(module))
    with Watch():
        result = package.checkpoint(function, x, w, use_reentrant=False, context_fn=contexts)
        computed.clear()
        for _ in range(1 + retain):
            result.sum().backward(retain_graph=retain)
    again = [name for name in computed if name in ("aten.sin.default", "aten.cos.default")]
    return x.grad, w.grad, again


def policy_of(saved: str) -> Any:
    """A policy that keeps the results of one operator."""

    def choose(module: Any) -> Any:
        package = importlib.import_module(f"{module.__name__}.utils.checkpoint")

        def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
            kept = str(operator) == saved
            policies = package.CheckpointPolicy
            return policies.MUST_SAVE if kept else policies.PREFER_RECOMPUTE

        return policy

    return choose


@pytest.mark.parametrize("saved", ["aten.mm.default", "aten.sin.default", "aten.cos.default", ""])
def test_policies(saved: str) -> None:
    """The same gradients, and the same operators run again."""
    compare(lambda module: run(module, policy_of(saved)))


def test_lists() -> None:
    """A list of operators in place of a policy, and what is no such list."""
    compare(lambda module: run(module, lambda m: [m.ops.aten.mm.default, m.ops.aten.cos.default]))

    def bad(module: Any) -> Any:
        package = importlib.import_module(f"{module.__name__}.utils.checkpoint")
        make = package.create_selective_checkpoint_contexts
        return [attempt(make, given).kind for given in (3, [module.ops.aten.mm])]

    compare(bad)
