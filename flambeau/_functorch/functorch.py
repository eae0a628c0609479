"""The package `functorch` that comes with PyTorch: `torch.func` under its older name."""

from __future__ import annotations

from flambeau._core.missing import lazily
from flambeau._functorch.make_functional import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
)
from flambeau.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional",
    "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


__getattr__ = lazily(__name__)
