"""Limits on gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from math import inf
from typing import Any

from flambeau._core.device import Cuda
from flambeau._ops.table.namespace import ops
from flambeau._tensor.tensor import Tensor
from flambeau.autograd.grad_mode import no_grad

EMPTY_LIST = (
    "Expected !nested_tensorlist[0].empty() to be true, but got false.  (Could this error message "
    "be improved?  If so, please report an enhancement request to PyTorch.)"
)
"""What torch says of a list without gradients."""


def _as_list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Any) -> list[Tensor]:
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors together, as if they were one vector.

    >>> import flambeau as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.]), torch.tensor([[4.]])])
    tensor(5.)
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return ops.zeros(())  # type: ignore[no-any-return]
    _check_list(tensors)
    if foreach is not False and norm_type == inf:
        _check_not_empty(tensors)
    norms = [ops.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
    if Cuda.count:
        norms = [norm.to(norms[0].device) for norm in norms]
    total = ops.linalg.vector_norm(ops.stack(norms), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total  # type: ignore[no-any-return]


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Scale gradients in place by max_norm / total_norm where that is below 1.

    >>> import flambeau as torch
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3., 4.])
    >>> torch.nn.utils.clip_grads_with_norm_([weight], 1.0, torch.tensor(5.0))
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    grads = _grads(parameters)
    max_norm = float(max_norm)
    if not grads:
        return
    factor = ops.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    if foreach is not False and factor.ndim:
        raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {factor.ndim} "
                           f"dimensions and {factor.numel()} elements.")  # fmt: skip
    for grad in grads:
        grad.mul_(factor.to(grad.device) if Cuda.count else factor)


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients in place so that their norm as one vector is at most `max_norm`.

    Returns the norm before.

    >>> import flambeau as torch
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        is_generator = not isinstance(parameters, (list, tuple)) and iter(parameters) is parameters
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=3,
            )
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The deprecated name of `clip_grad_norm_`.

    >>> import flambeau as torch
    >>> import warnings
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> weight.grad = torch.tensor([3., 4.])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # it is deprecated
    ...     norm = torch.nn.utils.clip_grad_norm([weight], 1.0)
    >>> norm, weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Limit every element of the gradients to [-clip_value, clip_value], in place.

    >>> import flambeau as torch
    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, -4.0])
    >>> torch.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1., -1.])
    """
    clip_value = float(clip_value)
    grads = _grads(parameters)
    if not grads:
        raise RuntimeError(EMPTY_LIST)
    for group in _by_type(grads):
        if foreach is not False and any(grad.is_sparse for grad in group):
            for grad in group:
                grad.clamp_min_(-clip_value)  # an error at the sparse one
        for grad in group:
            grad.clamp_(min=-clip_value, max=clip_value)


def _by_type(grads: list[Tensor]) -> list[list[Tensor]]:
    """Gradients of one type together; torch comes to the type that it saw last first, which shows
    where one of them is refused."""
    groups: dict[Any, list[Tensor]] = {}
    for grad in grads:
        groups.setdefault((grad.device, grad.dtype), []).append(grad)
    return list(groups.values())[::-1]


def _check_list(tensors: list[Any]) -> None:
    """All are tensors, in the words of torch, which sorts them by type."""
    tensors[0].device  # noqa: B018 - an AttributeError
    for place, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError("Tensors of the first list of nested Tensor lists are supposed to "
                               f"be defined but the {place}-th Tensor is not.")  # fmt: skip


def _check_not_empty(tensors: list[Tensor]) -> None:
    if not all(tensor.numel() for tensor in tensors):
        raise RuntimeError("_foreach_norm cannot compute the infinity norm on an empty tensor "
                           "because the operation does not have an identity")  # fmt: skip
