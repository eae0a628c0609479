"""`torch.func`: functions of functions.

Derivatives backwards (`grad`, `vjp`, `jacrev`) and forwards (`jvp`, `jacfwd`, `hessian`,
`linearize`), functions of examples for batches (`vmap`), in any nesting; and modules called with
other tensors than their own.
"""

from __future__ import annotations

from typing import Any

from flambeau._core.missing import lazily
from flambeau.func.batched import vmap
from flambeau.func.forward import hessian, jacfwd, jvp, linearize
from flambeau.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from flambeau.func.reverse import grad, grad_and_value, jacrev, vjp
from flambeau.func.without_writes import functionalize

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
           "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state",
           "vjp", "vmap"]  # fmt: skip


__getattr__ = lazily(__name__)
