"""Automatic differentiation: `backward`, `grad`, grad modes."""

from flambeau.autograd import hooks
from flambeau.autograd.backward import backward, grad
from flambeau.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)

__all__ = ["backward", "enable_grad", "grad", "hooks", "inference_mode", "no_grad", "set_grad_enabled"]
