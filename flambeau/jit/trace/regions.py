"""Regions of autocast in traces: what they cast is recorded, as torch records it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._core.autocast import settings
from flambeau._ops.table import autocast
from flambeau._ops.table.op import BY_NAME
from flambeau.jit.trace import recipes


def call(trace: Any, name: str, itself: Callable[..., Any], args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:  # fmt: skip
    """Record a call of a public function, after casts of its arguments."""
    if not any(settings.enabled.values()):
        return recipes.call(trace, name, itself, args, kwargs)
    kind = autocast.device_of((*args, *kwargs.values()))
    policy = next((p for p in _policies(name, kind) if p is not None), None)
    if policy is None:
        return recipes.call(trace, name, itself, args, kwargs)
    values = policy((*args, *kwargs.values()), kind)
    named = dict(zip(kwargs, values[len(args) :], strict=True))
    with autocast.Suspended(kind):
        return recipes.call(trace, name, itself, tuple(values[: len(args)]), named)


PRODUCTS = frozenset(
    "matmul linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "scaled_dot_product_attention".split()
)
"""Products that are made of rows with the word `lower`, and are operators of their own in torch."""


def _policies(name: str, kind: str) -> Any:
    """What the rows behind a public name do in the region."""
    last = recipes.NAMES.get(name, name).rpartition(".")[2]
    if last in PRODUCTS and settings.enabled[kind]:
        yield autocast.lower
    for public in (name, recipes.NAMES.get(name, "")):
        if public in BY_NAME:
            for op in BY_NAME[public]:
                yield autocast.policy_now(op, kind)
