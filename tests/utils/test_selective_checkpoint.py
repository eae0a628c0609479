"""Results that a policy keeps are not computed again."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)


def test_kept_results_may_be_used_twice() -> None:
    """Backward through a kept graph finds them again."""

    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        assert not context.is_recompute
        return CheckpointPolicy.MUST_SAVE

    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = checkpoint(
        lambda x: x.sin().exp(), x, use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    )  # fmt: skip
    y.sum().backward(retain_graph=True)
    once = x.grad.clone()
    y.sum().backward()
    assert torch.equal(x.grad, 2 * once)
    torch.testing.assert_close(once, (x.sin().exp() * x.cos()).detach())


def test_what_is_no_policy() -> None:
    """Neither a function nor a list of overloads."""
    with pytest.raises(TypeError, match="must be either a function or a list"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="to be an OpOverload"):
        create_selective_checkpoint_contexts([torch.ops.aten.mm])
